"""A step that fails after it was overtaken neither puts off what overtook it nor leaves its error behind."""

from __future__ import annotations

import asyncio

from dcb_runtime.limits import LEASE_MS
from dcb_runtime.ports import PeerError
from tests.support.service import IMPORT_ID, Service, small
from tests.support.world import Call, lose


def test_a_lost_hop_of_an_aborted_import_does_not_put_off_the_reset() -> None:
    async def scenario() -> None:
        service = Service()
        await service.plan(small())
        await service.post("/import", service.ids)

        async def overtake(stage: str, call: Call) -> None:
            if call.route == "/bootstrap/admit" and stage == "reply":
                service.world.on_hop = None
                await service.post("/abort", service.ids)
                assert (await service.post("/reset", service.ids))[0] == 202
                raise PeerError("lost")

        service.world.on_hop = overtake
        await service.world.run_due_alarms()
        assert service.coordinator_storage().at_ms == service.world.clock.ms
        state = await service.state()
        assert (state["status"], state["resetting"], state["progress"]["lastError"]) == ("FAILED", True, None)
        await service.world.settle()
        assert (await service.state())["status"] == "EMPTY"

    asyncio.run(scenario())


def test_the_error_of_a_takeover_is_shown_until_its_fence_is_up() -> None:
    async def scenario() -> None:
        service = Service()
        await service.plan(small())
        service.world.clock.ms += LEASE_MS
        service.world.lose_reply = lose(1, "/fence/raise")
        status, state = await service.post("/takeover", {"importId": IMPORT_ID, "digest": service.digest})
        assert (status, state["status"], state["progress"]["running"]) == (202, "PLANNED", True)
        assert state["progress"]["lastError"]["code"] == "bootstrap_allocator_unavailable"
        await service.world.settle()
        progress = (await service.state())["progress"]
        assert (progress["lastError"], progress["running"]) == (None, False)

    asyncio.run(scenario())
