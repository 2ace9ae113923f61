"""One run has a state folder at a time; whatever a run started ends with it, also after `kill -9` of one process."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from scripts import local
from tests.runtime.server import PROJECT_ROOT, Server, group_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THIN = Path(__file__).parent / "workers" / "thin"
SCRIPTS = PROJECT_ROOT / "scripts"
END_TIMEOUT_S = 20.0


def server_of(script: Literal["serve", "dev"], state: Path) -> Server:
    return Server(script=script, state=state, root=THIN if script == "serve" else None)


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + END_TIMEOUT_S
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def second_run(script: str, state: Path) -> subprocess.CompletedProcess[str]:
    command = [str(SCRIPTS / script), "--port", "0", "--state", str(state)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("script", ["serve", "dev"])
def test_nothing_outlives_a_killed_run_and_the_next_one_begins(script: Literal["serve", "dev"], tmp_path: Path) -> None:
    with server_of(script, tmp_path) as server:
        group = server.pid
        assert len(server.workerd_pids()) >= 1
        os.kill(server.pid, signal.SIGKILL)  # this process alone, not its group
        assert server.wait() == -signal.SIGKILL
        assert list(group_members(group)) == []
        server.start()


@pytest.mark.parametrize("script", ["serve", "dev"])
def test_a_folder_in_use_is_refused_and_left_alone(script: Literal["serve", "dev"], tmp_path: Path) -> None:
    with server_of(script, tmp_path) as server:
        before = sorted((tmp_path / ".dcb-runtime" / "tmp").iterdir())
        assert before != []
        for other in ("serve", "dev"):
            result = second_run(other, tmp_path)
            assert (result.returncode, result.stdout) == (2, "")
            (line,) = result.stderr.splitlines()
            assert line.startswith(f"scripts/{other}: the state folder {tmp_path} is in use by another run")
        assert sorted((tmp_path / ".dcb-runtime" / "tmp").iterdir()) == before
        with server.client() as client:
            assert client.get("/health").status_code == 200


def test_workerd_holds_the_folder_for_itself(tmp_path: Path) -> None:
    """Whatever may keep workerd from ending with its parent: as long as it runs, nobody else opens the folder."""
    with server_of("serve", tmp_path) as server:
        (workerd,) = server.workerd_pids()
        lock = (tmp_path / ".dcb-runtime" / "lock").resolve()
        assert lock in [file.resolve() for file in Path(f"/proc/{workerd}/fd").iterdir()]
        locks = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
        shares = [words[3] for words in locks if words[5].endswith(f":{lock.stat().st_ino}")]
        assert shares == ["READ", "READ"]


def test_a_run_that_shares_the_lock_keeps_others_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LOCK_WAIT_S", 0.1)
    file = tmp_path / "lock"
    file.touch()
    with file.open("r+b") as orphan:
        fcntl.flock(orphan, fcntl.LOCK_SH)
        assert not local.hold(file)
    assert local.hold(file)


@pytest.mark.parametrize("mark", ["v3/do", "v3/d1"])
def test_a_state_folder_of_wrangler_is_taken(mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMPDIR", "DCB_RUNTIME_LOCK"):
        monkeypatch.setenv(name, "")
    (tmp_path / mark).mkdir(parents=True)
    local.take(tmp_path)
    assert (tmp_path / ".dcb-runtime" / "tmp").is_dir()


def test_a_folder_of_somebody_elses_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    with pytest.raises(local.UsageError, match="holds other files"):
        local.take(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["tmp"]


def leash(parent: int, lock: str, *command: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(SCRIPTS / "leash.py"), str(parent), lock, *command]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_a_leash_whose_holder_has_gone_starts_nothing(tmp_path: Path) -> None:
    gone = leash(1, "-", "echo", "started")
    assert (gone.returncode, gone.stdout, gone.stderr) == (1, "", "leash: the parent has ended\n")
    (tmp_path / "lock").touch()
    ended = leash(os.getpid(), str(tmp_path / "lock"), "echo", "started")
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "leash: the run has ended\n")
    assert leash(os.getpid(), "-", "echo", "started").stdout == "started\n"


def processes_with(text: str) -> Iterator[int]:
    """Processes whose environment has a text, without those that have ended and wait to be reaped."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found = text.encode() in (folder / "environ").read_bytes()
            except OSError:
                continue
            if found:
                yield int(folder.name)


def test_a_killed_demo_leaves_nothing_running(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "DEMO_MARK": str(tmp_path)}
    mark = f"DEMO_MARK={tmp_path}"
    with subprocess.Popen([str(SCRIPTS / "demo")], env=environment, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "IMPORTING" in line:
                break
        assert len(list(processes_with(mark))) >= 3
        demo.kill()
    assert eventually(lambda: not list(processes_with(mark)))
