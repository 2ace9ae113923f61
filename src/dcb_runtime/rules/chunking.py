"""Cutting a stream into chunks that are bounded by a number of items and by their bytes.

The rule of every page and chunk of this service: items in order, at least one, then as many as stay within both
bounds. Where the items are rows, ``record_sql.last_within`` says the same in SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def chunks(
    items: Iterable[Item], size_of: Callable[[Item], int], count_max: int, bytes_max: int
) -> Iterator[list[Item]]:
    """Yield the items in lists of at most ``count_max`` whose sizes add up to at most ``bytes_max``.

    An item that is larger than ``bytes_max`` makes a chunk of its own. One chunk is held at a time.
    """
    chunk: list[Item] = []
    total = 0
    for item in items:
        size = size_of(item)
        if chunk and (len(chunk) == count_max or total + size > bytes_max):
            yield chunk
            chunk, total = [], 0
        chunk.append(item)
        total += size
    if chunk:
        yield chunk
