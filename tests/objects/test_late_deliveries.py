"""Every call and every batch of an import that is over is delivered once more, late: nothing changes anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from dcb_runtime.ports import DatabaseError, Statement
from tests.support.dumps import record
from tests.support.service import IMPORT_ID, Service, small
from tests.support.world import Call

OTHER = [record(7, "b", "c"), record(8, "c"), record(9, "a/b%")]


class Recorder:
    """Keeps what goes over the wire: calls of allocator and tags, batches of the database."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.calls: list[Call] = []
        self.batches: list[list[Statement]] = []
        service.world.on_hop = self._call
        service.world.database.on_hop = self._batch

    async def _call(self, stage: str, call: Call) -> None:
        if stage == "request" and call.actor_class != "bootstrap" and call.body is not None:
            self.calls.append(call)

    async def _batch(self, stage: str, statements: Sequence[Statement]) -> None:
        if stage == "request":
            self.batches.append(list(statements))

    async def deliver_again(self) -> int:
        """Deliver each again and check that it changed nothing; how many there were."""
        world = self.service.world
        world.on_hop = world.database.on_hop = None
        before = self.service.everything()
        for call in self.calls:
            await world.call(call.actor_class, call.name, call.path, call.body)
            assert self.service.everything() == before, call
        for batch in self.batches:
            world.database.commit(batch)
            assert self.service.everything() == before, batch
        return len(self.calls) + len(self.batches)


async def over_and_reset(service: Service, recorder: Recorder) -> None:
    await service.failed(small())
    await service.reset()


async def over_and_taken_over(service: Service, recorder: Recorder) -> None:
    """The first epoch did all but the log; the second one finished and is READY."""
    await service.plan(small())

    def log_is_down(statements: Sequence[Statement]) -> None:
        if any("INSERT INTO dcb_event" in sql for sql, _ in statements):
            recorder.batches.append(list(statements))
            raise DatabaseError("down")

    service.world.database.before = log_is_down
    await service.post("/import", service.ids)
    await service.world.run_due_alarms()
    service.world.database.before = None
    service.world.clock.ms += 40_000
    service.world.on_hop = service.world.database.on_hop = None
    status, taken = await service.post("/takeover", {"importId": IMPORT_ID, "digest": service.digest})
    assert (status, taken["leaseEpoch"], taken["status"]) == (200, service.ids["leaseEpoch"] + 1, "PLANNED")


def test_nothing_of_a_reset_import_comes_back() -> None:
    async def scenario() -> None:
        service = Service()
        recorder = Recorder(service)
        await over_and_reset(service, recorder)
        assert await recorder.deliver_again() > 20

    asyncio.run(scenario())


@pytest.mark.parametrize("import_id", [IMPORT_ID, "import-2"])
@pytest.mark.parametrize("stop", ["PLANNED", "IMPORTED", "VERIFYING", "READY"])
def test_nothing_of_a_reset_import_gets_into_the_next_one(stop: str, import_id: str) -> None:
    async def scenario() -> None:
        service = Service()
        recorder = Recorder(service)
        await over_and_reset(service, recorder)
        service.world.on_hop = service.world.database.on_hop = None
        assert (await service.plan(OTHER, import_id))[0] == 201
        if stop != "PLANNED":
            through = "import" if stop == "IMPORTED" else "verify"
            await service.post("/import", {**service.ids, "through": through})
            await service.world.settle()
        if stop == "READY":
            assert (await service.post("/ready", service.ids))[0] == 200
            await service.world.settle()
        assert await recorder.deliver_again() > 20
        if stop in ("PLANNED", "IMPORTED"):
            await service.post("/import", {**service.ids, "through": "verify"})
            await service.world.settle()
            assert (await service.state())["verifiedImportId"] == import_id

    asyncio.run(scenario())


def test_the_same_dump_planned_again_after_a_reset_takes_nothing_from_before() -> None:
    async def scenario() -> None:
        service = Service()
        recorder = Recorder(service)
        await over_and_reset(service, recorder)
        service.world.on_hop = service.world.database.on_hop = None
        assert (await service.plan(small()))[0] == 201
        assert await recorder.deliver_again() > 20

    asyncio.run(scenario())


def test_nothing_of_an_import_gets_in_after_it_is_ready() -> None:
    async def scenario() -> None:
        service = Service()
        recorder = Recorder(service)
        await service.ready(small())
        assert await recorder.deliver_again() > 20

    asyncio.run(scenario())


def test_an_epoch_that_was_taken_over_writes_nothing_new_into_allocator_and_log() -> None:
    async def scenario() -> None:
        service = Service()
        recorder = Recorder(service)
        await over_and_taken_over(service, recorder)
        await recorder.deliver_again()
        log = service.world.database.connection.execute("SELECT count(*) FROM dcb_event").fetchone()
        assert log == (0,)

    asyncio.run(scenario())


def test_a_plan_that_was_taken_back_raises_no_fence_any_more() -> None:
    async def scenario() -> None:
        service = Service()
        dump = await service.dump(small())
        recorder = Recorder(service)

        def down(_: Sequence[Statement]) -> None:
            raise DatabaseError("down")

        service.world.database.before = down
        body: dict[str, Any] = {"importId": IMPORT_ID, "dump": dump}
        evidence = {"bindingExists": False, "eventsExist": False}
        status, answer = await service.post("/plan", {**body, "targetEvidence": evidence})
        assert (status, answer["code"]) == (503, "bootstrap_log_unavailable")
        service.world.database.before = None
        assert (await service.post("/abort", {"importId": IMPORT_ID, "leaseEpoch": 1}))[1]["status"] == "EMPTY"
        await service.world.settle()
        assert (await service.allocator("/state"))[1]["mode"] == "open"
        assert await recorder.deliver_again() >= 2
        assert (await service.allocator("/state"))[1]["mode"] == "open"
        assert (await service.plan(OTHER, "import-2"))[0] == 201

    asyncio.run(scenario())
