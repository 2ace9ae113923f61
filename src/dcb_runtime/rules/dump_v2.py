"""Dump v2: NDJSON, a manifest and then one record a line, checked by a chain of SHA-256 that can be resumed.

``chain_0`` is 32 zero bytes, ``chain_i = SHA-256(chain_{i-1} || SHA-256(canonical(event_i)))`` and ``contentDigest =
"sha256:" + hex(SHA-256(canonical(manifest with contentDigest "") || chain_N))``. The manifest is v1's with
``tagCount`` (how many distinct tags) in place of ``tagCounts``; ``target.allocatorLineageId`` may be null. Source of
the rule: the design's section on dump v2.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from dcb_runtime.rules.canonical_json import canonical
from dcb_runtime.rules.events import is_metadata
from dcb_runtime.rules.json_pieces import decode
from dcb_runtime.rules.manifests import (
    CANONICALIZATION,
    DIGEST_MISMATCH,
    FORMAT,
    MANIFEST_INVALID,
    MANIFEST_MISMATCH,
    Manifest,
    is_count,
    read_manifest,
)
from dcb_runtime.rules.records import METADATA_FIELDS, RECORD_INVALID, Record, check_record_limits, read_record
from dcb_runtime.rules.suid import is_suid

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = 2
CHAIN_START: Final = bytes(32)

_CONTENT_DIGEST: Final = re.compile("sha256:[0-9a-f]{64}")


def parse_manifest_v2(value: object) -> Manifest:
    """Read a decoded manifest. Raises ``UNKNOWN_OR_MISSING_FIELD`` or ``MANIFEST_INVALID``.

    Stricter than v1, because it is all that a plan sees: the watermark is a suid, or null exactly when there are no
    events, and the digest has its form.
    """
    manifest = read_manifest(value, VERSION, "tagCount", lineage_optional=True)
    watermark = manifest["highWatermark"]
    if not is_count(manifest["tagCount"]):
        raise MANIFEST_INVALID("manifest.tagCount")
    if not _CONTENT_DIGEST.fullmatch(manifest["contentDigest"]):
        raise MANIFEST_INVALID("manifest.contentDigest")
    if (watermark is None) != (manifest["eventCount"] == 0) or (watermark is not None and not is_suid(watermark)):
        raise MANIFEST_INVALID("manifest.highWatermark")
    return manifest


def is_v2_metadata(record: Record) -> bool:
    """Whether each of the three metadata fields is null or a string of 1 to 1,024 characters."""
    return all(is_metadata(record[name]) for name in METADATA_FIELDS)


def read_record_v2(value: object, place: str) -> Record:
    """Read one decoded record and check the limits too. Raises ``RECORD_INVALID`` or as ``check_record_limits``."""
    record = read_record(value, place, is_v2_metadata)
    check_record_limits(record)
    return record


def from_line(line: str, place: str) -> Record:
    """Read one line. Raises ``RECORD_INVALID``, also for a line that is not JSON, or as ``check_record_limits``."""
    try:
        value = decode(line)
    except ValueError:
        raise RECORD_INVALID(place) from None
    return read_record_v2(value, place)


def to_line(record: Record | Manifest) -> str:
    """A line of the dump, canonical, without its end."""
    return canonical(record)


class ChainDigest:
    """The running digest over records; ``state`` (32 bytes) is all that is needed to go on later."""

    def __init__(self, state: bytes = CHAIN_START) -> None:
        if len(state) != len(CHAIN_START):
            raise ValueError("the state of a chain is 32 bytes")
        self._state = state

    @property
    def state(self) -> bytes:
        """The state after the records so far."""
        return self._state

    def add(self, record: Record) -> None:
        """Take the next record."""
        event = sha256(canonical(record).encode()).digest()
        self._state = sha256(self._state + event).digest()


def content_digest(manifest: Mapping[str, Any], chain_state: bytes) -> str:
    """The right ``contentDigest`` of a manifest (its own is not looked at) after all its records."""
    frame = canonical({**manifest, "contentDigest": ""}).encode()
    return f"sha256:{sha256(frame + chain_state).hexdigest()}"


def check_contents_v2(manifest: Manifest, tag_count: int, high_watermark: str | None, chain_state: bytes) -> None:
    """Compare what all records said with the manifest. Raises ``MANIFEST_MISMATCH``, then ``DIGEST_MISMATCH``."""
    if tag_count != manifest["tagCount"]:
        raise MANIFEST_MISMATCH("manifest.tagCount")
    if high_watermark != manifest["highWatermark"]:
        raise MANIFEST_MISMATCH("manifest.highWatermark")
    if content_digest(manifest, chain_state) != manifest["contentDigest"]:
        raise DIGEST_MISMATCH()


def manifest_v2(
    source: Mapping[str, str],
    target: Mapping[str, str | None],
    *,
    event_count: int,
    tag_count: int,
    high_watermark: str | None,
    chain_state: bytes,
) -> Manifest:
    """The manifest, digest included, of records that were counted and chained elsewhere.

    ``source`` is ``{serviceId, lineageId}``, ``target`` is ``{serviceId, allocatorLineageId}``.
    """
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "source": dict(source),
        "target": dict(target),
        "highWatermark": high_watermark,
        "eventCount": event_count,
        "tagCount": tag_count,
        "canonicalization": CANONICALIZATION,
    }
    return {**manifest, "contentDigest": content_digest(manifest, chain_state)}
