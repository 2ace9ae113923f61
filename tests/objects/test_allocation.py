"""Suids without events: replay, order, the clock that goes back or breaks, and the fence in front."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dcb_runtime.rules.suid import ticks_from_unix_ms
from tests.support.service import Answer, Service, small
from tests.support.world import START_MS, lose


def candidates(*indexes: int) -> list[dict[str, Any]]:
    return [{"candidateIndex": index, "eventId": f"event-{index}"} for index in indexes]


async def allocate(service: Service, attempt_id: str = "a", *indexes: int, **more: Any) -> Answer:
    body = {"attemptId": attempt_id, "candidates": candidates(*(indexes or (0,))), **more}
    return await service.allocator("/allocate", body)


def suids(answer: Answer) -> list[str]:
    assert answer[0] in (200, 201), answer
    return [candidate["suid"] for candidate in answer[1]["candidates"]]


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        {},
        {"attemptId": "", "candidates": candidates(0)},
        {"attemptId": "a"},
        {"attemptId": "a", "candidates": []},
        {"attemptId": "a", "candidates": candidates(1)},
        {"attemptId": "a", "candidates": candidates(0, 2)},
        {"attemptId": "a", "candidates": candidates(0, 0)},
        {"attemptId": "a", "candidates": candidates(-1, 0)},
        {"attemptId": "a", "candidates": [*candidates(0), {"candidateIndex": 1, "eventId": "event-0"}]},
        {"attemptId": "a", "candidates": [{"candidateIndex": 0, "eventId": ""}]},
        {"attemptId": "a", "candidates": [{"candidateIndex": 0.5, "eventId": "x"}]},
        {"attemptId": "a", "candidates": candidates(*range(501))},
        {
            "attemptId": "a",
            "candidates": candidates(0),
            "serviceId": "a/b",
            "bootstrapCommandId": "c",
            "bootstrapEpoch": 0,
        },
        {"attemptId": "a", "candidates": candidates(0), "faultInjection": "between-vector-and-watermark"},
    ],
)
def test_a_bad_allocation_is_refused_and_issues_nothing(body: Any) -> None:
    async def scenario() -> None:
        service = Service()
        status, answer = await service.allocator("/allocate", body)
        assert (status, answer["code"]) == (400, "invalid_allocation")
        assert (await service.allocator("/state"))[1]["allocatedWatermark"] is None

    asyncio.run(scenario())


def test_500_candidates_are_taken_in_index_order_whatever_the_order_of_the_request() -> None:
    async def scenario() -> None:
        service = Service()
        status, vector = await allocate(service, "a", *reversed(range(500)))
        assert status == 201
        got = suids((status, vector))
        assert got == sorted(set(got))
        assert [candidate["candidateIndex"] for candidate in vector["candidates"]] == list(range(500))
        assert [candidate["eventId"] for candidate in vector["candidates"]][:2] == ["event-0", "event-1"]
        assert vector["allocatorLineageId"] == await service.lineage()
        assert vector["allocatedAt"] == "2026-08-22T17:00:00.123Z"
        assert got[0][:19] == f"{ticks_from_unix_ms(START_MS):019d}"
        assert (await service.allocator("/state"))[1]["allocatedWatermark"] == got[-1]

    asyncio.run(scenario())


def test_an_attempt_again_gets_the_stored_vector_whatever_it_asks_for() -> None:
    async def scenario() -> None:
        service = Service()
        first = await allocate(service, "a/b %", 0, 1)
        service.world.restart()
        assert await allocate(service, "a/b %", 0) == (200, first[1])
        assert (await service.allocator("/state"))[1]["allocatedWatermark"] == suids(first)[-1]
        assert await service.allocator("/attempts/a%2Fb%20%25") == (200, first[1])

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/attempts/other", 404, "allocation_not_found"),
        ("/attempts/", 400, "invalid_attempt_id"),
        ("/attempts/%FF", 400, "invalid_attempt_id"),
    ],
)
def test_an_unknown_attempt_is_told(path: str, status: int, code: str) -> None:
    async def scenario() -> None:
        service = Service()
        await allocate(service)
        got, answer = await service.allocator(path)
        assert (got, answer["code"]) == (status, code)

    asyncio.run(scenario())


def test_twelve_attempts_at_once_get_rising_suids_and_equal_ones_one_vector() -> None:
    async def scenario() -> None:
        service = Service()
        different = await asyncio.gather(*(allocate(service, f"attempt-{n}", 0, 1) for n in range(12)))
        issued = [suid for answer in different for suid in suids(answer)]
        assert len(set(issued)) == 24
        assert issued == sorted(issued)
        same = await asyncio.gather(*(allocate(service, "same") for _ in range(2)))
        assert sorted(status for status, _ in same) == [200, 201]
        assert same[0][1] == same[1][1]

    asyncio.run(scenario())


def test_the_order_continues_above_the_watermark_after_a_restart_and_a_clock_that_went_back() -> None:
    async def scenario() -> None:
        service = Service()
        before = suids(await allocate(service, "a", 0, 1))
        service.world.restart()
        service.world.clock.ms -= 3_600_000
        after = suids(await allocate(service, "b", 0))
        assert int(after[0][:19]) == int(before[-1][:19]) + 1

    asyncio.run(scenario())


def test_a_clock_that_went_back_is_logged_once_for_each_second_that_it_shows() -> None:
    async def scenario() -> None:
        service = Service()
        watermark = suids(await allocate(service, "a"))[-1]
        service.world.clock.ms -= 3_600_000
        shown = service.world.clock.ms
        await allocate(service, "b")
        service.world.restart()
        await allocate(service, "c")
        assert [json.loads(line) for line in service.world.log_lines] == [
            {
                "type": "allocator_clock_rollback",
                "tick": shown,
                "watermark": watermark,
                "serviceId": "orders",
                "allocatorLineageId": await service.lineage(),
            }
        ]
        service.world.clock.ms += 1000
        await allocate(service, "d")
        assert len(service.world.log_lines) == 2

    asyncio.run(scenario())


def test_a_broken_clock_issues_nothing() -> None:
    async def scenario() -> None:
        service = Service()
        await service.lineage()
        clock = service.world.clock

        def broken() -> int:
            raise OSError("no clock")

        now_ms, clock.now_ms = clock.now_ms, broken  # type: ignore[method-assign]
        status, answer = await allocate(service)
        assert (status, answer["code"]) == (503, "allocator_order_clock_failed")
        clock.now_ms = now_ms  # type: ignore[method-assign]
        assert (await service.allocator("/attempts/a"))[0] == 404
        assert (await service.allocator("/state"))[1]["allocatedWatermark"] is None
        assert (await allocate(service))[0] == 201

    asyncio.run(scenario())


def test_a_vector_whose_watermark_cannot_be_stored_is_not_stored_either() -> None:
    async def scenario() -> None:
        service = Service()
        await service.lineage()
        storage = service.allocator_storage()
        storage.fail_next = lambda sql: sql.startswith("UPDATE sequence")
        assert (await allocate(service))[0] == 500
        storage.fail_next = None
        assert (await service.allocator("/attempts/a"))[0] == 404
        assert (await allocate(service))[0] == 201

    asyncio.run(scenario())


def test_nothing_is_issued_while_an_import_holds_the_fence_and_the_allocator_stays_fresh() -> None:
    async def scenario() -> None:
        service = Service()
        assert (await service.plan(small()))[0] == 201
        status, answer = await allocate(service)
        assert (status, answer["code"]) == (409, "bootstrap_in_progress")
        assert (await service.allocator("/state"))[1]["allocatedWatermark"] is None
        await service.post("/import", {**service.ids, "through": "verify"})
        await service.world.settle()
        assert (await service.state())["verifiedImportId"] is not None

    asyncio.run(scenario())


def test_the_coordinator_is_asked_for_a_command_that_is_named_whole() -> None:
    async def scenario() -> None:
        service = Service()
        await service.post("/command/admit", {"commandId": "c"})
        named = {"serviceId": "orders", "bootstrapCommandId": "c", "bootstrapEpoch": 0}
        assert (await allocate(service, "a", 0, **named))[0] == 201
        status, answer = await allocate(service, "b", 0, **{**named, "bootstrapEpoch": 1})
        assert (status, answer["code"]) == (409, "bootstrap_command_rejected")
        status, answer = await allocate(service, "b", 0, **{**named, "bootstrapCommandId": "other"})
        assert (status, answer["code"]) == (409, "bootstrap_command_rejected")
        assert (await allocate(service, "b", 0, serviceId="orders", bootstrapCommandId="other"))[0] == 201

    asyncio.run(scenario())


def test_a_coordinator_that_cannot_be_asked_stops_the_allocation() -> None:
    async def scenario() -> None:
        service = Service()
        named = {"serviceId": "orders", "bootstrapCommandId": "c", "bootstrapEpoch": 0}
        service.world.lose_request = lose(1, "/command/finalize")
        status, answer = await allocate(service, "a", 0, **named)
        assert (status, answer["code"]) == (503, "allocator_coordinator_unreachable")

    asyncio.run(scenario())
