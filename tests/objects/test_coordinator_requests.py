"""What the coordinator answers before it looks at any import: the service, the body, the route."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dcb_runtime.rules.scope import object_name
from tests.support.service import Service
from tests.support.world import parsed

NAME = object_name("orders", "bootstrap", "coordinator")


def ask(method: str, path: str, body: str | None) -> tuple[int, dict[str, Any]]:
    async def scenario() -> tuple[int, dict[str, Any]]:
        return parsed(await Service().world.actor("bootstrap", NAME).handle(method, path, body))

    return asyncio.run(scenario())


@pytest.mark.parametrize("path", ["/state", "/state?__serviceId=", "/nothing", "/plan"])
def test_the_service_is_asked_for_before_anything(path: str) -> None:
    status, answer = ask("POST", path, "not json")
    assert (status, answer["code"]) == (400, "bootstrap_service_required")


@pytest.mark.parametrize("body", [None, "", "{", "{} {}", "[1,]", '{"a":NaN}'])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/import"), ("POST", "/route/check"), ("POST", "/nothing"), ("GET", "/nothing")]
)
def test_a_body_that_is_no_json_is_refused_before_method_and_path(method: str, path: str, body: str | None) -> None:
    status, answer = ask(method, f"{path}?__serviceId=orders", body)
    assert (status, answer["code"]) == (400, "bootstrap_body_invalid")


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/import"), ("PUT", "/plan"), ("POST", "/nothing"), ("POST", "/state"), ("DELETE", "/state")],
)
def test_json_for_another_method_or_path_finds_no_route(method: str, path: str) -> None:
    status, answer = ask(method, f"{path}?__serviceId=orders", "{}")
    assert (status, answer["code"]) == (404, "bootstrap_route_not_found")


def test_the_default_record_is_shown_and_nothing_is_written() -> None:
    async def scenario() -> None:
        service = Service()
        status, state = await service.coordinator.get("/state")
        assert status == 200
        progress = state.pop("progress")
        assert state == {
            "schemaVersion": 1,
            "status": "EMPTY",
            "importId": None,
            "targetServiceId": "orders",
            "allocatorLineageId": None,
            "source": None,
            "digest": None,
            "manifest": None,
            "leaseEpoch": 0,
            "leaseUntil": None,
            "failure": None,
            "readyAt": None,
            "normalInFlight": 0,
            "normalCommands": {},
            "releasedCommands": {},
            "verifiedImportId": None,
            "verifiedLeaseEpoch": None,
            "hookClaimedUntil": None,
            "storeCompletion": None,
            "resetting": False,
        }
        assert (progress["phase"], progress["running"], progress["blocked"]) == ("idle", False, False)
        assert (await service.coordinator.get("/receipt"))[1]["code"] == "bootstrap_receipt_missing"
        assert service.coordinator_storage().rows() == {}

    asyncio.run(scenario())


def test_a_post_to_no_route_writes_nothing() -> None:
    async def scenario() -> None:
        service = Service()
        assert (await service.post("/nothing", {}))[0] == 404
        assert service.coordinator_storage().rows() == {}

    asyncio.run(scenario())


@pytest.mark.parametrize("route", ["/import", "/verify", "/ready", "/abort", "/reset"])
@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        {},
        {"importId": "import-1"},
        {"leaseEpoch": 0},
        {"importId": "", "leaseEpoch": 0},
        {"importId": 1, "leaseEpoch": 0},
        {"importId": "import-1", "leaseEpoch": -1},
        {"importId": "import-1", "leaseEpoch": "1"},
        {"importId": "import-1", "leaseEpoch": True},
        {"importId": "import-1", "leaseEpoch": 1.5},
        {"importId": "import-1", "leaseEpoch": 2**53},
        {"importId": "import-1", "leaseEpoch": 0},
        {"importId": None, "leaseEpoch": 0},
    ],
)
def test_a_malformed_or_wrong_fence_is_one_refusal(route: str, body: Any) -> None:
    async def scenario() -> None:
        status, answer = await Service().post(route, json.dumps(body))
        assert (status, answer["code"]) == (409, "bootstrap_epoch_rejected")

    asyncio.run(scenario())


@pytest.mark.parametrize("route", ["/import", "/verify", "/ready", "/abort", "/reset"])
def test_faults_are_not_injected_by_requests(route: str) -> None:
    async def scenario() -> None:
        body = {"importId": "import-1", "leaseEpoch": 0, "faultAt": "tag-chunk"}
        status, answer = await Service().post(route, body)
        assert (status, answer["code"]) == (400, "bootstrap_body_invalid")

    asyncio.run(scenario())
