"""The steps of an import: the allocator's index, its watermark, the tags, then the log, in that order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from dcb_runtime.bootstrap.control import Cursor
from dcb_runtime.bootstrap.errors import ALLOCATOR_SEED_FAILED, INDEX_ADMISSION_FAILED, TAG_ADMISSION_FAILED
from dcb_runtime.bootstrap.job import Job, Step, ask_log, at_once, envelope
from dcb_runtime.bootstrap.staging import Chunk, StagedTag, Staging
from dcb_runtime.limits import CHUNK_BYTES_MAX, OBJECTS_AT_A_TIME_MAX
from dcb_runtime.wire import encode


@dataclass(frozen=True)
class TagWork:
    """Where a chunk of one tag begins: behind its ``version``, at a position behind ``after``."""

    tag: StagedTag
    version: int
    after: int


def cut_tags(staging: Staging, cursor: Cursor, cut: Callable[[TagWork], Chunk]) -> list[tuple[TagWork, Chunk]]:
    """The chunks that one step works on: the rest of the cursor's tag, then the tags behind it, at most eight.

    The list ends behind a tag that its chunk does not finish, so that one cursor tells all, and where the chunks
    are large enough together.
    """
    current = staging.tag(cursor.tag) if cursor.tag else None
    upcoming: list[TagWork] = []
    if current is not None and cursor.version < current.event_count:
        upcoming.append(TagWork(current, cursor.version, cursor.position))
    behind_it = staging.tags_after(cursor.tag, OBJECTS_AT_A_TIME_MAX - len(upcoming))
    upcoming += [TagWork(tag, 0, 0) for tag in behind_it]
    work: list[tuple[TagWork, Chunk]] = []
    for item in upcoming:
        chunk = cut(item)
        work.append((item, chunk))
        unfinished = item.version + chunk.count < item.tag.event_count
        if unfinished or sum(len(part.text) for _, part in work) >= CHUNK_BYTES_MAX:
            break
    return work


def behind(cursor: Cursor, work: list[tuple[TagWork, Chunk]]) -> Cursor:
    """The cursor behind these chunks."""
    last, chunk = work[-1]
    finished = sum(1 for item, part in work if item.version + part.count == item.tag.event_count)
    return replace(
        cursor,
        tag=last.tag.tag,
        version=last.version + chunk.count,
        position=chunk.last,
        events_done=cursor.events_done + sum(part.count for _, part in work),
        tags_done=cursor.tags_done + finished,
    )


async def fill_index(job: Job, cursor: Cursor) -> Cursor:
    """Admit the next chunk into the allocator's index. One hop."""
    chunk = job.staging.index_chunk(cursor.position)
    if chunk.count == 0:
        return Cursor("seed")
    body = envelope(job.identity, firstPosition=str(cursor.position + 1), events=chunk.text)
    await job.allocator("/import/admit", body, INDEX_ADMISSION_FAILED)
    return replace(cursor, position=chunk.last, events_done=chunk.last)


async def seed_order(job: Job, cursor: Cursor) -> Cursor:
    """Let the order continue above the dump's watermark. One hop, none for a dump without events."""
    if job.control.high_watermark is not None:
        body = {
            "importId": job.control.import_id,
            "leaseEpoch": job.control.lease_epoch,
            "highWatermark": job.control.high_watermark,
        }
        await job.allocator("/seed-after", encode(body), ALLOCATOR_SEED_FAILED)
    return Cursor("tags")


async def fill_tags(job: Job, cursor: Cursor) -> Cursor:
    """Admit the next chunks into at most eight tags at a time. One round of hops in parallel."""
    work = cut_tags(job.staging, cursor, lambda item: job.staging.tag_chunk(item.tag, item.after))
    if not work:
        return Cursor("log")
    await at_once(
        [
            job.tag(
                item.tag.tag,
                "/bootstrap/admit",
                envelope(job.tag_identity, firstVersion=str(item.version + 1), candidates=chunk.text),
                TAG_ADMISSION_FAILED,
            )
            for item, chunk in work
        ]
    )
    return behind(cursor, work)


async def fill_log(job: Job, cursor: Cursor) -> Cursor:
    """Write the next chunk into the log. One hop."""
    chunk = job.staging.log_chunk(cursor.position)
    if chunk.count == 0:
        return Cursor("verify_index")
    control = job.control
    await ask_log(
        job.log.admit(
            control.service_id,
            control.import_id or "",
            control.lease_epoch,
            cursor.position + 1,
            chunk.count,
            chunk.text,
        )
    )
    return replace(cursor, position=chunk.last, events_done=chunk.last)


STEPS: Final[dict[str, Step]] = {"index": fill_index, "seed": seed_order, "tags": fill_tags, "log": fill_log}
