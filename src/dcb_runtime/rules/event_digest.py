"""Event digest v2: SHA-256 over an event's identity and content, each field with its presence, name and length.

Source of the rule: the reference protocol's section on the event digest; causationId, correlationId and executedUser
take no part in it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_DOMAIN: Final = b"sekiban-dcb-ts/eventDigest/v2\0"
_TAG_SET: Final = "declaredTagSet"
_PAYLOAD: Final = "payload"
_OPTIONAL: Final = "allocatorLineageId"
_FIELDS: Final = (
    "serviceId",
    "eventId",
    "sortableUniqueId",
    "eventType",
    "timestamp",
    _OPTIONAL,
    "attemptId",
    _TAG_SET,
    _PAYLOAD,
)


class EventDigestError(ValueError):
    """A field that is unknown, missing or of another type than the digest's."""


def event_digest(fields: Mapping[str, object]) -> str:
    """The digest in lower-case hex. Raises ``EventDigestError``.

    ``fields`` are strings, but ``declaredTagSet`` a list of strings and ``payload`` bytes (which need not be UTF-8).
    ``allocatorLineageId`` may be missing, which is not the same as empty.
    """
    return sha256(event_pre_image(fields)).hexdigest()


def event_pre_image(fields: Mapping[str, object]) -> bytes:
    """The bytes that are hashed. Raises ``EventDigestError``."""
    unknown = fields.keys() - set(_FIELDS)
    if unknown:
        raise EventDigestError("unknown field")
    return _DOMAIN + b"".join(_field(name, fields) for name in _FIELDS)


def _field(name: str, fields: Mapping[str, object]) -> bytes:
    header = _with_length(name.encode())
    if name not in fields:
        if name != _OPTIONAL:
            raise EventDigestError(f"missing field {name}")
        return b"\0" + header + _with_length(b"")
    return b"\1" + header + _with_length(_value(name, fields[name]))


def _value(name: str, value: object) -> bytes:
    if name == _PAYLOAD and isinstance(value, bytes):
        return value
    if name == _TAG_SET and isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        return b"".join(_with_length(tag) for tag in sorted({tag.encode() for tag in value}))
    if name not in (_PAYLOAD, _TAG_SET) and isinstance(value, str):
        return value.encode()
    raise EventDigestError(f"field {name} has another type")


def _with_length(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
