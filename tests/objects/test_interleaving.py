"""What an operator does while a hop of an import is on its way: he wins, and nothing of what he ended comes back.

Each test does its action at every stage of every hop, before the request arrives and before the answer is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.dumps import record
from tests.support.meanwhile import Meanwhile
from tests.support.service import FRESH, IMPORT_ID, Service, small
from tests.support.world import lose

OTHER = [record(7, "b", "c"), record(8, "c"), record(9)]
LEASE_GONE_MS = 40_000

Action = Callable[[Service], Awaitable[None]]


async def run_import(service: Service, at: int, action: Action) -> Meanwhile:
    """Import and verify, with ``action`` at stage ``at``."""
    assert (await service.plan(small()))[0] == 201
    meanwhile = Meanwhile(service.world, at, lambda: action(service))
    await service.post("/import", {**service.ids, "through": "verify"})
    meanwhile.install()
    await service.world.settle()
    service.world.on_hop = service.world.database.on_hop = None
    await service.world.settle()
    return meanwhile


async def each_stage(action: Action, check: Callable[[Service, bool], Awaitable[None]]) -> None:
    """Try every stage until there are no more."""
    for at in range(200):
        service = Service()
        meanwhile = await run_import(service, at, action)
        await check(service, meanwhile.done)
        if not meanwhile.done:
            assert at > 20
            return
    raise AssertionError("no end of hops")


async def finish(service: Service) -> None:
    """Whatever happened: this import, under its present epoch, can be brought to READY."""
    state = await service.state()
    ids = {"importId": state["importId"], "leaseEpoch": state["leaseEpoch"]}
    assert (await service.post("/import", {**ids, "through": "verify"}))[0] in (200, 202)
    await service.world.settle()
    assert (await service.post("/ready", ids))[0] == 200
    await service.world.settle()
    expected = Service()
    await expected.ready(small())
    assert service.data() == expected.data()


def test_an_abort_wins() -> None:
    async def abort(service: Service) -> None:
        assert (await service.post("/abort", service.ids))[1]["status"] == "FAILED"

    async def check(service: Service, aborted: bool) -> None:
        state = await service.state()
        assert state["status"] == ("FAILED" if aborted else "VERIFYING")
        assert state["failure"] == ("operator_abort" if aborted else None)
        assert (state["verifiedImportId"] is None) == aborted
        assert not state["progress"]["running"]
        await finish(service)
        assert (await service.state())["failure"] is None

    asyncio.run(each_stage(abort, check))


def test_a_reset_at_once_and_another_dump_win() -> None:
    async def replace(service: Service) -> None:
        await service.post("/abort", service.ids)
        assert (await service.post("/reset", service.ids))[0] == 202
        for _ in range(20):
            if (await service.state())["status"] == "EMPTY":
                break
            # The alarm that is under way ends first on the platform; a step of its own stands for the next one.
            service.world.clock.ms += 1000
            await service.world.run_due_alarms()
        assert (await service.plan(OTHER, "import-2"))[0] == 201

    async def check(service: Service, replaced: bool) -> None:
        if not replaced:
            return
        assert (await service.state())["status"] == "PLANNED"
        await service.post("/import", {**service.ids, "through": "verify"})
        await service.world.settle()
        assert (await service.post("/ready", service.ids))[0] == 200
        await service.world.settle()
        expected = Service()
        await expected.ready(OTHER)
        got, wanted = service.data(), expected.data()
        empty: dict[str, Any] = {"event": [], "head": [(1, 0, 0, "")]}
        assert got == {"orders/tag/a": empty, **wanted}

    asyncio.run(each_stage(replace, check))


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_takeover_wins_and_the_old_epoch_is_told(goes_on: bool) -> None:
    async def take_over(service: Service) -> None:
        service.world.clock.ms += LEASE_GONE_MS
        # A takeover whose fence is not up yet may be followed by its import at once.
        service.world.lose_request = lose(int(goes_on), "/fence/raise")
        status, taken = await service.post("/takeover", {"importId": IMPORT_ID, "digest": service.digest})
        assert (status, taken["status"], taken["leaseEpoch"]) == (202 if goes_on else 200, "PLANNED", 2)
        if goes_on:
            ids = {"importId": IMPORT_ID, "leaseEpoch": 2}
            assert (await service.post("/import", ids))[1]["status"] == "IMPORTING"

    async def check(service: Service, taken: bool) -> None:
        state = await service.state()
        if taken:
            assert (state["status"], state["leaseEpoch"]) == ("VERIFYING" if goes_on else "PLANNED", 2)
            for route in ("/import", "/verify", "/ready", "/abort"):
                assert (await service.post(route, service.ids))[1]["code"] == "bootstrap_epoch_rejected"
        await finish(service)

    asyncio.run(each_stage(take_over, check))


@pytest.mark.parametrize("route", ["/import", "/plan", "/takeover", "/verify"])
def test_calls_of_a_second_operator_do_not_disturb(route: str) -> None:
    async def call(service: Service) -> None:
        bodies: dict[str, Any] = {
            "/import": service.ids,
            "/verify": service.ids,
            "/takeover": {"importId": IMPORT_ID, "digest": service.digest},
            "/plan": {"importId": IMPORT_ID, "dump": await service.dump(small()), "targetEvidence": FRESH},
        }
        status, answer = await service.post(route, bodies[route])
        allowed = {"/takeover": {"bootstrap_lease_held"}}.get(route, {"bootstrap_state_rejected"})
        assert status in (200, 202) or answer["code"] in allowed, answer

    async def check(service: Service, _: bool) -> None:
        await finish(service)

    asyncio.run(each_stage(call, check))


@pytest.mark.parametrize("lost", [0, 1])
def test_a_plan_against_its_abort_leaves_planned_or_empty_and_both_work(lost: int) -> None:
    async def scenario(at: int) -> bool:
        service = Service()
        dump = await service.dump(small())

        async def abort() -> None:
            pending = (await service.state()).get("pendingPlan")
            if pending is not None:
                ids = {"importId": pending["importId"], "leaseEpoch": pending["leaseEpoch"]}
                # What takes the fence down again may be lost: then the plan is taken back by the alarm.
                service.world.lose_request = lose(lost, "/fence/cancel")
                assert (await service.post("/abort", ids))[0] == (503 if lost else 200)

        meanwhile = Meanwhile(service.world, at, abort)
        meanwhile.install()
        status, answer = await service.post("/plan", {"importId": IMPORT_ID, "dump": dump, "targetEvidence": FRESH})
        service.world.on_hop = service.world.database.on_hop = None
        await service.world.settle()
        state = await service.state()
        if meanwhile.done:
            assert (status, state["status"], "pendingPlan" in state) == (409, "EMPTY", False), answer
            assert (await service.allocator("/state"))[1]["mode"] == "open"
        assert (await service.plan(OTHER, "import-2"))[0] == (201 if meanwhile.done else 409)
        return meanwhile.done

    for at in range(50):
        if not asyncio.run(scenario(at)):
            assert at >= 4
            return
    raise AssertionError("no end of hops")


@pytest.mark.parametrize("same", [True, False])
def test_two_plans_at_once_are_one_plan_or_a_conflict(same: bool) -> None:
    async def scenario(at: int) -> bool:
        service = Service()
        one, other = await service.dump(small()), await service.dump(small() if same else OTHER)

        async def plan() -> None:
            status, answer = await service.post(
                "/plan", {"importId": IMPORT_ID, "dump": other, "targetEvidence": FRESH}
            )
            assert status in (200, 201) if same else answer["code"] == "bootstrap_plan_conflict"

        meanwhile = Meanwhile(service.world, at, plan)
        meanwhile.install()
        status, got = await service.post("/plan", {"importId": IMPORT_ID, "dump": one, "targetEvidence": FRESH})
        service.world.on_hop = service.world.database.on_hop = None
        assert (status, got["status"], got["leaseEpoch"]) == (201, "PLANNED", 1)
        await service.world.settle()
        assert (await service.state())["status"] == "PLANNED"
        await finish(service)
        return meanwhile.done

    for at in range(50):
        if not asyncio.run(scenario(at)):
            assert at >= 4
            return
    raise AssertionError("no end of hops")


def test_no_command_is_admitted_and_nothing_allocated_beside_a_plan() -> None:
    async def scenario(at: int) -> bool:
        service = Service()
        dump = await service.dump(small())
        allocated: list[int] = []

        async def commit() -> None:
            status, _ = await service.post("/command/admit", {"commandId": "c"})
            assert status == 409
            assert (await service.post("/route/check", {"route": "queue"}))[0] == 409
            candidates = [{"candidateIndex": 0, "eventId": "e"}]
            allocation = {"attemptId": "a", "candidates": candidates}
            allocated.append((await service.allocator("/allocate", allocation))[0])

        meanwhile = Meanwhile(service.world, at, commit)
        meanwhile.install()
        status, answer = await service.post("/plan", {"importId": IMPORT_ID, "dump": dump, "targetEvidence": FRESH})
        service.world.on_hop = service.world.database.on_hop = None
        if 201 in allocated:
            assert (status, answer["code"]) == (409, "bootstrap_target_not_fresh")
        else:
            assert (status, answer["status"]) == (201, "PLANNED")
        return meanwhile.done

    for at in range(50):
        if not asyncio.run(scenario(at)):
            assert at >= 4
            return
    raise AssertionError("no end of hops")
