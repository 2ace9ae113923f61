"""How many items make the next chunk or page: as many as fit, bounded by a count and by bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dcb_runtime.errors import ErrorKind

if TYPE_CHECKING:
    from collections.abc import Iterable

EVENT_TOO_LARGE = ErrorKind(
    "event_too_large", 413, "one event alone is larger than a chunk may be; it cannot be moved as it is"
)


def take(sizes: Iterable[int], events_max: int, bytes_max: int) -> int:
    """How many of the next items make a chunk: 0 when there is none, otherwise at least 1.

    ``sizes`` are UTF-8 bytes of each record's compact JSON, separators not counted; no more of them is read than
    needed. Raises ``EVENT_TOO_LARGE`` for a first item above ``bytes_max``: a later one ends the chunk before it.
    """
    count = total = 0
    for size in sizes:
        total += size
        if total > bytes_max:
            if count == 0:
                raise EVENT_TOO_LARGE()
            break
        count += 1
        if count >= events_max:
            break
    return count
