"""What others do meanwhile: an action at the n-th stage of a hop, between the request and its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from dcb_runtime.ports import Statement
from tests.support.world import Call, World


@dataclass
class Meanwhile:
    """Runs ``action`` once, at stage ``at`` of the coordinator's own hops; its own hops do not count."""

    world: World
    at: int
    action: Callable[[], Awaitable[None]]
    seen: int = 0
    done: bool = False

    def install(self) -> None:
        """Watch every call between objects and every batch of the database."""
        self.world.on_hop = self._on_call
        self.world.database.on_hop = self._on_batch

    async def _on_call(self, stage: str, call: Call) -> None:
        if call.actor_class != "bootstrap":
            await self._count()

    async def _on_batch(self, stage: str, statements: Sequence[Statement]) -> None:
        await self._count()

    async def _count(self) -> None:
        self.seen += 1
        if self.seen - 1 == self.at and not self.done:
            self.done = True
            await self.action()
