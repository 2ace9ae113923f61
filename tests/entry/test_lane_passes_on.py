"""What the operator's lane passes on unchanged, and what it says when the coordinator does not answer."""

from __future__ import annotations

import json

import pytest

from dcb_runtime.ports import PeerError, Reply
from tests.entry.doubles import Asked, World, refusal
from tests.entry.lane import IDS


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
