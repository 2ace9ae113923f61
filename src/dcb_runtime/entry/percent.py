"""Strict percent-decoding of paths and queries: what is not proper is an error, never a guess."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from dcb_runtime.errors import QUERY_INVALID
from dcb_runtime.limits import SAFE_INTEGER_MAX

_ENCODED = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)
_INTEGER = re.compile(r"0|[1-9][0-9]{0,15}")


def decode_percent(text: str) -> str | None:
    """Decode ``%XX`` as UTF-8; ``None`` when an escape is broken or the bytes are not UTF-8."""
    if not _ENCODED.fullmatch(text):
        return None
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeError:
        return None


def decode_query(query: str, known: tuple[str, ...]) -> dict[str, str]:
    """Take a query apart. Raises ``query_invalid`` for an unknown or repeated name and for broken escapes."""
    found: dict[str, str] = {}
    for part in query.split("&") if query else ():
        raw_name, equals, raw_value = part.partition("=")
        name, value = decode_percent(raw_name), decode_percent(raw_value)
        if not equals or value is None or name not in known:
            raise QUERY_INVALID(f"known here are {', '.join(known)}" if known else "this route takes no query")
        if name in found:
            raise QUERY_INVALID(f"{name} is repeated")
        found[name] = value
    return found


def query_integer(query: dict[str, str], name: str, low: int, high: int = SAFE_INTEGER_MAX) -> int | None:
    """A parameter's integer, ``None`` when it was not sent. Raises ``query_invalid`` outside ``low..high``."""
    text = query.get(name)
    if text is None:
        return None
    if not _INTEGER.fullmatch(text) or not low <= int(text) <= high:
        raise QUERY_INVALID(f"{name} is an integer from {low} to {high}")
    return int(text)
