"""What a reader is told to type works: the demo, the walk, the hook, the sizes."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from scripts import sizes
from tests.docs.pages import block, code, page
from tests.runtime.server import OPERATOR_TOKEN, PROJECT_ROOT, Server
from tests.support.dumps import dump_of, flights

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

DEMO = [str(PROJECT_ROOT / "scripts" / "demo")]


def python(script: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROJECT_ROOT / "scripts" / script), *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def move(client: httpx.Client, service_id: str, count: int) -> Any:
    """Plan and import the first events of the sample; the answer of import."""
    lineage = client.get(f"/operator/services/{service_id}").json()["allocatorLineageId"]
    evidence = {"bindingExists": False, "eventsExist": False}
    plan = {"importId": "move", "dump": dump_of(flights(count), service_id, lineage), "targetEvidence": evidence}
    assert client.post(f"/operator/bootstrap/{service_id}/plan", json=plan).status_code == 201
    return client.post(f"/operator/bootstrap/{service_id}/import", json={"importId": "move", "leaseEpoch": 1}).json()


def test_the_demo_runs_and_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    result = subprocess.run([*DEMO, "--events", "20"], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.fullmatch(
        r"demo: done in \d+ s; the worker is stopped and its folder deleted", result.stdout.splitlines()[-1]
    )
    assert "the same digest was computed here" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_demo_stops_what_it_started_when_it_is_told_to_end(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(DEMO, env=environment, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "IMPORTING" in line:
                break
        demo.send_signal(signal.SIGTERM)
        last = demo.stdout.read().splitlines()[-1]
    assert (demo.returncode, last) == (130, "demo: interrupted; what it had started is stopped")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_demo_puts_everything_away_however_often_it_is_told_to_end(number: signal.Signals, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(DEMO, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        for line in demo.stdout:
            if "IMPORTING" in line:
                break
        while demo.poll() is None:
            demo.send_signal(number)
            time.sleep(0.001)
        said = demo.stdout.read()
        assert demo.stderr.read() == ""
    assert demo.returncode == 130
    assert said.splitlines()[-1] == "demo: interrupted; what it had started is stopped"
    assert list(tmp_path.iterdir()) == []


def test_a_signal_at_the_end_of_a_good_run_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [*DEMO, "--events", "20"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        for line in demo.stdout:
            if "every event equals the one that went in" in line:
                break
        time.sleep(0.05)  # the worker is being stopped
        while demo.poll() is None:
            demo.send_signal(signal.SIGINT)
            time.sleep(0.001)
        said = demo.stdout.read()
        assert demo.stderr.read() == ""
    # On a slow machine the first one may come just before the end.
    assert demo.returncode == (0 if "demo: done in" in said else 130)
    assert list(tmp_path.iterdir()) == []


def test_the_demo_says_what_the_worker_logged_when_it_does_not_start(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "NODE_OPTIONS": "--no-such-option"}
    result = subprocess.run(DEMO, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "demo: failed: the worker did not start" in result.stdout
    assert "--no-such-option" in result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", ["0", "2001", "many", "-1"])
def test_the_demo_refuses_a_number_of_events_that_the_sample_has_not(count: str) -> None:
    result = subprocess.run([*DEMO, f"--events={count}"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "a number from 1 to 2000" in result.stderr


def test_the_walk_of_the_readme_works_as_it_stands(server: Server, tmp_path: Path) -> None:
    walk = "\n".join(code(block("README.md", "walk"), "sh"))
    walk = walk.replace("http://127.0.0.1:8787", server.base_url)
    walk = re.sub(r"^token=.*$", f"token={OPERATOR_TOKEN}", walk, flags=re.MULTILINE)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    shell = ["bash", "-euc", walk]
    result = subprocess.run(shell, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    fresh, planned, imported, status, receipt, tag, export, refused = answers
    told = [json.loads(text) for text in code(block("README.md", "walk"), "json")]
    assert len(told) == 7
    assert (fresh["bootstrap"]["status"], fresh["head"]) == ("EMPTY", 0)
    assert (planned["status"], imported["status"], status["status"]) == ("PLANNED", "READY", "READY")
    assert export["complete"] is True
    assert refused == told[-1]
    for answer, shown in zip((fresh, planned, status, receipt, tag, export, refused), told, strict=True):
        assert_same_shape(shown, answer)


def assert_same_shape(shown: Any, answer: Any) -> None:
    """Whatever a shortened answer shows is there: "..." stands for what was left out."""
    if isinstance(shown, dict):
        for name, value in shown.items():
            if name != "...":
                assert_same_shape(value, answer[name])
    elif isinstance(shown, list):
        for value, there in zip(shown, answer, strict=True):
            assert_same_shape(value, there)
    elif isinstance(shown, str) and re.search(r"[0-9a-f]{8}|T.*Z$", shown):
        assert isinstance(answer, str)  # what differs from run to run: lineages, digests, times
    elif not (isinstance(shown, int) and shown > 10**12):
        assert shown == answer


def test_the_hook_of_the_readme_runs_before_a_service_opens(tmp_path: Path) -> None:
    (example,) = code(block("README.md", "hook"), "python")
    root = tmp_path / "root"
    root.mkdir()
    (root / "worker.py").write_text(example, encoding="utf-8")
    with Server(root=root, state=tmp_path / "state") as server, server.client(OPERATOR_TOKEN) as client:
        assert move(client, "hooked", 2)["status"] == "READY"
        server.stop()
    written = []
    for file in (tmp_path / "state" / "v3" / "d1" / "miniflare-D1DatabaseObject").glob("*.sqlite"):
        with closing(sqlite3.connect(file)) as database:
            if database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'rebuild'").fetchall():
                written += database.execute("SELECT service_id, up_to FROM rebuild").fetchall()
    assert written == [("hooked", flights(2)[-1]["suid"])]


def test_sizes_finds_every_part_of_a_state_folder(tmp_path: Path) -> None:
    with Server(state=tmp_path) as server, server.client(OPERATOR_TOKEN) as client:
        assert move(client, "sized", 30)["status"] == "READY"
        server.stop()
    found = [line.split() for line in sizes.report(tmp_path)]
    assert [words[0] for words in found] == ["index", "tags", "log"]
    assert [" ".join(words[1:6]) for words in found] == ["too few events to tell,"] * 3
    tags = {tag for record in flights(30) for tag in record["eventTags"]}
    assert [len(sizes.databases(tmp_path, part)) for part in sizes.PARTS] == [1, len(tags), 1]


def test_sizes_tells_an_events_bytes_from_those_of_the_empty_tables(tmp_path: Path) -> None:
    folder = tmp_path / "v3" / sizes.PARTS["index"][0]
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "one.sqlite")) as database, database:
        database.execute("PRAGMA page_size = 4096")
        database.execute("CREATE TABLE event (payload BLOB)")
        database.execute("CREATE TABLE other (name TEXT)")
        database.executemany("INSERT INTO event VALUES (zeroblob(1000))", [()] * 1000)
    told = python("sizes.py", str(tmp_path)).stdout.splitlines()[0]
    assert re.fullmatch(
        r"index  10[0-9]{2} bytes an event, 12,288 bytes before the first;  1,0[0-9]{2},[0-9]{3} bytes in 1 object",
        told,
    ), told


def test_sizes_of_a_folder_without_events_are_nothing(tmp_path: Path) -> None:
    assert python("sizes.py", str(tmp_path)).stdout.split() == ["index", "nothing", "tags", "nothing", "log", "nothing"]


LINEAGE = "0f1a6d7e-5a0b-4c5d-9f0a-2f6c1d7e9a10"
PLAN = ("plan_body.py", "move", "service", LINEAGE)


def test_a_plan_is_not_composed_of_records_out_of_order() -> None:
    first, second = page("samples/flights-2000.ndjson").splitlines()[:2]
    result = python(*PLAN, text=f"{second}\n{first}\n")
    assert (result.returncode, result.stdout) == (1, "")
    assert "record_order_or_duplicate" in result.stderr
    assert python("plan_body.py", "move").returncode == 2


def test_a_plan_names_the_source_that_it_was_told() -> None:
    first, second = page("samples/flights-2000.ndjson").splitlines()[:2]
    told = python(*PLAN, "--source-service", "shop", "--source-lineage", "l-1", text=f"{first}\n\n{second}\n")
    assert json.loads(told.stdout)["dump"]["manifest"]["source"] == {"serviceId": "shop", "lineageId": "l-1"}
    assert told.stderr == "plan_body: 2 events from shop\n"
    sample = python(*PLAN, text=first)
    assert json.loads(sample.stdout)["dump"]["manifest"]["source"]["serviceId"] == "old-store"
    assert sample.stderr == "plan_body: 1 event from old-store, the source of the sample: see --source-service\n"
    half = python(*PLAN, "--source-service", "shop", text=first)
    assert (half.returncode, half.stdout) == (2, "")


def test_a_plan_without_events_must_be_meant() -> None:
    refused = python(*PLAN)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--empty" in refused.stderr
    assert json.loads(python(*PLAN, "--empty").stdout)["dump"]["events"] == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"eventId":', "plan_body: line 3 is no JSON"),
        ("NaN", "plan_body: line 3 is no JSON"),
        ("[1]", "plan_body: record_invalid: line 3"),
        ("{}", "plan_body: record_invalid: line 3"),
    ],
)
def test_a_line_that_is_no_record_is_told_by_its_number(line: str, said: str) -> None:
    first = page("samples/flights-2000.ndjson").splitlines()[0]
    result = python(*PLAN, text=f"{first}\n\n{line}\n")
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)
    assert result.stderr.startswith(said)


@pytest.mark.parametrize("lineage", ["", "lineage", '{"code":"unauthorized"}'])
def test_a_lineage_that_is_none_is_refused(lineage: str) -> None:
    result = python("plan_body.py", "move", "service", lineage, "--empty")
    assert (result.returncode, result.stdout) == (2, "")
    assert "is no lineage" in result.stderr
