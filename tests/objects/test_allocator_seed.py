"""The seed that an import sets in the allocator, and the order that goes on above it."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from tests.support.dumps import FIRST_MS
from tests.support.service import Answer, Service, small

SEED: Final = {"importId": "import-1", "leaseEpoch": 1, "highWatermark": "9" * 30}


async def allocate(service: Service, attempt_id: str = "a") -> Answer:
    body = {"attemptId": attempt_id, "candidates": [{"candidateIndex": 0, "eventId": "event-0"}]}
    return await service.allocator("/allocate", body)


def suids(answer: Answer) -> list[str]:
    assert answer[0] in (200, 201), answer
    return [candidate["suid"] for candidate in answer[1]["candidates"]]


async def seeded() -> Service:
    """A service whose allocator an import has fenced and seeded."""
    service = Service()
    fence = {"importId": "import-1", "digest": "d", "leaseEpoch": 1}
    assert (await service.allocator("/fence/raise", fence))[0] == 200
    status, state = await service.allocator("/seed-after", SEED)
    assert (status, state["allocatedWatermark"], state["bootstrapSeed"]) == (201, SEED["highWatermark"], SEED)
    return service


def test_the_same_seed_is_replayed_and_another_is_refused_by_name() -> None:
    async def scenario() -> None:
        service = await seeded()
        status, state = await service.allocator("/seed-after", SEED)
        assert (status, state["bootstrapSeed"]) == (200, SEED)
        status, answer = await service.allocator("/seed-after", {**SEED, "highWatermark": "8" * 30})
        assert (status, answer["code"]) == (409, "allocator_seed_rejected")
        assert answer["error"].startswith("allocator already seeded")

    asyncio.run(scenario())


def test_a_seed_after_an_allocation_is_refused_by_name() -> None:
    async def scenario() -> None:
        service = Service()
        await allocate(service)
        status, answer = await service.allocator("/seed-after", SEED)
        assert (status, answer["code"]) == (409, "allocator_seed_rejected")
        assert answer["error"].startswith("allocator already allocating")

    asyncio.run(scenario())


@pytest.mark.parametrize(("ids", "code"), [({}, "fence_mismatch"), ({"leaseEpoch": 0}, "fence_mismatch")])
def test_a_seed_without_a_fence_is_refused(ids: dict[str, Any], code: str) -> None:
    async def scenario() -> None:
        status, answer = await Service().allocator("/seed-after", {**SEED, **ids})
        assert (status, answer["code"]) == (409, code)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "body",
    [
        {},
        {**SEED, "highWatermark": "9" * 29},
        {**SEED, "highWatermark": "suid-1"},
        {**SEED, "highWatermark": None},
        {**SEED, "importId": ""},
        {**SEED, "leaseEpoch": -1},
    ],
)
def test_a_bad_seed_is_refused(body: Any) -> None:
    async def scenario() -> None:
        status, answer = await Service().allocator("/seed-after", body)
        assert (status, answer["code"]) == (400, "invalid_bootstrap_seed")

    asyncio.run(scenario())


def test_after_an_import_the_order_goes_on_above_its_watermark() -> None:
    async def scenario() -> None:
        service = Service()
        service.world.clock.ms = FIRST_MS - 3_600_000
        await service.ready(small())
        watermark = small()[-1]["suid"]
        assert suids(await allocate(service))[0] > watermark
        assert int(suids(await allocate(service, "b"))[0][:19]) == int(watermark[:19]) + 2
        assert (await service.allocator("/seed-after", SEED))[0] == 409

    asyncio.run(scenario())


def test_an_order_that_has_no_ticks_left_issues_nothing() -> None:
    async def scenario() -> None:
        service = await seeded()
        fence = {"importId": "import-1", "digest": "d", "leaseEpoch": 1}
        assert (await service.allocator("/fence/open", fence))[0] == 200
        status, answer = await allocate(service)
        assert (status, answer["code"]) == (503, "SUID_RANGE_EXHAUSTED")

    asyncio.run(scenario())
