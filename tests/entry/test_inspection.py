"""What an operator sees of a service and of a tag, whatever state the service is in."""

from __future__ import annotations

from typing import Any

import pytest

from dcb_runtime.ports import PeerError, Reply
from dcb_runtime.wire import reply
from tests.entry.doubles import World, refusal

LINEAGE = "11111111-1111-4111-8111-111111111111"
STATE = {
    "schemaVersion": 1,
    "allocatorLineageId": LINEAGE,
    "mode": "importing",
    "head": 7,
    "eventCount": 6,
    "tagCount": 5,
    "allocatedWatermark": "0" * 30,
}
RECORD = '{"status":"IMPORTING","importId":"i","leaseEpoch":2,"progress":{"phase" : "tags", "x":1.0},"manifest":{}}'
PAGE = (
    '{"tag":"order:1","version":1,"head":3,"suid":"0","allocatorLineageId":"' + LINEAGE + '",'
    '"events":[{"data":{"b" : 1.50, "a":"\\u00fc", "b":2}}],"next":3}'
)


def world() -> World:
    made = World()
    made.objects.on("allocator", "/state", reply(200, STATE))
    made.objects.on("allocator", "/lineage", reply(200, {"allocatorLineageId": LINEAGE, "mode": "open"}))
    made.objects.on("bootstrap", "/state", Reply(200, RECORD))
    made.objects.on("tag", "/events", Reply(200, PAGE))
    return made


def test_a_service_shows_its_counts_and_its_import() -> None:
    looked = world()
    got = looked.ask("GET", "/operator/services/orders")
    assert got.status == 200
    assert got.json == {
        "serviceId": "orders",
        "allocatorLineageId": LINEAGE,
        "mode": "importing",
        "head": 7,
        "watermark": "0" * 30,
        "eventCount": 6,
        "tagCount": 5,
        "bootstrap": {
            "status": "IMPORTING",
            "importId": "i",
            "leaseEpoch": 2,
            "progress": {"phase": "tags", "x": 1.0},
        },
    }
    assert sorted((asked.name, asked.route) for asked in looked.objects.asked) == [
        ("orders/allocator/allocator", "/state"),
        ("orders/bootstrap/coordinator", "/state"),
    ]
    assert all(asked.query == {"__serviceId": ["orders"]} for asked in looked.objects.asked)


@pytest.mark.parametrize(
    ("actor_class", "answer", "code"),
    [
        ("allocator", PeerError(), (503, "bootstrap_allocator_unavailable")),
        ("allocator", Reply(200, "{}"), (500, "bootstrap_allocator_invalid")),
        ("bootstrap", PeerError(), (503, "bootstrap_coordinator_unavailable")),
        ("bootstrap", Reply(200, "{}"), (503, "bootstrap_coordinator_unavailable")),
        ("bootstrap", refusal(500, "internal_error"), (500, "internal_error")),
    ],
)
def test_a_part_that_does_not_answer_is_named(actor_class: str, answer: Any, code: tuple[int, str]) -> None:
    looked = world()
    looked.objects.on(actor_class, "/state", answer)
    assert looked.ask("GET", "/operator/services/orders").code == code


def test_a_tags_page_keeps_every_byte_and_says_the_mode() -> None:
    looked = world()
    got = looked.ask("GET", "/operator/services/orders/tags/order:1?after=2&limit=1000")
    assert got.status == 200
    assert got.response.body == '{"mode":"open",' + PAGE[1:]
    [asked] = [asked for asked in looked.objects.asked if asked.actor_class == "tag"]
    assert asked.name == "orders/tag/order:1"
    assert asked.query == {"__serviceId": ["orders"], "__tag": ["order:1"], "after": ["2"], "limit": ["1000"]}


def test_a_tag_may_have_any_characters_that_a_tag_may_have() -> None:
    looked = world()
    looked.ask("GET", "/operator/services/orders/tags/a%2Fb%25%20%C3%BC%26%3D+%3F%23")
    [asked] = [asked for asked in looked.objects.asked if asked.actor_class == "tag"]
    assert asked.name == "orders/tag/a%2Fb%25 \u00fc&=+?#"
    assert asked.query["__tag"] == ["a/b% \u00fc&=+?#"]
    assert asked.query["after"] == ["0"]
    assert asked.query["limit"] == ["100"]


@pytest.mark.parametrize(
    ("query", "taken"),
    [
        ("after=0", True),
        ("after=9007199254740991", True),
        ("after=9007199254740992", False),
        ("after=-1", False),
        ("after=", False),
        ("limit=1", True),
        ("limit=1000", True),
        ("limit=0", False),
        ("limit=1001", False),
        ("limit=ten", False),
    ],
)
def test_both_sides_of_the_range_of_a_page(query: str, taken: bool) -> None:
    looked = world()
    got = looked.ask("GET", f"/operator/services/orders/tags/order:1?{query}")
    if taken:
        assert got.status == 200
    else:
        assert got.code == (400, "query_invalid")
        assert looked.objects.asked == []


def test_a_tag_that_was_never_used_is_an_empty_page() -> None:
    looked = world()
    unused = '{"tag":"order:1","version":0,"head":0,"suid":"","allocatorLineageId":null,"events":[]}'
    looked.objects.on("tag", "/events", Reply(200, unused))
    got = looked.ask("GET", "/operator/services/orders/tags/order:1")
    assert got.response.body == '{"mode":"open",' + unused[1:]


@pytest.mark.parametrize("lineage", ["22222222-2222-4222-8222-222222222222", None])
def test_a_tag_of_another_lineage_is_never_shown(lineage: str | None) -> None:
    looked = world()
    looked.objects.on("allocator", "/lineage", reply(200, {"allocatorLineageId": lineage, "mode": "open"}))
    got = looked.ask("GET", "/operator/services/orders/tags/order:1")
    assert got.code == (409, "lineage_mismatch")
    assert "events" not in got.json


@pytest.mark.parametrize(
    ("actor_class", "answer", "code"),
    [
        ("tag", PeerError(), (503, "tag_unavailable")),
        ("tag", Reply(200, "[]"), (503, "tag_unavailable")),
        ("tag", Reply(200, '{"events":[]}'), (503, "tag_unavailable")),
        ("tag", Reply(200, ""), (503, "tag_unavailable")),
        ("tag", refusal(409, "tag_identity_conflict"), (409, "tag_identity_conflict")),
        ("allocator", PeerError(), (503, "bootstrap_allocator_unavailable")),
    ],
)
def test_a_tag_that_does_not_answer_is_told_so(actor_class: str, answer: Any, code: tuple[int, str]) -> None:
    looked = world()
    looked.objects.on(actor_class, "/events" if actor_class == "tag" else "/lineage", answer)
    assert looked.ask("GET", "/operator/services/orders/tags/order:1").code == code
