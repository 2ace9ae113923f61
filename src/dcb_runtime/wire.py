"""Wire bodies: JSON text in and out through msgspec structs, refused with the caller's own codes."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeVar

import msgspec

from dcb_runtime.errors import CodedError, ErrorKind
from dcb_runtime.limits import PAYLOAD_DEPTH_MAX, SAFE_INTEGER_MAX
from dcb_runtime.ports import Reply
from dcb_runtime.rules.json_syntax import deeper_than

Body = TypeVar("Body")

DEPTH_MAX: Final = PAYLOAD_DEPTH_MAX + 20
"""A payload's levels and those around it. msgspec calls itself for each level: some thousands of them overflow
the stack of a Worker, which ends its whole process, so the depth is measured before it may run."""

Text = Annotated[str, msgspec.Meta(min_length=1)]
"""A member that must not be empty."""

Count = Annotated[int, msgspec.Meta(ge=0, le=SAFE_INTEGER_MAX)]
"""A number of things, a lease epoch, or a position behind which something is asked for."""

Number = Annotated[int, msgspec.Meta(ge=1, le=SAFE_INTEGER_MAX)]
"""A position or a version: they begin with 1."""

FAULT_CHARACTERS_MAX: Final = 200
"""How much of msgspec's message is told: it may name a member that the caller made up."""

UNKNOWN_MEMBER_TEXT = "Object contains unknown field"
"""How msgspec's message begins for a member that the struct does not have (msgspec 0.23)."""


class Struct(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Base of every body: camelCase on the wire, unknown members are refused."""


def decode(
    text: str | None,
    shape: type[Body],
    invalid: ErrorKind,
    *,
    syntax: ErrorKind | None = None,
    unknown: ErrorKind | None = None,
    own: bool = False,
) -> Body:
    """Decode JSON text into ``shape``.

    Raises ``invalid`` with the path of the first fault (never a value); ``syntax`` for text that is not JSON, or
    more than ``DEPTH_MAX`` levels deep, and ``unknown`` for a member that ``shape`` does not have, where those are
    other kinds. A text of this service's ``own`` making is not measured first: a chunk of an import is large, and
    its depth is known.
    """
    if not own and deeper_than(text or "", DEPTH_MAX):
        raise (syntax or invalid)("nested too deep")
    try:
        return msgspec.json.decode(text or "", type=shape)
    except msgspec.ValidationError as fault:
        # msgspec stops at the first fault of the shape, in front of one of the syntax.
        if syntax is not None and not is_json(text):
            raise syntax("not JSON") from None
        told = str(fault)[:FAULT_CHARACTERS_MAX]
        if unknown is not None and told.startswith(UNKNOWN_MEMBER_TEXT):
            raise unknown(told) from None
        raise invalid(told) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise (syntax or invalid)("not JSON") from None


def encode(value: Any) -> str:
    """Encode a value as compact JSON text."""
    return msgspec.json.encode(value).decode()


def reply(status: int, value: Any) -> Reply:
    """An answer with a JSON body."""
    return Reply(status, encode(value))


def error_reply(error: CodedError) -> Reply:
    """The answer that tells of a refusal."""
    return reply(error.status, error.body())


def is_json(text: str | None) -> bool:
    """Whether ``text`` is one JSON document of at most ``DEPTH_MAX`` levels; nothing is built."""
    if deeper_than(text or "", DEPTH_MAX):
        return False
    try:
        msgspec.json.decode(text or "", type=msgspec.Raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True
