"""Second plans, leases that expire, operators at once, and calls that are lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.dumps import record
from tests.workerd.operators import eventually, ok

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.workerd.lab import Lab

RECORDS = [record(number, "all", f"each/{number}") for number in range(1, 10)]
OTHERS = [record(number, "all", f"each/{number}", f"new/{number}", payload='{"n":2}') for number in range(3, 8)]
LEASE_MS = 30_000


@pytest.fixture(autouse=True)
def clock_as_it_is(lab: Lab) -> Iterator[None]:
    yield
    lab.orders(clockOffsetMs=0)


def test_a_second_plan_must_be_the_same(lab: Lab) -> None:
    operator = lab.operator("second").plan(RECORDS)
    first = operator.status()
    again = operator.try_plan(operator.dump)
    assert (again.status, again.json) == (201, first)
    other = operator.compose(OTHERS)
    assert operator.try_plan(other).code == (409, "bootstrap_plan_conflict")
    named = lab.operator("second", "import-2")
    assert named.try_plan(operator.dump).code == (409, "bootstrap_plan_conflict")
    assert operator.status() == first
    operator.run()
    assert named.try_plan(operator.dump).code == (409, "bootstrap_ready_permanent")


def test_an_expired_lease_permits_a_takeover_and_nothing_else(lab: Lab) -> None:
    operator = lab.operator("lease").plan(RECORDS)
    body = {"importId": operator.import_id, "digest": operator.dump["manifest"]["contentDigest"]}
    assert operator.post("takeover", body).code == (409, "bootstrap_lease_held")
    lab.orders(clockOffsetMs=LEASE_MS + 1000)
    assert operator.post("takeover", {**body, "digest": "other"}).code == (409, "bootstrap_takeover_mismatch")
    operator.takeover()
    assert operator.post("takeover", body).code == (409, "bootstrap_lease_held")
    lab.orders(clockOffsetMs=3 * LEASE_MS)
    operator.run()  # expired again, but nobody took over
    assert operator.check()["leaseEpoch"] == 2


def test_a_clock_that_goes_back_during_an_import_does_not_matter(lab: Lab) -> None:
    operator = lab.operator("clock").plan(RECORDS)
    lab.gate("clock", "clock", "log/admit")
    lab.start(operator)
    lab.wait_reached("clock")
    lab.orders(clockOffsetMs=-3_600_000)
    lab.open("clock")
    operator.run()
    operator.check()


def test_a_tag_with_events_of_its_own_stops_the_import(lab: Lab) -> None:
    """Somebody else's events under one tag of the dump: the import blocks, tells why, and can be taken back."""
    operator = lab.operator("occupied").plan(RECORDS)
    manifest = operator.dump["manifest"]
    candidate = {name: value for name, value in OTHERS[0].items() if name != "provenance"} | {"position": 1}
    foreign = {
        "importId": "foreign",
        "leaseEpoch": 1,
        "manifestDigest": "fnv1a32:00000000",
        "targetServiceId": "occupied",
        "allocatorLineageId": manifest["target"]["allocatorLineageId"],
        "firstVersion": 1,
        "candidates": [candidate],
    }
    assert lab.call("tag", "occupied", "/bootstrap/admit", foreign, tag="all").status == 201
    answer = operator.post("import", operator.ids)
    assert answer.code == (409, "bootstrap_tag_admission_failed")
    progress = operator.status()["progress"]
    assert (progress["blocked"], progress["phase"], progress["lastError"]["code"]) == (
        True,
        "tags",
        answer.json["code"],
    )
    assert "bootstrap_fencing_or_manifest_mismatch" in progress["lastError"]["error"]
    operator.abort()
    assert [event["id"] for event in operator.tag("all")["events"]] == [OTHERS[0]["eventId"]]


def test_two_operators_at_once_do_what_one_does(lab: Lab) -> None:
    operator = lab.operator("pair")
    operator.dump = operator.compose(RECORDS)
    with ThreadPoolExecutor(6) as pool:
        plans = list(pool.map(lambda _: operator.try_plan(operator.dump), range(6)))
        assert {(answer.status, answer.json.get("leaseEpoch")) for answer in plans} == {(201, 1)}, plans
        operator.epoch = 1
        list(pool.map(lambda _: operator.run(), range(6)))
    assert operator.check()["leaseEpoch"] == 1


def test_of_two_different_plans_at_once_one_wins(lab: Lab) -> None:
    one, two = lab.operator("rivals", "one"), lab.operator("rivals", "two")
    one.dump, two.dump = one.compose(RECORDS), two.compose(OTHERS)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda operator: operator.try_plan(operator.dump), (one, two)))
    assert sorted(answer.status for answer in answers) == [201, 409]
    winner = one if answers[0].status == 201 else two
    winner.epoch = 1
    winner.run()
    winner.check()


@pytest.mark.parametrize(("when", "winner"), [("before", "allocation"), ("after", "plan")])
def test_a_plan_and_an_allocation_in_both_orders(lab: Lab, when: str, winner: str) -> None:
    """The plan is held before its fence has reached the allocator, or behind it."""
    service = f"order-{when}"
    operator = lab.operator(service)
    dump = operator.compose(RECORDS)
    lab.gate(service, service, "/fence/raise", when=when, times=9)
    with ThreadPoolExecutor(1) as pool:
        planned = pool.submit(operator.try_plan, dump)
        lab.wait_reached(service)
        assert operator.status()["status"] == "EMPTY"
        candidates = [{"candidateIndex": 0, "eventId": "a"}]
        allocated = lab.call("allocator", service, "/allocate", {"attemptId": "a", "candidates": candidates})
        lab.open(service)
        answer = planned.result()
    if winner == "allocation":
        assert (allocated.status, answer.code) == (201, (409, "bootstrap_target_not_fresh"))
        assert operator.settled()["status"] == "EMPTY"
    else:
        assert (allocated.code, answer.status) == ((409, "bootstrap_in_progress"), 201)


@pytest.mark.parametrize("route", ["/fence/raise", "log/fence"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_plan_whose_call_is_lost_is_answered_503_and_settled_by_its_alarm(lab: Lab, route: str, when: str) -> None:
    service = f"lost{route.replace('/', '-')}-{when}"
    operator = lab.operator(service)
    operator.dump = operator.compose(RECORDS)
    lab.gate(service, service, route, when=when, action="lose", times=2)
    answer = operator.try_plan(operator.dump)
    assert answer.status in (201, 503), answer
    record = eventually(lambda: None if (shown := operator.status())["status"] == "EMPTY" else shown)
    operator.epoch = record["leaseEpoch"]
    operator.run()
    operator.check()


def test_lost_calls_on_the_way_only_delay(lab: Lab) -> None:
    operator = lab.operator("losses").plan(RECORDS)
    routes = [
        "/import/admit",
        "/seed-after",
        "/bootstrap/admit",
        "log/admit",
        "/index/events",
        "/index/tags",
        "/digest",
    ]
    routes += ["log/compared", "log/count", "/fence/open", "/bootstrap/close", "log/close"]
    gates: list[dict[str, Any]] = [
        {"name": f"{route}-{when}", "service": "losses", "route": route, "when": when, "action": "lose"}
        for number, route in enumerate(routes)
        for when in (("before", "after")[number % 2],)
    ]
    lab.orders(gates=gates)
    operator.run()
    operator.check()
    assert all(lab.reached(gate["name"]) == 1 for gate in gates)
    assert ok(operator.get("receipt"))["leaseEpoch"] == 1
