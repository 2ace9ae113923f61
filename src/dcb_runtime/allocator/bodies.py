"""The bodies of the Allocator's routes for an import: its fence, its seed, its chunks and their comparison."""

from __future__ import annotations

from typing import Annotated

import msgspec

from dcb_runtime.allocator.fence import Holder
from dcb_runtime.limits import CHUNK_EVENTS_MAX
from dcb_runtime.wire import Count, Number, Struct, Text


class SeedBody(Struct):
    """Body of ``POST /seed-after``."""

    import_id: Text
    lease_epoch: Count
    high_watermark: str


class HolderBody(Struct):
    """Body of the routes that raise, lower or cancel the fence."""

    import_id: Text
    digest: Text
    lease_epoch: Count
    allocator_lineage_id: str | None = None

    def holder(self) -> Holder:
        """Who asks."""
        return Holder(self.import_id, self.digest, self.lease_epoch)


class IndexedEvent(Struct):
    """An event as the index keeps it."""

    event_id: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-fA-F-]{36}\Z")]
    suid: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{30}\Z")]
    event_type: Text
    event_tags: list[Text]


class AdmitBody(Struct):
    """Body of ``POST /import/admit``: a chunk of events at ``first_position`` and behind it."""

    import_id: Text
    digest: Text
    lease_epoch: Count
    first_position: Number
    events: Annotated[list[IndexedEvent], msgspec.Meta(min_length=1, max_length=CHUNK_EVENTS_MAX)]


class EventsPage(Struct):
    """Body of ``POST /index/events``: positions behind ``after`` up to ``until``."""

    after: Count
    until: Count


class TagsPage(Struct):
    """Body of ``POST /index/tags``: rows behind (``tag``, ``version``) in order."""

    tag: str
    version: Count
    limit: Annotated[int, msgspec.Meta(ge=1, le=10 * CHUNK_EVENTS_MAX)]
