"""One event record of a dump, v1 or v2: the same ten fields, read and checked in one place.

``{eventId, suid, payload, eventTags[], eventType, provenance: {"origin": "g32"}, timestamp, causationId,
correlationId, executedUser}``. The versions differ in the metadata that they allow. Source of the rule: the reference
protocol's check 4 of a dump; lone surrogates are refused as well, since they cannot be stored as UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dcb_runtime.errors import ErrorKind
from dcb_runtime.rules.events import (
    check_event_type,
    check_payload_limits,
    check_tags,
    is_event_id,
    is_event_type,
    is_timestamp,
)
from dcb_runtime.rules.json_syntax import is_json_text
from dcb_runtime.rules.suid import is_suid
from dcb_runtime.rules.text import has_surrogate

RECORD_INVALID = ErrorKind(
    "record_invalid", 400, "the event record breaks the dump format; export the source again or mend this record"
)
RECORD_ORDER_OR_DUPLICATE = ErrorKind(
    "record_order_or_duplicate",
    400,
    "the events must be as many as the manifest says, each id once, their suids strictly ascending",
)

Record: TypeAlias = dict[str, Any]
"""A record that was read: exactly the ten fields."""

PROVENANCE_ORIGIN: Final = "g32"

METADATA_FIELDS: Final = ("causationId", "correlationId", "executedUser")
_FIELDS: Final = frozenset(
    ("eventId", "suid", "payload", "eventType", "timestamp", "eventTags", "provenance", *METADATA_FIELDS)
)


def read_record(value: object, place: str, metadata_allowed: Callable[[Record], bool]) -> Record:
    """Read one decoded record; ``place`` is named in the error. Extra members of ``provenance`` are dropped.

    ``metadata_allowed`` is the version's rule over the whole record. Our own limits are not checked here
    (``check_record_limits``). Raises ``RECORD_INVALID``.
    """
    if not isinstance(value, dict) or value.keys() != _FIELDS:
        raise RECORD_INVALID(f"{place}, its members")
    fault = _fault(value)
    if fault is not None:
        raise RECORD_INVALID(f"{place}.{fault}")
    record = {**value, "provenance": {"origin": PROVENANCE_ORIGIN}}
    if not metadata_allowed(record):
        raise RECORD_INVALID(f"{place}, {', '.join(METADATA_FIELDS)}")
    return record


def check_record_limits(record: Record) -> None:
    """Check a read record against this service's limits, naming the event by its id.

    Raises ``EVENT_TYPE_INVALID``, ``TAGS_TOO_MANY``, ``TAG_INVALID``, ``PAYLOAD_TOO_LARGE`` or ``PAYLOAD_TOO_DEEP``.
    """
    place = f"event {record['eventId']}"
    check_event_type(record["eventType"], place)
    check_tags(record["eventTags"], place)
    check_payload_limits(record["payload"], place)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not has_surrogate(value)


_CHECKS: Final[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
    ("eventId", is_event_id),
    ("suid", is_suid),
    ("eventType", is_event_type),
    ("timestamp", is_timestamp),
    ("payload", is_json_text),
)
"""What a text member must be, by its name."""


def _fault(value: Record) -> str | None:
    """The first member that is wrong, if one is."""
    for name, is_right in _CHECKS:
        if not _is_text(value[name]) or not is_right(value[name]):
            return name
    provenance = value["provenance"]
    if not isinstance(provenance, dict) or provenance.get("origin") != PROVENANCE_ORIGIN:
        return "provenance"
    return None if _is_tag_list(value["eventTags"]) else "eventTags"


def _is_tag_list(value: object) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(tag, str) and tag != "" and not has_surrogate(tag) for tag in value)
        and len(set(value)) == len(value)
    )
