"""Dump v1, ``{"manifest": {...}, "events": [...]}``: read record by record, refused code by code as the reference does.

Order of the checks (reference protocol, checks of a dump): shape of the dump, manifest, **every** record, order and
duplicates, manifest against records, digest; then this service's own limits. One code path reads: nothing is kept but
counts, ids and the first fault of each later check, so that memory is bounded by the text, one record and the ids.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dcb_runtime.errors import CodedError, ErrorKind
from dcb_runtime.rules.canonical_json import canonical
from dcb_runtime.rules.fnv1a import Fnv1a32
from dcb_runtime.rules.json_pieces import decode_at, members, value_start, values
from dcb_runtime.rules.manifests import (
    CANONICALIZATION,
    DIGEST_MISMATCH,
    FORMAT,
    MANIFEST_INVALID,
    MANIFEST_MISMATCH,
    UNKNOWN_OR_MISSING_FIELD,
    Manifest,
    is_count,
    is_text,
    read_manifest,
)
from dcb_runtime.rules.records import (
    METADATA_FIELDS,
    RECORD_ORDER_OR_DUPLICATE,
    Record,
    check_record_limits,
    read_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

DUMP_INVALID = ErrorKind("dump_invalid", 400, "a v1 dump is an object of `manifest` and an array `events`, each once")
DUMP_V1_METADATA = ErrorKind(
    "dump_v1_metadata", 409, "dump v1 cannot say this event's metadata; export the service as dump v2"
)

VERSION: Final = 1
COMMIT_CORRELATION_ID: Final = "SerializedCommit"
COMMIT_EXECUTED_USER: Final = "SerializedSekibanExecutor"


def is_v1_metadata(record: Record) -> bool:
    """Whether the three metadata fields are all null, or exactly those that the reference's commits write."""
    metadata = tuple(record[name] for name in METADATA_FIELDS)
    return metadata in ((None, None, None), (record["eventId"], COMMIT_CORRELATION_ID, COMMIT_EXECUTED_USER))


def read_dump_v1(text: str, start: int = 0) -> DumpV1:
    """Read the dump that begins at ``start`` up to its manifest, and check the syntax of all of it.

    Raises ``DUMP_INVALID`` (also for text that is not JSON, a member that occurs twice, and absurd nesting),
    ``UNKNOWN_OR_MISSING_FIELD`` or ``MANIFEST_INVALID``.
    """
    if not text.startswith("{", value_start(text, start)):
        raise DUMP_INVALID()
    try:
        places = {key: begin for key, begin, _ in members(text, start)}
    except ValueError:
        raise DUMP_INVALID() from None
    if places.keys() != {"manifest", "events"}:
        raise UNKNOWN_OR_MISSING_FIELD("dump")
    if not text.startswith("[", places["events"]):
        raise DUMP_INVALID("events")
    manifest = read_manifest(decode_at(text, places["manifest"]), VERSION, "tagCounts", lineage_optional=False)
    counts = manifest["tagCounts"]
    if not isinstance(counts, dict) or not all(is_text(tag) and is_count(count) for tag, count in counts.items()):
        raise MANIFEST_INVALID("manifest.tagCounts")
    return DumpV1(manifest, text, places["events"])


@dataclass(frozen=True)
class DumpV1:
    """A dump whose manifest is valid; its records are read, and judged, by iterating over them."""

    manifest: Manifest
    _text: str = field(repr=False)
    _events_start: int

    @property
    def content_digest(self) -> str:
        """The digest that the manifest claims; it holds when ``records`` has come to its end."""
        return str(self.manifest["contentDigest"])

    def records(self) -> Iterator[Record]:
        """Yield the records in order, each once and within all limits; keep them only if the iteration ends well.

        Raises ``RECORD_INVALID`` as soon as one is met, every other fault after the last record, by the reference's
        precedence: ``RECORD_ORDER_OR_DUPLICATE``, ``MANIFEST_MISMATCH``, ``DIGEST_MISMATCH``, then what
        ``check_record_limits`` raises. From the first fault on nothing is yielded any more.
        """
        contents = _Contents()
        limit_fault: CodedError | None = None
        for index, value in enumerate(values(self._text, self._events_start)):
            record = read_record(value, f"events[{index}]", is_v1_metadata)
            if not contents.add(record) or limit_fault is not None:
                continue
            try:
                check_record_limits(record)
            except CodedError as fault:
                limit_fault = fault
                continue
            yield record
        contents.check(self.manifest)
        if limit_fault is not None:
            raise limit_fault


