"""Aborts, takeovers, resets and second operators while an import is on its way, with calls held back at will."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.dumps import record
from tests.workerd.operators import Got, Operator, eventually

if TYPE_CHECKING:
    from tests.workerd.lab import Lab

RECORDS = [record(number, "all", f"each/{number}") for number in range(1, 10)]
OTHERS = [record(number, "all", f"each/{number}", f"new/{number}", payload='{"n":2}') for number in range(3, 8)]


def old_writes(lab: Lab, operator: Operator, epoch: int) -> dict[str, Got]:
    """What an import of this epoch would write, sent directly to each part."""
    manifest = operator.dump["manifest"]
    ids = {"importId": operator.import_id, "leaseEpoch": epoch}
    holder = {**ids, "digest": manifest["contentDigest"]}
    indexed = [
        {name: each[name] for name in ("eventId", "suid", "eventType", "eventTags")} for each in operator.dump["events"]
    ]
    tagged = [
        {name: value for name, value in each.items() if name != "provenance"} | {"position": position}
        for position, each in enumerate(operator.dump["events"], 1)
    ]
    admission = {
        **ids,
        "manifestDigest": manifest["contentDigest"],
        "targetServiceId": operator.service,
        "allocatorLineageId": manifest["target"]["allocatorLineageId"],
    }
    service = operator.service
    return {
        "index": lab.call("allocator", service, "/import/admit", {**holder, "firstPosition": 1, "events": indexed}),
        "seed": lab.call("allocator", service, "/seed-after", {**ids, "highWatermark": manifest["highWatermark"]}),
        "raise": lab.call("allocator", service, "/fence/raise", holder),
        "open": lab.call("allocator", service, "/fence/open", holder),
        "reset": lab.call("allocator", service, "/fence/reset", holder),
        "tag": lab.call(
            "tag", service, "/bootstrap/admit", {**admission, "firstVersion": 1, "candidates": tagged}, tag="all"
        ),
        "close": lab.call("tag", service, "/bootstrap/close", ids, tag="all"),
        "tag reset": lab.call("tag", service, "/bootstrap/reset", admission, tag="all"),
    }


@pytest.mark.parametrize(
    ("route", "skip"), [("/import/admit", 0), ("/bootstrap/admit", 3), ("log/admit", 0), ("/digest", 0)]
)
def test_an_abort_during_a_running_import_wins(lab: Lab, route: str, skip: int) -> None:
    service = f"abort{route.replace('/', '-')}"
    operator = lab.operator(service).plan(RECORDS)
    for when in ("before", "after"):
        lab.gate(f"{service}-{when}", service, route, when=when, skip=skip)
        lab.start(operator)
        lab.wait_reached(f"{service}-{when}")
        operator.abort()
        lab.open(f"{service}-{when}")
        record = operator.settled()
        assert (record["status"], record["failure"], record["leaseUntil"]) == ("FAILED", "operator_abort", None)
        assert operator.post("verify", operator.ids).code == (409, "bootstrap_state_rejected")
    operator.run()
    assert operator.check()["leaseEpoch"] == 1
    assert operator.status()["failure"] is None


def test_after_a_takeover_the_old_epoch_writes_nowhere(lab: Lab) -> None:
    operator = lab.operator("taken").plan(RECORDS)
    lab.gate("taken", "taken", "/bootstrap/admit", when="after")
    lab.start(operator)
    lab.wait_reached("taken")
    operator.abort()
    operator.takeover()
    lab.open("taken")
    assert operator.post("import", {**operator.ids, "leaseEpoch": 1}).code == (409, "bootstrap_epoch_rejected")
    lab.start(operator)
    eventually(lambda: operator.status()["verifiedImportId"])
    writes = old_writes(lab, operator, 1)
    assert {name: answer.status for name, answer in writes.items()} == dict.fromkeys(writes, 409)
    operator.run()
    operator.check()
    writes = old_writes(lab, operator, 1)
    assert {name: answer.status for name, answer in writes.items()} == dict.fromkeys(writes, 409)
    operator.check()


LATE_ROUTES = ["/import/admit", "/seed-after", "/bootstrap/admit", "log/admit"]


def refused_late(lab: Lab, name: str) -> None:
    """Let a late call arrive, which must be refused."""
    lab.open(name)
    answer = eventually(lambda: lab.orders()["late"].get(name))
    assert "409" in answer or "fenced" in answer, answer


@pytest.mark.parametrize("route", LATE_ROUTES)
def test_a_write_that_arrives_after_a_takeover_changes_nothing(lab: Lab, route: str) -> None:
    service = f"late{route.replace('/', '-')}"
    operator = lab.operator(service).plan(RECORDS)
    lab.gate(service, service, route, action="late")
    lab.start(operator)
    lab.wait_reached(service)
    operator.abort()
    operator.takeover()
    lab.start(operator)
    eventually(lambda: operator.status()["verifiedImportId"])
    refused_late(lab, service)
    operator.run()
    assert operator.check()["leaseEpoch"] == 2


@pytest.mark.parametrize("route", LATE_ROUTES)
@pytest.mark.parametrize("moment", ["reset", "planned", "imported"])
def test_a_write_that_arrives_after_a_reset_changes_nothing_of_the_next_import(
    lab: Lab, route: str, moment: str
) -> None:
    """A call of the old epoch is on its way all through the reset, and even through the next import."""
    service = f"{moment}{route.replace('/', '-')}"
    operator = lab.operator(service).plan(RECORDS)
    lab.gate(service, service, route, action="late")
    lab.start(operator)
    lab.wait_reached(service)
    operator.abort()
    operator.reset()
    if moment == "reset":
        refused_late(lab, service)
    operator.import_id = "import-2"
    operator.plan(OTHERS)
    assert operator.epoch == 3
    if moment == "planned":
        refused_late(lab, service)
    operator.run()
    operator.check()
    if moment == "imported":
        refused_late(lab, service)
    operator.check()
    assert operator.tag("each/1")["events"] == []


def test_after_a_reset_the_old_epoch_writes_nowhere(lab: Lab) -> None:
    operator = lab.operator("reset").plan(RECORDS)
    lab.start(operator)
    eventually(lambda: operator.status()["verifiedImportId"])
    operator.abort()
    old = lab.operator("reset")
    old.dump = operator.dump
    operator.reset()
    refused = old_writes(lab, old, 1)
    assert {name: answer.status for name, answer in refused.items()} == dict.fromkeys(refused, 409)
    operator.import_id = "import-2"
    operator.plan(OTHERS)
    assert operator.epoch == 3
    refused = old_writes(lab, old, 1)
    assert {name: answer.status for name, answer in refused.items()} == dict.fromkeys(refused, 409)
    operator.run()
    operator.check()


def test_a_reset_in_the_middle_of_an_import_waits_for_what_is_on_its_way(lab: Lab) -> None:
    for place, route in enumerate(("/bootstrap/admit", "log/admit")):
        service = f"middle-{place}"
        operator = lab.operator(service).plan(RECORDS)
        lab.gate(service, service, route, skip=1 - place)
        lab.start(operator)
        lab.wait_reached(service)
        operator.abort()
        begun = lab.call("bootstrap", service, "/reset", operator.ids)
        assert (begun.status, begun.json["resetting"], begun.json["leaseEpoch"]) == (202, True, 2)
        for route, ids in (("/import", operator.ids), ("/import", {**operator.ids, "leaseEpoch": 2})):
            assert lab.call("bootstrap", service, route, ids).status == 409
        assert operator.try_plan(operator.dump).code == (409, "bootstrap_plan_conflict")
        lab.open(service)
        operator.reset()
        operator.import_id = "import-2"
        operator.plan(OTHERS).run()
        assert operator.check()["leaseEpoch"] == 3
        assert operator.tag("each/1")["events"] == []
