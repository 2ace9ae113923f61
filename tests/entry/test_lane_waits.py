"""Import, verify and reset wait until the work is done, blocked or overtaken, or until their patience ends."""

from __future__ import annotations

from typing import Any

import pytest

from dcb_runtime.limits import IMPORT_WAIT_MS, WAIT_STEP_MS_MAX, WAIT_STEP_MS_MIN
from dcb_runtime.ports import Reply
from tests.entry.doubles import Asked, Hands, World, refusal
from tests.entry.lane import BLOCKED, GOING_ON, IDS, IS_VERIFIED, READY, RUNNING, RUNS, VERIFIED, ready_to_open, record


def test_an_import_that_ends_in_time_is_answered_with_the_ready_record() -> None:
    world = ready_to_open()
    world.objects.on("bootstrap", "/import", GOING_ON)
    world.objects.on("bootstrap", "/state", RUNS, RUNS, IS_VERIFIED)
    got = world.post("import", IDS)
    assert (got.status, got.response.body) == (200, READY.text)
    assert world.objects.routes() == ["/import", "/state", "/state", "/state", "/hook/claim", "/ready"]
    assert world.objects.asked[0].json == {**IDS, "through": "verify"}
    assert world.objects.asked[-1].json == {**IDS, "hookToken": "t0ken"}


def test_an_import_of_a_ready_service_is_answered_with_its_record() -> None:
    world = World()
    world.objects.on("bootstrap", "/import", READY)
    got = world.post("import", IDS)
    assert (got.status, got.response.body) == (200, READY.text)
    assert world.objects.routes() == ["/import"]


def test_an_import_that_another_call_finishes_is_answered_with_the_ready_record() -> None:
    world = World()
    world.objects.on("bootstrap", "/import", GOING_ON)
    world.objects.on("bootstrap", "/state", record("READY", progress=RUNNING, **VERIFIED), READY)
    got = world.post("import", IDS)
    assert (got.status, got.response.body) == (200, READY.text)
    assert world.objects.routes() == ["/import", "/state", "/state"]


@pytest.mark.parametrize("moving", [True, False])
@pytest.mark.parametrize("route", ["import", "verify", "reset"])
def test_work_that_goes_on_is_answered_with_202_and_the_record_when_patience_ends(route: str, moving: bool) -> None:
    world = World(hands=Hands(moving=moving))
    world.objects.on("bootstrap", f"/{route}", GOING_ON)
    world.objects.on("bootstrap", "/state", RUNS)
    got = world.post(route, IDS)
    assert (got.status, got.response.body) == (202, RUNS.text)
    waits = world.hands.slept
    assert sum(waits) == IMPORT_WAIT_MS
    assert waits[:6] == [20, 40, 80, 160, 320, 500]
    assert (min(waits), max(waits)) == (WAIT_STEP_MS_MIN, WAIT_STEP_MS_MAX)


def test_time_that_passes_while_asking_counts() -> None:
    world = World()

    def slow(_: Asked) -> Reply:
        world.hands.now += IMPORT_WAIT_MS
        return RUNS

    world.objects.on("bootstrap", "/import", GOING_ON)
    world.objects.on("bootstrap", "/state", slow)
    assert world.post("import", IDS).status == 202
    assert len(world.hands.slept) == 1


def test_a_clock_that_goes_back_does_not_make_the_call_wait_longer() -> None:
    world = World()

    def backwards(_: Asked) -> Reply:
        world.hands.now -= 10_000
        return RUNS

    world.objects.on("bootstrap", "/import", GOING_ON)
    world.objects.on("bootstrap", "/state", backwards)
    assert world.post("import", IDS).status == 202
    assert sum(world.hands.slept) == IMPORT_WAIT_MS


def test_work_that_stands_still_unverified_is_answered_with_202() -> None:
    world = World()
    world.objects.on("bootstrap", "/import", GOING_ON)
    world.objects.on("bootstrap", "/state", record("IMPORTING"))
    assert world.post("import", IDS).status == 202
    assert "/hook/claim" not in world.objects.routes()


def test_a_verification_of_an_earlier_epoch_counts_for_nothing() -> None:
    world = World()
    world.objects.on("bootstrap", "/import", GOING_ON)
    world.objects.on("bootstrap", "/state", record("VERIFYING", verifiedImportId="import-1", verifiedLeaseEpoch=0))
    assert world.post("import", IDS).status == 202
    assert "/hook/claim" not in world.objects.routes()


