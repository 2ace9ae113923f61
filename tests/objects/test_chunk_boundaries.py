"""With limits so small that every boundary is met: whatever the dump, each event arrives once and is compared."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from dcb_runtime.bootstrap import import_steps, other_steps, staging, verify_steps
from tests.support.dumps import record
from tests.support.service import Service

TAGS = ("a", "b", "a/b", "ä", "\U0001f600", "B")

Events = st.lists(st.tuples(st.lists(st.sampled_from(TAGS), unique=True, max_size=4), st.integers(0, 900)), max_size=14)


@contextmanager
def limits(events: int, size: int, rows: int, objects: int) -> Iterator[None]:
    """Chunks of at most ``events`` and ``size`` bytes, ``rows`` compared and ``objects`` called at a time."""
    patches = [
        (staging, "CHUNK_EVENTS_MAX", events),
        (staging, "CHUNK_BYTES_MAX", size),
        (staging, "TAG_ROWS_MAX", rows),
        (verify_steps, "TAG_ROWS_MAX", rows),
        (import_steps, "OBJECTS_AT_A_TIME_MAX", objects),
        (other_steps, "OBJECTS_AT_A_TIME_MAX", objects),
        (other_steps, "LOG_REMOVE_EVENTS", events),
    ]
    running = [mock.patch.object(*patch) for patch in patches]
    for patch in running:
        patch.start()
    try:
        yield
    finally:
        for patch in running:
            patch.stop()


@settings(max_examples=25, deadline=None)
@given(
    events=Events,
    chunk=st.integers(1, 4),
    size=st.integers(1, 2500),
    rows=st.integers(1, 6),
    objects=st.integers(1, 4),
)
def test_each_event_arrives_once_and_is_compared(
    events: list[tuple[list[str], int]], chunk: int, size: int, rows: int, objects: int
) -> None:
    records = [record(n, *tags, payload=f'"{"x" * length}"') for n, (tags, length) in enumerate(events, start=1)]
    placements = sum(len(tags) for tags, _ in events)
    names = {tag for tags, _ in events for tag in tags}

    async def scenario() -> tuple[Any, Any]:
        service = Service()
        await service.verified(records)
        contents = service.data()
        await service.post("/abort", service.ids)
        await service.reset()
        assert service.data()["log"] == []
        assert not any(rows["event"] for name, rows in service.data().items() if name not in ("index", "log"))
        await service.ready(records)
        assert service.data() == contents
        return contents, await service.receipt()

    with limits(chunk, size, rows, objects):
        contents, receipt = asyncio.run(scenario())
    whole, whole_receipt = asyncio.run(scenario())
    assert (contents, receipt) == (whole, whole_receipt)
    assert receipt["compared"] == {
        "index": {"events": len(records), "tags": 0},
        "indexTags": {"events": placements, "tags": 0},
        "log": {"events": len(records), "tags": 0},
        "tags": {"events": placements, "tags": len(names)},
    }
