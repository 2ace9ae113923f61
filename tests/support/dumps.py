"""Valid dumps for tests, with their right digests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dcb_runtime.rules.dump_v1 import compose_dump_v1, manifest_v1_for
from dcb_runtime.rules.suid import format_suid, ticks_from_unix_ms

FLIGHTS = Path(__file__).parents[2] / "samples" / "flights-2000.ndjson"
FIRST_MS = 1_700_000_000_000


def record(number: int, *tags: str, event_type: str = "Noted", payload: str = '{"n":1}') -> dict[str, Any]:
    """A dump record whose id and suid follow from ``number``."""
    return {
        "eventId": f"00000000-0000-4000-8000-{number:012x}",
        "suid": format_suid(ticks_from_unix_ms(FIRST_MS + number), number),
        "payload": payload,
        "eventTags": list(tags),
        "eventType": event_type,
        "provenance": {"origin": "g32"},
        "timestamp": "2023-11-14T22:13:20.000Z",
        "causationId": None,
        "correlationId": None,
        "executedUser": None,
    }


SOURCE = {"serviceId": "old", "lineageId": "11111111-1111-4111-8111-111111111111"}


def dump_of(
    records: list[dict[str, Any]], service_id: str, lineage: str, source: dict[str, str] = SOURCE
) -> dict[str, Any]:
    """A v1 dump for a target service and its allocator's lineage."""
    target = {"serviceId": service_id, "allocatorLineageId": lineage}
    return compose_dump_v1(manifest_v1_for(records, source, target), records)


def flights(count: int = 2000) -> list[dict[str, Any]]:
    """The first real records of the sample."""
    with FLIGHTS.open(encoding="utf-8") as lines:
        return [json.loads(line) for line, _ in zip(lines, range(count), strict=False)]
