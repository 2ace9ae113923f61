"""A service that holds events, its export page by page, and the check that the pages are a dump."""

from __future__ import annotations

from typing import Any

from dcb_runtime.ports import Reply
from dcb_runtime.rules.dump_v2 import ChainDigest, check_contents_v2, parse_manifest_v2, read_record_v2
from dcb_runtime.wire import reply
from tests.entry.doubles import Asked, ListLog, World

SOURCE = "11111111-1111-4111-8111-111111111111"
TARGET = "22222222-2222-4222-8222-222222222222"


def event(number: int, payload: str = "{}") -> dict[str, Any]:
    return {
        "eventId": f"00000000-0000-4000-8000-{number:012}",
        "suid": f"{number:030}",
        "payload": payload,
        "eventTags": [f"order:{number % 3}"],
        "eventType": "Placed",
        "provenance": {"origin": "g32"},
        "timestamp": "2026-01-01T00:00:00.000Z",
        "causationId": "any",
        "correlationId": None,
        "executedUser": None,
    }


def state(head: int, /, **more: Any) -> Reply:
    facts = {
        "schemaVersion": 1,
        "allocatorLineageId": SOURCE,
        "mode": "open",
        "head": head,
        "eventCount": head,
        "tagCount": min(head, 3),
        "allocatedWatermark": f"{head:030}" if head else None,
    }
    return reply(200, {**facts, **more})


def lineage(of: Asked) -> Reply:
    known = {"orders/allocator/allocator": SOURCE, "copy/allocator/allocator": TARGET}
    return reply(200, {"allocatorLineageId": known.get(of.name), "mode": "open"})


def holding(count: int) -> World:
    """A world whose service ``orders`` holds that many events."""
    world = World(log=ListLog([event(number) for number in range(1, count + 1)]))
    world.objects.on("allocator", "/state", state(count))
    world.objects.on("allocator", "/lineage", lineage)
    return world


def export(world: World, **body: Any) -> Any:
    got = world.post("export", {"targetServiceId": "copy", **body})
    assert got.status == 200, got.json
    return got.json


def pages(world: World, **body: Any) -> list[Any]:
    """All pages of an export."""
    found = [export(world, **body)]
    while not found[-1]["complete"]:
        found.append(export(world, **body, cursor=found[-1]["cursor"]))
    return found


def check(found: list[Any]) -> dict[str, Any]:
    """Read the pages as a dump, digest and all; return its manifest."""
    manifest = parse_manifest_v2(found[-1]["manifest"])
    chain, tags, last = ChainDigest(), set(), None
    records = [read_record_v2(record, "event") for page in found for record in page["page"]]
    for record in records:
        chain.add(record)
        tags |= set(record["eventTags"])
        last = record["suid"]
    assert len(records) == manifest["eventCount"]
    check_contents_v2(manifest, len(tags), last, chain.state)
    return manifest
