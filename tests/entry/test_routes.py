"""Every request finds its one route, or is told why not."""

from __future__ import annotations

import pytest

from dcb_runtime import __version__
from dcb_runtime.entry.routes import PREFIXES, ROUTES, Route, Who, find
from dcb_runtime.spans.activation import Activation
from dcb_runtime.spans.memory import MemorySpans
from dcb_runtime.spans.port import Outcome, actor_key_hash
from tests.entry.doubles import OPERATOR, World, refusal

each_route = pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.template}")


@each_route
def test_every_route_is_found_by_its_template_and_has_a_handler(route: Route) -> None:
    match = find(route.method, route.template)
    assert match.route is route
    assert route.handler in World().entry().handlers


def test_every_handler_has_a_route() -> None:
    assert World().entry().handlers.keys() == {route.handler for route in ROUTES}


@each_route
def test_the_prefix_says_who_may_use_a_route(route: Route) -> None:
    assert route.who is PREFIXES.get(route.template.split("/")[1], Who.ANYONE)


@each_route
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "get"])
def test_another_method_is_told_which_ones_there_are(route: Route, method: str) -> None:
    allowed = [other.method for other in ROUTES if other.template == route.template]
    if method not in allowed:
        path = route.template.replace("{serviceId}", "orders").replace("{tag}", "order:1")
        got = World().ask(method, path)
        assert got.code == (405, "method_not_allowed")
        assert got.response.headers["allow"] == ", ".join(allowed)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "health",
        "/health/",
        "/Health",
        "/nothing",
        "/operator/bootstrap/orders",
        "/operator/bootstrap/orders/",
        "/operator/bootstrap/orders/nothing",
        "/operator/bootstrap/orders/status/",
        "/operator/bootstrap//status",
        "/operator/bootstrap/orders/%73tatus",
        "/operator/services/",
        "/operator/services/orders/tags/",
        "/operator/services/orders/tags/a/b",
    ],
)
def test_a_path_of_no_route_is_not_found(path: str) -> None:
    world = World()
    assert world.ask("GET", path).code == (404, "not_found")
    assert world.objects.asked == []


BAD_SERVICE_IDS = ["%zz", "%ff", "%4", "%2e", "-a", "a%2Fb", "%00", "a" * 97, "%C3%BC", "a%20b", "a+b"]


@pytest.mark.parametrize("service_id", BAD_SERVICE_IDS)
@pytest.mark.parametrize("route", [route for route in ROUTES if "{serviceId}" in route.template], ids=str)
def test_what_cannot_be_a_service_id_is_refused_with_the_code_of_its_lane(route: Route, service_id: str) -> None:
    world = World()
    path = route.template.replace("{serviceId}", service_id).replace("{tag}", "order:1")
    lane = path.startswith("/operator/bootstrap/")
    expected = "bootstrap_service_invalid" if lane else "service_id_invalid"
    assert world.ask(route.method, path).code == (400, expected)
    assert world.objects.asked == []


@pytest.mark.parametrize("service_id", ["a", "A.b_c-9", "a" * 96, "%61"])
def test_a_service_id_up_to_its_limit_reaches_its_own_object(service_id: str) -> None:
    world = World()
    world.objects.on("bootstrap", "/state", refusal(409, "seen"))
    assert world.ask("GET", f"/operator/bootstrap/{service_id}/status").code == (409, "seen")
    decoded = service_id.replace("%61", "a")
    assert world.objects.asked[0].name == f"{decoded}/bootstrap/coordinator"
    assert world.objects.asked[0].query == {"__serviceId": [decoded]}


@pytest.mark.parametrize("tag", ["%zz", "%ff", "%4", "%2E", ".", "%2e%2e", "%00", "%0a", "a" * 257, "%ED%A0%80"])
def test_what_cannot_be_a_tag_is_refused(tag: str) -> None:
    world = World()
    assert world.ask("GET", f"/operator/services/orders/tags/{tag}").code == (400, "tag_invalid")
    assert world.objects.asked == []


@each_route
@pytest.mark.parametrize("query", ["other=1", "%zz", "after=1&after=1", "limit", "__serviceId=other"])
def test_a_query_that_a_route_does_not_know_is_refused(route: Route, query: str) -> None:
    world = World()
    path = route.template.replace("{serviceId}", "orders").replace("{tag}", "order:1")
    assert world.ask(route.method, f"{path}?{query}", "{}").code == (400, "query_invalid")
    assert world.objects.asked == []


def test_health_needs_no_credentials_and_tells_the_version_only() -> None:
    got = World().ask("GET", "/health", headers={})
    assert (got.status, got.json) == (200, {"status": "ok", "version": __version__})


@pytest.mark.parametrize("route", [route for route in ROUTES if "bootstrap" in route.template], ids=str)
def test_no_incoming_header_reaches_an_object(route: Route) -> None:
    world = World()
    headers = {"authorization": f"Bearer {OPERATOR}", "x-secret": "carried-along", "cookie": "carried-along"}
    body = '{"importId":"i","leaseEpoch":1}'
    world.ask(route.method, route.template.replace("{serviceId}", "orders"), body, headers)
    assert OPERATOR not in repr(world.objects.asked)
    assert "carried-along" not in repr(world.objects.asked)


def test_a_fault_inside_is_a_bare_500_and_one_line_without_its_message() -> None:
    world = World()
    world.objects.on("bootstrap", "/state", RuntimeError("a payload"))
    got = world.ask("GET", "/operator/bootstrap/orders/status")
    assert got.code == (500, "internal_error")
    assert "a payload" not in got.response.body
    assert len(world.lines) == 1
    assert "RuntimeError" in world.lines[0]
    assert "coordinator.py:" in world.lines[0]
    assert "a payload" not in world.lines[0]


def test_every_request_is_a_span_named_after_its_template() -> None:
    spans = MemorySpans()
    world = World(spans=spans)
    world.objects.on("bootstrap", "/state", refusal(409, "seen"))
    world.ask("GET", "/operator/bootstrap/orders/status")
    world.ask("GET", "/operator/services/-bad/tags/secret-tag")
    world.ask("GET", "/secret-path")
    status, inspected, unmatched = spans.spans
    assert status.name == "GET /operator/bootstrap/{serviceId}/status"
    assert status.attributes["dcb.actor.class"] == "entry"
    assert status.attributes["dcb.service.id"] == "orders"
    assert status.attributes["dcb.actor.key_hash"] == actor_key_hash("entry", "orders")
    assert status.attributes["dcb.outcome"] == Outcome.CONFLICT
    assert inspected.name == "GET /operator/services/{serviceId}/tags/{tag}"
    assert "dcb.service.id" not in inspected.attributes
    assert inspected.attributes["dcb.outcome"] == Outcome.REJECTED
    assert unmatched.name == "unmatched"
    assert "secret" not in repr(spans.spans)


def test_an_isolate_has_one_first_request() -> None:
    class Fixed:
        def random_bytes(self, count: int) -> bytes:
            return bytes(count)

    spans = MemorySpans()
    world = World(spans=spans, activation=Activation(Fixed()))
    world.ask("GET", "/health")
    world.ask("GET", "/health")
    assert [span.attributes["faas.coldstart"] for span in spans.spans] == [True, False]
    assert len({span.attributes["faas.instance"] for span in spans.spans}) == 1
