"""Reset: the way back from FAILED. Every part is visited, the old epoch is out everywhere, and the service is fresh."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from dcb_runtime.ports import DatabaseError, Statement
from tests.support.dumps import record
from tests.support.service import IMPORT_ID, Service, small
from tests.support.world import Call, lose


async def planned_and_failed(service: Service) -> None:
    """Aborted before anything was written."""
    await service.plan(small())
    await service.post("/abort", service.ids)


async def stuck_reset(route: str) -> tuple[Service, list[Call], list[list[Statement]]]:
    """A reset that cannot get past ``route``, with all writes of its import."""
    service = Service()
    batches: list[list[Statement]] = []
    service.world.database.before = lambda statements: batches.append(list(statements))
    await service.failed(small())
    calls = [call for call in service.world.calls if call.actor_class != "bootstrap" and call.body is not None]
    writes = [batch for batch in batches if any("INSERT INTO dcb_event" in sql for sql, _ in batch)]
    service.world.lose_request = lose(99, route)
    assert (await service.post("/reset", service.ids))[0] == 202
    await service.world.run_due_alarms()
    service.world.lose_request = None
    state = await service.state()
    assert (state["status"], state["resetting"], state["leaseEpoch"]) == ("FAILED", True, 2)
    assert state["progress"]["lastError"] is not None
    return service, calls, writes


@pytest.mark.parametrize("through", ["planned", "verified"])
def test_every_tag_of_the_plan_is_visited_and_keeps_the_new_epoch(through: str) -> None:
    async def scenario() -> None:
        service = Service()
        await (planned_and_failed(service) if through == "planned" else service.failed(small()))
        await service.reset()
        for tag in ("a", "b"):
            state = (await service.tag(tag, "/state"))[1]
            assert (state["version"], state["head"]) == (0, "")
            assert state["bootstrapAdmission"] == {
                "importId": None,
                "manifestDigest": None,
                "leaseEpoch": 2,
                "closed": False,
            }

    asyncio.run(scenario())


def test_nothing_of_the_import_is_left() -> None:
    async def scenario() -> None:
        service = Service()
        await service.failed(small())
        await service.reset()
        data = service.data()
        assert data["log"] == []
        assert data["index"] == {"event": [], "event_tag": [], "event_type": [], "tag": []}
        assert all(data[f"orders/tag/{tag}"]["event"] == [] for tag in ("a", "b"))
        rows = service.coordinator_storage().rows()
        left = ("staged_event", "staged_tag", "staged_event_tag", "manifest_part", "verification", "receipt")
        assert [rows[table] for table in left] == [[]] * len(left)
        state = await service.state()
        assert (state["status"], state["leaseEpoch"], state["importId"], state["manifest"]) == ("EMPTY", 2, None, None)
        assert (state["failure"], state["resetting"]) == (None, False)
        allocator = (await service.allocator("/state"))[1]
        assert (allocator["mode"], allocator["head"], allocator["allocatedWatermark"]) == ("open", 0, None)
        allocation = {"attemptId": "a", "candidates": [{"candidateIndex": 0, "eventId": "e"}]}
        assert (await service.allocator("/allocate", allocation))[0] == 201

    asyncio.run(scenario())


@pytest.mark.parametrize("import_id", [IMPORT_ID, "import-2"])
@pytest.mark.parametrize("dump", [small(), [record(7, "b", "c"), record(8)]])
def test_another_plan_goes_its_whole_way_afterwards(dump: list[dict[str, object]], import_id: str) -> None:
    async def scenario() -> None:
        service = Service()
        await service.failed(small())
        await service.reset()
        status, planned = await service.plan(dump, import_id)
        assert (status, planned["leaseEpoch"]) == (201, 3)
        await service.post("/import", {**service.ids, "through": "verify"})
        await service.world.settle()
        assert (await service.post("/ready", service.ids))[0] == 200

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("stuck_at", "refused"),
    [("/bootstrap/reset", {"allocator", "log"}), ("/fence/reset", {"allocator", "tag", "log"})],
)
def test_the_old_epoch_is_refused_while_the_reset_is_on_its_way(stuck_at: str, refused: set[str]) -> None:
    async def scenario() -> None:
        service, calls, writes = await stuck_reset(stuck_at)
        before = service.everything()
        for call in calls:
            if call.actor_class in refused and "admit" in call.route:
                answer = await service.world.call(call.actor_class, call.name, call.path, call.body)
                assert json.loads(answer.text)["code"] in ("fence_epoch_stale", "tag_operation_rejected")
        for batch in writes:
            service.world.database.commit(batch)
        assert service.everything() == before
        await service.world.settle()
        assert (await service.state())["status"] == "EMPTY"

    asyncio.run(scenario())


def test_while_it_is_on_its_way_only_reset_itself_is_taken() -> None:
    async def scenario() -> None:
        service, _, _ = await stuck_reset("/fence/reset")
        new = {**service.ids, "leaseEpoch": 2}
        for route in ("/import", "/abort"):
            assert (await service.post(route, new))[1]["code"] == "bootstrap_reset_in_progress"
            assert (await service.post(route, service.ids))[1]["code"] == "bootstrap_epoch_rejected"
        take = {"importId": IMPORT_ID, "digest": service.digest}
        assert (await service.post("/takeover", take))[1]["code"] == "bootstrap_reset_in_progress"
        assert (await service.plan(small()))[1]["code"] == "bootstrap_plan_conflict"
        assert (await service.plan(small()[:1], "import-2"))[1]["code"] == "bootstrap_plan_conflict"
        assert (await service.post("/reset", {**service.ids, "leaseEpoch": 0}))[1]["code"] == "bootstrap_epoch_rejected"
        for ids in (service.ids, new):
            status, state = await service.post("/reset", ids)
            assert (status, state["leaseEpoch"], state["resetting"]) == (202, 2, True)
        await service.world.settle()
        assert (await service.state())["status"] == "EMPTY"

    asyncio.run(scenario())


def test_a_repeat_after_the_end_is_fine_until_something_else_is_planned() -> None:
    async def scenario() -> None:
        service = Service()
        await service.failed(small())
        await service.reset()
        old = dict(service.ids)
        before = service.everything()
        for epoch in (1, 2):
            status, state = await service.post("/reset", {**old, "leaseEpoch": epoch})
            assert (status, state["status"]) == (200, "EMPTY")
        assert (await service.post("/reset", {**old, "leaseEpoch": 3}))[1]["code"] == "bootstrap_epoch_rejected"
        assert service.everything() == before
        await service.plan(small())
        assert (await service.post("/reset", old))[1]["code"] == "bootstrap_epoch_rejected"
        assert (await service.state())["status"] == "PLANNED"

    asyncio.run(scenario())


def test_a_blocked_reset_is_taken_up_by_the_next_call() -> None:
    async def scenario() -> None:
        service = Service()
        await service.failed(small())
        service.tag_storage("a").exec("UPDATE admission SET import_id = 'import-2'")
        await service.post("/reset", service.ids)
        await service.world.settle()
        state = await service.state()
        assert (state["status"], state["resetting"], state["progress"]["blocked"]) == ("FAILED", True, True)
        assert state["progress"]["lastError"]["code"] == "bootstrap_reset_failed"
        assert 'tag "a"' in state["progress"]["lastError"]["error"]
        service.tag_storage("a").exec("UPDATE admission SET import_id = ?", IMPORT_ID)
        await service.reset()

    asyncio.run(scenario())


def test_the_log_is_emptied_in_pieces() -> None:
    async def scenario() -> None:
        service = Service()
        await service.failed([record(number) for number in range(1, 2502)])
        left: list[int] = []

        async def watch(stage: str, statements: Sequence[Statement]) -> None:
            if stage == "reply" and any("DELETE FROM dcb_event" in sql for sql, _ in statements):
                left.append(service.world.database.connection.execute("SELECT count(*) FROM dcb_event").fetchone()[0])
                progress = (await service.state())["progress"]["events"]
                assert progress["done"] <= progress["total"] == 2501

        service.world.database.on_hop = watch
        await service.reset()
        assert left == [501, 0]

    asyncio.run(scenario())


def test_a_log_that_fails_in_the_middle_only_delays_it() -> None:
    async def scenario() -> None:
        service = Service()
        await service.failed(small())
        failing = [3]

        def down(statements: Sequence[Statement]) -> None:
            if any("DELETE" in sql for sql, _ in statements) and failing[0]:
                failing[0] -= 1
                raise DatabaseError("down")

        service.world.database.after = down
        await service.reset()
        assert failing == [0]
        assert service.data()["log"] == []

    asyncio.run(scenario())
