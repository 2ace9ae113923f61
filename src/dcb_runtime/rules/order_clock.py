"""The order clock: suids that rise from one allocation to the next, whatever the wall clock does.

``base = max(clock, ticks of the watermark + 1)``; candidate ``i`` gets ``base + i`` ticks and a random part of
its own. Source of the rule: the reference protocol's section on the OrderClock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from dcb_runtime.errors import ErrorKind
from dcb_runtime.rules.suid import TICKS_MAX, format_suid, ticks_from_unix_ms, ticks_of

if TYPE_CHECKING:
    from collections.abc import Callable

SUID_RANGE_EXHAUSTED = ErrorKind(
    "SUID_RANGE_EXHAUSTED", 503, "no ticks are left above the watermark; the service cannot take more events"
)
SUID_RANDOM_UNAVAILABLE = ErrorKind(
    "SUID_RANDOM_UNAVAILABLE", 503, "no random bytes could be had and nothing was issued; ask again"
)

RANDOM_PART_BYTES: Final = 4
RANDOM_PART_MASK: Final = 0x7FFF_FFFF

_YEAR_ONE: Final = datetime(1, 1, 1)
_TICKS_PER_MICROSECOND: Final = 10


@dataclass(frozen=True)
class Issue:
    """Suids in candidate order, the ticks of the first, and whether the clock lay behind the watermark."""

    suids: tuple[str, ...]
    base_ticks: int
    rolled_back: bool

    @property
    def watermark(self) -> str:
        """The new watermark: the last suid."""
        return self.suids[-1]


def issue_suids(now_ms: int, watermark: str | None, count: int, random_bytes: Callable[[int], bytes]) -> Issue:
    """Issue ``count`` suids, each above the one before and all above ``watermark``.

    ``now_ms`` is Unix time in whole milliseconds; ``random_bytes`` is asked once, for all of them.
    Raises ``SUID_UNIX_MILLISECONDS_INVALID``, ``SUID_RANGE_EXHAUSTED``, ``SUID_RANDOM_UNAVAILABLE`` and, for
    a watermark that is none, what ``ticks_of`` raises; ``ValueError`` for a count below 1.
    """
    if count < 1:
        raise ValueError("at least one suid must be asked for")
    physical = ticks_from_unix_ms(now_ms)
    observed = -1 if watermark is None else ticks_of(watermark)
    base = max(physical, observed + 1)
    if base + count - 1 > TICKS_MAX:
        raise SUID_RANGE_EXHAUSTED()
    randoms = _random_parts(count, random_bytes)
    suids = tuple(format_suid(base + index, part) for index, part in enumerate(randoms))
    return Issue(suids, base, rolled_back=physical < observed)


def allocated_at(base_ticks: int) -> str:
    """ISO time of ``base_ticks`` with three decimals, or ``ticks:N`` when no calendar has it."""
    try:
        time = _YEAR_ONE + timedelta(microseconds=base_ticks // _TICKS_PER_MICROSECOND)
    except OverflowError:
        return f"ticks:{base_ticks}"
    return time.isoformat(timespec="milliseconds") + "Z"


def _random_parts(count: int, random_bytes: Callable[[int], bytes]) -> list[int]:
    wanted = count * RANDOM_PART_BYTES
    try:
        drawn = random_bytes(wanted)
    except Exception as failure:
        raise SUID_RANDOM_UNAVAILABLE() from failure
    if len(drawn) != wanted:
        raise SUID_RANDOM_UNAVAILABLE()
    return [
        int.from_bytes(drawn[at : at + RANDOM_PART_BYTES], "big") & RANDOM_PART_MASK
        for at in range(0, wanted, RANDOM_PART_BYTES)
    ]
