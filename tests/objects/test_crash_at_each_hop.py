"""Whatever hop of an import, a takeover or a reset is lost, or dies with everything in memory: the end is the same.

The operator only repeats his calls and reads the status; alarms do the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import pytest

from dcb_runtime.ports import DatabaseError, PeerError, Statement
from tests.support.crash import Crash, FaultAt, Mode
from tests.support.dumps import record
from tests.support.service import FRESH, Service, small

LOST = (PeerError, DatabaseError, Crash)
OTHER = [record(7, "b", "c"), record(8, "c"), record(9, "a/b%")]
LEASE_GONE_MS = 40_000


class Operator:
    """Repeats each call until the status shows its outcome; lost calls and crashes do not impress him."""

    def __init__(self) -> None:
        self.service = Service()
        self.world = self.service.world
        self.ids: dict[str, Any] = {}

    async def state(self) -> dict[str, Any]:
        for _ in range(20):
            try:
                return await self.service.state()
            except LOST:
                continue
        raise AssertionError("no state")

    async def call(self, route: str, body: Any) -> None:
        """One call, and all alarms after it."""
        with contextlib.suppress(*LOST):
            await self.service.post(route, body)
        await self.settle()

    async def settle(self) -> None:
        for _ in range(20):
            try:
                await self.world.settle()
                return
            except LOST:
                continue
        raise AssertionError("never settles")

    async def until(self, status: str, route: str, body: Any) -> None:
        """Repeat the call until the record has ``status``."""
        for _ in range(10):
            await self.call(route, body)
            state = await self.state()
            if state["status"] == status:
                self.ids = {"importId": state["importId"], "leaseEpoch": state["leaseEpoch"]}
                return
        raise AssertionError(f"{route} never leads to {status}: {state['status']} {state['progress']}")

    async def plan(self, dump: dict[str, Any], import_id: str) -> None:
        await self.until("PLANNED", "/plan", {"importId": import_id, "dump": dump, "targetEvidence": FRESH})

    async def run_import(self) -> None:
        for _ in range(10):
            await self.until("VERIFYING", "/import", {**self.ids, "through": "verify"})
            if (await self.state())["verifiedImportId"] is not None:
                return
        raise AssertionError("never verified")

    async def take_over(self, digest: str) -> None:
        epoch = self.ids["leaseEpoch"]
        for _ in range(10):
            self.world.clock.ms += LEASE_GONE_MS
            await self.call("/takeover", {"importId": self.ids["importId"], "digest": digest})
            state = await self.state()
            if state["leaseEpoch"] > epoch:
                self.ids["leaseEpoch"] = state["leaseEpoch"]
                return
        raise AssertionError("never taken over")


def log_is_down(statements: Sequence[Statement]) -> None:
    if any("INSERT INTO dcb_event" in sql for sql, _ in statements):
        raise DatabaseError("down")


async def whole_import(operator: Operator, fault: FaultAt | None) -> None:
    dump = await operator.service.dump(small())
    if fault is not None:
        fault.install()
    await operator.plan(dump, "import-1")
    await operator.run_import()
    await operator.until("READY", "/ready", operator.ids)


async def takeover(operator: Operator, fault: FaultAt | None) -> None:
    """An import that cannot write the log is taken over, then it can."""
    dump = await operator.service.dump(small())
    await operator.plan(dump, "import-1")
    operator.world.database.before = log_is_down
    await operator.service.post("/import", operator.ids)
    await operator.world.run_due_alarms()
    assert (await operator.state())["progress"]["lastError"]["code"] == "bootstrap_log_unavailable"
    operator.world.database.before = None
    if fault is not None:
        fault.install()
    await operator.take_over(dump["manifest"]["contentDigest"])
    await operator.run_import()
    await operator.until("READY", "/ready", operator.ids)


async def reset(operator: Operator, fault: FaultAt | None) -> None:
    """A verified import is aborted and reset, and another dump takes its place."""
    dump = await operator.service.dump(small())
    other = await operator.service.dump(OTHER)
    await operator.plan(dump, "import-1")
    await operator.run_import()
    if fault is not None:
        fault.install()
    await operator.until("FAILED", "/abort", operator.ids)
    await operator.until("EMPTY", "/reset", dict(operator.ids))
    await operator.plan(other, "import-2")
    await operator.run_import()
    await operator.until("READY", "/ready", operator.ids)


SCENARIOS = {"import": whole_import, "takeover": takeover, "reset": reset}


async def end_of(name: str, fault_at: int | None, mode: Mode) -> tuple[Any, int]:
    """What the scenario leaves, and how many stages of hops it had."""
    operator = Operator()
    fault = FaultAt(operator.world, -1 if fault_at is None else fault_at, mode)
    await SCENARIOS[name](operator, fault)
    operator.world.on_hop = operator.world.database.on_hop = None
    await operator.settle()
    staged = operator.service.coordinator_storage().rows()
    assert not any(rows for table, rows in staged.items() if table.startswith("staged_"))
    assert all(storage.at_ms is None for storage in operator.world.storages.values())
    assert operator.world.log_lines == []
    _, facts = await operator.service.allocator("/state")
    assert facts.pop("mode") == "open"
    facts.pop("bootstrapSeed")
    closed = {
        name: rows["admission"][0][-1]
        for (actor_class, name), storage in operator.world.storages.items()
        if actor_class == "tag" and (rows := storage.rows())
    }
    return [operator.service.data(), await operator.service.receipt(), facts, closed], fault.seen


@pytest.mark.parametrize("mode", ["lose", "crash"])
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_one_fault_at_any_hop_changes_nothing_of_the_outcome(name: str, mode: Mode) -> None:
    expected, stages = asyncio.run(end_of(name, None, mode))
    assert stages > 30
    for at in range(stages):
        got, _ = asyncio.run(end_of(name, at, mode))
        assert got == expected, f"{mode} at {at}"
