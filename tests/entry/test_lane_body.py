"""Which bodies the operator's lane takes: text, size and ids, and only the dump that was planned."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dcb_runtime.limits import BODY_BYTES_MAX, PLAN_BODY_BYTES_MAX
from tests.entry.doubles import World
from tests.entry.lane import DUMP, EVENT, IDS, ready_to_open, record

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
