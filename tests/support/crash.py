"""Faults at every hop: the n-th request or reply is lost, or the whole world dies there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dcb_runtime.ports import DatabaseError, PeerError, Statement
from tests.support.world import Call, World

Mode = Literal["lose", "crash"]


class Crash(BaseException):
    """The end of everything in memory; nobody may catch it but the test."""


@dataclass
class FaultAt:
    """Fails at the hop stage number ``at`` (requests and replies count one each), once."""

    world: World
    at: int
    mode: Mode
    seen: int = 0

    def install(self) -> None:
        """Watch every call between objects and every batch of the database."""
        self.world.on_hop = self._on_call
        self.world.database.on_hop = self._on_batch

    async def _on_call(self, stage: str, call: Call) -> None:
        self._count(PeerError(f"{stage} {call.route}"))

    async def _on_batch(self, stage: str, statements: Sequence[Statement]) -> None:
        self._count(DatabaseError(f"{stage} {statements[0][0][:40]}"))

    def _count(self, lost: Exception) -> None:
        self.seen += 1
        if self.seen - 1 != self.at:
            return
        if self.mode == "lose":
            raise lost
        self.world.restart()
        raise Crash(str(lost))
