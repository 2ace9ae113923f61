"""Failures of what an import calls: outages delay and heal by themselves, refusals block until an operator calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from dcb_runtime.bootstrap import runner
from dcb_runtime.bootstrap.runner import RETRY_MS_MAX, RETRY_MS_MIN
from dcb_runtime.ports import DatabaseError, PeerError, Statement
from tests.support.dumps import record
from tests.support.service import Service, small
from tests.support.sqlite import SqliteStorage
from tests.support.world import Call, lose


async def importing() -> Service:
    service = Service()
    await service.plan(small())
    await service.post("/import", {**service.ids, "through": "verify"})
    return service


async def is_through(service: Service) -> None:
    await service.world.settle()
    state = await service.state()
    assert (state["status"], state["verifiedImportId"]) == ("VERIFYING", "import-1")
    assert state["progress"]["lastError"] is None


@pytest.mark.parametrize(
    ("route", "code"),
    [
        ("/import/admit", "bootstrap_allocator_unavailable"),
        ("/seed-after", "bootstrap_allocator_unavailable"),
        ("/bootstrap/admit", "bootstrap_tag_unavailable"),
        ("/index/events", "bootstrap_allocator_unavailable"),
        ("/index/tags", "bootstrap_allocator_unavailable"),
        ("/digest", "bootstrap_tag_unavailable"),
    ],
)
@pytest.mark.parametrize("place", ["lose_request", "lose_reply"])
def test_an_outage_is_shown_and_overcome(route: str, code: str, place: str) -> None:
    async def scenario() -> None:
        service = await importing()
        setattr(service.world, place, lose(99, route))
        await service.world.run_due_alarms()
        progress = (await service.state())["progress"]
        error = progress["lastError"]
        assert (error["code"], error["status"], progress["blocked"], progress["running"]) == (code, 503, False, True)
        if code == "bootstrap_tag_unavailable":
            assert error["error"].startswith('tag "')
        setattr(service.world, place, None)
        await is_through(service)

    asyncio.run(scenario())


def test_an_object_that_fails_inside_is_an_outage_too() -> None:
    async def scenario() -> None:
        service = await importing()
        tag = service.tag_storage("a")
        tag.fail_next = lambda sql: sql.startswith("WITH incoming") and "INSERT INTO event" in sql
        await service.world.run_due_alarms()
        assert (await service.state())["progress"]["lastError"]["code"] == "bootstrap_tag_unavailable"
        assert (await service.tag("a", "/events"))[1]["events"] == []
        tag.fail_next = None
        await is_through(service)
        assert len((await service.tag("a", "/events"))[1]["events"]) == 2

    asyncio.run(scenario())


def test_one_tag_that_is_full_holds_up_no_other_one() -> None:
    async def scenario() -> None:
        service = await importing()
        service.tag_storage("a").fail_next = lambda sql: "INSERT INTO event" in sql
        await service.world.run_due_alarms()
        assert (await service.tag("b", "/state"))[1]["version"] == 2

    asyncio.run(scenario())


def test_the_tries_come_at_growing_intervals_up_to_a_bound() -> None:
    async def scenario() -> None:
        service = await importing()
        service.world.lose_request = lose(99, "/import/admit")
        storage = service.coordinator_storage()
        waits = []
        for _ in range(9):
            await service.world.run_due_alarms()
            assert storage.at_ms is not None
            waits.append(storage.at_ms - service.world.clock.ms)
            service.world.clock.ms = storage.at_ms
        assert waits == [min(RETRY_MS_MIN << n, RETRY_MS_MAX) for n in range(9)]
        service.world.lose_request = None
        await is_through(service)

    asyncio.run(scenario())


def test_a_call_while_it_waits_tries_again_at_once() -> None:
    async def scenario() -> None:
        service = await importing()
        service.world.lose_request = lose(6, "/import/admit")
        for _ in range(6):
            service.world.clock.ms += RETRY_MS_MAX
            await service.world.run_due_alarms()
        at = service.world.clock.ms
        assert (await service.post("/import", {**service.ids, "through": "verify"}))[0] == 202
        assert service.coordinator_storage().at_ms == at
        await is_through(service)
        assert service.world.clock.ms == at

    asyncio.run(scenario())


def test_a_refusal_blocks_shows_its_reason_and_is_tried_again_by_the_next_call() -> None:
    async def scenario() -> None:
        service = await importing()
        await service.tag("a", "/bootstrap/reset", foreign(service, await service.lineage()))
        await service.world.settle()
        progress = (await service.state())["progress"]
        error = progress["lastError"]
        assert (progress["blocked"], progress["running"]) == (True, False)
        assert (error["code"], error["status"]) == ("bootstrap_tag_admission_failed", 409)
        assert "bootstrap_fencing_or_manifest_mismatch" in error["error"]
        status, state = await service.post("/import", {**service.ids, "through": "verify"})
        assert (status, state["progress"]["lastError"], state["progress"]["blocked"]) == (202, None, False)
        await service.world.settle()
        assert (await service.state())["progress"]["blocked"]
        service.tag_storage("a").exec("UPDATE admission SET lease_epoch = 0")
        await service.post("/import", {**service.ids, "through": "verify"})
        await is_through(service)

    asyncio.run(scenario())


def foreign(service: Service, lineage: str) -> dict[str, object]:
    """A reset of a far epoch: after it the tag refuses this import."""
    return {
        "importId": "another",
        "leaseEpoch": 9,
        "manifestDigest": "d",
        "targetServiceId": service.service_id,
        "allocatorLineageId": lineage,
    }


def test_a_conflict_in_the_log_blocks_and_names_the_event() -> None:
    async def scenario() -> None:
        service = await importing()
        database = service.world.database

        def stray(statements: Sequence[Statement]) -> None:
            if any("INSERT INTO dcb_event" in sql for sql, _ in statements):
                database.before = None
                database.connection.execute(
                    "INSERT INTO dcb_event VALUES (1, 2, 9, 'x', 's', 't', '1', '[]', 'now', NULL, NULL, NULL)"
                )

        database.before = stray
        await service.world.settle()
        state = await service.state()
        assert state["progress"]["blocked"]
        assert state["progress"]["lastError"]["code"] == "BOOTSTRAP_EVENT_IDENTITY_CONFLICT"
        assert service.data()["log"] == [(1, 2, 9, "x", "s", "t", "1", "[]", "now", None, None, None)]

    asyncio.run(scenario())


def test_a_storage_that_refuses_a_step_is_logged_and_tells_nothing_of_itself() -> None:
    async def scenario() -> None:
        service = await importing()
        storage = service.coordinator_storage()
        storage.fail_next = lambda sql: "json_object('eventId', event_id, 'suid', suid, 'eventType'" in sql
        await service.world.run_due_alarms()
        progress = (await service.state())["progress"]
        assert progress["lastError"]["code"] == "internal_error"
        assert "SQLITE_FULL" not in progress["lastError"]["error"]
        assert service.world.log_lines != []
        storage.fail_next = None
        await is_through(service)

    asyncio.run(scenario())


def test_an_alarm_is_bounded_and_comes_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        service = await importing()
        monkeypatch.setattr(runner, "STEPS_PER_ALARM", 3)
        phases = []
        while await service.world.run_due_alarms():
            phases.append((await service.state())["progress"]["phase"])
        assert len(phases) > 3
        assert phases[-1] == "verified"

    asyncio.run(scenario())


class FailOnce:
    """Refuses the statement number ``at`` of a storage, once."""

    def __init__(self, storage: SqliteStorage, at: int) -> None:
        self.at = at
        self.seen = 0
        storage.fail_next = self._fails

    def _fails(self, _: str) -> bool:
        self.seen += 1
        return self.seen - 1 == self.at


async def whole(which: str, at: int) -> tuple[object, bool]:
    """A whole import in which one statement of one object is refused; the operator repeats what fails."""
    service = Service()
    dump = [record(1, "a")]
    await service.plan(dump)
    storages = {
        "coordinator": service.coordinator_storage(),
        "allocator": service.allocator_storage(),
        "tag": service.tag_storage("a"),
    }
    fail = FailOnce(storages[which], at)
    for route in ("/import", "/ready"):
        body = {**service.ids, "through": "verify"} if route == "/import" else service.ids
        for _ in range(3):
            if (await service.post(route, body))[0] in (200, 202):
                break
        await service.world.settle()
    failed = fail.seen > at
    storages[which].fail_next = None
    state = await service.state()
    assert (state["status"], state["progress"]["phase"], state["progress"]["lastError"]) == ("READY", "done", None), at
    return [service.data(), await service.receipt()], failed


@pytest.mark.parametrize("which", ["coordinator", "allocator", "tag"])
def test_one_statement_that_is_refused_anywhere_only_delays(which: str) -> None:
    expected, _ = asyncio.run(whole(which, 10**9))
    for at in range(2000):
        got, failed = asyncio.run(whole(which, at))
        assert got == expected, at
        if not failed:
            assert at > 10
            return
    raise AssertionError("no end of statements")


def test_an_alarm_whose_storage_refuses_everything_does_not_raise_and_comes_again() -> None:
    async def scenario() -> None:
        service = await importing()
        service.coordinator_storage().fail_next = lambda _: True
        service.world.restart()
        await service.world.run_due_alarms()
        assert service.coordinator_storage().at_ms == service.world.clock.ms + RETRY_MS_MAX
        service.coordinator_storage().fail_next = None
        await is_through(service)

    asyncio.run(scenario())


def test_a_hop_that_never_arrives_and_a_log_that_is_down_are_both_told() -> None:
    async def scenario() -> None:
        service = Service()

        def down(_: Sequence[Statement]) -> None:
            raise DatabaseError("down")

        async def nothing(stage: str, call: Call) -> None:
            if call.actor_class == "allocator" and stage == "request":
                raise PeerError("lost")

        service.world.database.before = down
        status, answer = await service.plan(small())
        assert (status, answer["code"]) == (503, "bootstrap_log_unavailable")
        other = Service()
        dump = await other.dump(small())
        other.world.on_hop = nothing
        evidence = {"bindingExists": False, "eventsExist": False}
        status, answer = await other.post("/plan", {"importId": "i", "dump": dump, "targetEvidence": evidence})
        assert (status, answer["code"]) == (503, "bootstrap_allocator_unavailable")

    asyncio.run(scenario())


def test_an_abort_keeps_what_held_the_import_up_until_it_goes_on() -> None:
    async def scenario() -> None:
        service = Service()
        assert (await service.plan(small()))[0] == 201
        service.world.lose_request = lose(1, "/import/admit")
        await service.post("/import", service.ids)
        await service.world.run_due_alarms()
        assert (await service.post("/abort", service.ids))[1]["status"] == "FAILED"
        assert (await service.state())["progress"]["lastError"]["code"] == "bootstrap_allocator_unavailable"
        assert (await service.post("/import", service.ids))[1]["progress"]["lastError"] is None

    asyncio.run(scenario())