class _Contents:
    """What the records say so far, for comparison with the manifest; after a fault in their order no more."""

    def __init__(self) -> None:
        self.event_count = 0
        self.tag_counts: Counter[str] = Counter()
        self.high_watermark: str | None = None
        self._event_ids: set[str] = set()
        self._disorder: str | None = None
        self._digest = Fnv1a32()
        self._digest.update('{"events":[')

    def add(self, record: Record) -> bool:
        """Take the next record; False when it, or one before it, is out of order or a duplicate."""
        if self._disorder is not None:
            return False
        event_id = record["eventId"].lower()
        ascending = self.high_watermark is None or record["suid"] > self.high_watermark
        if not ascending or event_id in self._event_ids:
            self._disorder = f"event {record['eventId']}"
            return False
        self._digest.update(("," if self.event_count else "") + canonical(record))
        self._event_ids.add(event_id)
        self.event_count += 1
        self.tag_counts.update(record["eventTags"])
        self.high_watermark = record["suid"]
        return True

    def digest_with(self, manifest: Mapping[str, Any]) -> str:
        """The content digest of these records under ``manifest``. Ends the digest: call it once, last."""
        self._digest.update(f'],"manifest":{canonical({**manifest, "contentDigest": ""})}}}')
        return self._digest.text()

    def check(self, manifest: Manifest) -> None:
        if self._disorder is not None:
            raise RECORD_ORDER_OR_DUPLICATE(self._disorder)
        if self.event_count != manifest["eventCount"]:
            raise RECORD_ORDER_OR_DUPLICATE("manifest.eventCount")
        if dict(self.tag_counts) != manifest["tagCounts"]:
            raise MANIFEST_MISMATCH("manifest.tagCounts")
        if self.high_watermark != manifest["highWatermark"]:
            raise MANIFEST_MISMATCH("manifest.highWatermark")
        if self.digest_with(manifest) != manifest["contentDigest"]:
            raise DIGEST_MISMATCH()


def content_digest_v1(manifest: Mapping[str, Any], records: Iterable[Record]) -> str:
    """The right ``contentDigest`` of a manifest (its own is not looked at) with ``records``."""
    digest = Fnv1a32()
    digest.update(canonical({"events": list(records), "manifest": {**manifest, "contentDigest": ""}}))
    return digest.text()


def manifest_v1_for(records: Iterable[Record], source: Mapping[str, str], target: Mapping[str, str]) -> Manifest:
    """The manifest, digest included, of ``records`` in their order.

    ``source`` is ``{serviceId, lineageId}``, ``target`` is ``{serviceId, allocatorLineageId}``.
    Raises ``DUMP_V1_METADATA`` and ``RECORD_ORDER_OR_DUPLICATE``.
    """
    contents = _Contents()
    for record in records:
        place = f"event {record['eventId']}"
        if not is_v1_metadata(record):
            raise DUMP_V1_METADATA(place)
        if not contents.add(record):
            raise RECORD_ORDER_OR_DUPLICATE(place)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "source": dict(source),
        "target": dict(target),
        "highWatermark": contents.high_watermark,
        "eventCount": contents.event_count,
        "tagCounts": dict(contents.tag_counts),
        "canonicalization": CANONICALIZATION,
    }
    return {**manifest, "contentDigest": contents.digest_with(manifest)}


def compose_dump_v1(manifest_fields: Mapping[str, Any], records: Iterable[Record]) -> dict[str, Any]:
    """A dump of these manifest fields and records with the digest that is right for them; nothing is checked."""
    events = list(records)
    manifest = {**manifest_fields, "contentDigest": content_digest_v1(manifest_fields, events)}
    return {"manifest": manifest, "events": events}
