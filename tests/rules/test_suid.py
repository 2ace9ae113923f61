from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcb_runtime.rules.suid import (
    RANDOM_PART_MAX,
    SUID_INVALID,
    SUID_LEGACY_FORMAT_RETIRED,
    SUID_RANDOM_INVALID,
    SUID_TICKS_INVALID,
    SUID_UNIX_MILLISECONDS_INVALID,
    TICKS_MAX,
    check_suid,
    format_suid,
    is_suid,
    ticks_from_unix_ms,
    ticks_of,
    unix_ms_from_ticks,
)
from tests.rules.builders import refused

LAST_MS = 253_402_300_799_999


def test_ticks_count_100_ns_units_from_the_year_one() -> None:
    assert ticks_from_unix_ms(0) == 621_355_968_000_000_000
    assert ticks_from_unix_ms(1) - ticks_from_unix_ms(0) == 10_000
    assert unix_ms_from_ticks(ticks_from_unix_ms(0) + 19_999) == 1


def test_ticks_end_with_the_year_9999() -> None:
    assert ticks_from_unix_ms(LAST_MS) <= TICKS_MAX
    assert ticks_from_unix_ms(-62_135_596_800_000) == 0
    for unix_ms in (LAST_MS + 1, -62_135_596_800_001):
        with refused(SUID_UNIX_MILLISECONDS_INVALID):
            ticks_from_unix_ms(unix_ms)


@pytest.mark.parametrize("unix_ms", [True, 1.5])
def test_a_time_is_an_integer(unix_ms: int) -> None:
    with refused(SUID_UNIX_MILLISECONDS_INVALID):
        ticks_from_unix_ms(unix_ms)


def test_both_parts_are_padded_to_30_digits() -> None:
    assert format_suid(7, 8) == "0000000000000000007" + "00000000008"
    assert format_suid(TICKS_MAX, RANDOM_PART_MAX) == "3155378975999999999" + "99999999999"


def test_parts_out_of_their_range_are_refused() -> None:
    for ticks in (-1, TICKS_MAX + 1):
        with refused(SUID_TICKS_INVALID):
            format_suid(ticks, 0)
    for random_part in (-1, RANDOM_PART_MAX + 1, True):
        with refused(SUID_RANDOM_INVALID):
            format_suid(0, random_part)


@pytest.mark.parametrize(
    "text",
    ["", "1" * 29, "1" * 31, "1" * 30 + "\n", "1" * 29 + "a", "1" * 29 + "\u0661", "1" * 29 + "\u00b2", " " * 30],
)
def test_only_30_ascii_digits_are_a_suid(text: str) -> None:
    assert not is_suid(text)
    with refused(SUID_INVALID):
        check_suid(text)


def test_the_old_form_has_a_code_of_its_own() -> None:
    with refused(SUID_LEGACY_FORMAT_RETIRED):
        check_suid("suid-00000000000000000000000000000001")
    for text in ("suid-", "suid-1a", "xsuid-1", "suid-\u0661"):
        with refused(SUID_INVALID):
            check_suid(text)


def test_any_30_digits_have_ticks_and_a_time_to_compare() -> None:
    far = ticks_of("9" * 30)
    assert far == 9_999_999_999_999_999_999 > TICKS_MAX
    assert unix_ms_from_ticks(far) > LAST_MS


@given(st.integers(0, TICKS_MAX), st.integers(0, TICKS_MAX), st.integers(0, RANDOM_PART_MAX))
def test_text_order_is_the_order_of_ticks(left: int, right: int, random_part: int) -> None:
    suids = format_suid(left, random_part), format_suid(right, RANDOM_PART_MAX - random_part)
    assert (ticks_of(suids[0]), ticks_of(suids[1])) == (left, right)
    if left != right:
        assert (suids[0] < suids[1]) == (left < right)
