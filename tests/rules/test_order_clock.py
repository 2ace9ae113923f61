from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcb_runtime.rules.order_clock import (
    SUID_RANDOM_UNAVAILABLE,
    SUID_RANGE_EXHAUSTED,
    Issue,
    allocated_at,
    issue_suids,
)
from dcb_runtime.rules.suid import (
    SUID_INVALID,
    SUID_UNIX_MILLISECONDS_INVALID,
    TICKS_MAX,
    format_suid,
    ticks_from_unix_ms,
    ticks_of,
)
from tests.rules.builders import refused

if TYPE_CHECKING:
    from random import Random

NOW_MS = 1_767_225_600_000
NOW = ticks_from_unix_ms(NOW_MS)


def zeros(count: int) -> bytes:
    return bytes(count)


def issue(watermark: str | None, count: int = 1, now_ms: int = NOW_MS) -> Issue:
    return issue_suids(now_ms, watermark, count, zeros)


def test_a_fresh_order_begins_at_the_clock() -> None:
    assert issue(None, 3) == Issue(tuple(format_suid(NOW + index, 0) for index in range(3)), NOW, rolled_back=False)


@pytest.mark.parametrize(
    ("watermark_ticks", "base"), [(NOW - 2, NOW), (NOW - 1, NOW), (NOW, NOW + 1), (NOW + 9, NOW + 10)]
)
def test_the_base_is_the_clock_or_one_tick_above_the_watermark(watermark_ticks: int, base: int) -> None:
    assert issue(format_suid(watermark_ticks, 5)).base_ticks == base


def test_rollback_is_a_clock_behind_the_watermark() -> None:
    assert not issue(format_suid(NOW, 0)).rolled_back
    assert issue(format_suid(NOW + 1, 0)).rolled_back


def test_each_suid_takes_31_bits_of_its_own_from_one_draw() -> None:
    asked: list[int] = []

    def draw(count: int) -> bytes:
        asked.append(count)
        return b"\xff\xff\xff\xff" + b"\x00\x00\x01\x00"

    suids = issue_suids(NOW_MS, None, 2, draw).suids
    assert asked == [8]
    assert [suid[19:] for suid in suids] == ["02147483647", "00000000256"]


def test_without_random_bytes_nothing_is_issued() -> None:
    def broken(count: int) -> bytes:
        raise OSError(count)

    with refused(SUID_RANDOM_UNAVAILABLE):
        issue_suids(NOW_MS, None, 1, broken)
    with refused(SUID_RANDOM_UNAVAILABLE):
        issue_suids(NOW_MS, None, 2, lambda count: bytes(count - 1))


def test_the_range_ends_with_the_last_tick() -> None:
    assert issue(format_suid(TICKS_MAX - 2, 0), 2).watermark == format_suid(TICKS_MAX, 0)
    for watermark, count in ((format_suid(TICKS_MAX - 2, 0), 3), (format_suid(TICKS_MAX, 0), 1), ("9" * 30, 1)):
        with refused(SUID_RANGE_EXHAUSTED):
            issue(watermark, count)


def test_what_cannot_be_asked_is_refused() -> None:
    with refused(SUID_INVALID):
        issue("1")
    with refused(SUID_UNIX_MILLISECONDS_INVALID):
        issue(None, now_ms=2**53)
    with pytest.raises(ValueError, match="at least one"):
        issue(None, 0)


def test_the_time_of_an_allocation_is_iso_or_plain_ticks() -> None:
    assert allocated_at(NOW + 1_239_999) == "2026-01-01T00:00:00.123Z"
    assert allocated_at(0) == "0001-01-01T00:00:00.000Z"
    assert allocated_at(TICKS_MAX) == "9999-12-31T23:59:59.999Z"
    assert allocated_at(TICKS_MAX + 1) == f"ticks:{TICKS_MAX + 1}"


@given(
    st.lists(st.tuples(st.integers(NOW_MS - 10_000, NOW_MS + 10_000), st.integers(1, 5)), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_suids_rise_whatever_the_clock_does(calls: list[tuple[int, int]], random: Random) -> None:
    watermark: str | None = None
    issued: list[str] = []
    for now_ms, count in calls:
        step = issue_suids(now_ms, watermark, count, random.randbytes)
        assert step.base_ticks == ticks_of(step.suids[0]) >= ticks_from_unix_ms(now_ms)
        issued += step.suids
        watermark = step.watermark
    assert issued == sorted(issued)
    ticks = [ticks_of(suid) for suid in issued]
    assert len(set(ticks)) == len(ticks)
