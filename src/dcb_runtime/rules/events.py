"""What an event may be: the reference's own rules as predicates, this service's limits as coded errors.

The predicates say whether a dump's record is one at all (``record_invalid``); the ``check_`` functions are the
gate of appends and, after everything else, of imports. A coded error names the place that it is given
(``event <id>``, ``events[3]``), never the content. Lengths in characters count code points.

U+0000 is refused in types and metadata: the database's JSON functions end a text there, silently.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dcb_runtime.errors import ErrorKind
from dcb_runtime.limits import (
    EVENT_TYPE_CHARACTERS_MAX,
    METADATA_CHARACTERS_MAX,
    PAYLOAD_BYTES_MAX,
    PAYLOAD_DEPTH_MAX,
    TAG_CHARACTERS_MAX,
    TAGS_PER_EVENT_MAX,
)
from dcb_runtime.rules.json_syntax import deeper_than, is_json_text
from dcb_runtime.rules.text import has_surrogate, utf8_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

TAG_INVALID = ErrorKind(
    "tag_invalid",
    400,
    f"a tag is 1 to {TAG_CHARACTERS_MAX} characters without control characters or lone surrogates, not '.' or '..'",
)
TAGS_TOO_MANY = ErrorKind("tags_too_many", 400, f"an event has at most {TAGS_PER_EVENT_MAX} tags")
TAGS_NOT_UNIQUE = ErrorKind("tags_not_unique", 400, "name each tag of an event once")
EVENT_TYPE_INVALID = ErrorKind(
    "event_type_invalid",
    400,
    f"an event type is 1 to {EVENT_TYPE_CHARACTERS_MAX} characters without ':', U+0000 or lone surrogates",
)
EVENT_ID_INVALID = ErrorKind("event_id_invalid", 400, "an event id is an RFC 4122 UUID of version 1 to 8")
PAYLOAD_INVALID = ErrorKind("payload_invalid", 400, "a payload is the text of one JSON value")
PAYLOAD_TOO_LARGE = ErrorKind(
    "payload_too_large", 413, f"a payload is at most {PAYLOAD_BYTES_MAX} bytes of UTF-8; store less in it"
)
PAYLOAD_TOO_DEEP = ErrorKind(
    "payload_too_deep", 400, f"a payload nests at most {PAYLOAD_DEPTH_MAX} arrays and objects in one another"
)
METADATA_INVALID = ErrorKind(
    "metadata_invalid",
    400,
    f"metadata is null or 1 to {METADATA_CHARACTERS_MAX} characters without U+0000 or lone surrogates",
)

_TAG_FAULT: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_EVENT_ID: Final = re.compile(
    "[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII
)
_TIMESTAMP: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{1,7}Z")


def is_event_id(text: str) -> bool:
    """Whether ``text`` is an RFC 4122 UUID of version 1 to 8, its letters in any case."""
    return _EVENT_ID.fullmatch(text) is not None


def is_event_type(text: str) -> bool:
    """Whether ``text`` is a canonical event type: not empty and without ``:``."""
    return text != "" and ":" not in text


def is_timestamp(text: str) -> bool:
    """Whether ``text`` is ``YYYY-MM-DDThh:mm:ss.f`` with 1 to 7 decimals and ``Z`` (the calendar is not asked)."""
    return _TIMESTAMP.fullmatch(text) is not None


def is_metadata(value: object) -> bool:
    """Whether ``value`` is null or a string that metadata may hold."""
    return value is None or (
        isinstance(value, str)
        and 1 <= len(value) <= METADATA_CHARACTERS_MAX
        and "\0" not in value
        and not has_surrogate(value)
    )


def check_tag(value: object, place: str = "") -> str:
    """Return the tag. Raises ``TAG_INVALID``."""
    if (
        not isinstance(value, str)
        or not 1 <= len(value) <= TAG_CHARACTERS_MAX
        or value in (".", "..")
        or _TAG_FAULT.search(value)
    ):
        raise TAG_INVALID(place)
    return value


def check_tags(values: Sequence[object], place: str = "") -> list[str]:
    """Return an event's tags in their order. Raises ``TAGS_TOO_MANY``, ``TAG_INVALID`` or ``TAGS_NOT_UNIQUE``."""
    if len(values) > TAGS_PER_EVENT_MAX:
        raise TAGS_TOO_MANY(place)
    tags = [
        check_tag(value, f"{place}, tag {index}" if place else f"tag {index}") for index, value in enumerate(values)
    ]
    if len(set(tags)) != len(tags):
        raise TAGS_NOT_UNIQUE(place)
    return tags


def check_event_type(value: object, place: str = "") -> str:
    """Return the event type. Raises ``EVENT_TYPE_INVALID``."""
    if (
        not isinstance(value, str)
        or not is_event_type(value)
        or len(value) > EVENT_TYPE_CHARACTERS_MAX
        or "\0" in value
        or has_surrogate(value)
    ):
        raise EVENT_TYPE_INVALID(place)
    return value


def check_event_id(value: object, place: str = "") -> str:
    """Return the event id in lower case, the form in which ids are compared. Raises ``EVENT_ID_INVALID``."""
    if not isinstance(value, str) or not is_event_id(value):
        raise EVENT_ID_INVALID(place)
    return value.lower()


def check_metadata(value: object, place: str = "") -> str | None:
    """Return one metadata value. Raises ``METADATA_INVALID``."""
    if not (value is None or isinstance(value, str)) or not is_metadata(value):
        raise METADATA_INVALID(place)
    return value


def check_payload(value: object, place: str = "") -> str:
    """Return the payload, JSON text. Raises ``PAYLOAD_INVALID``, ``PAYLOAD_TOO_LARGE`` or ``PAYLOAD_TOO_DEEP``."""
    if not isinstance(value, str) or has_surrogate(value):
        raise PAYLOAD_INVALID(place)
    check_payload_limits(value, place)
    if not is_json_text(value):
        raise PAYLOAD_INVALID(place)
    return value


def check_payload_limits(payload: str, place: str = "") -> None:
    """Check size and depth of a payload whose syntax is known. Raises ``PAYLOAD_TOO_LARGE``, ``PAYLOAD_TOO_DEEP``."""
    if utf8_bytes(payload) > PAYLOAD_BYTES_MAX:
        raise PAYLOAD_TOO_LARGE(place)
    if deeper_than(payload, PAYLOAD_DEPTH_MAX):
        raise PAYLOAD_TOO_DEEP(place)
