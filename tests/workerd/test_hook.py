"""The deployment's hook between verification and READY, in a worker that plugs one in."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx

from tests.support.dumps import record
from tests.workerd.lab import Lab, lab_server
from tests.workerd.operators import Operator, eventually

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = [record(number, "all", f"each/{number % 3}") for number in range(1, 7)]
CLAIM_MS = 30_000


def runs(lab: Lab, service: str) -> list[dict[str, Any]]:
    return [run for run in lab.orders()["hook_runs"] if run["service"] == service]


def test_the_hook_runs_once_with_the_manifest_before_the_service_opens(lab: Lab) -> None:
    operator = lab.operator("runs").plan(RECORDS)
    lab.orders(hook={"runs": "hold"})
    with ThreadPoolExecutor(1) as pool:
        ready = pool.submit(operator.run)
        eventually(lambda: runs(lab, "runs") or None)
        assert operator.status()["status"] == "VERIFYING"
        assert operator.overview()["mode"] == "importing"
        lab.orders(hook={"runs": "succeed"})
        ready.result()
    operator.run()
    operator.check()
    expected = {"service": "runs", "importId": "import-1", "leaseEpoch": 1, "ended": True}
    assert runs(lab, "runs") == [{**expected, "manifest": operator.dump["manifest"]}]


def test_a_hook_that_raises_leaves_the_service_verifying_and_runs_again(lab: Lab) -> None:
    operator = lab.operator("raises").plan(RECORDS)
    lab.orders(hook={"raises": "raise"})
    for times in (1, 2):
        answer = operator.post("import", operator.ids)
        assert answer.code == (503, "bootstrap_read_model_rebuild_failed")
        assert "secret" not in answer.json["error"]
        assert len(runs(lab, "raises")) == times
        record = operator.status()
        assert (record["status"], record["verifiedImportId"]) == ("VERIFYING", "import-1")
        assert operator.overview()["mode"] == "importing"
    assert "secret" not in lab.server.log
    lab.orders(hook={"raises": "succeed"})
    operator.run()
    operator.check()
    assert len(runs(lab, "raises")) == 3


def test_two_operators_run_it_once_and_one_is_told_to_wait(lab: Lab) -> None:
    operator = lab.operator("two").plan(RECORDS)
    lab.orders(hook={"two": "hold"})
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(operator.run)
        eventually(lambda: runs(lab, "two") or None)
        second = operator.post("import", operator.ids)
        assert (second.status, second.json["status"]) == (202, "VERIFYING")
        refused = lab.call("bootstrap", "two", "/ready", operator.ids)
        assert refused.code == (409, "bootstrap_hook_held")
        lab.orders(hook={"two": "succeed"})
        first.result()
    operator.check()
    assert len(runs(lab, "two")) == 1


def test_an_abort_while_the_hook_runs_wins(lab: Lab) -> None:
    operator = lab.operator("aborted").plan(RECORDS)
    lab.orders(hook={"aborted": "hold"})
    with ThreadPoolExecutor(1) as pool:
        import_call = pool.submit(operator.post, "import", operator.ids)
        eventually(lambda: runs(lab, "aborted") or None)
        operator.abort()
        lab.orders(hook={"aborted": "succeed"})
        answer = import_call.result()
    assert answer.status == 409, answer
    assert operator.status()["status"] == "FAILED"
    assert operator.overview()["mode"] == "importing"
    operator.run()
    operator.check()
    assert len(runs(lab, "aborted")) == 2


def test_a_hook_whose_process_dies_runs_again_when_its_claim_has_expired(tmp_path: Path) -> None:
    with lab_server(tmp_path) as server:
        lab = Lab(server)
        operator = lab.operator("dies").plan(RECORDS)
        lab.orders(hook={"dies": "hold"})
        call = threading.Thread(target=until_cut_off, args=(operator,))
        call.start()
        eventually(lambda: runs(lab, "dies") or None)
        server.kill()
        call.join()
        server.restart()
        waiting = operator.post("import", operator.ids)
        assert (waiting.status, waiting.json["status"]) == (202, "VERIFYING")
        assert runs(lab, "dies") == []
        lab.orders(clockOffsetMs=CLAIM_MS)
        operator.run()
        operator.check()
        assert [run["ended"] for run in runs(lab, "dies")] == [True]


def until_cut_off(operator: Operator) -> None:
    with contextlib.suppress(httpx.TransportError):
        operator.run()
