r"""Canonical JSON, "utf8-json-sorted-keys-v1": one text for each value, the same that JavaScript makes.

Members sorted by key in UTF-16 code units, no white space, non-ASCII raw, ``\b \t \n \f \r`` short, other C0 controls
``\u00xx`` and lone surrogates ``\udxxx`` in lower-case hex. Source of the rule: the reference protocol's section on
the canonical form. Only strings, integers, booleans, null, lists and dicts with string keys: a fraction's shortest
form differs between the languages, and no valid dump has one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from dcb_runtime.rules.text import ASTRAL, SURROGATE

if TYPE_CHECKING:
    import re

_SORTED: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)
_AS_GIVEN: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=False, separators=(",", ":")
)


def canonical(value: Any) -> str:
    """The canonical text of ``value``."""
    text = _SORTED.encode(value)
    if text.isascii():
        return text
    if ASTRAL.search(text):
        # Only next to an astral character do code points sort differently from UTF-16 code units.
        text = _AS_GIVEN.encode(_sorted_by_code_unit(value))
    return SURROGATE.sub(_escape, text)


def _sorted_by_code_unit(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted_by_code_unit(value[key]) for key in sorted(value, key=_code_units)}
    if isinstance(value, list | tuple):
        return [_sorted_by_code_unit(element) for element in value]
    return value


def _code_units(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _escape(surrogate: re.Match[str]) -> str:
    return f"\\u{ord(surrogate.group()):04x}"
