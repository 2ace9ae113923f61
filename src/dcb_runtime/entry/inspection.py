"""What an operator may look at, whatever state the service is in."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from dcb_runtime.dispatch import target
from dcb_runtime.entry.allocator import ask_lineage, ask_state
from dcb_runtime.entry.coordinator import BOOTSTRAP_COORDINATOR_UNAVAILABLE, Coordinator
from dcb_runtime.entry.http import ObjectAnswer
from dcb_runtime.entry.percent import query_integer
from dcb_runtime.errors import LINEAGE_MISMATCH, ErrorKind
from dcb_runtime.limits import READ_PAGE_EVENTS_MAX, TAG_PAGE_EVENTS_DEFAULT
from dcb_runtime.ports import PeerError, Peers, Reply
from dcb_runtime.rules.scope import TAG, tag_object_name
from dcb_runtime.wire import encode, reply

TAG_UNAVAILABLE = ErrorKind("tag_unavailable", 503, "the tag could not be asked; ask again, nothing is lost")

QUERY: Final = ("after", "limit")

_EVENTS: Final = ',"events":'


class _BootstrapView(msgspec.Struct, rename="camel", frozen=True):
    """The members of the control record that the overview shows, as they came."""

    status: str
    import_id: str | None
    lease_epoch: int
    progress: msgspec.Raw


class _TagView(msgspec.Struct, rename="camel", frozen=True):
    """What is checked of a tag's page; the events are not looked at."""

    allocator_lineage_id: str | None


async def inspect_service(peers: Peers, service_id: str) -> Reply:
    """What a service holds and how its import stands. Two hops at a time."""
    state, record = await asyncio.gather(ask_state(peers, service_id), Coordinator(peers, service_id).ask("/state"))
    if not record.ok:
        raise ObjectAnswer(record)
    try:
        bootstrap = msgspec.json.decode(record.text, type=_BootstrapView)
    except (msgspec.DecodeError, UnicodeError):
        raise BOOTSTRAP_COORDINATOR_UNAVAILABLE("unreadable answer") from None
    return reply(
        200,
        {
            "serviceId": service_id,
            "allocatorLineageId": state.allocator_lineage_id,
            "mode": state.mode,
            "head": state.head,
            "watermark": state.allocated_watermark,
            "eventCount": state.event_count,
            "tagCount": state.tag_count,
            "bootstrap": bootstrap,
        },
    )


async def inspect_tag(peers: Peers, service_id: str, tag: str, query: dict[str, str]) -> Reply:
    """A page of a tag's events behind position ``after``: the tag's own text, so that data stays byte for byte.

    Raises ``lineage_mismatch`` when the tag's events belong to another lineage than the service's.
    """
    after = query_integer(query, "after", 0) or 0
    limit = query_integer(query, "limit", 1, READ_PAGE_EVENTS_MAX) or TAG_PAGE_EVENTS_DEFAULT
    path = target("/events", service_id=service_id, tag=tag, after=after, limit=limit)
    lineage, page = await asyncio.gather(ask_lineage(peers, service_id), _ask_tag(peers, service_id, tag, path))
    if not page.ok:
        raise ObjectAnswer(page)
    try:
        bound = _bound_lineage(page.text)
    except (msgspec.DecodeError, UnicodeError):
        raise TAG_UNAVAILABLE("unreadable answer") from None
    if bound is not None and bound != lineage.allocator_lineage_id:
        raise LINEAGE_MISMATCH("the tag")
    opening = page.text.index("{") + 1
    return Reply(page.status, f'{{"mode":{encode(lineage.mode)},{page.text[opening:]}')


def _bound_lineage(page: str) -> str | None:
    """The lineage that a tag's page names before its events, which are not read.

    Imported data may hold what strict readers refuse (an escaped lone surrogate); a raw quote ends every text,
    so the first ``_EVENTS`` is the member itself. Raises as ``msgspec.json.decode``.
    """
    head, events, _ = page.partition(_EVENTS)
    return msgspec.json.decode(f"{head}}}" if events else page, type=_TagView).allocator_lineage_id


async def _ask_tag(peers: Peers, service_id: str, tag: str, path: str) -> Reply:
    try:
        return await peers.call(TAG, tag_object_name(service_id, tag), path)
    except PeerError:
        raise TAG_UNAVAILABLE() from None
