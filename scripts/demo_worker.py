"""The worker of the demo: started on a free port, asked as its operator, and stopped again however the demo ends."""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

Json: TypeAlias = dict[str, Any]

ROOT: Final = Path(__file__).resolve().parents[1]
START_TIMEOUT_S: Final = 120
STOP_TIMEOUT_S: Final = 20
REQUEST_TIMEOUT_S: Final = 60
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class DemoError(Exception):
    """Something did not go as it should; the message says what."""


def say(text: str = "") -> None:
    """Print a line, at once."""
    print(text, flush=True)


def operator_client(url: str, token: str) -> httpx.Client:
    """A client that sends the operator's token."""
    headers = {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers=headers, timeout=REQUEST_TIMEOUT_S, trust_env=False)


def ask(client: httpx.Client, method: str, path: str, body: Json | None = None) -> Json:
    """One request; its answer must be a success."""
    response = client.request(method, path, json=body)
    if not response.is_success:
        raise DemoError(f"{method} {path} answered {response.status_code}: {response.text[:500]}")
    answer: Json = response.json()
    return answer


@contextmanager
def running_worker(state: Path, log: Path) -> Iterator[tuple[str, str]]:
    """Run ``scripts/serve`` on a free port with tokens of its own; gives the URL and the operator's token."""
    token = secrets.token_hex(24)
    environment = {**os.environ, "API_TOKEN": secrets.token_hex(24), "REPAIR_OPERATOR_TOKEN": token}
    # The leash: the worker ends with the demo even if that one is killed without a chance to stop it.
    leash = [sys.executable, str(ROOT / "scripts" / "leash.py"), str(os.getpid()), "-"]
    command = [*leash, str(ROOT / "scripts" / "serve"), "--port", "0", "--state", str(state)]
    say("demo: starting the worker on this machine")
    # A session of its own: a Ctrl-C reaches the demo alone, which then ends the worker in good order.
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield _ready_url(process), token
        finally:
            try:
                ignore_signals()
            finally:
                _stop(process)


def _ready_url(process: subprocess.Popen[bytes]) -> str:
    if process.stdout is None:
        raise DemoError("the worker has no standard output")
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(START_TIMEOUT_S):
            raise DemoError(f"the worker did not start within {START_TIMEOUT_S} s")
    line = process.stdout.readline().decode()
    if not line.startswith("ready http://"):
        raise DemoError("the worker did not start")
    return line.removeprefix("ready ").strip()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def stop_on_signal(_signal: int, _frame: FrameType | None) -> NoReturn:
    """End the demo as an interrupt does."""
    # One is enough: whatever follows must not disturb the cleaning up.
    ignore_signals()
    raise KeyboardInterrupt


def ignore_signals() -> None:
    """From here on everything is being put away, which nothing may cut short."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
