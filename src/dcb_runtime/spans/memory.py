"""Spans kept in a list, for tests and local looking."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dcb_runtime.spans.attributes import Attribute, end_attributes, start_attributes

if TYPE_CHECKING:
    from dcb_runtime.spans.port import Command, Done, Observed


@dataclass
class MemorySpan:
    """One span; ``done`` stays ``None`` until the work has ended."""

    name: str
    parent: MemorySpan | None
    attributes: dict[str, Attribute] = field(default_factory=dict)
    done: Done | None = None


_parent: ContextVar[MemorySpan | None] = ContextVar("dcb_memory_span", default=None)


class MemorySpans:
    """Appends each span to ``spans`` when it starts; children find their parent by context."""

    def __init__(self) -> None:
        self.spans: list[MemorySpan] = []

    async def run(self, command: Command, work: Observed) -> None:
        """Keep one span."""
        span = MemorySpan(command.name, _parent.get(), start_attributes(command))
        self.spans.append(span)
        _parent.set(span)
        span.done = await work()
        span.attributes.update(end_attributes(span.done))