@pytest.mark.parametrize("route", ["import", "verify", "reset"])
def test_work_that_is_blocked_is_answered_with_its_error(route: str) -> None:
    world = World()
    world.objects.on("bootstrap", f"/{route}", GOING_ON)
    world.objects.on(
        "bootstrap", "/state", RUNS, record("FAILED" if route == "reset" else "IMPORTING", progress=BLOCKED)
    )
    got = world.post(route, IDS)
    assert got.code == (409, "bootstrap_tag_admission_failed")
    assert got.json["error"] == "why"


@pytest.mark.parametrize("error", [None, {"code": "x", "status": 200, "error": "y"}])
def test_work_that_is_blocked_without_a_reason_is_a_503(error: Any) -> None:
    world = World()
    world.objects.on("bootstrap", "/import", GOING_ON)
    world.objects.on("bootstrap", "/state", record(progress={"blocked": True, "lastError": error}))
    assert world.post("import", IDS).code == (503, "bootstrap_coordinator_unavailable")


@pytest.mark.parametrize("route", ["import", "verify"])
@pytest.mark.parametrize(
    ("meanwhile", "code"),
    [
        (record("FAILED"), "bootstrap_state_rejected"),
        (record("PLANNED", leaseEpoch=2), "bootstrap_epoch_rejected"),
        (record("EMPTY", importId=None), "bootstrap_epoch_rejected"),
        (record("PLANNED", importId="import-2"), "bootstrap_epoch_rejected"),
    ],
)
def test_an_abort_or_another_epoch_meanwhile_ends_the_wait(route: str, meanwhile: Reply, code: str) -> None:
    world = World()
    world.objects.on("bootstrap", f"/{route}", GOING_ON)
    world.objects.on("bootstrap", "/state", RUNS, meanwhile)
    assert world.post(route, IDS).code == (409, code)
    assert "/hook/claim" not in world.objects.routes()


@pytest.mark.parametrize("route", ["import", "verify", "reset"])
@pytest.mark.parametrize("answer", [refusal(409, "bootstrap_state_rejected"), refusal(500, "internal_error")])
def test_a_refusal_of_the_coordinator_is_passed_on(route: str, answer: Reply) -> None:
    world = World()
    world.objects.on("bootstrap", f"/{route}", answer)
    got = world.post(route, IDS)
    assert (got.status, got.response.body) == (answer.status, answer.text)


@pytest.mark.parametrize("route", ["import", "verify", "reset"])
def test_a_refusal_while_waiting_is_passed_on(route: str) -> None:
    world = World()
    world.objects.on("bootstrap", f"/{route}", GOING_ON)
    world.objects.on("bootstrap", "/state", RUNS, refusal(500, "internal_error"))
    assert world.post(route, IDS).code == (500, "internal_error")


@pytest.mark.parametrize("text", ["", "not json", "[]", "{}", '{"status":1}'])
def test_an_unreadable_record_is_a_503(text: str) -> None:
    world = World()
    world.objects.on("bootstrap", "/import", Reply(202, text))
    world.objects.on("bootstrap", "/state", Reply(200, text))
    assert world.post("import", IDS).code == (503, "bootstrap_coordinator_unavailable")


# Verify and reset


def test_verify_waits_for_the_verified_record_and_goes_no_further() -> None:
    world = World()
    world.objects.on("bootstrap", "/verify", GOING_ON)
    world.objects.on("bootstrap", "/state", RUNS, IS_VERIFIED)
    got = world.post("verify", IDS)
    assert (got.status, got.response.body) == (200, IS_VERIFIED.text)
    assert world.objects.asked[0].json == IDS
    assert world.objects.routes() == ["/verify", "/state", "/state"]


def test_verify_that_was_done_before_is_answered_at_once() -> None:
    world = World()
    world.objects.on("bootstrap", "/verify", IS_VERIFIED)
    assert world.post("verify", IDS).response.body == IS_VERIFIED.text
    assert world.hands.slept == []


def test_reset_waits_for_the_empty_record_whatever_its_epoch() -> None:
    world = World()
    empty = record("EMPTY", importId=None, leaseEpoch=2)
    world.objects.on("bootstrap", "/reset", record("FAILED", 202, RUNNING, leaseEpoch=2))
    world.objects.on("bootstrap", "/state", record("FAILED", progress=RUNNING, leaseEpoch=2), empty)
    got = world.post("reset", IDS)
    assert (got.status, got.response.body) == (200, empty.text)
    assert world.objects.routes() == ["/reset", "/state", "/state"]
