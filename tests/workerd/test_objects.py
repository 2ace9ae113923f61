"""The objects' own routes on workerd, by fetch (the seed's interface) and by RPC: one dispatcher, the same answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.dumps import record
from tests.workerd.operators import FRESH, Got, Operator

if TYPE_CHECKING:
    from tests.workerd.lab import Lab

RECORDS = [record(number, "all", f"odd/{number % 2}") for number in range(1, 8)]
WAYS = ("fetch", "rpc")


def allocate(lab: Lab, service: str, attempt: str, count: int = 1, *, by: str = "rpc", **more: Any) -> Got:
    candidates = [{"candidateIndex": number, "eventId": f"{attempt}-{number}"} for number in range(count)]
    return lab.call("allocator", service, "/allocate", {"attemptId": attempt, "candidates": candidates, **more}, by=by)


def coordinator(lab: Lab, operator: Operator, route: str, body: Any, by: str = "rpc") -> Got:
    return lab.call("bootstrap", operator.service, route, body, by=by)


def test_both_ways_in_give_the_same_answers(lab: Lab) -> None:
    operator = lab.operator("ways").plan(RECORDS)
    operator.run()
    operator.settled()
    questions: list[tuple[str, str | None, str, Any]] = [
        ("allocator", None, "/state", None),
        ("allocator", None, "/lineage", None),
        ("allocator", None, "/attempts/none", None),
        ("allocator", None, "/nothing", None),
        ("allocator", None, "/allocate", {"attemptId": "x"}),
        ("allocator", None, "/index/events", {"after": 0, "until": 3}),
        ("tag", "all", "/state", None),
        ("tag", "all", "/head-facts", None),
        ("tag", "all", "/events", None),
        ("tag", "odd/1", "/digest", {"after": 0, "limit": 5}),
        ("tag", "all", "/digest", "{"),
        ("tag", "never", "/state", None),
        ("tag", "all", "/bootstrap/close", operator.ids),
        ("bootstrap", None, "/state", None),
        ("bootstrap", None, "/receipt", None),
        ("bootstrap", None, "/plan", "not json"),
        ("bootstrap", None, "/nothing", {}),
        ("bootstrap", None, "/import", operator.ids),
        ("bootstrap", None, "/route/check", {"route": "queue"}),
    ]
    for actor, tag, path, body in questions:
        by_fetch, by_rpc = (lab.call(actor, "ways", path, body, tag=tag, by=by) for by in WAYS)
        assert by_fetch == by_rpc, (actor, path)


def test_an_object_ignores_the_headers_of_a_fetch(lab: Lab) -> None:
    headers = {"authorization": "Bearer x", "content-type": "text/plain", "x-service-id": "other"}
    plain = lab.call("allocator", "headers", "/state", by="fetch")
    assert lab.call("allocator", "headers", "/state", by="fetch", headers=headers) == plain


@pytest.mark.parametrize("by", WAYS)
def test_a_plan_waits_for_a_normal_command(lab: Lab, by: str) -> None:
    operator = lab.operator(f"command-{by}")
    dump = operator.compose(RECORDS)
    admitted = coordinator(lab, operator, "/command/admit", {"commandId": "c"}, by)
    assert (admitted.status, admitted.json) == (200, {"leaseEpoch": 0, "admitted": True})
    assert operator.try_plan(dump).code == (409, "bootstrap_normal_command_in_flight")
    assert coordinator(lab, operator, "/command/release", {"commandId": "c", "leaseEpoch": 0}, by).status == 200
    again = coordinator(lab, operator, "/command/release", {"commandId": "c", "leaseEpoch": 0}, by)
    assert again.code == (409, "bootstrap_command_rejected")
    assert operator.try_plan(dump).status == 201


def test_while_planned_nothing_normal_passes_and_the_allocator_stays_fresh(lab: Lab) -> None:
    operator = lab.operator("planned").plan(RECORDS)
    assert coordinator(lab, operator, "/command/admit", {"commandId": "c"}).code == (409, "bootstrap_command_rejected")
    for route in ("queue", "projection-rebuild"):
        refused = coordinator(lab, operator, "/route/check", {"route": route})
        assert refused.code == (409, "bootstrap_route_rejected")
    bound: dict[str, Any] = {"serviceId": "planned", "bootstrapCommandId": "c", "bootstrapEpoch": 0}
    assert allocate(lab, "planned", "with", **bound).code == (409, "bootstrap_command_rejected")
    assert allocate(lab, "planned", "without").code == (409, "bootstrap_in_progress")
    assert lab.call("allocator", "planned", "/state").json["allocatedWatermark"] is None
    operator.run()
    operator.check()


def test_ready_needs_verify_and_import_needs_its_epoch(lab: Lab) -> None:
    operator = lab.operator("order").plan(RECORDS)
    assert coordinator(lab, operator, "/ready", operator.ids).code == (409, "bootstrap_verification_required")
    assert coordinator(lab, operator, "/verify", operator.ids).code == (409, "bootstrap_state_rejected")
    for ids in ({**operator.ids, "leaseEpoch": 2}, {**operator.ids, "importId": "other"}, {"importId": "import-1"}, {}):
        for route in ("/import", "/verify", "/ready", "/abort"):
            assert coordinator(lab, operator, route, ids).code == (409, "bootstrap_epoch_rejected"), (route, ids)
    assert operator.status()["status"] == "PLANNED"


def test_a_closed_tag_takes_no_import_and_the_order_goes_on_above_the_watermark(lab: Lab) -> None:
    operator = lab.operator("closed").plan(RECORDS)
    operator.run()
    operator.check()
    identity = {
        "importId": operator.import_id,
        "leaseEpoch": 9,
        "manifestDigest": operator.dump["manifest"]["contentDigest"],
        "targetServiceId": "closed",
        "allocatorLineageId": operator.dump["manifest"]["target"]["allocatorLineageId"],
    }
    candidate = {name: value for name, value in RECORDS[0].items() if name != "provenance"} | {"position": 1}
    body = {**identity, "firstVersion": 1, "candidates": [candidate]}
    refused = lab.call("tag", "closed", "/bootstrap/admit", body, tag="all")
    assert (refused.code, refused.json["reason"]) == ((409, "tag_operation_rejected"), "bootstrap_closed_permanently")

    first = allocate(lab, "closed", "first")
    assert first.status == 201
    assert first.json["candidates"][0]["suid"] > operator.dump["manifest"]["highWatermark"]
    assert first.json["allocatorLineageId"] == identity["allocatorLineageId"]
    assert operator.try_plan(operator.dump).code == (409, "bootstrap_ready_permanent")


@pytest.mark.parametrize("flag", sorted(FRESH))
def test_evidence_of_a_used_target_is_believed_and_nothing_is_written(lab: Lab, flag: str) -> None:
    operator = lab.operator(f"evidence-{flag}")
    before = operator.compose(RECORDS)
    assert operator.try_plan(before, **{flag: True}).code == (409, "bootstrap_target_not_fresh")
    assert operator.status()["status"] == "EMPTY"
    overview = operator.overview()
    assert (overview["mode"], overview["head"], overview["tagCount"]) == ("open", 0, 0)


def test_a_service_that_issued_suids_is_not_fresh_whatever_the_caller_says(lab: Lab) -> None:
    operator = lab.operator("used")
    dump = operator.compose(RECORDS)
    assert allocate(lab, "used", "one").status == 201
    assert operator.try_plan(dump).code == (409, "bootstrap_target_not_fresh")
    record = operator.status()
    assert (record["status"], record["leaseEpoch"], record["progress"]["running"]) == ("EMPTY", 1, False)
    assert allocate(lab, "used", "two").status == 201


def test_seeds_replay_and_exclude_each_other(lab: Lab) -> None:
    operator = lab.operator("seeds").plan(RECORDS)
    seed = {**operator.ids, "highWatermark": RECORDS[-1]["suid"]}
    assert [lab.call("allocator", "seeds", "/seed-after", seed, by=by).status for by in WAYS] == [201, 200]
    other = lab.call("allocator", "seeds", "/seed-after", {**seed, "highWatermark": RECORDS[0]["suid"]})
    assert other.code == (409, "allocator_seed_rejected")
    assert "already seeded" in other.json["error"]
    assert allocate(lab, "seeds-used", "one").status == 201
    late = lab.call("allocator", "seeds-used", "/seed-after", seed)
    assert late.code == (409, "allocator_seed_rejected")
    assert "already allocating" in late.json["error"]
    operator.run()
    operator.check()


def test_of_a_plan_and_an_allocation_at_once_exactly_one_wins(lab: Lab) -> None:
    wins = []
    with ThreadPoolExecutor(4) as pool:
        for number in range(6):
            operator = lab.operator(f"race-{number}")
            dump = operator.compose(RECORDS)
            first, second = (
                (pool.submit(operator.try_plan, dump), pool.submit(allocate, lab, operator.service, "a"))
                if number % 2
                else reversed((pool.submit(allocate, lab, operator.service, "a"), pool.submit(operator.try_plan, dump)))
            )
            planned, allocated = first.result(), second.result()
            wins.append((planned.status, allocated.status))
            if planned.status == 201:
                assert allocated.code == (409, "bootstrap_in_progress")
                assert operator.overview()["watermark"] is None
            else:
                assert planned.code == (409, "bootstrap_target_not_fresh")
                assert allocated.status == 201
                assert operator.status()["status"] == "EMPTY"
    print(f"\nplan and allocation answered {wins}")


def test_twelve_allocations_at_once_are_one_order(lab: Lab) -> None:
    def one(number: int) -> Got:
        return allocate(lab, "crowd", f"attempt-{number % 6}", 3, by=WAYS[number % 2])

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(one, range(12)))
    assert sorted(answer.status for answer in answers) == [200] * 6 + [201] * 6
    vectors = {answer.json["attemptId"]: tuple(c["suid"] for c in answer.json["candidates"]) for answer in answers}
    assert all(
        vectors[answer.json["attemptId"]] == tuple(c["suid"] for c in answer.json["candidates"]) for answer in answers
    )
    suids = sorted(suid for vector in vectors.values() for suid in vector)
    assert len(set(suids)) == 18
    assert all(list(vector) == sorted(vector) for vector in vectors.values())
    assert lab.call("allocator", "crowd", "/state").json["allocatedWatermark"] == suids[-1]


def test_the_largest_integers_that_the_wire_knows_are_answered(lab: Lab) -> None:
    operator = lab.operator("integers").plan(RECORDS)
    operator.run()
    assert operator.tag("all", after=2**53 - 1)["events"] == []
    digest = lab.call("tag", "integers", "/digest", {"after": 2**53 - 1, "limit": 1}, tag="all")
    assert digest.status == 200
    wrong = lab.call("bootstrap", "integers", "/abort", {"importId": "import-1", "leaseEpoch": 2**53 - 1})
    assert wrong.code == (409, "bootstrap_epoch_rejected")
    far = lab.call(
        "tag",
        "integers-new",
        "/bootstrap/reset",
        {
            "importId": "i",
            "leaseEpoch": 2**53 - 1,
            "manifestDigest": "d",
            "targetServiceId": "integers-new",
            "allocatorLineageId": "l",
        },
        tag="t",
    )
    assert far.status == 200
