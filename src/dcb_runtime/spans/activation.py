"""One life of an object or isolate: an id, and whether its first command has come yet."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from dcb_runtime.ports import Entropy


class Activation:
    """Made in an object's constructor; kept in memory only and never used to decide anything."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._id: str | None = None
        self._first = True

    @property
    def id(self) -> str:
        """A random UUID, made when it is first asked for: importing a module must not need randomness."""
        if self._id is None:
            self._id = str(UUID(bytes=self._entropy.random_bytes(16), version=4))
        return self._id

    def take_first(self) -> bool:
        """``True`` once. Call it before the first ``await`` of a command, so that no other one overtakes."""
        first, self._first = self._first, False
        return first
