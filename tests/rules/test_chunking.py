"""Chunks hold everything once, in order, within both bounds, and no chunk could have taken its next item."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dcb_runtime.rules.chunking import chunks


def cut(sizes: list[int], count_max: int, bytes_max: int) -> list[list[int]]:
    return list(chunks(sizes, lambda size: size, count_max, bytes_max))


def test_nothing_makes_no_chunk() -> None:
    assert cut([], 3, 10) == []


def test_the_number_of_items_ends_a_chunk() -> None:
    assert cut([1] * 6, 3, 100) == [[1, 1, 1], [1, 1, 1]]
    assert cut([1] * 7, 3, 100) == [[1, 1, 1], [1, 1, 1], [1]]


def test_bytes_end_a_chunk_when_one_more_would_pass_the_bound() -> None:
    assert cut([5, 5, 1], 9, 10) == [[5, 5], [1]]
    assert cut([5, 6, 1], 9, 10) == [[5], [6, 1]]


def test_an_item_above_the_bound_is_alone() -> None:
    assert cut([1, 11, 1], 9, 10) == [[1], [11], [1]]


@given(st.lists(st.integers(0, 30)), st.integers(1, 5), st.integers(1, 40))
def test_chunks_are_the_items_cut_as_late_as_the_bounds_allow(sizes: list[int], count_max: int, bytes_max: int) -> None:
    made = cut(sizes, count_max, bytes_max)
    assert [size for chunk in made for size in chunk] == sizes
    for chunk, following in pairwise(made):
        assert len(chunk) == count_max or sum(chunk) + following[0] > bytes_max
    assert all(len(chunk) <= count_max and (sum(chunk) <= bytes_max or len(chunk) == 1) for chunk in made)
