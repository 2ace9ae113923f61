"""What the manifests of dump v1 and v2 have in common: their members, and the codes of the reference's checks.

``{format, version, source: {serviceId, lineageId}, target: {serviceId, allocatorLineageId}, highWatermark,
eventCount, <the version's own count of tags>, canonicalization, contentDigest}``. Source of the rule: the reference
protocol's checks 2 and 3 of a dump, in their order.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from dcb_runtime.errors import ErrorKind
from dcb_runtime.limits import SAFE_INTEGER_MAX
from dcb_runtime.rules.text import has_surrogate

UNKNOWN_OR_MISSING_FIELD = ErrorKind(
    "unknown_or_missing_field", 400, "exactly the members of the documented format must be there"
)
MANIFEST_INVALID = ErrorKind(
    "manifest_invalid", 400, "a member of the manifest has a value that the format does not allow"
)
MANIFEST_MISMATCH = ErrorKind(
    "manifest_mismatch", 400, "the events are not those that the manifest tells of; export the source again"
)
DIGEST_MISMATCH = ErrorKind(
    "digest_mismatch", 400, "the content differs from what the digest was made of; transfer or export it again"
)

Manifest: TypeAlias = dict[str, Any]
"""A manifest that was read: exactly its version's members."""

FORMAT: Final = "sekiban-dcb-bootstrap"
CANONICALIZATION: Final = "utf8-json-sorted-keys-v1"

_FIELDS: Final = frozenset(
    {"format", "version", "source", "target", "highWatermark", "eventCount", "canonicalization", "contentDigest"}
)
_SOURCE_FIELDS: Final = frozenset({"serviceId", "lineageId"})
_TARGET_FIELDS: Final = frozenset({"serviceId", "allocatorLineageId"})


def read_manifest(value: object, version: int, tags_field: str, lineage_optional: bool) -> Manifest:
    """Read a decoded manifest but for the version's ``tags_field``, which must be there and is not looked at.

    ``lineage_optional`` allows ``target.allocatorLineageId`` to be null. Raises ``MANIFEST_INVALID`` or
    ``UNKNOWN_OR_MISSING_FIELD``, naming the member.
    """
    manifest = _object(value, _FIELDS | {tags_field}, "manifest")
    source = _object(manifest["source"], _SOURCE_FIELDS, "manifest.source")
    target = _object(manifest["target"], _TARGET_FIELDS, "manifest.target")
    lineage = target["allocatorLineageId"]
    watermark = manifest["highWatermark"]
    allowed = {
        "format": manifest["format"] == FORMAT,
        "version": is_count(manifest["version"]) and manifest["version"] == version,
        "canonicalization": manifest["canonicalization"] == CANONICALIZATION,
        "contentDigest": is_text(manifest["contentDigest"]),
        "source.serviceId": is_text(source["serviceId"]),
        "source.lineageId": is_text(source["lineageId"]),
        "target.serviceId": is_text(target["serviceId"]),
        "target.allocatorLineageId": is_text(lineage) or (lineage is None and lineage_optional),
        "highWatermark": watermark is None or (isinstance(watermark, str) and not has_surrogate(watermark)),
        "eventCount": is_count(manifest["eventCount"]),
    }
    for field, good in allowed.items():
        if not good:
            raise MANIFEST_INVALID(f"manifest.{field}")
    return manifest


def is_text(value: object) -> bool:
    """Whether ``value`` is a string, not empty and without lone surrogates."""
    return isinstance(value, str) and value != "" and not has_surrogate(value)


def is_count(value: object) -> bool:
    """Whether ``value`` is a safe integer that is not negative (``true`` is none)."""
    return type(value) is int and 0 <= value <= SAFE_INTEGER_MAX


def _object(value: object, fields: frozenset[str], place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MANIFEST_INVALID(place)
    if value.keys() != fields:
        raise UNKNOWN_OR_MISSING_FIELD(place)
    return dict(value)
