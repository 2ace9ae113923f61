"""Whether a text is JSON, and how deep: without recursion of its own, in time linear in the text.

Python's scanner calls itself for each level, so the depth is measured before it may run. Numbers are only
looked at, never made: ``1e400`` and integers of any length are fine (Python's own limit is 4,300 digits).
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any, Final, NoReturn

from dcb_runtime.limits import PAYLOAD_DEPTH_MAX

_STEPS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}

# Strings (the last may lack its end) and whatever else is no bracket, then the brackets. Possessive, and matches
# anywhere: no part of the text is tried twice.
_BRACKETS: Final = re.compile(r'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[^\[\]{}"]++)*+([\[\]{}]*+)', re.DOTALL)

_TOKEN: Final = re.compile(
    r"[ \t\n\r]++"
    r"|(?P<mark>[\[\]{},:])"
    r'|(?P<string>"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")'
    r"|(?P<scalar>true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+)"
    r"|(?P<fault>.)",
    re.DOTALL,
)
_VALUE: Final = ("[", "{", "string", "scalar")
_FIRST_ELEMENT: Final = (*_VALUE, "]")
_KEY: Final = ("string",)
_FIRST_KEY: Final = (*_KEY, "}")
_COLON: Final = (":",)
_AFTER_VALUE: Final = {"[": (",", "]"), "{": (",", "}")}
_NOTHING: Final[tuple[str, ...]] = ()


def json_depth(text: str, start: int = 0) -> int:
    """How many arrays and objects ``text`` opens inside one another, from ``start`` to its end.

    Exact for JSON; for other text never less than the depth that a scanner reaches before it fails.
    """
    brackets = "".join(_BRACKETS.findall(text, start))
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def deeper_than(text: str, depth_max: int, start: int = 0) -> bool:
    """Whether ``json_depth`` exceeds ``depth_max``; cheap for a text with few brackets."""
    if text.count("[", start) + text.count("{", start) <= depth_max:
        return False
    return json_depth(text, start) > depth_max


def refuse_constant(name: str) -> NoReturn:
    """What a decoder does with NaN and the infinities (``parse_constant``): they are not JSON."""
    raise ValueError(f"{name} is not JSON")


def _drop(_: Any) -> None:
    """Forget a decoded object: only its syntax was of interest."""


SYNTAX_ONLY: Final = json.JSONDecoder(
    object_pairs_hook=_drop, parse_int=_drop, parse_float=_drop, parse_constant=refuse_constant
)
"""A decoder for looking at the syntax. What it returns means nothing; objects are dropped as it goes."""


def is_json_text(text: str) -> bool:
    """Whether ``text`` is one JSON value, of any depth, with nothing but white space around it."""
    if deeper_than(text, PAYLOAD_DEPTH_MAX):
        return _is_deep_json(text)
    try:
        SYNTAX_ONLY.decode(text)
    except ValueError:
        return False
    except RecursionError:  # the caller's own stack is nearly full
        return _is_deep_json(text)
    return True


def _is_deep_json(text: str) -> bool:
    """``is_json_text`` by a stack of our own: slower, and good for any depth."""
    opened: list[str] = []
    allowed: tuple[str, ...] = _VALUE
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind is None:
            continue
        if kind == "mark":
            kind = token.group()
        if kind not in allowed:
            return False
        if kind in "[{":
            opened.append(kind)
            allowed = _FIRST_ELEMENT if kind == "[" else _FIRST_KEY
        elif kind == ",":
            allowed = _VALUE if opened[-1] == "[" else _KEY
        elif kind == ":":
            allowed = _VALUE
        elif kind == "string" and allowed in (_KEY, _FIRST_KEY):
            allowed = _COLON
        else:
            if kind in "]}":
                opened.pop()
            allowed = _AFTER_VALUE[opened[-1]] if opened else _NOTHING
    return not allowed
