"""The export's cursor: everything a later page needs, in one opaque text. Nothing of an export is stored here."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Annotated, Final

import msgspec

from dcb_runtime.limits import SAFE_INTEGER_MAX

CURSOR_CHARACTERS_MAX: Final = 4096
_CHECK_BYTES: Final = 8

_Position = Annotated[int, msgspec.Meta(ge=1, le=SAFE_INTEGER_MAX)]
_Lineage = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class Anchor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What an export was bound to by its first page: later appends never enter it."""

    source_service_id: str
    target_service_id: str
    source_lineage: _Lineage
    target_lineage: _Lineage | None
    head: Annotated[int, msgspec.Meta(ge=0, le=SAFE_INTEGER_MAX)]
    tag_count: Annotated[int, msgspec.Meta(ge=0, le=SAFE_INTEGER_MAX)]


class Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where the next page begins, with the digest's state up to there."""

    anchor: Anchor
    position: _Position
    suid: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{30}\Z")]
    chain: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


def write_cursor(cursor: Cursor) -> str:
    """The cursor as URL-safe text, with a checksum: one wrong character would spoil the digest unseen."""
    content = msgspec.json.encode(cursor)
    return urlsafe_b64encode(sha256(content).digest()[:_CHECK_BYTES] + content).rstrip(b"=").decode()


def read_cursor(text: str) -> Cursor | None:
    """The cursor of a text that ``write_cursor`` made, ``None`` for any other."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        cursor = msgspec.json.decode(raw[_CHECK_BYTES:], type=Cursor)
    except (ValueError, msgspec.DecodeError):
        return None
    made_here = write_cursor(cursor) == text and cursor.position < cursor.anchor.head
    return cursor if made_here else None
