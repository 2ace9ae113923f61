"""The steps around an import: fencing an epoch, opening and closing after READY, and the reset after FAILED."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dcb_runtime.bootstrap.control import Cursor
from dcb_runtime.bootstrap.errors import ALLOCATOR_OPEN_FAILED, FENCE_FAILED, RESET_FAILED, TAG_CLOSE_FAILED
from dcb_runtime.bootstrap.job import Job, Step, ask_log, at_once
from dcb_runtime.bootstrap.staging import StagedTag
from dcb_runtime.errors import CodedError
from dcb_runtime.limits import OBJECTS_AT_A_TIME_MAX
from dcb_runtime.wire import encode

LOG_REMOVE_EVENTS: Final = 2000
"""Events that one step removes from the log: far below the database's 30 s a query."""


async def raise_fences(job: Job) -> None:
    """Put the present epoch up in the allocator and in the log, so that an older one is out. Two hops."""
    await job.allocator("/fence/raise", encode(job.identity), FENCE_FAILED)
    await _fence_log(job)


async def _fence_log(job: Job) -> None:
    control = job.control
    try:
        await ask_log(
            job.log.fence(control.service_id, control.lineage_id or "", control.import_id or "", control.lease_epoch)
        )
    except CodedError as refused:
        raise FENCE_FAILED(status=refused.status, reason=refused.code) from None


async def open_allocator(job: Job, cursor: Cursor) -> Cursor:
    """Open the allocator: from here on appends are decided. One hop."""
    await job.allocator("/fence/open", encode(job.identity), ALLOCATOR_OPEN_FAILED)
    return Cursor("closing", events_done=job.control.event_count)


async def close_tags(job: Job, cursor: Cursor) -> Cursor:
    """End the admission of at most eight tags, in the end that of the log. One round of hops in parallel."""
    tags = job.staging.tags_after(cursor.tag, OBJECTS_AT_A_TIME_MAX)
    control = job.control
    if not tags:
        await ask_log(job.log.close_import(control.service_id, control.import_id or "", control.lease_epoch))
        return replace(cursor, phase="clearing")
    body = encode({"importId": control.import_id, "leaseEpoch": control.lease_epoch})
    await at_once([job.tag(tag.tag, "/bootstrap/close", body, TAG_CLOSE_FAILED) for tag in tags])
    return _behind(cursor, tags)


async def clear_staging(job: Job, cursor: Cursor) -> Cursor:
    """Delete the staged rows: the receipt stays."""
    job.staging.clear()
    return Cursor("done", events_done=job.control.event_count, tags_done=job.control.tag_count)


async def reset_fence(job: Job, cursor: Cursor) -> Cursor:
    """Put the new epoch up in the log, then in the allocator. Two hops."""
    await _fence_log(job)
    await job.allocator("/fence/raise", encode(job.identity), RESET_FAILED)
    return Cursor("reset_tags")


async def reset_tags(job: Job, cursor: Cursor) -> Cursor:
    """Leave the new epoch at each tag of the plan, touched or not, and remove what the import wrote there."""
    tags = job.staging.tags_after(cursor.tag, OBJECTS_AT_A_TIME_MAX)
    if not tags:
        return Cursor("reset_log")
    body = encode(job.tag_identity)
    await at_once([job.tag(tag.tag, "/bootstrap/reset", body, RESET_FAILED) for tag in tags])
    return _behind(cursor, tags)


async def reset_log(job: Job, cursor: Cursor) -> Cursor:
    """Remove the next events from the log. One hop."""
    control = job.control
    left = await ask_log(
        job.log.remove(control.service_id, control.import_id or "", control.lease_epoch, LOG_REMOVE_EVENTS)
    )
    if left:
        return replace(cursor, events_done=cursor.events_done + LOG_REMOVE_EVENTS)
    return Cursor("reset_index")


async def reset_index(job: Job, cursor: Cursor) -> Cursor:
    """Empty the index and take the fence down. One hop."""
    await job.allocator("/fence/reset", encode(job.identity), RESET_FAILED)
    return Cursor("reset")


def _behind(cursor: Cursor, tags: list[StagedTag]) -> Cursor:
    return replace(cursor, tag=tags[-1].tag, tags_done=cursor.tags_done + len(tags))


STEPS: Final[dict[str, Step]] = {
    "opening": open_allocator,
    "closing": close_tags,
    "clearing": clear_staging,
    "reset_fence": reset_fence,
    "reset_tags": reset_tags,
    "reset_log": reset_log,
    "reset_index": reset_index,
}
