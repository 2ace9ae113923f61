"""Plan: its checks in their order, what a repeat is and what a conflict, and what is recorded."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dcb_runtime.limits import IMPORT_ID_CHARACTERS_MAX, INLINE_DUMP_BYTES_MAX, LEASE_MS, WATERMARK_AHEAD_MS_MAX
from dcb_runtime.rules.dump_v1 import compose_dump_v1
from dcb_runtime.rules.suid import format_suid, ticks_from_unix_ms
from tests.support.dumps import dump_of, record
from tests.support.service import FRESH, Answer, Service, small
from tests.support.world import START_MS

LINEAGE = "11111111-2222-4333-8444-555555555555"


def body(dump: Any, /, **changes: Any) -> dict[str, Any]:
    return {"importId": "import-1", "dump": dump, "targetEvidence": FRESH, **changes}


def said(answer: Answer) -> tuple[int, Any]:
    return answer[0], answer[1].get("code", answer[1].get("status"))


async def nothing_is_planned(service: Service) -> None:
    state = await service.state()
    assert (state["status"], state["importId"], state["leaseEpoch"]) == ("EMPTY", None, 0)
    assert not any(service.coordinator_storage().rows().get(table) for table in ("control", "staged_event"))


@pytest.mark.parametrize(
    "changes",
    [
        {"importId": ""},
        {"importId": 1},
        {"importId": "x" * (IMPORT_ID_CHARACTERS_MAX + 1)},
        {"dump": []},
        {"dump": None},
        {"dump": "text"},
        {"targetEvidence": None},
        {"targetEvidence": {}},
        {"targetEvidence": {"bindingExists": False}},
        {"targetEvidence": {"bindingExists": 0, "eventsExist": 0}},
        {"targetEvidence": {**FRESH, "more": True}},
        {"faultAt": "mode-record"},
    ],
)
def test_a_malformed_plan_is_refused(changes: dict[str, Any]) -> None:
    async def scenario() -> None:
        service = Service()
        plan = body(dump_of(small(), "orders", LINEAGE), **changes)
        assert said(await service.post("/plan", plan)) == (400, "bootstrap_plan_invalid")
        for name in ("importId", "dump", "targetEvidence"):
            rest = {key: value for key, value in body({}).items() if key != name}
            assert said(await service.post("/plan", rest)) == (400, "bootstrap_plan_invalid")
        assert said(await service.post("/plan", [])) == (400, "bootstrap_plan_invalid")
        await nothing_is_planned(service)

    asyncio.run(scenario())


def test_the_longest_import_id_is_taken() -> None:
    async def scenario() -> None:
        service = Service()
        assert (await service.plan(small(), "x" * IMPORT_ID_CHARACTERS_MAX))[0] == 201

    asyncio.run(scenario())


def test_the_checks_come_in_the_order_of_the_reference() -> None:
    """Each plan has all faults from its own on; the first one is told."""

    async def scenario() -> None:
        service = Service()
        lineage = await service.lineage()
        await service.post("/command/admit", {"commandId": "c"})
        far = [record(1), {**record(2), "suid": "9" * 30}]
        unfit = dump_of(far, "orders", "another")
        bad = {**unfit, "events": unfit["events"][:1]}
        elsewhere = dump_of(far, "stock", "another")
        old = {"bindingExists": True, "eventsExist": False}
        steps = [
            ({**body(bad, targetEvidence=old), "importId": ""}, (400, "bootstrap_plan_invalid")),
            (body(bad, targetEvidence=old), (400, "record_order_or_duplicate")),
            (body(elsewhere, targetEvidence=old), (409, "bootstrap_target_mismatch")),
            (body(unfit, targetEvidence=old), (409, "bootstrap_target_not_fresh")),
            (body(unfit, targetEvidence={**FRESH, "eventsExist": True}), (409, "bootstrap_target_not_fresh")),
            (body(unfit), (409, "bootstrap_normal_command_in_flight")),
        ]
        for plan, expected in steps:
            assert said(await service.post("/plan", plan)) == expected
        await service.post("/command/release", {"commandId": "c"})
        assert said(await service.post("/plan", body(unfit))) == (400, "bootstrap_watermark_ahead")
        foreign = body(dump_of(small(), "orders", "another"))
        assert said(await service.post("/plan", foreign)) == (409, "bootstrap_lineage_mismatch")
        await nothing_is_planned_but_a_row(service)
        assert said(await service.post("/plan", body(dump_of(small(), "orders", lineage)))) == (201, "PLANNED")

    asyncio.run(scenario())


async def nothing_is_planned_but_a_row(service: Service) -> None:
    state = await service.state()
    # The epoch of the plan that was taken back is used up.
    assert (state["status"], state["importId"], state["leaseEpoch"]) == ("EMPTY", None, 1)
    assert "pendingPlan" not in state
    assert (await service.allocator("/state"))[1]["mode"] == "open"
    assert service.coordinator_storage().rows()["staged_event"] == []


def test_the_dump_parsers_codes_are_passed_on_with_status_400() -> None:
    async def scenario() -> None:
        service = Service()
        dump = dump_of(small(), "orders", await service.lineage())
        manifest = dump["manifest"]
        wrong = {
            "unknown_or_missing_field": {**dump, "more": 1},
            "dump_invalid": {**dump, "events": {}},
            "manifest_invalid": {**dump, "manifest": {**manifest, "version": 2}},
            "record_invalid": {**dump, "events": [{}]},
            "manifest_mismatch": {**dump, "manifest": {**manifest, "tagCounts": {}}},
            "digest_mismatch": {**dump, "manifest": {**manifest, "contentDigest": "fnv1a32:00000000"}},
        }
        for code, fault in wrong.items():
            assert said(await service.post("/plan", body(fault))) == (400, code)
        await nothing_is_planned(service)

    asyncio.run(scenario())


def test_a_plan_records_what_it_will_do() -> None:
    async def scenario() -> None:
        service = Service()
        status, planned = await service.plan(small())
        dump = await service.dump(small())
        assert (status, planned["status"], planned["leaseEpoch"]) == (201, "PLANNED", 1)
        assert planned["leaseUntil"] == START_MS + LEASE_MS
        assert planned["manifest"] == dump["manifest"]
        assert planned["source"] == dump["manifest"]["source"]
        assert (planned["digest"], planned["importId"]) == (dump["manifest"]["contentDigest"], "import-1")
        assert planned["allocatorLineageId"] == await service.lineage()
        assert (planned["failure"], planned["verifiedImportId"], planned["storeCompletion"]) == (None, None, None)
        assert planned == await service.state()
        assert (await service.allocator("/state"))[1]["mode"] == "importing"

    asyncio.run(scenario())


def test_a_repeat_changes_nothing_and_does_not_renew_the_lease() -> None:
    async def scenario() -> None:
        service = Service()
        _, planned = await service.plan(small())
        service.world.clock.ms += 5000
        assert await service.plan(small()) == (201, planned)
        await service.post("/import", service.ids)
        await service.world.settle()
        status, state = await service.plan(small())
        assert (status, state["status"]) == (200, "VERIFYING")
        await service.post("/abort", service.ids)
        status, state = await service.plan(small())
        assert (status, state["status"]) == (200, "FAILED")

    asyncio.run(scenario())


def test_another_id_or_dump_is_a_conflict() -> None:
    async def scenario() -> None:
        service = Service()
        await service.plan(small())
        before = service.everything()
        assert said(await service.plan(small(), "import-2")) == (409, "bootstrap_plan_conflict")
        assert said(await service.plan(small()[:2])) == (409, "bootstrap_plan_conflict")
        assert service.everything() == before

    asyncio.run(scenario())


def test_other_content_under_the_same_short_digest_is_a_conflict() -> None:
    """FNV-1a reads one UTF-16 unit of a character, so two emoji of one block have one digest."""

    async def scenario() -> None:
        service = Service()
        grin, smirk = ([record(1, payload=f'"{face}"')] for face in ("\U0001f600", "\U0001f60f"))
        one, other = await service.dump(grin), await service.dump(smirk)
        assert one["manifest"] == other["manifest"]
        assert (await service.plan(grin))[0] == 201
        assert said(await service.plan(smirk)) == (409, "bootstrap_plan_conflict")

    asyncio.run(scenario())


def test_another_source_under_the_same_short_digest_is_a_conflict() -> None:
    async def scenario() -> None:
        service = Service()
        dump = await service.dump(small())
        plans = []
        for face in ("\U0001f600", "\U0001f60f"):
            manifest = {**dump["manifest"], "source": {"serviceId": face, "lineageId": "x"}}
            plans.append(body(compose_dump_v1(manifest, dump["events"])))
        assert plans[0]["dump"]["manifest"]["contentDigest"] == plans[1]["dump"]["manifest"]["contentDigest"]
        assert (await service.post("/plan", plans[0]))[0] == 201
        assert said(await service.post("/plan", plans[1])) == (409, "bootstrap_plan_conflict")

    asyncio.run(scenario())


def test_ready_is_for_ever() -> None:
    async def scenario() -> None:
        service = Service()
        await service.ready(small())
        assert said(await service.plan(small())) == (409, "bootstrap_ready_permanent")
        assert said(await service.plan(small()[:1], "import-2")) == (409, "bootstrap_ready_permanent")

    asyncio.run(scenario())


def test_a_service_that_issued_anything_is_not_fresh() -> None:
    async def scenario() -> None:
        service = Service()
        allocation = {"attemptId": "a", "candidates": [{"candidateIndex": 0, "eventId": "e"}]}
        assert (await service.allocator("/allocate", allocation))[0] == 201
        assert said(await service.plan(small())) == (409, "bootstrap_target_not_fresh")
        await nothing_is_planned_but_a_row(service)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("lineage", "code"), [(None, "bootstrap_target_not_fresh"), ("x", "bootstrap_lineage_mismatch")]
)
def test_a_log_that_holds_events_of_the_service_is_not_fresh(lineage: str | None, code: str) -> None:
    async def scenario() -> None:
        service = Service()
        log = service.world.log
        await log.fence("orders", lineage or await service.lineage(), "earlier", 1)
        await log.admit("orders", "earlier", 1, 1, 1, json.dumps([record(1)]))
        assert said(await service.plan(small())) == (409, code)
        await service.world.settle()
        state = await service.state()
        assert (state["status"], state["importId"], "pendingPlan" in state) == ("EMPTY", None, False)
        assert (await service.allocator("/state"))[1]["mode"] == "open"

    asyncio.run(scenario())


@pytest.mark.parametrize(("ahead_ms", "status"), [(0, 201), (1, 400)])
def test_a_watermark_may_lie_a_day_ahead_and_no_more(ahead_ms: int, status: int) -> None:
    async def scenario() -> None:
        service = Service()
        at_ms = START_MS + WATERMARK_AHEAD_MS_MAX + ahead_ms
        late = {**record(1), "suid": format_suid(ticks_from_unix_ms(at_ms), 1)}
        assert (await service.plan([late]))[0] == status

    asyncio.run(scenario())


@pytest.mark.parametrize(("over", "expected"), [(0, (201, "PLANNED")), (1, (413, "dump_too_large"))])
def test_an_inline_dump_has_at_most_4_mib(over: int, expected: tuple[int, str]) -> None:
    async def scenario() -> None:
        service = Service()
        text = json.dumps(await service.dump([record(1, "ä")]), ensure_ascii=False)
        padding = " " * (INLINE_DUMP_BYTES_MAX + over - len(text.encode()))
        dump = f"{text[:-1]}{padding}}}"
        assert len(dump.encode()) == INLINE_DUMP_BYTES_MAX + over
        plan = f'{{"importId":"import-1","targetEvidence":{json.dumps(FRESH)},"dump": {dump} }}'
        assert said(await service.post("/plan", plan)) == expected

    asyncio.run(scenario())
