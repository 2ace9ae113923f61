"""Export: the service's events as pages of a dump, anchored at the order's end of the first page."""

from __future__ import annotations

from typing import Annotated, Any, Final, Protocol

import msgspec

from dcb_runtime.allocator.fence import BOOTSTRAP_IN_PROGRESS
from dcb_runtime.bootstrap.errors import BODY_INVALID
from dcb_runtime.entry.allocator import OPEN, ask_lineage, ask_state
from dcb_runtime.entry.cursor import CURSOR_CHARACTERS_MAX, Anchor, Cursor, CursorSeal
from dcb_runtime.entry.http import HttpRequest, read_text
from dcb_runtime.entry.patience import Patience
from dcb_runtime.errors import BODY_TOO_LARGE, LINEAGE_MISMATCH, ErrorKind
from dcb_runtime.limits import (
    BODY_BYTES_MAX,
    EXPORT_PAGE_EVENTS_DEFAULT,
    LOG_WAIT_MS,
    READ_PAGE_BYTES_MAX,
    READ_PAGE_EVENTS_MAX,
)
from dcb_runtime.ports import Clock, DatabaseError, Peers, Reply, Timer
from dcb_runtime.rules.dump_v2 import ChainDigest, manifest_v2
from dcb_runtime.rules.scope import is_service_id
from dcb_runtime.wire import Struct, decode, reply

EXPORT_INVALID = ErrorKind(
    "bootstrap_export_invalid",
    400,
    f"send targetServiceId, pageSize (1 to {READ_PAGE_EVENTS_MAX}) and the cursor of the page before, unchanged and "
    "for the same services; lineages are read from the allocators, never taken from a request",
)
LOG_LAGGING = ErrorKind(
    "log_lagging", 503, "the event log has not caught up with the service yet; ask again in a moment"
)
LOG_UNAVAILABLE = ErrorKind("log_unavailable", 503, "the event log could not be asked; ask again, nothing is lost")
LOG_INCOMPLETE = ErrorKind(
    "log_incomplete",
    503,
    "the event log lacks events that were decided: it was changed or restored from outside; make it whole first",
)


class PagedLog(Protocol):
    """What an export needs of the event log. Both raise ``DatabaseError``."""

    async def head(self, service_id: str) -> int:
        """The last position that the log holds of the service, 0 when it holds none."""

    async def page(
        self, service_id: str, after: int, until: int, events_max: int, bytes_max: int
    ) -> list[tuple[int, dict[str, Any]]]:
        """``(position, dump record)`` behind ``after`` up to ``until``, in order, cut by count or bytes."""


class ExportBody(Struct):
    """Body of ``POST export``."""

    target_service_id: str
    page_size: Annotated[int, msgspec.Meta(ge=1, le=READ_PAGE_EVENTS_MAX)] = EXPORT_PAGE_EVENTS_DEFAULT
    cursor: Annotated[str, msgspec.Meta(max_length=CURSOR_CHARACTERS_MAX)] | None = None


_START: Final = 0


class Exporter:
    """Composes export pages. Each costs its own events: the digest's state travels in the cursor."""

    def __init__(self, peers: Peers, log: PagedLog, clock: Clock, timer: Timer, seal: CursorSeal) -> None:
        self._peers = peers
        self._log = log
        self._clock = clock
        self._timer = timer
        self._seal = seal

    async def export(self, service_id: str, request: HttpRequest) -> Reply:
        """One page, and with the last one the manifest."""
        text = await read_text(request, BODY_BYTES_MAX, BODY_INVALID, BODY_TOO_LARGE)
        body = decode(text, ExportBody, EXPORT_INVALID, syntax=BODY_INVALID)
        if not is_service_id(body.target_service_id):
            raise EXPORT_INVALID("targetServiceId")
        if body.cursor is None:
            anchor = await self._anchor(service_id, body.target_service_id)
            return await self._page(anchor, _START, None, ChainDigest(), body.page_size)
        cursor = self._seal.read(body.cursor)
        if cursor is None:
            raise EXPORT_INVALID("cursor")
        bound = (cursor.anchor.source_service_id, cursor.anchor.target_service_id)
        if bound != (service_id, body.target_service_id):
            raise EXPORT_INVALID("the cursor belongs to other services")
        await self._check_source(cursor.anchor)
        chain = ChainDigest(bytes.fromhex(cursor.chain))
        return await self._page(cursor.anchor, cursor.position, cursor.suid, chain, body.page_size)

    async def _anchor(self, source: str, target: str) -> Anchor:
        """Bind the export to the present end of the order, once the log has it.

        A target of the source's own name lies in another deployment, whose lineage cannot be known here.
        """
        state = await ask_state(self._peers, source)
        if state.mode != OPEN:
            raise BOOTSTRAP_IN_PROGRESS()
        lineage = None if target == source else (await ask_lineage(self._peers, target)).allocator_lineage_id
        await self._wait_for_log(source, state.head)
        return Anchor(source, target, state.allocator_lineage_id, lineage, state.head, state.tag_count)

    async def _wait_for_log(self, service_id: str, head: int) -> None:
        patience = Patience(self._clock, self._timer, LOG_WAIT_MS)
        try:
            while await self._log.head(service_id) < head:
                if not await patience.wait():
                    raise LOG_LAGGING()
        except DatabaseError:
            raise LOG_UNAVAILABLE() from None

    async def _check_source(self, anchor: Anchor) -> None:
        """A later page must come from the service that the first one came from."""
        source = await ask_lineage(self._peers, anchor.source_service_id)
        if source.allocator_lineage_id != anchor.source_lineage:
            raise LINEAGE_MISMATCH("the cursor")
        if source.mode != OPEN:
            raise BOOTSTRAP_IN_PROGRESS()

    async def _page(
        self, anchor: Anchor, after: int, last_suid: str | None, chain: ChainDigest, page_size: int
    ) -> Reply:
        rows = await self._rows(anchor, after, page_size)
        for position, record in rows:
            after += 1
            # Positions are dense and rise with the suids: that alone proves that nothing is missing.
            if position != after or (last_suid is not None and record["suid"] <= last_suid):
                raise LOG_INCOMPLETE(f"at position {after}")
            last_suid = record["suid"]
            chain.add(record)
        answer: dict[str, Any] = {"page": [record for _, record in rows], "cursor": None, "complete": True}
        if after == anchor.head:
            answer["manifest"] = _manifest(anchor, last_suid, chain)
        elif last_suid is None or not rows:
            raise LOG_INCOMPLETE(f"at position {after + 1}")
        else:
            cursor = Cursor(anchor, after, last_suid, chain.state.hex())
            answer |= {"cursor": self._seal.write(cursor), "complete": False}
        return reply(200, answer)

    async def _rows(self, anchor: Anchor, after: int, page_size: int) -> list[tuple[int, dict[str, Any]]]:
        if after == anchor.head:
            return []
        try:
            return await self._log.page(anchor.source_service_id, after, anchor.head, page_size, READ_PAGE_BYTES_MAX)
        except DatabaseError:
            raise LOG_UNAVAILABLE() from None


def _manifest(anchor: Anchor, high_watermark: str | None, chain: ChainDigest) -> dict[str, Any]:
    return manifest_v2(
        {"serviceId": anchor.source_service_id, "lineageId": anchor.source_lineage},
        {"serviceId": anchor.target_service_id, "allocatorLineageId": anchor.target_lineage},
        event_count=anchor.head,
        tag_count=anchor.tag_count,
        high_watermark=high_watermark,
        chain_state=chain.state,
    )
