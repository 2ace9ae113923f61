"""SortableUniqueId (suid): 30 ASCII digits whose string order is the order of events.

The first 19 digits are .NET ticks (100 ns units since 0001-01-01 UTC), the last 11 are random. The form
itself is the pattern alone; that the ticks name a representable time is checked where ticks are made.
Source of the rule: the reference protocol's section on SortableUniqueId.
"""

from __future__ import annotations

import re
from typing import Final

from dcb_runtime.errors import ErrorKind

SUID_LEGACY_FORMAT_RETIRED = ErrorKind(
    "SUID_LEGACY_FORMAT_RETIRED", 400, "the form suid-<digits> is retired; send the 30-digit SortableUniqueId"
)
SUID_INVALID = ErrorKind("SUID_INVALID", 400, "a SortableUniqueId is exactly 30 ASCII digits")
SUID_TICKS_INVALID = ErrorKind(
    "SUID_TICKS_INVALID", 500, "ticks must be an integer from 0 to 3155378975999999999 (the end of the year 9999)"
)
SUID_RANDOM_INVALID = ErrorKind(
    "SUID_RANDOM_INVALID", 500, "the random part must be an integer of at most 11 decimal digits"
)
SUID_UNIX_MILLISECONDS_INVALID = ErrorKind(
    "SUID_UNIX_MILLISECONDS_INVALID", 503, "the clock gave no time between the years 1 and 9999; ask again"
)

SUID_DIGITS: Final = 30
TICKS_DIGITS: Final = 19
RANDOM_DIGITS: Final = SUID_DIGITS - TICKS_DIGITS

TICKS_MAX: Final = 3_155_378_975_999_999_999
RANDOM_PART_MAX: Final = 10**RANDOM_DIGITS - 1

TICKS_PER_MS: Final = 10_000
UNIX_EPOCH_TICKS: Final = 621_355_968_000_000_000

_SUID: Final = re.compile(f"[0-9]{{{SUID_DIGITS}}}")
_LEGACY: Final = re.compile("suid-[0-9]+")


def is_suid(text: str) -> bool:
    """Whether ``text`` has the form of a suid."""
    return _SUID.fullmatch(text) is not None


def check_suid(text: str) -> str:
    """Return ``text`` when it is a suid. Raises ``SUID_LEGACY_FORMAT_RETIRED`` or ``SUID_INVALID``."""
    if is_suid(text):
        return text
    raise (SUID_LEGACY_FORMAT_RETIRED if _LEGACY.fullmatch(text) else SUID_INVALID)()


def ticks_of(suid: str) -> int:
    """The ticks of a suid. Raises as ``check_suid`` does."""
    return int(check_suid(suid)[:TICKS_DIGITS])


def ticks_from_unix_ms(unix_ms: int) -> int:
    """Ticks of a Unix time in whole milliseconds. Raises ``SUID_UNIX_MILLISECONDS_INVALID``."""
    if type(unix_ms) is not int:
        raise SUID_UNIX_MILLISECONDS_INVALID()
    ticks = UNIX_EPOCH_TICKS + unix_ms * TICKS_PER_MS
    if not 0 <= ticks <= TICKS_MAX:
        raise SUID_UNIX_MILLISECONDS_INVALID()
    return ticks


def unix_ms_from_ticks(ticks: int) -> int:
    """Unix time of ``ticks`` in whole milliseconds, rounded down; also of ticks that no calendar has.

    A suid from elsewhere may hold any 19 digits, and whoever asks how far ahead it lies needs an answer.
    """
    return (ticks - UNIX_EPOCH_TICKS) // TICKS_PER_MS


def format_suid(ticks: int, random_part: int) -> str:
    """The suid of ``ticks`` and ``random_part``. Raises ``SUID_TICKS_INVALID`` or ``SUID_RANDOM_INVALID``."""
    if type(ticks) is not int or not 0 <= ticks <= TICKS_MAX:
        raise SUID_TICKS_INVALID()
    if type(random_part) is not int or not 0 <= random_part <= RANDOM_PART_MAX:
        raise SUID_RANDOM_INVALID()
    return f"{ticks:0{TICKS_DIGITS}d}{random_part:0{RANDOM_DIGITS}d}"
