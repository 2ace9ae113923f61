"""Walks JSON text piece by piece: the document is never built as a whole, one member or element at most is.

Places are indexes into the text, ends exclusive. A walk that begins at 0 is a walk of the whole document: after it
nothing but white space may follow. Everything that is not JSON raises ``ValueError``, and so do a member that occurs
twice in a walked object and more than ``PAYLOAD_DEPTH_MAX`` levels; the walks are generators and raise as they go.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from dcb_runtime.limits import PAYLOAD_DEPTH_MAX, SAFE_INTEGER_MAX
from dcb_runtime.rules.json_syntax import SYNTAX_ONLY, deeper_than, refuse_constant

if TYPE_CHECKING:
    from collections.abc import Iterator

_WHITE_SPACE: Final = re.compile(r"[ \t\n\r]*+")


def _number(text: str) -> int | float:
    """A number as JavaScript has it: ``1.0`` and ``1e0`` are 1; what is no safe integer is a float."""
    number = float(text)
    return int(number) if abs(number) <= SAFE_INTEGER_MAX and number.is_integer() else number


_DECODER: Final = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=refuse_constant)


def value_start(text: str, at: int = 0) -> int:
    """The place of the next character at or after ``at`` that is not white space."""
    white_space = _WHITE_SPACE.match(text, at)
    return white_space.end() if white_space else at


def decode(text: str) -> Any:
    """The value of a whole document. Raises ``ValueError``."""
    _check_depth(text, 0)
    start = value_start(text)
    value, end = _raw_decode(_DECODER, text, start)
    _check_end(text, end)
    return value


def decode_at(text: str, start: int) -> Any:
    """The value that begins at ``start``, a place that a walk gave (which has checked its depth)."""
    return _raw_decode(_DECODER, text, start)[0]


def members(text: str, start: int = 0) -> Iterator[tuple[str, int, int]]:
    """Walk the object at ``start``: its keys with the places of their values. Raises ``ValueError``."""
    _check_depth(text, start)
    seen: set[str] = set()
    at = value_start(text, _after(text, value_start(text, start), "{"))
    closed = text.startswith("}", at)
    while not closed:
        key, at = _raw_decode(_DECODER, text, at)
        if not isinstance(key, str) or key in seen:
            raise ValueError(f"a member without a name, or with one that occurs twice, before {at}")
        seen.add(key)
        begin = value_start(text, _after(text, value_start(text, at), ":"))
        end = _raw_decode(SYNTAX_ONLY, text, begin)[1]
        yield key, begin, end
        at, closed = _next(text, end, "}")
    if start == 0:
        _check_end(text, at + 1)


def elements(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Walk the array at ``start``: the places of its elements. Raises ``ValueError``."""
    return ((begin, end) for _, begin, end in _elements(text, start, SYNTAX_ONLY))


def values(text: str, start: int = 0) -> Iterator[Any]:
    """Walk the array at ``start``: its elements, decoded one at a time. Raises ``ValueError``."""
    return (value for value, _, _ in _elements(text, start, _DECODER))


def _elements(text: str, start: int, decoder: json.JSONDecoder) -> Iterator[tuple[Any, int, int]]:
    _check_depth(text, start)
    at = value_start(text, _after(text, value_start(text, start), "["))
    closed = text.startswith("]", at)
    while not closed:
        value, end = _raw_decode(decoder, text, at)
        yield value, at, end
        at, closed = _next(text, end, "]")
    if start == 0:
        _check_end(text, at + 1)


def _next(text: str, end: int, closing: str) -> tuple[int, bool]:
    """The place after the comma that follows a piece, or the place of ``closing`` and True."""
    at = value_start(text, end)
    if text.startswith(closing, at):
        return at, True
    return value_start(text, _after(text, at, ",")), False


def _after(text: str, at: int, mark: str) -> int:
    if not text.startswith(mark, at):
        raise ValueError(f"'{mark}' expected at {at}")
    return at + 1


def _raw_decode(decoder: json.JSONDecoder, text: str, start: int) -> tuple[Any, int]:
    try:
        return decoder.raw_decode(text, start)
    except RecursionError:  # the caller's own stack is nearly full
        raise ValueError(f"nested too deep at {start}") from None


def _check_depth(text: str, start: int) -> None:
    if deeper_than(text, PAYLOAD_DEPTH_MAX, start):
        raise ValueError(f"more than {PAYLOAD_DEPTH_MAX} levels")


def _check_end(text: str, end: int) -> None:
    if value_start(text, end) != len(text):
        raise ValueError(f"more text after the document's end at {end}")
