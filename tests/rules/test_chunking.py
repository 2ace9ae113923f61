from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcb_runtime.rules.chunking import EVENT_TOO_LARGE, take
from tests.rules.builders import refused


@pytest.mark.parametrize(
    ("sizes", "count"),
    [([], 0), ([10], 1), ([5, 5], 2), ([5, 6], 1), ([1, 1, 1, 1], 3), ([4, 4, 2, 0], 3), ([10, 11], 1)],
)
def test_a_chunk_ends_with_the_first_bound_that_is_met(sizes: list[int], count: int) -> None:
    assert take(sizes, events_max=3, bytes_max=10) == count


def test_an_item_that_fits_no_chunk_is_refused_when_its_turn_comes() -> None:
    with refused(EVENT_TOO_LARGE):
        take([11, 1], events_max=3, bytes_max=10)
    assert take([1, 11], events_max=3, bytes_max=10) == 1


def test_no_more_sizes_are_read_than_needed() -> None:
    read: list[int] = []

    def sizes() -> Iterator[int]:
        for size in range(1, 100):
            read.append(size)
            yield size

    assert take(sizes(), events_max=100, bytes_max=6) == 3
    assert read == [1, 2, 3, 4]
    read.clear()
    assert take(sizes(), events_max=2, bytes_max=100) == 2
    assert read == [1, 2]


@given(st.lists(st.integers(0, 10)), st.integers(1, 5))
def test_chunks_use_up_all_items_and_none_could_hold_one_more(sizes: list[int], events_max: int) -> None:
    at = 0
    while count := take(sizes[at:], events_max, 10):
        chunk = sizes[at : at + count]
        at += count
        assert sum(chunk) <= 10
        assert count == events_max or at == len(sizes) or sum(chunk) + sizes[at] > 10
    assert at == len(sizes)
