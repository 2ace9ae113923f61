"""What a step was refused with is told: by the call that waits for it, or in the status, with the reason."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.service import Service, small

OTHER_HOLDER = "UPDATE fence SET import_id = 'another'"
NEWER_EPOCH = "UPDATE fence SET lease_epoch = 99"


@pytest.mark.parametrize(
    ("tampering", "code", "reason"),
    [
        (NEWER_EPOCH, "bootstrap_index_admission_failed", "fence_epoch_stale"),
        ("INSERT INTO bootstrap_seed VALUES (1, 'another', 1, '')", "bootstrap_allocator_seed_failed", "seed_rejected"),
    ],
)
def test_an_import_that_the_allocator_refuses_is_blocked(tampering: str, code: str, reason: str) -> None:
    async def scenario() -> None:
        service = Service()
        await service.plan(small())
        service.allocator_storage().exec(tampering)
        await service.post("/import", service.ids)
        await service.world.settle()
        progress = (await service.state())["progress"]
        assert (progress["blocked"], progress["lastError"]["code"]) == (True, code)
        assert reason in progress["lastError"]["error"]

    asyncio.run(scenario())


def test_a_plan_under_an_epoch_that_is_too_old_is_refused() -> None:
    async def scenario() -> None:
        service = Service()
        await service.lineage()
        service.allocator_storage().exec(NEWER_EPOCH)
        status, answer = await service.plan(small())
        assert (status, answer["code"], answer["reason"]) == (409, "bootstrap_fence_refused", "fence_epoch_stale")

    asyncio.run(scenario())


def test_a_takeover_whose_epoch_is_refused_says_so() -> None:
    async def scenario() -> None:
        service = Service()
        await service.plan(small())
        await service.post("/abort", service.ids)
        service.allocator_storage().exec(NEWER_EPOCH)
        took = {"importId": service.ids["importId"], "digest": service.digest}
        status, answer = await service.post("/takeover", took)
        assert (status, answer["code"]) == (409, "bootstrap_fence_failed")
        assert "fence_epoch_stale" in answer["error"]

    asyncio.run(scenario())


def test_ready_says_when_the_allocator_does_not_open() -> None:
    async def scenario() -> None:
        service = Service()
        await service.verified(small())
        service.allocator_storage().exec(OTHER_HOLDER)
        status, answer = await service.post("/ready", service.ids)
        assert (status, answer["code"]) == (409, "bootstrap_allocator_open_failed")
        assert "fence_mismatch" in answer["error"]
        assert (await service.state())["status"] == "READY"

    asyncio.run(scenario())


def test_a_tag_that_does_not_close_is_shown() -> None:
    async def scenario() -> None:
        service = Service()
        await service.verified(small())
        service.tag_storage("a").exec("UPDATE admission SET import_id = 'another'")
        assert (await service.post("/ready", service.ids))[0] == 200
        await service.world.settle()
        progress = (await service.state())["progress"]
        assert (progress["phase"], progress["blocked"]) == ("closing", True)
        assert progress["lastError"]["code"] == "bootstrap_tag_close_failed"
        assert 'tag "a"' in progress["lastError"]["error"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("route", "code"), [("close", "invalid_bootstrap_close"), ("reset", "invalid_bootstrap_reset")]
)
def test_a_tags_end_of_an_import_needs_the_imports_identity(route: str, code: str) -> None:
    async def scenario() -> None:
        service = Service()
        await service.verified(small())
        for body in ({}, {**service.ids, "leaseEpoch": -1}, {**service.ids, "more": 1}):
            status, answer = await service.tag("a", f"/bootstrap/{route}", body)
            assert (status, answer["code"]) == (400, code)

    asyncio.run(scenario())
