"""Starts a local run, `scripts/serve` or `scripts/dev`: reads its command line and takes its state folder.

Usage: python scripts/local.py serve|dev CALLER [OPTION...]; CALLER is the folder that relative paths start from.
One run has a state folder at a time: a lock in it is held by this process, which becomes Node's, and by each workerd
below (`scripts/leash.py`). The kernel lets go of it when the last of them has ended, also by `kill -9`.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).resolve().parents[1]
HOST: Final = "127.0.0.1"
PORT_MAX: Final = 65535

OWN_FOLDER: Final = ".dcb-runtime"
"""Folder in a state folder for what is neither the store's nor wrangler's: the lock, temporary files."""
LOCK_NAME: Final = "lock"
TEMPORARY_NAME: Final = "tmp"
MARKS: Final = (f"{OWN_FOLDER}/{LOCK_NAME}", "v3/do", "v3/d1")
"""A folder with one of these is a state folder, ours or of `wrangler dev`."""

LOCK_WAIT_S: Final = 2.0
"""For as long a run that was killed may take to be gone altogether."""
LOCK_POLL_S: Final = 0.05


class UsageError(Exception):
    """What was asked for cannot be done; the message is one line."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser_of(script: str) -> Parser:
    """The options of `scripts/serve` or `scripts/dev`."""
    kept = script == "dev"
    what = "under `wrangler dev`" if kept else "on Miniflare without wrangler's proxy"
    parser = Parser(
        prog=f"scripts/{script}",
        description=f"Runs the worker in the foreground {what}; prints `ready URL` when it answers.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--port", type=_port, default=8787 if kept else 0, metavar="N", help="0: any (default: %(default)s)"
    )
    where = "the clone's .wrangler/state" if kept else "a new one, deleted at the end"
    parser.add_argument("--state", metavar="DIR", help=f"the folder that keeps the data (default: {where})")
    if not kept:
        parser.add_argument("--root", metavar="DIR", help="the folder of the worker's main module (default: src)")
        parser.add_argument(
            "--var", action="append", type=_variable, default=[], metavar="NAME=VALUE", help="a variable for the worker"
        )
    return parser


def main(arguments: Sequence[str]) -> NoReturn:
    """Check everything that can be wrong, take the state folder and become Node."""
    # Nothing is to be undone yet: Ctrl-C simply ends it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    script, caller, *given = arguments
    options = parser_of(script).parse_args(given)
    config = tomllib.loads((ROOT / "wrangler.toml").read_text(encoding="utf-8"))
    try:
        run = start_serve(options, config, Path(caller)) if script == "serve" else start_dev(options, Path(caller))
    except UsageError as refused:
        print(f"scripts/{script}: {refused}", file=sys.stderr)
        sys.exit(2)
    os.execvp("node", ["node", str(ROOT / "scripts" / f"{script}.mjs"), json.dumps(run)])


def start_serve(options: argparse.Namespace, config: dict[str, Any], caller: Path) -> dict[str, Any]:
    """What `serve.mjs` is told."""
    root = caller / options.root if options.root is not None else ROOT / "src"
    main_module = Path(config["main"]).name
    if not (root / main_module).is_file():
        raise UsageError(f"--root {root} has no {main_module}")
    check_port(options.port)
    ephemeral = options.state is None
    state = Path(tempfile.mkdtemp(prefix="dcb-runtime-")) if ephemeral else absolute(caller, options.state)
    own = take(state)
    return {
        "config": config,
        "port": options.port,
        "root": os.path.normpath(root),
        "vars": dict(options.var),
        "state": str(state),
        "deleteAtEnd": str(state if ephemeral else own / TEMPORARY_NAME),
    }


def start_dev(options: argparse.Namespace, caller: Path) -> dict[str, Any]:
    """What `dev.mjs` is told."""
    check_port(options.port)
    state = ROOT / ".wrangler" / "state" if options.state is None else absolute(caller, options.state)
    own = take(state)
    return {
        "port": options.port,
        "state": str(state),
        "config": str(own / "config"),
        "deleteAtEnd": str(own / TEMPORARY_NAME),
        "python": sys.executable,
    }


def absolute(caller: Path, folder: str) -> Path:
    """A folder of the command line as an absolute path."""
    if not folder:
        raise UsageError("--state names no folder")
    return Path(os.path.normpath(caller / folder))


def check_port(port: int) -> None:
    """Refuse a port that cannot be listened on; who takes it between now and the start is told by the runtime."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise UsageError(f"port {port} cannot be used: {error.strerror}; choose another --port") from None


def take(state: Path) -> Path:
    """Make the state folder if need be, hold its lock for this process's life, and give it a new temporary folder.

    Returns the folder of our own in it. Raises ``UsageError`` for a folder that is somebody else's or in use; then
    nothing in it was changed.
    """
    own = state / OWN_FOLDER
    try:
        if state.exists() and not state.is_dir():
            raise UsageError(f"--state {state} is no folder")
        if state.exists() and any(state.iterdir()) and not any((state / mark).exists() for mark in MARKS):
            raise UsageError(f"--state {state} holds other files and no state of an earlier run; name a new folder")
        own.mkdir(parents=True, exist_ok=True)
        lock = own / LOCK_NAME
        if not hold(lock):
            raise UsageError(f"the state folder {state} is in use by another run; end that one or name another --state")
        temporary = own / TEMPORARY_NAME
        if temporary.exists():
            shutil.rmtree(temporary)
        temporary.mkdir()
    except OSError as error:
        raise UsageError(f"--state {state} cannot be used: {error.strerror}") from None
    # Miniflare's temporary files lie with the state, so that nothing of a killed run is left elsewhere.
    os.environ["TMPDIR"] = str(temporary)
    os.environ["DCB_RUNTIME_LOCK"] = str(lock)
    return own


def hold(file: Path) -> bool:
    """Hold a lock until this process and all that share it have ended; False when another run holds it."""
    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A run has to get the lock alone; then it shares it with its own workerd.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(lock)
                return False
            time.sleep(LOCK_POLL_S)
        else:
            os.set_inheritable(lock, True)
            return True


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


if __name__ == "__main__":
    main(sys.argv[1:])
