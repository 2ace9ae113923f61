"""The operator's calls: what is passed on, what waits, what the hook does, and what each refusal says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dcb_runtime.entry.hook import AfterVerifyBeforeReady, Hooks
from dcb_runtime.limits import (
    BODY_BYTES_MAX,
    HOOK_RENEW_MS,
    IMPORT_WAIT_MS,
    PLAN_BODY_BYTES_MAX,
    WAIT_STEP_MS_MAX,
    WAIT_STEP_MS_MIN,
)
from dcb_runtime.ports import PeerError, Reply
from dcb_runtime.rules.dump_v1 import compose_dump_v1, manifest_v1_for
from dcb_runtime.wire import reply
from tests.entry.doubles import Asked, Hands, World, refusal

IDS = {"importId": "import-1", "leaseEpoch": 1}
RUNNING: dict[str, Any] = {"running": True}
BLOCKED: dict[str, Any] = {
    "blocked": True,
    "lastError": {"code": "bootstrap_tag_admission_failed", "status": 409, "error": "why"},
}
VERIFIED: dict[str, Any] = {"verifiedImportId": "import-1", "verifiedLeaseEpoch": 1}
EVENT = {
    "eventId": "11111111-1111-4111-8111-111111111111",
    "suid": f"{1:030}",
    "payload": "{}",
    "eventTags": ["order:1"],
    "eventType": "Placed",
    "provenance": {"origin": "g32"},
    "timestamp": "2026-01-01T00:00:00.000Z",
    "causationId": None,
    "correlationId": None,
    "executedUser": None,
}
DUMP = compose_dump_v1(
    manifest_v1_for(
        [EVENT],
        {"serviceId": "old", "lineageId": "lineage-old"},
        {"serviceId": "orders", "allocatorLineageId": "lineage-orders"},
    ),
    [EVENT],
)
DIGEST = DUMP["manifest"]["contentDigest"]


def record(status: str = "IMPORTING", answer: int = 200, progress: dict[str, Any] | None = None, **more: Any) -> Reply:
    """An answer of the coordinator with its record."""
    view = {
        "schemaVersion": 1,
        "status": status,
        "importId": "import-1",
        "leaseEpoch": 1,
        "digest": DIGEST,
        "manifest": {"eventCount": 1},
        "progress": {"phase": "tags", "running": False, "blocked": False, "lastError": None, **(progress or {})},
        "verifiedImportId": None,
        "verifiedLeaseEpoch": None,
        **more,
    }
    return reply(answer, view)


GOING_ON = record(answer=202, progress=RUNNING)
RUNS = record(progress=RUNNING)
IS_VERIFIED = record("VERIFYING", **VERIFIED)
READY = record("READY", **VERIFIED)
CLAIMED = reply(200, {"token": "t0ken", "expiresAtMs": 1_030_000})


def ready_to_open(hook: AfterVerifyBeforeReady | None = None) -> World:
    """A world whose import is verified at once and whose claim and ready succeed."""
    world = World(hooks=Hooks(hook))
    world.objects.on("bootstrap", "/import", IS_VERIFIED)
    world.objects.on("bootstrap", "/hook/claim", CLAIMED)
    world.objects.on("bootstrap", "/hook/renew", reply(200, {}))
    world.objects.on("bootstrap", "/hook/release", reply(200, {}))
    world.objects.on("bootstrap", "/ready", READY)
    return world


# What is passed on


@pytest.mark.parametrize(
    ("method", "route", "asked"),
    [
        ("GET", "status", "/state"),
        ("GET", "receipt", "/receipt"),
        ("POST", "plan", "/plan"),
        ("POST", "abort", "/abort"),
        ("POST", "takeover", "/takeover"),
        ("POST", "reset", "/reset"),
    ],
)
@pytest.mark.parametrize(
    "answer", [Reply(200, '{"a" : 1.0}'), Reply(201, "{}"), refusal(404, "bootstrap_receipt_missing")]
)
def test_body_and_answer_are_passed_on_unchanged(method: str, route: str, asked: str, answer: Reply) -> None:
    world = World()
    world.objects.on("bootstrap", asked, answer)
    body = '{"importId": "import-1",  "pre\\u0061": 1.0}'
    got = world.ask(method, f"/operator/bootstrap/orders/{route}", body)
    assert (got.status, got.response.body) == (answer.status, answer.text)
    [call] = world.objects.asked
    assert call == Asked(
        "bootstrap",
        "orders/bootstrap/coordinator",
        asked,
        {"__serviceId": ["orders"]},
        body if method == "POST" else None,
    )


def test_a_plan_is_not_parsed_here() -> None:
    world = World()
    world.objects.on("bootstrap", "/plan", refusal(400, "bootstrap_body_invalid"))
    world.ask("POST", "/operator/bootstrap/orders/plan", "{not json")
    assert world.objects.asked[0].body == "{not json"


POSTS = ["plan", "import", "verify", "abort", "takeover", "reset", "export"]


@pytest.mark.parametrize("route", POSTS)
def test_a_body_that_is_not_utf8_is_told_so(route: str) -> None:
    world = World()
    got = world.ask("POST", f"/operator/bootstrap/orders/{route}", b'{"importId":"\xff"}')
    assert got.code == (400, "bootstrap_body_invalid")
    assert "not UTF-8 at byte 13" in got.json["error"]
    assert world.objects.asked == []


@pytest.mark.parametrize("route", ["import", "verify"])
@pytest.mark.parametrize("body", ["", "{", "[1", "\ufeff{}", "{}{}", "[" * 5000])
def test_a_body_that_is_not_json_is_refused(route: str, body: str) -> None:
    world = World()
    assert world.ask("POST", f"/operator/bootstrap/orders/{route}", body).code == (400, "bootstrap_body_invalid")
    assert world.objects.asked == []


@pytest.mark.parametrize(
    ("route", "bytes_max", "code"),
    [
        ("plan", PLAN_BODY_BYTES_MAX, "dump_too_large"),
        ("import", PLAN_BODY_BYTES_MAX, "dump_too_large"),
        ("import", BODY_BYTES_MAX, "body_too_large"),
        ("verify", BODY_BYTES_MAX, "body_too_large"),
        ("abort", BODY_BYTES_MAX, "body_too_large"),
        ("takeover", BODY_BYTES_MAX, "body_too_large"),
        ("reset", BODY_BYTES_MAX, "body_too_large"),
        ("export", BODY_BYTES_MAX, "body_too_large"),
    ],
)
def test_both_sides_of_a_bodys_limit(route: str, bytes_max: int, code: str) -> None:
    world = World()
    path = f"/operator/bootstrap/orders/{route}"
    body = json.dumps(IDS)
    if (route, bytes_max) != ("import", PLAN_BODY_BYTES_MAX):
        assert world.ask("POST", path, body.ljust(bytes_max)).code[1] != code
    before = len(world.objects.asked)
    assert world.ask("POST", path, body.ljust(bytes_max + 1)).code == (413, code)
    assert len(world.objects.asked) == before


@pytest.mark.parametrize("route", ["status", "receipt", "plan", "import", "verify", "abort", "takeover", "reset"])
@pytest.mark.parametrize("fault", [PeerError(), PeerError("lost")])
def test_a_coordinator_that_does_not_answer_is_a_503(route: str, fault: Exception) -> None:
    world = World()
    for asked in ("/state", "/receipt", "/plan", "/import", "/verify", "/abort", "/takeover", "/reset"):
        world.objects.on("bootstrap", asked, fault)
    method = "GET" if route in ("status", "receipt") else "POST"
    got = world.ask(method, f"/operator/bootstrap/orders/{route}", json.dumps(IDS))
    assert got.code == (503, "bootstrap_coordinator_unavailable")
    assert "ask again" in got.json["error"]


# Import: its body


@pytest.mark.parametrize(
    "ids",
    [
        {},
        {"importId": "import-1"},
        {"leaseEpoch": 1},
        {"importId": None, "leaseEpoch": 1},
        {"importId": 1, "leaseEpoch": 1},
        {"importId": ["import-1"], "leaseEpoch": 1},
        {"importId": "import-1", "leaseEpoch": None},
        {"importId": "import-1", "leaseEpoch": "1"},
        {"importId": "import-1", "leaseEpoch": 1.5},
        {"importId": "import-1", "leaseEpoch": True},
    ],
)
@pytest.mark.parametrize("route", ["import", "verify"])
def test_ids_that_are_none_are_those_of_another_epoch(route: str, ids: dict[str, Any]) -> None:
    world = World()
    assert world.post(route, ids).code == (409, "bootstrap_epoch_rejected")
    assert world.objects.asked == []


@pytest.mark.parametrize("route", ["import", "verify"])
@pytest.mark.parametrize("body", [{**IDS, "faultAt": "tag-chunk"}, {**IDS, "through": "ready"}, [], "text", 1, None])
def test_an_unknown_member_or_another_shape_is_refused(route: str, body: Any) -> None:
    world = World()
    assert world.post(route, body).code == (400, "bootstrap_body_invalid")
    assert world.objects.asked == []


@pytest.mark.parametrize(
    "dump",
    [
        None,
        "text",
        [],
        {},
        {**DUMP, "events": []},
        {**DUMP, "events": [{**EVENT, "payload": "[]"}]},
        {**DUMP, "manifest": {**DUMP["manifest"], "version": 2}},
        {**DUMP, "more": 1},
    ],
)
def test_a_dump_that_is_no_valid_one_is_refused_before_anything_is_asked(dump: Any) -> None:
    world = World()
    assert world.post("import", {**IDS, "dump": dump}).code == (400, "bootstrap_dump_invalid")
    assert world.objects.asked == []


def test_the_planned_dump_may_come_again() -> None:
    world = ready_to_open()
    world.objects.on("bootstrap", "/state", record("PLANNED"))
    assert world.post("import", {**IDS, "dump": DUMP}).status == 200
    assert world.objects.asked[1].json == {**IDS, "through": "verify"}


def test_another_dump_than_the_planned_one_is_refused() -> None:
    world = World()
    world.objects.on("bootstrap", "/state", record("PLANNED", digest="fnv1a32:00000000"))
    assert world.post("import", {**IDS, "dump": DUMP}).code == (409, "bootstrap_dump_mismatch")
    assert world.objects.routes() == ["/state"]


@pytest.mark.parametrize("planned", [{"importId": None, "leaseEpoch": 0, "digest": None}, {"leaseEpoch": 2}])
def test_a_dump_for_another_plan_is_one_of_another_epoch(planned: dict[str, Any]) -> None:
    world = World()
    world.objects.on("bootstrap", "/state", record("PLANNED", **planned))
    assert world.post("import", {**IDS, "dump": DUMP}).code == (409, "bootstrap_epoch_rejected")
    assert world.objects.routes() == ["/state"]


def test_a_body_with_a_dump_may_be_as_large_as_a_plans() -> None:
    world = ready_to_open()
    world.objects.on("bootstrap", "/state", record("PLANNED"))
    body = json.dumps({**IDS, "dump": DUMP})
    path = "/operator/bootstrap/orders/import"
    assert world.ask("POST", path, body.ljust(PLAN_BODY_BYTES_MAX)).status == 200
    assert world.ask("POST", path, body.ljust(PLAN_BODY_BYTES_MAX + 1)).code == (413, "dump_too_large")


# Import: waiting


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


# The hook


class Recorder:
    """A hook that notes how it was called, and when."""

    def __init__(self, world: World) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.world = world

    def plain(self, *arguments: Any) -> None:
        self.calls.append((*arguments, self.world.objects.routes()[-1]))

    async def later(self, *arguments: Any) -> None:
        await asyncio.sleep(0)
        self.plain(*arguments)


@pytest.mark.parametrize("kind", ["plain", "later"])
def test_the_hook_runs_once_under_the_claim_with_the_manifest(kind: str) -> None:
    world = ready_to_open()
    recorder = Recorder(world)
    world.hooks = Hooks(getattr(recorder, kind))
    assert world.post("import", IDS).status == 200
    [(service_id, import_id, lease_epoch, manifest, _)] = recorder.calls
    assert (service_id, import_id, lease_epoch, manifest) == ("orders", "import-1", 1, {"eventCount": 1})
    assert world.objects.routes()[:2] == ["/import", "/hook/claim"]
    assert world.objects.routes()[-1] == "/ready"


def test_the_hook_does_not_run_when_another_call_holds_it() -> None:
    world = ready_to_open()
    recorder = Recorder(world)
    world.hooks = Hooks(recorder.plain)
    held = record("VERIFYING", 202, **VERIFIED)
    world.objects.on("bootstrap", "/hook/claim", held)
    world.objects.on("bootstrap", "/state", IS_VERIFIED)
    got = world.post("import", IDS)
    assert (got.status, got.response.body) == (202, held.text)
    assert recorder.calls == []
    assert sum(world.hands.slept) == IMPORT_WAIT_MS
    assert set(world.objects.routes()) == {"/import", "/hook/claim", "/state"}


def test_a_call_that_waited_for_anothers_hook_tells_how_it_ended() -> None:
    world = ready_to_open()
    recorder = Recorder(world)
    world.hooks = Hooks(recorder.plain)
    world.objects.on("bootstrap", "/hook/claim", record("VERIFYING", 202, **VERIFIED))
    world.objects.on("bootstrap", "/state", IS_VERIFIED, IS_VERIFIED, READY)
    got = world.post("import", IDS)
    assert (got.status, got.response.body) == (200, READY.text)
    assert recorder.calls == []


def test_a_call_takes_the_place_of_one_whose_hook_died() -> None:
    world = ready_to_open()
    recorder = Recorder(world)
    world.hooks = Hooks(recorder.plain)
    held = record("VERIFYING", 202, **VERIFIED)
    world.objects.on("bootstrap", "/hook/claim", held, held, CLAIMED)
    world.objects.on("bootstrap", "/state", IS_VERIFIED)
    assert world.post("import", IDS).status == 200
    assert len(recorder.calls) == 1


def test_the_hook_does_not_run_when_its_claim_is_refused() -> None:
    world = ready_to_open()
    recorder = Recorder(world)
    world.hooks = Hooks(recorder.plain)
    world.objects.on("bootstrap", "/hook/claim", refusal(409, "bootstrap_epoch_rejected"))
    assert world.post("import", IDS).code == (409, "bootstrap_epoch_rejected")
    assert recorder.calls == []
    assert "/ready" not in world.objects.routes()


@pytest.mark.parametrize("text", ["{}", "[]", '{"token":1}', ""])
def test_a_claim_without_a_token_is_a_503(text: str) -> None:
    world = ready_to_open()
    world.objects.on("bootstrap", "/hook/claim", Reply(200, text))
    assert world.post("import", IDS).code == (503, "bootstrap_coordinator_unavailable")


def failing(*_: Any) -> None:
    raise ValueError("a payload")


async def failing_later(*_: Any) -> None:
    await asyncio.sleep(0)
    raise ValueError("a payload")


@pytest.mark.parametrize("hook", [failing, failing_later])
@pytest.mark.parametrize("released", [reply(200, {}), refusal(409, "bootstrap_hook_lost"), PeerError()])
def test_a_hook_that_raises_releases_its_claim_and_never_makes_ready(hook: Any, released: Any) -> None:
    world = ready_to_open(hook)
    world.objects.on("bootstrap", "/hook/release", released)
    got = world.post("import", IDS)
    assert got.code == (503, "bootstrap_read_model_rebuild_failed")
    assert "a payload" not in got.response.body
    assert "a payload" not in "".join(world.lines)
    assert "ValueError" in world.lines[0]
    [release] = [asked for asked in world.objects.asked if asked.route == "/hook/release"]
    assert release.json == {**IDS, "token": "t0ken"}
    assert "/ready" not in world.objects.routes()


@pytest.mark.parametrize("renewed", [reply(200, {}), PeerError(), refusal(500, "internal_error")])
def test_the_claim_is_renewed_while_the_hook_runs_and_not_after(renewed: Any) -> None:
    async def long(*_: Any) -> None:
        while world.objects.routes().count("/hook/renew") < 3:
            await asyncio.sleep(0)

    world = ready_to_open(long)
    world.objects.on("bootstrap", "/hook/renew", renewed)
    assert world.post("import", IDS).status == 200
    renewals = [asked for asked in world.objects.asked if asked.route == "/hook/renew"]
    assert len(renewals) == 3
    assert renewals[0].json == {**IDS, "token": "t0ken"}
    assert set(world.hands.slept) == {HOOK_RENEW_MS}
    assert world.objects.routes()[-1] == "/ready"


def test_a_claim_lost_while_the_hook_runs_is_refused_by_ready() -> None:
    async def long(*_: Any) -> None:
        for _step in range(20):
            await asyncio.sleep(0)

    world = ready_to_open(long)
    world.objects.on("bootstrap", "/hook/renew", refusal(409, "bootstrap_hook_lost"))
    world.objects.on("bootstrap", "/ready", refusal(409, "bootstrap_hook_lost"))
    assert world.post("import", IDS).code == (409, "bootstrap_hook_lost")
    assert world.objects.routes().count("/hook/renew") == 1


def test_the_caller_is_told_only_when_the_allocator_has_opened() -> None:
    world = ready_to_open()
    opening = record("READY", 202, RUNNING, **VERIFIED)
    world.objects.on("bootstrap", "/ready", opening)
    world.objects.on("bootstrap", "/state", record("READY", progress=RUNNING, **VERIFIED), READY)
    got = world.post("import", IDS)
    assert (got.status, got.response.body) == (200, READY.text)
    assert world.objects.routes()[-3:] == ["/ready", "/state", "/state"]


def test_an_allocator_that_does_not_open_in_time_is_a_202() -> None:
    world = ready_to_open()
    world.objects.on("bootstrap", "/ready", record("READY", 202, RUNNING, **VERIFIED))
    world.objects.on("bootstrap", "/state", record("READY", progress=RUNNING, **VERIFIED))
    assert world.post("import", IDS).status == 202
    assert sum(world.hands.slept) == IMPORT_WAIT_MS


def test_a_lost_answer_to_ready_is_a_503_and_the_same_call_ends_it() -> None:
    world = ready_to_open()
    world.objects.on("bootstrap", "/ready", PeerError())
    assert world.post("import", IDS).code == (503, "bootstrap_coordinator_unavailable")
    world.objects.on("bootstrap", "/import", READY)
    assert world.post("import", IDS).status == 200
