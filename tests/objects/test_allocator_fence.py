"""The allocator's fence: who may raise, write, cancel, open and reset, and what late calls of old epochs do."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.support.dumps import record
from tests.support.service import Service

ALLOCATION = {"attemptId": "a", "candidates": [{"candidateIndex": 0, "eventId": "e"}]}


def holder(epoch: int, import_id: str = "import-1", digest: str = "d") -> dict[str, Any]:
    return {"importId": import_id, "digest": digest, "leaseEpoch": epoch}


def indexed(number: int) -> dict[str, Any]:
    whole = record(number, "a")
    return {name: whole[name] for name in ("eventId", "suid", "eventType", "eventTags")}


def chunk(epoch: int, first: int = 1, count: int = 1, **more: Any) -> dict[str, Any]:
    events = [indexed(number) for number in range(first, first + count)]
    return {**holder(epoch, **more), "firstPosition": first, "events": events}


class Fence:
    """An allocator, with its answers as one word each."""

    def __init__(self) -> None:
        self.service = Service()

    async def do(self, *steps: tuple[str, Any]) -> list[str]:
        said = []
        for path, body in steps:
            status, answer = await self.service.allocator(path, body)
            said.append("ok" if status in (200, 201) else answer["code"])
        return said

    async def facts(self) -> tuple[str, int]:
        state = (await self.service.allocator("/state"))[1]
        return state["mode"], state["head"]


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


RAISE, CANCEL, OPEN, RESET, ADMIT = "/fence/raise", "/fence/cancel", "/fence/open", "/fence/reset", "/import/admit"
STALE, MISMATCH, NOT_FRESH = "fence_epoch_stale", "fence_mismatch", "allocator_not_fresh"

SEQUENCES: dict[str, list[tuple[str, Any, str]]] = {
    "the same again": [(RAISE, holder(1), "ok"), (RAISE, holder(1), "ok"), (ADMIT, chunk(1), "ok")],
    "a newer epoch puts the old one out": [
        (RAISE, holder(1), "ok"),
        (RAISE, holder(2), "ok"),
        (RAISE, holder(1), STALE),
        (ADMIT, chunk(1), STALE),
        (CANCEL, holder(1), STALE),
        (OPEN, holder(1), STALE),
        (RESET, holder(1), STALE),
        (ADMIT, chunk(2), "ok"),
    ],
    "a write of a newer epoch raises it": [(RAISE, holder(1), "ok"), (ADMIT, chunk(2), "ok"), (ADMIT, chunk(1), STALE)],
    "another import or digest": [
        (RAISE, holder(1), "ok"),
        (RAISE, holder(2, "import-2"), MISMATCH),
        (RAISE, holder(2, digest="e"), MISMATCH),
        (ADMIT, chunk(1, import_id="import-2"), MISMATCH),
        (ADMIT, chunk(1, digest="e"), MISMATCH),
        (CANCEL, holder(1, "import-2"), MISMATCH),
        (OPEN, holder(1, "import-2"), MISMATCH),
        (RESET, holder(1, digest="e"), MISMATCH),
        (ADMIT, chunk(1), "ok"),
    ],
    "no fence, no write": [(ADMIT, chunk(1), MISMATCH), (OPEN, holder(1), MISMATCH), (RESET, holder(1), MISMATCH)],
    "cancel and again, late raise": [
        (RAISE, holder(1), "ok"),
        (CANCEL, holder(1), "ok"),
        (CANCEL, holder(1), "ok"),
        (RAISE, holder(1), STALE),
        (ADMIT, chunk(1), STALE),
        ("/allocate", ALLOCATION, "ok"),
    ],
    "cancel before the raise": [
        (CANCEL, holder(1), "ok"),
        (RAISE, holder(1), STALE),
        (RAISE, holder(2, "import-2"), "ok"),
        (CANCEL, holder(1), STALE),
        (ADMIT, chunk(2, import_id="import-2"), "ok"),
    ],
    "no cancel of what has begun": [
        (RAISE, holder(1), "ok"),
        (ADMIT, chunk(1), "ok"),
        (CANCEL, holder(1), NOT_FRESH),
        (ADMIT, chunk(1, 2), "ok"),
    ],
    "open is for good": [
        (RAISE, holder(1), "ok"),
        (ADMIT, chunk(1), "ok"),
        (OPEN, holder(1), "ok"),
        (OPEN, holder(1), "ok"),
        (RAISE, holder(1), STALE),
        (RAISE, holder(2), NOT_FRESH),
        (RAISE, holder(9, "import-2"), NOT_FRESH),
        (ADMIT, chunk(1), STALE),
        (ADMIT, chunk(2, 2), MISMATCH),
        (RESET, holder(1), STALE),
        (RESET, holder(2), MISMATCH),
        (CANCEL, holder(2), MISMATCH),
        ("/allocate", ALLOCATION, "ok"),
    ],
    "an empty import opens for good too": [
        (RAISE, holder(1), "ok"),
        (OPEN, holder(1), "ok"),
        (RAISE, holder(2), NOT_FRESH),
        (CANCEL, holder(2), MISMATCH),
    ],
    "reset and again, then another": [
        (RAISE, holder(1), "ok"),
        (ADMIT, chunk(1), "ok"),
        (RAISE, holder(2), "ok"),
        (RESET, holder(2), "ok"),
        (RESET, holder(2), "ok"),
        (ADMIT, chunk(1), STALE),
        (ADMIT, chunk(2), STALE),
        (RAISE, holder(2), STALE),
        (OPEN, holder(2), STALE),
        (RAISE, holder(3, "import-2"), "ok"),
        (RESET, holder(2), STALE),
        (ADMIT, chunk(3, import_id="import-2"), "ok"),
    ],
    "not fresh after an allocation": [("/allocate", ALLOCATION, "ok"), (RAISE, holder(1), NOT_FRESH)],
}
"""Calls in a row, each with what the allocator must say."""


@pytest.mark.parametrize("name", sorted(SEQUENCES))
def test_the_fence_says(name: str) -> None:
    async def scenario() -> None:
        fence = Fence()
        said = await fence.do(*((path, body) for path, body, _ in SEQUENCES[name]))
        assert said == [expected for _, _, expected in SEQUENCES[name]]

    run(scenario())


@pytest.mark.parametrize("name", sorted(SEQUENCES))
def test_a_refused_call_changes_nothing(name: str) -> None:
    async def scenario() -> None:
        fence = Fence()
        await fence.service.lineage()
        for path, body, expected in SEQUENCES[name]:
            before = fence.service.allocator_storage().rows()
            await fence.do((path, body))
            assert expected == "ok" or fence.service.allocator_storage().rows() == before, (path, body)

    run(scenario())


def test_a_reset_leaves_an_allocator_like_a_fresh_one() -> None:
    async def scenario() -> None:
        fence = Fence()
        lineage = await fence.service.lineage()
        seed = {"importId": "import-1", "leaseEpoch": 1, "highWatermark": record(2)["suid"]}
        steps = [(RAISE, holder(1)), (ADMIT, chunk(1, 1, 2)), ("/seed-after", seed), (RESET, holder(1))]
        assert await fence.do(*steps) == ["ok"] * 4
        state = (await fence.service.allocator("/state"))[1]
        assert (state["allocatorLineageId"], state["mode"], state["head"]) == (lineage, "open", 0)
        assert (state["allocatedWatermark"], state["bootstrapSeed"]) == (None, None)
        assert (state["eventCount"], state["tagCount"]) == (0, 0)
        assert await fence.do(("/allocate", ALLOCATION)) == ["ok"]

    run(scenario())


def test_the_fence_outlives_a_restart() -> None:
    async def scenario() -> None:
        fence = Fence()
        await fence.do((RAISE, holder(3)))
        fence.service.world.restart()
        assert await fence.facts() == ("importing", 0)
        assert await fence.do((ADMIT, chunk(2)), (ADMIT, chunk(3))) == [STALE, "ok"]

    run(scenario())


def test_a_foreign_lineage_is_refused_and_the_own_one_taken() -> None:
    async def scenario() -> None:
        fence = Fence()
        lineage = await fence.service.lineage()
        foreign, own = ({**holder(1), "allocatorLineageId": name} for name in (lineage[::-1], lineage))
        assert await fence.do((RAISE, foreign)) == ["bootstrap_lineage_mismatch"]
        assert await fence.facts() == ("open", 0)
        assert await fence.do((RAISE, own)) == ["ok"]

    run(scenario())


@pytest.mark.parametrize("path", [RAISE, CANCEL, OPEN, RESET, ADMIT, "/index/events", "/index/tags"])
@pytest.mark.parametrize("body", [{}, [], {**holder(1), "importId": ""}, {**holder(1), "more": 1}, "not json"])
def test_a_malformed_body_is_refused(path: str, body: Any) -> None:
    async def scenario() -> None:
        assert await Fence().do((path, body)) == ["invalid_fence_request"]

    run(scenario())
