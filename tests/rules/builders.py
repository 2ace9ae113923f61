"""Valid records and dumps that tests change in one place, and the check for a coded refusal."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from dcb_runtime.errors import CodedError
from dcb_runtime.rules.dump_v1 import compose_dump_v1, manifest_v1_for, read_dump_v1

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dcb_runtime.errors import ErrorKind

SOURCE = {"serviceId": "old-shop", "lineageId": "lineage-a"}
TARGET = {"serviceId": "new-shop", "allocatorLineageId": "lineage-b"}
EPOCH_TICKS = 638_000_000_000_000_000


def make_record(number: int, **changes: Any) -> dict[str, Any]:
    """The record of event ``number``, valid unless ``changes`` make it otherwise."""
    record: dict[str, Any] = {
        "eventId": f"{number:08x}-0000-4000-8000-000000000000",
        "suid": f"0{EPOCH_TICKS + number:018d}{number:011d}",
        "payload": f'{{"number":{number}}}',
        "eventTags": [f"order:{number}", "shop:1"],
        "eventType": "OrderPlaced",
        "provenance": {"origin": "g32"},
        "timestamp": "2026-08-22T17:00:00.123Z",
        "causationId": None,
        "correlationId": None,
        "executedUser": None,
    }
    return {**record, **changes}


def make_dump(*records: dict[str, Any], **manifest_changes: Any) -> dict[str, Any]:
    """A dump of ``records`` (three valid ones when none are given) with the digest right for it as it is."""
    events = list(records) or [make_record(number) for number in (1, 2, 3)]
    manifest = manifest_v1_for([make_record(number) for number in range(1, len(events) + 1)], SOURCE, TARGET)
    counts: dict[str, int] = {}
    for event in events:
        for tag in event["eventTags"] if isinstance(event.get("eventTags"), list) else []:
            counts[str(tag)] = counts.get(str(tag), 0) + 1
    manifest |= {"tagCounts": counts, "highWatermark": events[-1].get("suid"), "eventCount": len(events)}
    return compose_dump_v1({**manifest, **manifest_changes}, events)


def read_all(dump: object) -> list[dict[str, Any]]:
    """All records of a dump that is given as a value."""
    return list(read_dump_v1(json.dumps(dump), 0).records())


@contextmanager
def refused(kind: ErrorKind) -> Iterator[pytest.ExceptionInfo[CodedError]]:
    """Expect a refusal with ``kind``'s code and status."""
    with pytest.raises(CodedError) as caught:
        yield caught
    assert (caught.value.code, caught.value.status) == (kind.code, kind.status)
