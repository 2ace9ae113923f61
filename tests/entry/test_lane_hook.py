"""The hook runs once, under a claim, before ready; without its success a service does not open."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dcb_runtime.entry.hook import Hooks
from dcb_runtime.limits import HOOK_RENEW_MS, IMPORT_WAIT_MS
from dcb_runtime.ports import PeerError, Reply
from dcb_runtime.wire import reply
from tests.entry.doubles import World, refusal
from tests.entry.lane import CLAIMED, IDS, IS_VERIFIED, READY, RUNNING, VERIFIED, ready_to_open, record


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
