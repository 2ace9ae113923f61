"""Which call is taken in which state, what it answers, and what a repeat of it does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from dcb_runtime.limits import LEASE_MS
from dcb_runtime.ports import DatabaseError, Statement
from tests.objects.test_commands import service_in
from tests.support.dumps import record
from tests.support.service import FRESH, IMPORT_ID, Service, small
from tests.support.world import lose

STATE = "bootstrap_state_rejected"
EPOCH = "bootstrap_epoch_rejected"
UNVERIFIED = "bootstrap_verification_required"

ANSWERS: dict[str, dict[str, tuple[int, str]]] = {
    "/import": {
        "EMPTY": (409, EPOCH),
        "PLANNED": (202, "IMPORTING"),
        "IMPORTING": (202, "IMPORTING"),
        "VERIFYING": (409, STATE),
        "FAILED": (202, "IMPORTING"),
        "READY": (409, STATE),
    },
    "/verify": {
        "EMPTY": (409, EPOCH),
        "PLANNED": (409, STATE),
        "IMPORTING": (409, STATE),
        "VERIFYING": (202, "VERIFYING"),
        "FAILED": (409, STATE),
        "READY": (409, STATE),
    },
    "/ready": {
        "EMPTY": (409, EPOCH),
        "PLANNED": (409, UNVERIFIED),
        "IMPORTING": (409, UNVERIFIED),
        "VERIFYING": (200, "READY"),
        "FAILED": (409, UNVERIFIED),
        "READY": (200, "READY"),
    },
    "/abort": {
        "EMPTY": (409, EPOCH),
        "PLANNED": (200, "FAILED"),
        "IMPORTING": (200, "FAILED"),
        "VERIFYING": (200, "FAILED"),
        "FAILED": (200, "FAILED"),
        "READY": (409, STATE),
    },
    "/reset": {
        "EMPTY": (409, EPOCH),
        "PLANNED": (409, STATE),
        "IMPORTING": (409, STATE),
        "VERIFYING": (409, STATE),
        "FAILED": (202, "FAILED"),
        "READY": (409, STATE),
    },
    "/takeover": {
        "EMPTY": (409, STATE),
        "PLANNED": (409, "bootstrap_lease_held"),
        "IMPORTING": (409, "bootstrap_lease_held"),
        "VERIFYING": (409, "bootstrap_lease_held"),
        "FAILED": (200, "PLANNED"),
        "READY": (409, STATE),
    },
}


def bodies(service: Service) -> dict[str, Any]:
    ids = service.ids or {"importId": IMPORT_ID, "leaseEpoch": 0}
    return dict.fromkeys(ANSWERS, ids) | {
        "/takeover": {"importId": IMPORT_ID, "digest": service.digest or "fnv1a32:00000000"}
    }


@pytest.mark.parametrize("route", sorted(ANSWERS))
@pytest.mark.parametrize("status", ["EMPTY", "PLANNED", "IMPORTING", "VERIFYING", "FAILED", "READY"])
def test_each_call_is_taken_in_its_states_only(route: str, status: str) -> None:
    async def scenario() -> None:
        service = await service_in(status)
        before = service.everything()
        code, answer = await service.post(route, bodies(service)[route])
        assert (code, answer.get("code") or answer["status"]) == ANSWERS[route][status]
        if code == 409 and status != "EMPTY":
            assert service.everything() == before

    asyncio.run(scenario())


@pytest.mark.parametrize("route", ["/import", "/verify", "/ready", "/abort", "/reset"])
@pytest.mark.parametrize("wrong", [{"leaseEpoch": 0}, {"leaseEpoch": 2}, {"importId": "import-2"}])
def test_another_epoch_or_import_is_refused_everywhere(route: str, wrong: dict[str, Any]) -> None:
    async def scenario() -> None:
        for status in ("PLANNED", "VERIFYING", "FAILED", "READY"):
            service = await service_in(status)
            before = service.everything()
            code, answer = await service.post(route, {**service.ids, **wrong})
            assert (code, answer["code"]) == (409, EPOCH)
            assert service.everything() == before

    asyncio.run(scenario())


def test_ready_before_verify_opens_nothing() -> None:
    async def scenario() -> None:
        service = Service()
        await service.plan(small())
        await service.post("/import", service.ids)
        await service.world.settle()
        state = await service.state()
        assert (state["status"], state["progress"]["running"], state["storeCompletion"]) == ("VERIFYING", False, None)
        assert (await service.post("/ready", service.ids))[1]["code"] == UNVERIFIED
        assert (await service.allocator("/state"))[1]["mode"] == "importing"
        assert (await service.post("/verify", service.ids))[0] == 202
        await service.world.settle()
        state = await service.state()
        assert (state["verifiedImportId"], state["verifiedLeaseEpoch"]) == (IMPORT_ID, 1)
        assert state["storeCompletion"] == "prepopulated-manifest"

    asyncio.run(scenario())


def test_verify_may_be_repeated_and_counts_only_when_it_is_through_again() -> None:
    async def scenario() -> None:
        service = await service_in("VERIFYING")
        assert (await service.post("/verify", service.ids))[0] == 202
        assert (await service.state())["verifiedImportId"] is None
        assert (await service.post("/ready", service.ids))[1]["code"] == UNVERIFIED
        await service.world.settle()
        assert (await service.post("/ready", service.ids))[0] == 200

    asyncio.run(scenario())


def test_a_second_ready_answers_the_same_and_makes_no_second_receipt() -> None:
    async def scenario() -> None:
        service = await service_in("READY")
        _, state = await service.post("/ready", service.ids)
        receipt = await service.coordinator.get("/receipt")
        service.world.clock.ms += 5000
        status, again = await service.post("/ready", service.ids)
        assert (status, again["readyAt"], again["status"]) == (200, state["readyAt"], "READY")
        assert await service.coordinator.get("/receipt") == receipt

    asyncio.run(scenario())


def test_ready_is_told_after_the_allocator_is_open() -> None:
    async def scenario() -> None:
        service = await service_in("VERIFYING")
        service.world.lose_request = lose(1, "/fence/open")
        status, state = await service.post("/ready", service.ids)
        assert (status, state["status"], state["progress"]["running"]) == (202, "READY", True)
        assert (await service.allocator("/state"))[1]["mode"] == "importing"
        await service.world.settle()
        assert (await service.allocator("/state"))[1]["mode"] == "open"
        assert (await service.post("/ready", service.ids))[0] == 200

    asyncio.run(scenario())


def test_a_call_through_verification_goes_on_wherever_the_import_is() -> None:
    async def scenario() -> None:
        for status in ("PLANNED", "IMPORTING", "VERIFYING", "READY"):
            service = await service_in(status)
            code, _ = await service.post("/import", {**service.ids, "through": "verify"})
            assert code in (200, 202)
            await service.world.settle()
            state = await service.state()
            assert state["verifiedImportId"] == IMPORT_ID
            assert state["status"] == ("READY" if status == "READY" else "VERIFYING")

    asyncio.run(scenario())


def test_import_after_an_abort_clears_what_was_verified_and_goes_on() -> None:
    async def scenario() -> None:
        service = await service_in("FAILED")
        state = await service.state()
        assert (state["verifiedImportId"], state["failure"], state["leaseUntil"]) == (None, "operator_abort", None)
        calls = len(service.world.calls)
        await service.post("/import", service.ids)
        state = await service.state()
        assert (state["status"], state["failure"]) == ("IMPORTING", None)
        await service.world.settle()
        assert (await service.state())["status"] == "VERIFYING"
        # Everything was written before: nothing is admitted a second time.
        assert not [call for call in service.world.calls[calls:] if call.route.endswith("/admit")]
        assert (await service.post("/ready", service.ids))[1]["code"] == UNVERIFIED

    asyncio.run(scenario())


@pytest.mark.parametrize("status", ["PLANNED", "IMPORTING", "VERIFYING"])
def test_a_takeover_waits_for_the_lease_to_expire(status: str) -> None:
    async def scenario() -> None:
        service = await service_in(status)
        until = (await service.state())["leaseUntil"]
        take = {"importId": IMPORT_ID, "digest": service.digest}
        service.world.clock.ms = until - 1
        code, answer = await service.post("/takeover", take)
        assert (code, answer["code"], answer["leaseUntil"]) == (409, "bootstrap_lease_held", until)
        service.world.clock.ms = until
        code, answer = await service.post("/takeover", take)
        assert (code, answer["status"], answer["leaseEpoch"]) == (200, "PLANNED", 2)
        assert answer["leaseUntil"] == until + LEASE_MS
        assert answer["verifiedImportId"] is None
        assert (await service.post("/takeover", take))[1]["code"] == "bootstrap_lease_held"
        rows = service.allocator_storage().exec("SELECT lease_epoch FROM fence")
        assert rows == [(2,)]
        log = service.world.database.connection.execute("SELECT lease_epoch FROM dcb_service").fetchall()
        assert log == [(2,)]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "bootstrap_takeover_invalid"),
        ({"importId": IMPORT_ID}, 400, "bootstrap_takeover_invalid"),
        ({"importId": "", "digest": "d"}, 400, "bootstrap_takeover_invalid"),
        ({"importId": IMPORT_ID, "digest": "d", "more": 1}, 400, "bootstrap_takeover_invalid"),
        ({"importId": IMPORT_ID, "digest": "d"}, 409, "bootstrap_takeover_mismatch"),
        ({"importId": "import-2", "digest": None}, 409, "bootstrap_takeover_mismatch"),
    ],
)
def test_a_takeover_names_import_and_digest(body: dict[str, Any], status: int, code: str) -> None:
    async def scenario() -> None:
        service = await service_in("FAILED")
        named = {**body, "digest": service.digest} if body.get("digest", "") is None else body
        got, answer = await service.post("/takeover", named)
        assert (got, answer["code"]) == (status, code)

    asyncio.run(scenario())


def test_the_present_epoch_goes_on_after_expiry_while_nobody_took_over() -> None:
    async def scenario() -> None:
        service = await service_in("PLANNED")
        service.world.clock.ms += 10 * LEASE_MS
        assert (await service.post("/import", {**service.ids, "through": "verify"}))[0] == 202
        await service.world.settle()
        service.world.clock.ms += 10 * LEASE_MS
        assert (await service.post("/ready", service.ids))[0] == 200

    asyncio.run(scenario())


def log_is_down(_: Sequence[Statement]) -> None:
    raise DatabaseError("down")


def test_a_pending_plan_shows_empty_and_is_finished_by_the_alarm() -> None:
    async def scenario() -> None:
        service = Service()
        service.world.database.before = log_is_down
        status, answer = await service.plan(small())
        assert (status, answer["code"]) == (503, "bootstrap_log_unavailable")
        state = await service.state()
        assert (state["status"], state["importId"], state["manifest"]) == ("EMPTY", None, None)
        assert state["pendingPlan"] == {"importId": IMPORT_ID, "leaseEpoch": 1}
        assert state["progress"]["lastError"]["code"] == "bootstrap_log_unavailable"
        for route in ("/import", "/verify", "/ready", "/reset"):
            ids = {"importId": IMPORT_ID, "leaseEpoch": 1}
            assert (await service.post(route, ids))[1]["code"] == EPOCH
        service.world.database.before = None
        service.world.restart()
        await service.world.settle()
        state = await service.state()
        assert (state["status"], state["leaseEpoch"], state["progress"]["lastError"]) == ("PLANNED", 1, None)

    asyncio.run(scenario())


def test_another_plan_waits_behind_a_pending_one_and_comes_after_its_abort() -> None:
    async def scenario() -> None:
        service = Service()
        service.world.lose_request = lose(99, "/fence/raise", "/fence/cancel")
        assert (await service.plan(small()))[1]["code"] == "bootstrap_allocator_unavailable"
        other = {"importId": "import-2", "dump": await service.dump([record(1)]), "targetEvidence": FRESH}
        assert (await service.post("/plan", other))[1]["code"] == "bootstrap_plan_conflict"
        for wrong in ({"importId": "import-2", "leaseEpoch": 1}, {"importId": IMPORT_ID, "leaseEpoch": 0}):
            assert (await service.post("/abort", wrong))[1]["code"] == EPOCH
        assert (await service.post("/abort", {"importId": IMPORT_ID, "leaseEpoch": 1}))[0] == 503
        assert (await service.plan(small()))[1]["code"] == "bootstrap_plan_conflict"
        service.world.lose_request = None
        await service.world.settle()
        state = await service.state()
        assert (state["status"], "pendingPlan" in state, state["leaseEpoch"]) == ("EMPTY", False, 1)
        status, planned = await service.post("/plan", other)
        assert (status, planned["leaseEpoch"]) == (201, 2)

    asyncio.run(scenario())
