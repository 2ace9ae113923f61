"""No spans: the default. ``guard.traced`` recognises it and calls the work directly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dcb_runtime.spans.port import Command, Observed


class NoSpans:
    """Observes nothing."""

    async def run(self, _: Command, work: Observed) -> None:
        """Only there to fit the port."""
        await work()


NO_SPANS = NoSpans()
