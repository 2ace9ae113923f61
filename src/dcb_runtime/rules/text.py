"""Where Python's code points differ from UTF-8 and from JavaScript's UTF-16: surrogates and astral characters."""

from __future__ import annotations

import re
from typing import Final

SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""One that stands alone: in a Python string a pair is one astral character. UTF-8, and so the storage, has none."""

ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")
"""A character that UTF-16 writes as a pair of surrogates."""


def has_surrogate(text: str) -> bool:
    """Whether ``text`` has a lone surrogate."""
    return not text.isascii() and SURROGATE.search(text) is not None


def utf8_bytes(text: str) -> int:
    """Length of ``text`` in UTF-8 bytes. Raises ``UnicodeEncodeError`` for a lone surrogate."""
    return len(text) if text.isascii() else len(text.encode())
