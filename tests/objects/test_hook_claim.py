"""The claim on the hook between verification and READY: one holder at a time, over restarts, until it expires."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dcb_runtime.bootstrap.hook import HOOK_CLAIM_MS
from dcb_runtime.limits import LEASE_MS
from tests.support.service import IMPORT_ID, Service, small


async def claimed() -> tuple[Service, str]:
    """A verified import whose hook somebody holds."""
    service = Service()
    await service.verified(small())
    status, claim = await service.post("/hook/claim", service.ids)
    assert (status, claim["expiresAtMs"]) == (200, service.world.clock.ms + HOOK_CLAIM_MS)
    return service, claim["token"]


def code(answer: tuple[int, dict[str, Any]]) -> tuple[int, Any]:
    return answer[0], answer[1].get("code")


def test_while_it_is_held_nobody_else_gets_it_and_ready_waits() -> None:
    async def scenario() -> None:
        service, _ = await claimed()
        service.world.restart()
        service.world.clock.ms += HOOK_CLAIM_MS - 1
        status, record = await service.post("/hook/claim", service.ids)
        assert (status, record["status"], "token" in record) == (202, "VERIFYING", False)
        assert code(await service.post("/ready", service.ids)) == (409, "bootstrap_hook_held")
        assert (await service.state())["status"] == "VERIFYING"

    asyncio.run(scenario())


def test_ready_takes_the_token_or_no_claim_at_all() -> None:
    async def scenario() -> None:
        service, token = await claimed()
        wrong = {**service.ids, "hookToken": "another"}
        assert code(await service.post("/ready", wrong)) == (409, "bootstrap_hook_lost")
        assert (await service.post("/ready", {**service.ids, "hookToken": token}))[0] == 200
        assert service.coordinator_storage().rows()["hook_claim"] == []
        service, _ = await claimed()
        service.world.clock.ms += HOOK_CLAIM_MS
        assert (await service.post("/ready", service.ids))[0] == 200

    asyncio.run(scenario())


def test_an_expired_claim_goes_to_the_next_call_and_its_token_is_lost() -> None:
    async def scenario() -> None:
        service, token = await claimed()
        service.world.clock.ms += HOOK_CLAIM_MS
        status, claim = await service.post("/hook/claim", service.ids)
        assert status == 200
        assert claim["token"] != token
        lost = {**service.ids, "token": token}
        assert code(await service.post("/hook/renew", lost)) == (409, "bootstrap_hook_lost")
        assert code(await service.post("/ready", {**service.ids, "hookToken": token})) == (409, "bootstrap_hook_lost")
        assert (await service.post("/hook/release", lost))[0] == 200
        assert code(await service.post("/ready", service.ids)) == (409, "bootstrap_hook_held")
        assert (await service.post("/ready", {**service.ids, "hookToken": claim["token"]}))[0] == 200

    asyncio.run(scenario())


def test_renewing_extends_claim_and_lease_even_after_expiry_if_nobody_took_it() -> None:
    async def scenario() -> None:
        service, token = await claimed()
        service.world.clock.ms += HOOK_CLAIM_MS + 1
        service.world.restart()
        status, claim = await service.post("/hook/renew", {**service.ids, "token": token})
        now = service.world.clock.ms
        assert (status, claim) == (200, {"token": token, "expiresAtMs": now + HOOK_CLAIM_MS})
        assert (await service.state())["leaseUntil"] == now + LEASE_MS
        assert (await service.post("/hook/claim", service.ids))[0] == 202
        take = {"importId": IMPORT_ID, "digest": service.digest}
        assert code(await service.post("/takeover", take)) == (409, "bootstrap_lease_held")

    asyncio.run(scenario())


def test_a_released_claim_is_free_at_once() -> None:
    async def scenario() -> None:
        service, token = await claimed()
        assert await service.post("/hook/release", {**service.ids, "token": token}) == (200, {"released": True})
        assert (await service.post("/hook/claim", service.ids))[0] == 200

    asyncio.run(scenario())


def test_only_a_verified_import_of_this_epoch_has_a_hook() -> None:
    async def scenario() -> None:
        service = Service()
        await service.plan(small())
        assert code(await service.post("/hook/claim", service.ids)) == (409, "bootstrap_verification_required")
        await service.post("/import", service.ids)
        await service.world.settle()
        assert code(await service.post("/hook/claim", service.ids)) == (409, "bootstrap_verification_required")
        for wrong in ({"leaseEpoch": 2}, {"importId": "import-2"}):
            body = {**service.ids, **wrong}
            assert code(await service.post("/hook/claim", body)) == (409, "bootstrap_epoch_rejected")
            renew = {**body, "token": "t"}
            assert code(await service.post("/hook/renew", renew)) == (409, "bootstrap_epoch_rejected")
            assert code(await service.post("/hook/release", renew)) == (409, "bootstrap_epoch_rejected")

    asyncio.run(scenario())


@pytest.mark.parametrize("ended_by", ["/abort", "/verify", "/takeover"])
def test_whatever_ends_the_verification_ends_the_claim(ended_by: str) -> None:
    async def scenario() -> None:
        service, token = await claimed()
        body: dict[str, Any] = service.ids
        if ended_by == "/takeover":
            service.world.clock.ms += LEASE_MS + 1
            body = {"importId": IMPORT_ID, "digest": service.digest}
        assert (await service.post(ended_by, body))[0] in (200, 202)
        await service.world.settle()
        assert service.coordinator_storage().rows()["hook_claim"] == []
        answer = await service.post("/hook/renew", {**service.ids, "token": token})
        assert code(answer)[1] in ("bootstrap_hook_lost", "bootstrap_epoch_rejected")
        ready = await service.post("/ready", {**service.ids, "hookToken": token})
        assert ready[0] == 409

    asyncio.run(scenario())


def test_the_alarm_never_goes_past_a_hook() -> None:
    async def scenario() -> None:
        service, _ = await claimed()
        service.world.clock.ms += 10 * HOOK_CLAIM_MS
        await service.world.settle()
        service.coordinator_storage().set_alarm(0)
        await service.world.settle()
        assert (await service.state())["status"] == "VERIFYING"
        assert (await service.allocator("/state"))[1]["mode"] == "importing"

    asyncio.run(scenario())


def test_the_status_tells_that_the_hook_runs_and_that_it_failed() -> None:
    async def scenario() -> None:
        service, token = await claimed()
        state = await service.state()
        assert (state["hookClaimedUntil"], state["progress"]["lastError"]) == (
            service.world.clock.ms + HOOK_CLAIM_MS,
            None,
        )
        assert (await service.post("/hook/release", {**service.ids, "token": "another"}))[0] == 200
        assert (await service.state())["progress"]["lastError"] is None
        assert (await service.post("/hook/release", {**service.ids, "token": token}))[0] == 200
        state = await service.state()
        assert state["hookClaimedUntil"] is None
        assert state["progress"]["lastError"]["code"] == "bootstrap_read_model_rebuild_failed"
        assert (state["status"], state["progress"]["blocked"]) == ("VERIFYING", False)
        assert (await service.post("/hook/claim", service.ids))[0] == 200
        assert (await service.state())["progress"]["lastError"] is None

    asyncio.run(scenario())
