"""Three operators do anything at once over slow and lossy hops: there is always a way to READY, and it is right.

Each seed is one history, the same in every run.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from typing import Any

import pytest

from dcb_runtime.ports import DatabaseError, PeerError, Statement
from tests.support.dumps import record
from tests.support.service import FRESH, Service, small
from tests.support.world import Call

DUMPS = {
    "import-1": small(),
    "import-2": [record(7, "b", "c"), record(8, "c"), record(9)],
    "import-3": [record(5, "a"), record(6, "d")],
}
ACTS = [
    "plan",
    "plan",
    "import",
    "import",
    "abort",
    "takeover",
    "reset",
    "reset",
    "verify",
    "ready",
    "finish",
    "finish",
]
LOST = (PeerError, DatabaseError)


class History:
    """One history: the service, its luck, and what its operators may do."""

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)
        self.service = Service()
        self.dumps: dict[str, Any] = {}

    async def run(self) -> None:
        world = self.service.world
        self.dumps = {name: await self.service.dump(records) for name, records in DUMPS.items()}
        world.on_hop, world.database.on_hop = self._call, self._batch
        operators = [asyncio.create_task(self._operate()) for _ in range(3)]
        while not all(operator.done() for operator in operators):
            await asyncio.sleep(0)
            await world.run_due_alarms()
            world.clock.ms += self.luck.choice([0, 1, 500, 5000])
        await asyncio.gather(*operators)
        world.on_hop = world.database.on_hop = None
        await world.settle()

    async def _call(self, stage: str, call: Call) -> None:
        await self._hop(PeerError("lost"))

    async def _batch(self, stage: str, statements: Sequence[Statement]) -> None:
        await self._hop(DatabaseError("lost"))

    async def _hop(self, lost: Exception) -> None:
        for _ in range(self.luck.randrange(12)):
            await asyncio.sleep(0)
        if self.luck.random() < 0.05:
            raise lost

    async def _operate(self) -> None:
        for _ in range(self.luck.randrange(3, 12)):
            with contextlib.suppress(*LOST):
                await self._act()

    async def _act(self) -> None:
        state = await self.service.state()
        pending = state.get("pendingPlan", state)
        ids = {"importId": pending["importId"], "leaseEpoch": pending["leaseEpoch"]}
        act = self.luck.choice(ACTS)
        if act == "plan":
            name = self.luck.choice(list(DUMPS))
            await self.service.post("/plan", {"importId": name, "dump": self.dumps[name], "targetEvidence": FRESH})
        elif act == "takeover":
            self.service.world.clock.ms += self.luck.choice([0, 40_000])
            await self.service.post("/takeover", {"importId": state["importId"], "digest": state["digest"]})
        elif act == "finish":
            await self._finish(ids)
        elif act == "import":
            await self.service.post("/import", {**ids, "through": self.luck.choice(["import", "verify"])})
        else:
            await self.service.post(f"/{act}", ids)

    async def _finish(self, ids: dict[str, Any]) -> None:
        """What an operator's import call does: wait for the verification, then open."""
        status, _ = await self.service.post("/import", {**ids, "through": "verify"})
        for _ in range(400):
            if status != 202 or not (await self.service.state())["progress"]["running"]:
                break
            await asyncio.sleep(0)
        await self.service.post("/ready", ids)

    async def to_empty(self) -> None:
        """The way back that an operator has from anywhere but READY."""
        state = await self.service.state()
        if state["status"] == "EMPTY":
            return
        self.service.ids = {"importId": state["importId"], "leaseEpoch": state["leaseEpoch"]}
        if not state["resetting"]:
            assert (await self.service.post("/abort", self.service.ids))[1]["status"] == "FAILED"
        await self.service.reset()


async def right_data(name: str) -> Any:
    """What a service holds that has had this import and nothing else."""
    service = Service()
    await ready(service, name)
    return service.data()


def without_empty_tags(data: dict[str, Any]) -> dict[str, Any]:
    return {name: rows for name, rows in data.items() if name in ("index", "log") or rows["event"]}


async def history(seed: int) -> str:
    past = History(seed)
    await past.run()
    state = await past.service.state()
    assert "pendingPlan" not in state
    # A FAILED import shows what held it up; whatever goes on has overcome it.
    assert state["status"] == "FAILED" or state["progress"]["lastError"] is None, state["progress"]
    end = state["status"]
    name = state["importId"]
    if end != "READY":
        await past.to_empty()
        assert (await past.service.allocator("/state"))[1]["mode"] == "open"
        name = past.luck.choice(list(DUMPS))
        await ready(past.service, name)
    assert without_empty_tags(past.service.data()) == await right_data(name)
    assert past.service.world.log_lines == []
    return str(end)


async def ready(service: Service, name: str) -> None:
    assert (await service.plan(DUMPS[name], name))[0] == 201
    await service.post("/import", {**service.ids, "through": "verify"})
    await service.world.settle()
    assert (await service.post("/ready", service.ids))[0] == 200
    await service.world.settle()


@pytest.mark.parametrize("block", range(4))
def test_any_history_can_be_brought_to_its_right_end(block: int) -> None:
    ends = [asyncio.run(history(seed)) for seed in range(block * 30, block * 30 + 30)]
    assert len(set(ends)) > 1
