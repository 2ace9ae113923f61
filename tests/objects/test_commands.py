"""Normal commands and background routes at the coordinator: when they are admitted, and what is remembered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dcb_runtime.limits import RELEASED_COMMANDS_MAX
from tests.support.service import Service, small

REJECTED = "bootstrap_command_rejected"
STATES = ["EMPTY", "PLANNED", "IMPORTING", "VERIFYING", "FAILED", "READY"]


async def service_in(status: str) -> Service:
    """A service whose import has ``status``."""
    service = Service()
    if status == "READY":
        await service.ready(small())
    elif status == "FAILED":
        await service.failed(small())
    elif status == "VERIFYING":
        await service.verified(small())
    elif status != "EMPTY":
        await service.plan(small())
    if status == "IMPORTING":
        await service.post("/import", service.ids)
    assert (await service.state())["status"] == status
    return service


@pytest.mark.parametrize("status", STATES)
def test_commands_and_routes_are_admitted_in_empty_and_ready_only(status: str) -> None:
    async def scenario() -> None:
        service = await service_in(status)
        epoch = (await service.state())["leaseEpoch"]
        route = await service.post("/route/check", {"route": "projection-rebuild"})
        command = await service.post("/command/admit", {"commandId": "c"})
        if status in ("EMPTY", "READY"):
            assert route == (200, {"admitted": True, "leaseEpoch": epoch, "route": "projection-rebuild"})
            assert command == (200, {"leaseEpoch": epoch, "admitted": True})
        else:
            assert (route[0], route[1]["code"]) == (409, "bootstrap_route_rejected")
            assert (command[0], command[1]["code"]) == (409, REJECTED)
            assert (await service.state())["normalCommands"] == {}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("route", "body", "code"),
    [
        ("/route/check", {}, "bootstrap_route_invalid"),
        ("/route/check", {"route": ""}, "bootstrap_route_invalid"),
        ("/route/check", {"route": 1}, "bootstrap_route_invalid"),
        ("/command/admit", {}, "bootstrap_command_invalid"),
        ("/command/admit", {"commandId": ""}, "bootstrap_command_invalid"),
        ("/command/admit", {"commandId": 1}, "bootstrap_command_invalid"),
        ("/command/finalize", {"leaseEpoch": 0}, "bootstrap_command_invalid"),
        ("/command/release", {"commandId": ""}, "bootstrap_command_invalid"),
        ("/command/release", "not json", "bootstrap_body_invalid"),
        ("/command/admit", "", "bootstrap_body_invalid"),
        ("/route/check", "{", "bootstrap_body_invalid"),
    ],
)
def test_a_malformed_body_is_refused(route: str, body: Any, code: str) -> None:
    async def scenario() -> None:
        status, answer = await Service().post(route, body)
        assert (status, answer["code"]) == (400, code)

    asyncio.run(scenario())


def test_an_admitted_command_is_counted_once_until_it_is_released() -> None:
    async def scenario() -> None:
        service = Service()
        for _ in range(2):
            assert (await service.post("/command/admit", {"commandId": "c"}))[0] == 200
        state = await service.state()
        assert (state["normalInFlight"], state["normalCommands"]) == (1, {"c": 0})
        assert await service.post("/command/release", {"commandId": "c", "leaseEpoch": 0}) == (
            200,
            {"leaseEpoch": 0, "admitted": True},
        )
        state = await service.state()
        assert (state["normalInFlight"], state["releasedCommands"]) == (0, {"c": 0})
        assert (await service.post("/command/release", {"commandId": "c"}))[1]["code"] == REJECTED

    asyncio.run(scenario())


@pytest.mark.parametrize("epoch", [1, -1, "0", 0.5, True, 2**53, [], {}])
def test_a_wrong_epoch_neither_finalizes_nor_releases(epoch: Any) -> None:
    async def scenario() -> None:
        service = Service()
        await service.post("/command/admit", {"commandId": "c"})
        for route in ("/command/finalize", "/command/release"):
            status, answer = await service.post(route, {"commandId": "c", "leaseEpoch": epoch})
            assert (status, answer["code"]) == (409, REJECTED)
        assert (await service.state())["normalCommands"] == {"c": 0}

    asyncio.run(scenario())


def test_finalize_holds_for_admitted_and_released_commands_and_reads_only() -> None:
    async def scenario() -> None:
        service = Service()
        known = {"commandId": "c", "leaseEpoch": 0}
        assert (await service.post("/command/finalize", known))[1]["code"] == REJECTED
        await service.post("/command/admit", {"commandId": "c"})
        before = service.everything()
        assert await service.post("/command/finalize", known) == (200, {"leaseEpoch": 0, "admitted": True})
        assert (await service.post("/command/finalize", {"commandId": "c"}))[1]["code"] == REJECTED
        assert service.everything() == before
        await service.post("/command/release", {"commandId": "c"})
        assert (await service.post("/command/finalize", known))[0] == 200

    asyncio.run(scenario())


def test_a_command_of_before_the_plan_is_not_finalized_any_more() -> None:
    async def scenario() -> None:
        service = Service()
        await service.post("/command/admit", {"commandId": "c"})
        await service.post("/command/release", {"commandId": "c"})
        await service.plan(small())
        for epoch in (0, 1):
            command = {"commandId": "c", "leaseEpoch": epoch}
            assert (await service.post("/command/finalize", command))[1]["code"] == REJECTED
        await service.post("/import", {**service.ids, "through": "verify"})
        await service.world.settle()
        await service.post("/ready", service.ids)
        assert (await service.post("/command/finalize", {"commandId": "c", "leaseEpoch": 1}))[1]["code"] == REJECTED

    asyncio.run(scenario())


def test_a_plan_waits_for_the_release_of_each_command() -> None:
    async def scenario() -> None:
        service = Service()
        await service.post("/command/admit", {"commandId": "c"})
        status, answer = await service.plan(small())
        assert (status, answer["code"]) == (409, "bootstrap_normal_command_in_flight")
        await service.post("/command/release", {"commandId": "c"})
        assert (await service.plan(small()))[0] == 201

    asyncio.run(scenario())


def test_the_last_512_released_commands_are_remembered() -> None:
    async def scenario() -> None:
        service = Service()
        for number in range(RELEASED_COMMANDS_MAX):
            await service.post("/command/admit", {"commandId": f"c{number}"})
            await service.post("/command/release", {"commandId": f"c{number}"})
        assert (await service.post("/command/finalize", {"commandId": "c0", "leaseEpoch": 0}))[0] == 200
        await service.post("/command/admit", {"commandId": "late"})
        await service.post("/command/release", {"commandId": "late"})
        state = await service.state()
        assert len(state["releasedCommands"]) == RELEASED_COMMANDS_MAX
        assert "c0" not in state["releasedCommands"]
        assert list(state["releasedCommands"])[-1] == "late"
        assert (await service.post("/command/finalize", {"commandId": "c0", "leaseEpoch": 0}))[0] == 409

    asyncio.run(scenario())
