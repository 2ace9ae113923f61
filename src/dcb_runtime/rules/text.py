"""What a Python string can hold that UTF-8, and therefore storage and the wire, cannot: surrogates."""

from __future__ import annotations

import re
from typing import Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def has_surrogate(text: str) -> bool:
    """Whether ``text`` has a lone surrogate. In a Python string each one is lone: a pair is one character."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def utf8_bytes(text: str) -> int:
    """Length of ``text`` in UTF-8 bytes. Raises ``UnicodeEncodeError`` for a lone surrogate."""
    return len(text) if text.isascii() else len(text.encode())
