"""Clock, waiting and random bytes. Nothing here runs at import time: the start-up snapshot forbids it."""

from __future__ import annotations

import os
import time

from js import scheduler


class SystemClock:
    """The ``Clock`` port; the platform's clock stands still between I/O."""

    def now_ms(self) -> int:
        """Unix time in whole milliseconds."""
        return time.time_ns() // 1_000_000


class SystemTimer:
    """The ``Timer`` port."""

    async def sleep(self, wait_ms: int) -> None:
        """Come back after about ``wait_ms``.

        By the platform's own timer: ``asyncio.sleep`` turns waits below 4 ms into mere callbacks, and a local
        runtime looks at its sockets only when it really waits.
        """
        await scheduler.wait(wait_ms)


class SystemEntropy:
    """The ``Entropy`` port over the platform's secure source."""

    def random_bytes(self, count: int) -> bytes:
        """``count`` random bytes."""
        return os.urandom(count)


def log_line(line: str) -> None:
    """Write one line to the worker's log."""
    print(line)
