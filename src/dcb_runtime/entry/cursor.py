"""The export's cursor: everything a later page needs, in one opaque text. Nothing of an export is stored here."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Final

import msgspec

from dcb_runtime.entry.auth import configured_tokens
from dcb_runtime.limits import SAFE_INTEGER_MAX

CURSOR_CHARACTERS_MAX: Final = 4096
_SEAL_BYTES: Final = 16

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


class CursorSeal:
    """Writes cursors and reads back its own: lineages and digests in one are never the caller's.

    The key comes from the operator's secret: a cursor outlives the rotation of tokens as a token does.
    """

    def __init__(self, secret: str | None) -> None:
        self._keys = [b"export cursor\0" + token.encode() for token in configured_tokens(secret)]

    def write(self, cursor: Cursor) -> str:
        """The cursor as URL-safe text."""
        return _sealed(self._keys[0], msgspec.json.encode(cursor))

    def read(self, text: str) -> Cursor | None:
        """The cursor of a text that ``write`` made, ``None`` for any other."""
        try:
            raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            cursor = msgspec.json.decode(raw[_SEAL_BYTES:], type=Cursor)
            content = msgspec.json.encode(cursor)
            made_here = [hmac.compare_digest(_sealed(key, content), text) for key in self._keys]
        except (ValueError, TypeError, msgspec.DecodeError):
            return None
        return cursor if any(made_here) and cursor.position < cursor.anchor.head else None


def _sealed(key: bytes, content: bytes) -> str:
    seal = hmac.digest(key, content, "sha256")[:_SEAL_BYTES]
    return urlsafe_b64encode(seal + content).rstrip(b"=").decode()
