"""The lineage: made once by the first write, kept for ever, never made by looking or by what was refused."""

from __future__ import annotations

import asyncio
import re

from tests.support.service import Service
from tests.support.world import World

UUID4 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
FENCE = {"importId": "import-1", "digest": "d", "leaseEpoch": 1}


def test_the_lineage_outlives_restarts_and_differs_between_services() -> None:
    async def scenario() -> None:
        world = World()
        orders, stock = Service("orders", world), Service("stock", world)
        made = await orders.lineage()
        assert UUID4.fullmatch(made)
        world.restart()
        assert await orders.lineage() == made
        assert await stock.lineage() != made

    asyncio.run(scenario())


def test_the_first_state_has_no_order_and_no_event() -> None:
    async def scenario() -> None:
        status, state = await Service().allocator("/state")
        assert status == 200
        del state["allocatorLineageId"]
        assert state == {
            "schemaVersion": 5,
            "allocatedWatermark": None,
            "bootstrapSeed": None,
            "lastRollbackWarningFingerprint": None,
            "mode": "open",
            "head": 0,
            "eventCount": 0,
            "tagCount": 0,
        }

    asyncio.run(scenario())


def test_looking_for_the_lineage_or_an_attempt_creates_nothing() -> None:
    async def scenario() -> None:
        service = Service()
        assert await service.allocator("/lineage") == (200, {"allocatorLineageId": None, "mode": "open"})
        assert (await service.allocator("/attempts/a"))[0] == 404
        assert service.allocator_storage().rows() == {}
        made = await service.lineage()
        assert await service.allocator("/lineage") == (200, {"allocatorLineageId": made, "mode": "open"})

    asyncio.run(scenario())


def test_a_refused_first_call_leaves_an_allocator_that_works_and_has_no_lineage_yet() -> None:
    async def scenario() -> None:
        service = Service()
        status, answer = await service.allocator("/fence/raise", {**FENCE, "allocatorLineageId": "another"})
        assert (status, answer["code"]) == (409, "bootstrap_lineage_mismatch")
        assert (await service.allocator("/lineage"))[1]["allocatorLineageId"] is None
        assert (await service.allocator("/state"))[0] == 200

    asyncio.run(scenario())


def test_there_are_no_other_routes() -> None:
    async def scenario() -> None:
        service = Service()
        for path, body in (("/", None), ("/allocate", None), ("/state", {}), ("/fence", {}), ("/attempts/a", {})):
            status, answer = await service.allocator(path, body)
            assert (status, answer["code"]) == (404, "allocator_route_not_found")

    asyncio.run(scenario())
