"""A plan that stopped at any hop and not repeated: alarms lead to PLANNED or to a service like a fresh one."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from dcb_runtime.ports import DatabaseError, PeerError
from tests.support.crash import Crash, FaultAt, Mode
from tests.support.dumps import record
from tests.support.service import FRESH, IMPORT_ID, Service, small

LOST = (PeerError, DatabaseError, Crash)
ALLOCATION = {"attemptId": "a", "candidates": [{"candidateIndex": 0, "eventId": "e"}]}


async def interrupted(at: int, mode: Mode, refused: bool, aborted: bool) -> tuple[Service, bool]:
    """Plan once with a fault, let the alarms run; the service, and whether the fault came."""
    service = Service()
    dump = await service.dump(small())
    if refused:
        # Events in the log that nobody knows of: the allocator's fence goes up before it is found out.
        await service.world.log.fence("orders", await service.lineage(), "earlier", 1)
        await service.world.log.admit("orders", "earlier", 1, 1, 1, json.dumps([record(1)]))
    fault = FaultAt(service.world, at, mode)
    fault.install()
    with contextlib.suppress(*LOST):
        await service.post("/plan", {"importId": IMPORT_ID, "dump": dump, "targetEvidence": FRESH})
        if aborted:
            await service.post("/abort", {"importId": IMPORT_ID, "leaseEpoch": 1})
    for _ in range(9):
        with contextlib.suppress(*LOST):
            if aborted:
                await service.post("/abort", {"importId": IMPORT_ID, "leaseEpoch": 1})
            await service.world.settle()
            break
    service.world.on_hop = service.world.database.on_hop = None
    return service, fault.seen > at


async def usable(service: Service, allocate: bool) -> None:
    """A fresh service: it may allocate, or plan and import another dump."""
    assert (await service.allocator("/state"))[1]["mode"] == "open"
    if allocate:
        assert (await service.allocator("/allocate", ALLOCATION))[0] == 201
        return
    if await service.world.log.count("orders"):
        service.world.database.connection.execute("DELETE FROM dcb_event")
    assert (await service.plan([record(5, "z")], "import-2"))[0] == 201
    await service.post("/import", {**service.ids, "through": "verify"})
    await service.world.settle()
    assert (await service.post("/ready", service.ids))[0] == 200


@pytest.mark.parametrize("mode", ["lose", "crash"])
@pytest.mark.parametrize("refused", [False, True])
def test_it_ends_planned_or_fresh(refused: bool, mode: Mode) -> None:
    ends = set()
    for at in range(60):
        for allocate in (True, False):

            async def scenario(at: int = at, allocate: bool = allocate) -> bool:
                service, came = await interrupted(at, mode, refused, aborted=False)
                state = await service.state()
                assert "pendingPlan" not in state
                ends.add(state["status"])
                if state["status"] == "EMPTY":
                    await usable(service, allocate)
                else:
                    assert (state["status"], refused) == ("PLANNED", False)
                return came

            if not asyncio.run(scenario()):
                assert at >= 6
                assert ends == ({"EMPTY"} if refused else {"EMPTY", "PLANNED"})
                return
    raise AssertionError("no end of hops")


@pytest.mark.parametrize("mode", ["lose", "crash"])
def test_an_abort_right_behind_it_ends_failed_or_fresh(mode: Mode) -> None:
    for at in range(60):

        async def scenario(at: int = at) -> bool:
            service, came = await interrupted(at, mode, refused=False, aborted=True)
            state = await service.state()
            assert "pendingPlan" not in state
            if state["status"] != "EMPTY":
                assert state["status"] == "FAILED"
                service.ids = {"importId": IMPORT_ID, "leaseEpoch": 1}
                await service.reset()
            await usable(service, allocate=at % 2 == 0)
            return came

        if not asyncio.run(scenario()):
            assert at >= 6
            return
    raise AssertionError("no end of hops")
