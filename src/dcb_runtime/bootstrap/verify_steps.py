"""The steps of a verification: index, tags and log against the staged dump, by digest, a piece at a time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

from dcb_runtime.bootstrap.control import Cursor
from dcb_runtime.bootstrap.errors import (
    STAGING_MISSING,
    VERIFY_INDEX_MISMATCH,
    VERIFY_STORE_MISMATCH,
    VERIFY_TAG_MISMATCH,
    VERIFY_TAG_MISSING,
)
from dcb_runtime.bootstrap.import_steps import TagWork, behind, cut_tags
from dcb_runtime.bootstrap.job import Job, Step, ask_log, at_once
from dcb_runtime.bootstrap.staging import TAG_ROWS_MAX, Chunk
from dcb_runtime.wire import encode


async def verify_index(job: Job, cursor: Cursor) -> Cursor:
    """Compare the next events of the index: position, id, suid and type. One hop.

    At the end the totals and the watermark, so that nothing else is in it. Raises
    ``bootstrap_verify_index_mismatch`` (409).
    """
    chunk = job.staging.index_compared(cursor.position)
    if chunk.count == 0:
        await _verify_index_totals(job)
        return Cursor("verify_index_tags")
    body = encode({"after": cursor.position, "until": chunk.last})
    answer = await job.allocator("/index/events", body, VERIFY_INDEX_MISMATCH)
    if answer["sha256"] != chunk.sha256:
        raise VERIFY_INDEX_MISMATCH(f"positions {cursor.position + 1} to {chunk.last}")
    return replace(cursor, position=chunk.last, events_done=chunk.last)


async def _verify_index_totals(job: Job) -> None:
    control = job.control
    if job.staging.totals() != (control.event_count, control.tag_count, control.placement_count):
        raise STAGING_MISSING()
    answer = await job.allocator("/state", None, VERIFY_INDEX_MISMATCH)
    expected = {
        "allocatorLineageId": control.lineage_id,
        "mode": "importing",
        "head": control.event_count,
        "eventCount": control.event_count,
        "tagCount": control.tag_count,
        "allocatedWatermark": control.high_watermark,
    }
    different = sorted(name for name, value in expected.items() if answer.get(name) != value)
    if different:
        raise VERIFY_INDEX_MISMATCH(", ".join(different))


async def verify_index_tags(job: Job, cursor: Cursor) -> Cursor:
    """Compare the next (tag, version, position) rows of the index. One hop."""
    digest, count, last = job.staging.index_tags_digest(cursor.tag, cursor.version, cursor.position)
    body = encode({"tag": cursor.tag, "version": cursor.version, "limit": TAG_ROWS_MAX})
    answer = await job.allocator("/index/tags", body, VERIFY_INDEX_MISMATCH)
    if answer["sha256"] != digest:
        raise VERIFY_INDEX_MISMATCH("the tags of its events")
    if last is None:
        return Cursor("verify_tags")
    return replace(
        cursor, tag=last.tag, version=last.version, position=last.position, events_done=cursor.events_done + count
    )


async def verify_tags(job: Job, cursor: Cursor) -> Cursor:
    """Compare the next chunks of at most eight tags in every field. One round of hops in parallel.

    Raises ``bootstrap_verify_tag_missing`` or ``bootstrap_verify_tag_mismatch``.
    """
    staging = job.staging
    work = cut_tags(staging, cursor, lambda item: staging.tag_compared(item.tag, item.after, item.version))
    if not work:
        return Cursor("verify_log")
    await at_once([_verify_tag(job, item, chunk) for item, chunk in work])
    return behind(cursor, work)


async def _verify_tag(job: Job, item: TagWork, chunk: Chunk) -> None:
    body = encode({"after": item.version, "limit": chunk.count})
    answer = await job.tag(item.tag.tag, "/digest", body, VERIFY_TAG_MISSING)
    same = answer["sha256"] == chunk.sha256 and answer["allocatorLineageId"] == job.control.lineage_id
    if item.version + chunk.count == item.tag.event_count:
        # The last chunk: the head stands at it, and nothing is stored before the first event or behind the last.
        ends = {
            "version": item.tag.event_count,
            "head": job.staging.suid_at(chunk.last),
            "headPosition": chunk.last,
            "storedFrom": 1,
            "storedTo": item.tag.event_count,
        }
        same = same and all(answer[name] == value for name, value in ends.items())
    if not same:
        versions = f"versions {item.version + 1} to {item.version + chunk.count}"
        raise VERIFY_TAG_MISMATCH(f"tag {encode(item.tag.tag)}, {versions}")


async def verify_log(job: Job, cursor: Cursor) -> Cursor:
    """Compare the next chunk of the log in every field; at the end their number and the lineage. Two hops at most.

    Raises ``bootstrap_verify_store_mismatch`` (409).
    """
    service_id = job.control.service_id
    chunk = job.staging.log_compared(cursor.position)
    if chunk.count == 0:
        if await ask_log(job.log.count(service_id)) != job.control.event_count:
            raise VERIFY_STORE_MISMATCH("the number of events")
        if await ask_log(job.log.lineage(service_id)) != job.control.lineage_id:
            raise VERIFY_STORE_MISMATCH("the lineage")
        return Cursor("verified", events_done=job.control.event_count)
    stored = await ask_log(job.log.compared(service_id, cursor.position, chunk.last))
    # The shared database may be another SQLite than the object's: texts that differ are compared as values.
    if stored != chunk.text:
        found, expected = json.loads(stored), json.loads(chunk.text)
        for place, event in enumerate(expected):
            if place >= len(found) or found[place] != event:
                raise VERIFY_STORE_MISMATCH(f"position {cursor.position + 1 + place}")
    return replace(cursor, position=chunk.last, events_done=chunk.last)


STEPS: Final[dict[str, Step]] = {
    "verify_index": verify_index,
    "verify_index_tags": verify_index_tags,
    "verify_tags": verify_tags,
    "verify_log": verify_log,
}
