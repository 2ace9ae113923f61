"""A refusal that comes late belongs to the plan that asked, never to the one that was made meanwhile."""

from __future__ import annotations

import asyncio

from tests.support.dumps import dump_of
from tests.support.service import FRESH, Service, small
from tests.support.world import Call

FOREIGN_LINEAGE = "22222222-2222-4222-8222-222222222222"


class HeldReplies:
    """Holds back the answers to ``/fence/raise``, one after the other, until each is let go."""

    def __init__(self) -> None:
        self.held: list[asyncio.Event] = []

    async def on_hop(self, stage: str, call: Call) -> None:
        if (stage, call.route) == ("reply", "/fence/raise"):
            gate = asyncio.Event()
            self.held.append(gate)
            await gate.wait()

    async def until_held(self, count: int) -> None:
        while len(self.held) < count:
            await asyncio.sleep(0)


def test_a_late_refusal_of_one_plan_does_not_take_back_the_next() -> None:
    async def scenario() -> None:
        service = Service()
        good = await service.dump(small())
        foreign = dump_of(small(), "orders", FOREIGN_LINEAGE)
        replies = HeldReplies()
        service.world.on_hop = replies.on_hop

        first = asyncio.create_task(
            service.post("/plan", {"importId": "first", "dump": foreign, "targetEvidence": FRESH})
        )
        await replies.until_held(1)
        # The alarm settles the same plan meanwhile: refused as well, and forgotten.
        alarm = asyncio.create_task(service.world.run_due_alarms())
        await replies.until_held(2)
        replies.held[1].set()
        await alarm
        second = asyncio.create_task(
            service.post("/plan", {"importId": "second", "dump": good, "targetEvidence": FRESH})
        )
        await replies.until_held(3)
        replies.held[0].set()
        assert (await first)[1]["code"] == "bootstrap_lineage_mismatch"
        replies.held[2].set()
        status, planned = await second
        assert (status, planned["status"], planned["importId"]) == (201, "PLANNED", "second")

    asyncio.run(scenario())
