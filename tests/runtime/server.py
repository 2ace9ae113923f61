"""Start the worker with one of the scripts from a test, talk to it, kill it, and start it again on the same state."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

PROJECT_ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
REQUEST_TIMEOUT_S = 120.0

API_TOKEN = "test-api-token-0123456789"
OPERATOR_TOKEN = "test-operator-token-0123456789"


class ServerError(Exception):
    """The server did not start or did not end as it should; the message has its log's last lines."""


class Server:
    """A worker under `scripts/serve` (or `scripts/dev`), in a process group of its own.

    The state folder outlives `kill` and `stop`, so that `restart` opens it again. A folder that the class made
    itself is deleted by `close`, which leaving the `with` block calls.
    """

    def __init__(
        self,
        *,
        script: Literal["serve", "dev"] = "serve",
        state: Path | None = None,
        root: Path | None = None,
        variables: Mapping[str, str] | None = None,
        api_token: str = API_TOKEN,
        operator_token: str = OPERATOR_TOKEN,
    ) -> None:
        self._script = PROJECT_ROOT / "scripts" / script
        self._owns_state = state is None
        self.state = state or Path(tempfile.mkdtemp(prefix="dcb-runtime-state-"))
        self.root = root
        self.variables = dict(variables or {})
        self.api_token = api_token
        self.operator_token = operator_token
        self.base_url = ""
        self._process: subprocess.Popen[str] | None = None
        self._log: list[str] = []
        self._log_reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the server, which is also its process group's."""
        if self._process is None:
            raise ServerError("the server does not run")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the server was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What the server wrote to standard error since its last start."""
        return "".join(self._log)

    def start(self) -> None:
        """Start the server and wait until Python in the worker has answered a first request."""
        if self.running:
            raise ServerError("the server runs already")
        command = [str(self._script), "--port", "0", "--state", str(self.state)]
        if self.root is not None:
            command += ["--root", str(self.root)]
        for name, value in self.variables.items():
            command += ["--var", f"{name}={value}"]
        tokens = {"API_TOKEN": self.api_token, "REPAIR_OPERATOR_TOKEN": self.operator_token}
        process = subprocess.Popen(
            command,
            env={**os.environ, **tokens},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._process = process
        self._log = []
        self._log_reader = threading.Thread(target=self._read_log, args=(process,), daemon=True)
        self._log_reader.start()
        line = self._first_line(process)
        if not line.startswith("ready http://"):
            self.kill()
            raise ServerError(f"the server did not start: {line!r}\n{self.log[-4000:]}")
        self.base_url = line.removeprefix("ready ").strip()

    def kill(self) -> None:
        """Kill the whole process group with SIGKILL, as a power cut would."""
        self._signal_group(signal.SIGKILL)
        self._reap()

    def stop(self) -> int:
        """Ask the server to end (SIGTERM), wait for it and return its exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait until the server has ended on its own and return its exit code."""
        return self._reap()

    def restart(self) -> None:
        """Start the server again on the same state; a running one is stopped first. The URL changes."""
        if self.running:
            self.stop()
        self.start()

    def close(self) -> None:
        """End the server if it runs and delete a state folder that this object made."""
        try:
            if self.running:
                self.stop()
        finally:
            if self._owns_state:
                shutil.rmtree(self.state, ignore_errors=True)

    def client(self, token: str | None = None) -> httpx.Client:
        """An HTTP client for the server; with a token it sends it as the bearer."""
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=REQUEST_TIMEOUT_S)

    def workerd_pids(self) -> list[int]:
        """The process ids of the workerd processes of this server."""
        return [pid for pid in group_members(self.pid) if _executable_name(pid) == "workerd"]

    def peak_memory(self) -> int:
        """The peak resident memory of the workerd processes so far, in bytes."""
        return sum(peak_memory(pid) for pid in self.workerd_pids())

    def wait_for_log(self, text: str) -> None:
        """Wait until the server has logged `text`: workerd's log arrives later than the answer."""
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while text not in self.log:
            if time.monotonic() > deadline:
                raise ServerError(f"the log has no {text!r}\n{self.log[-4000:]}")
            time.sleep(0.01)

    def _first_line(self, process: subprocess.Popen[str]) -> str:
        if process.stdout is None:
            raise ServerError("the server has no standard output")
        lines: queue.Queue[str] = queue.Queue()
        stdout = process.stdout
        threading.Thread(target=lambda: lines.put(stdout.readline()), daemon=True).start()
        try:
            return lines.get(timeout=START_TIMEOUT_S)
        except queue.Empty:
            return f"no answer within {START_TIMEOUT_S:.0f} s"

    def _read_log(self, process: subprocess.Popen[str]) -> None:
        for line in process.stderr or ():
            self._log.append(line)

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    def _wait_for_group(self) -> None:
        """Wait for the processes that the server itself started, so that nobody holds the state any more."""
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while members := list(group_members(self.pid)):
            if time.monotonic() > deadline:
                raise ServerError(f"processes outlived the server: {members}")
            time.sleep(0.01)

    def _reap(self) -> int:
        process = self._process
        if process is None:
            raise ServerError("the server does not run")
        try:
            code = process.wait(timeout=STOP_TIMEOUT_S)
            self._wait_for_group()
        except subprocess.TimeoutExpired as error:
            self._signal_group(signal.SIGKILL)
            process.wait(timeout=STOP_TIMEOUT_S)
            raise ServerError(f"the server did not end on its own\n{self.log[-4000:]}") from error
        finally:
            if self._log_reader is not None:
                self._log_reader.join(timeout=STOP_TIMEOUT_S)
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        return code


def group_members(group: int) -> Iterator[int]:
    """The process ids of a process group, without those that have ended and wait to be reaped."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # "pid (name) state parent group ...", where a name may hold spaces and parentheses.
            state, _, member_of = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(member_of) == group and state != "Z":
            yield int(folder.name)


def peak_memory(pid: int) -> int:
    """The peak resident memory of a process, in bytes (Linux: VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ServerError(f"process {pid} has no VmHWM")


def _executable_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/exe").resolve().name
    except OSError:
        return ""
