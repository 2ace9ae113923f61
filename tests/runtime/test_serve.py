"""`scripts/serve` on real workerd: boots offline, keeps what it acknowledged, and ends without a trace."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.runtime.server import (
    API_TOKEN,
    OPERATOR_TOKEN,
    PROJECT_ROOT,
    REQUEST_TIMEOUT_S,
    Server,
    ServerError,
    group_members,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = Path(__file__).parent / "workers"


@pytest.fixture(scope="module")
def thin() -> Iterator[Server]:
    with Server(root=WORKERS / "thin", variables={"EXTRA": "a=b"}) as running:
        yield running


def count(server: Server, path: str) -> int:
    with server.client() as client:
        return int(client.get(path).raise_for_status().text)


def test_python_boots_with_the_package_the_vendored_modules_and_the_tokens(thin: Server) -> None:
    with thin.client() as client:
        facts = client.get("/facts").json()
    assert facts == {"version": "0.1.0", "msgspec": "[1,2]", "tokens": [API_TOKEN, OPERATOR_TOKEN], "extra": "a=b"}


def test_an_object_has_a_table_and_the_log_a_database(thin: Server) -> None:
    assert [count(thin, "/tags/one"), count(thin, "/tags/one"), count(thin, "/tags/two")] == [1, 2, 1]
    assert [count(thin, "/log"), count(thin, "/log")] == [1, 2]


def test_errors_of_the_worker_are_in_the_log(thin: Server) -> None:
    with thin.client() as client:
        assert client.get("/fail").status_code == 500
    thin.wait_for_log("asked to fail")


def test_memory_of_workerd_is_measured(thin: Server) -> None:
    assert len(thin.workerd_pids()) == 1
    assert thin.peak_memory() > 10 * 1024 * 1024


def test_state_survives_a_kill_and_a_stop(tmp_path: Path) -> None:
    with Server(root=WORKERS / "thin", state=tmp_path) as server:
        assert [count(server, "/tags/one"), count(server, "/log")] == [1, 1]
        server.kill()
        assert not server.running
        server.restart()
        assert [count(server, "/tags/one"), count(server, "/log")] == [2, 2]
        group = server.pid
        assert server.stop() == 0
        assert list(group_members(group)) == []
        server.restart()
        assert [count(server, "/tags/one"), count(server, "/log")] == [3, 3]


def test_a_kill_in_the_middle_of_writes_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Both stores answer counts, so the highest one that came back is what has been acknowledged."""
    paths = ("/tags/one", "/log")
    acknowledged = dict.fromkeys(paths, 0)
    enough = threading.Barrier(len(paths) + 1, timeout=REQUEST_TIMEOUT_S)

    def write(server: Server, path: str) -> None:
        with server.client() as client, contextlib.suppress(httpx.TransportError):
            for number in range(1, 100_001):
                acknowledged[path] = int(client.get(path).raise_for_status().text)
                if number == 50:
                    enough.wait()

    with Server(root=WORKERS / "thin", state=tmp_path) as server:
        writers = [threading.Thread(target=write, args=(server, path)) for path in paths]
        for writer in writers:
            writer.start()
        enough.wait()
        server.kill()
        for writer in writers:
            writer.join()
        server.restart()
        for path in paths:
            # One request may have been under way: written, but not answered.
            assert count(server, path) - acknowledged[path] in (1, 2)


def test_two_servers_do_not_see_each_other(thin: Server) -> None:
    with Server(root=WORKERS / "thin") as other:
        assert count(other, "/tags/apart") == 1
        assert count(other, "/tags/apart") == 2
        assert count(thin, "/tags/apart") == 1


def test_temporary_files_of_a_killed_run_go_with_the_next(tmp_path: Path) -> None:
    with Server(root=WORKERS / "thin", state=tmp_path) as server:
        server.kill()
        assert list((tmp_path / ".dcb-runtime" / "tmp").iterdir()) != []
        server.restart()
        server.stop()
        assert not (tmp_path / ".dcb-runtime" / "tmp").exists()


def test_a_folder_of_the_users_in_the_state_folder_stays(tmp_path: Path) -> None:
    with Server(root=WORKERS / "thin", state=tmp_path) as server:
        server.stop()
        (tmp_path / "tmp").mkdir()
        (tmp_path / "tmp" / "mine").write_text("mine")
        server.start()
        server.stop()
    assert (tmp_path / "tmp" / "mine").read_text() == "mine"


def test_one_harmless_line_of_workerd_is_left_out() -> None:
    known = "NOSENTRY SQLite alarm overdue, running despite AlarmManager mismatch; scheduledTime = 1"
    assert logged(f"workerd/io/actor-sqlite.c++:1: error: {known}") == ""
    assert (
        logged("NOSENTRY SQLite alarm overdue in another way")
        == "error: NOSENTRY SQLite alarm overdue in another way\n"
    )


def logged(message: str) -> str:
    module = (PROJECT_ROOT / "scripts" / "log.mjs").as_uri()
    entry = json.dumps({"level": "error", "message": message})
    script = f"import {{ lineOf }} from '{module}'; process.stdout.write(lineOf({entry}) ?? '')"
    command = [str(PROJECT_ROOT / "node_modules" / ".bin" / "node"), "--input-type=module", "--eval", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_workerd_that_dies_ends_the_server(tmp_path: Path) -> None:
    with Server(root=WORKERS / "thin", state=tmp_path) as server:
        (workerd,) = server.workerd_pids()
        subprocess.run(["kill", "-9", str(workerd)], check=True)
        assert server.wait() == 1
        assert "workerd ended unexpectedly" in server.log


def test_a_folder_without_a_worker_is_an_error(tmp_path: Path) -> None:
    server = Server(root=tmp_path, state=tmp_path / "state")
    with pytest.raises(ServerError, match=r"worker\.py"):
        server.start()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "many"],
        ["--port", "65536"],
        ["--port", ""],
        ["--var", "NAME"],
        ["--what"],
        ["--state", str(PROJECT_ROOT / "README.md")],
        ["--state", str(PROJECT_ROOT / "samples")],
        ["--state", "/proc/none"],
        ["--state", ""],
        ["--root", str(PROJECT_ROOT)],
    ],
    ids=" ".join,
)
def test_wrong_options_are_refused_in_one_line(arguments: list[str]) -> None:
    result = serve(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("scripts/serve: ")
    assert arguments[0] in line
    assert not (PROJECT_ROOT / "samples" / ".dcb-runtime").exists()


def test_a_port_that_is_taken_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        result = serve("--port", str(port))
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert f"port {port} cannot be used" in result.stderr


def test_help_is_the_usage() -> None:
    result = serve("--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("usage: scripts/serve ")


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(PROJECT_ROOT / "scripts" / "serve"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
