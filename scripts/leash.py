"""Runs a command that ends with its parent, however that one ends, and that keeps a state folder's lock until then.

Usage: python scripts/leash.py PARENT LOCK COMMAND [ARGUMENT...]
PARENT is the process id of the caller; LOCK is the lock file that the run holds (see `scripts/local.py`), or `-`.
The command takes this process's place. It gets SIGKILL from the kernel when its parent is gone (Linux).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; an exec keeps that, a fork does not."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:
        sys.exit("leash: the parent has ended")


def share_lock(file: str) -> None:
    """Hold the run's lock as well, in this process and in whatever takes its place."""
    lock = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # As it should be: the run holds it. Nobody else can, for a new run wants it alone.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.set_inheritable(lock, True)
    else:
        sys.exit("leash: the run has ended")


def main(arguments: list[str]) -> NoReturn:
    """Put on the leash, then become the command."""
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    parent, lock, *command = arguments
    end_with_parent(int(parent))
    if lock != "-":
        share_lock(lock)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
