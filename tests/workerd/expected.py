"""What an import must have led to, worked out from its dump alone: nothing here uses the product."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any


def tags_of(records: list[dict[str, Any]]) -> list[str]:
    """The distinct tags of a dump."""
    return sorted({tag for record in records for tag in record["eventTags"]})


def expected_tag(records: list[dict[str, Any]], tag: str) -> list[dict[str, Any]]:
    """The events of a tag as the inspection shows them."""
    return [
        {
            "position": position,
            "suid": record["suid"],
            "id": record["eventId"],
            "type": record["eventType"],
            "tags": record["eventTags"],
            "data": json.loads(record["payload"]),
            "timestamp": record["timestamp"],
            "metadata": {name: record[name] for name in ("causationId", "correlationId", "executedUser")},
        }
        for position, record in enumerate(records, 1)
        if tag in record["eventTags"]
    ]


def canonical(value: Any) -> bytes:
    """Canonical JSON of records, whose keys are ASCII."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def chain(records: list[dict[str, Any]]) -> bytes:
    """The chain of SHA-256 over records."""
    state = bytes(32)
    for record in records:
        state = sha256(state + sha256(canonical(record)).digest()).digest()
    return state


def digest_v2(manifest: dict[str, Any], records: list[dict[str, Any]]) -> str:
    """The content digest of a v2 manifest with these records."""
    return "sha256:" + sha256(canonical({**manifest, "contentDigest": ""}) + chain(records)).hexdigest()


def expected_receipt(dump: dict[str, Any], import_id: str) -> dict[str, Any]:
    """The receipt that follows from a dump, without epoch and times."""
    manifest, records = dump["manifest"], dump["events"]
    tags = tags_of(records)
    placements = sum(len(record["eventTags"]) for record in records)
    return {
        "serviceId": manifest["target"]["serviceId"],
        "importId": import_id,
        "allocatorLineageId": manifest["target"]["allocatorLineageId"],
        "source": manifest["source"],
        "contentDigest": manifest["contentDigest"],
        "chainDigest": "sha256:" + chain(records).hex(),
        "eventCount": len(records),
        "tagCount": len(tags),
        "highWatermark": manifest["highWatermark"],
        "compared": {
            "index": {"events": len(records), "tags": 0},
            "indexTags": {"events": placements, "tags": 0},
            "tags": {"events": placements, "tags": len(tags)},
            "log": {"events": len(records), "tags": 0},
        },
    }


def without_times(receipt: dict[str, Any]) -> dict[str, Any]:
    """A receipt without what two runs of one import may differ in."""
    return {name: value for name, value in receipt.items() if name not in ("leaseEpoch", "times")}
