"""The ports through which the rules reach the world.

The rules (allocator, tag, bootstrap, log, entry) import nothing of ``js``, ``pyodide`` or ``workers``; they
are given objects of these shapes. ``dcb_runtime.cloudflare`` implements them on workerd, the tests on
``sqlite3`` and a scripted clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

T = TypeVar("T")

Bind: TypeAlias = str | int | bytes | None
"""What a statement may bind. Integers must lie within +-(2**53 - 1); ``bool`` and ``float`` are refused."""

Row: TypeAlias = Sequence[Any]
"""One row of an answer: columns in the statement's order; ``int``, ``float``, ``str``, ``bytes`` or ``None``."""


class Storage(Protocol):
    """One object's private SQL database and its alarm. All of it is synchronous: no turn can come between."""

    def exec(self, sql: str, *binds: Bind) -> list[Row]:
        """Run one statement (at most 100 binds) and return its rows. Raises ``StorageError``."""

    def transaction(self, work: Callable[[], T]) -> T:
        """Run ``work`` in one transaction: committed when it returns, rolled back when it raises."""

    def set_alarm(self, at_ms: int) -> None:
        """Have ``alarm`` called at ``at_ms`` (Unix ms) or soon after; replaces an earlier setting."""

    def clear_alarm(self) -> None:
        """Forget the alarm."""


class StorageError(Exception):
    """A statement that the database refused. Its text is SQLite's code alone: a message could quote what was bound."""


class Clock(Protocol):
    """Wall time. It may go backwards."""

    def now_ms(self) -> int:
        """Unix time in whole milliseconds."""


class Timer(Protocol):
    """Waiting. It bounds patience, it never decides anything."""

    async def sleep(self, wait_ms: int) -> None:
        """Come back after about ``wait_ms``."""


class Entropy(Protocol):
    """Random bytes fit for secrets."""

    def random_bytes(self, count: int) -> bytes:
        """``count`` random bytes."""


@dataclass(frozen=True)
class Reply:
    """An object's or the log's answer: an HTTP status and JSON text."""

    status: int
    text: str

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300


class PeerError(Exception):
    """The object could not be reached, or its answer was lost: the outcome is not known."""


class Peers(Protocol):
    """Other objects of the service. One call is one hop."""

    async def call(self, actor_class: str, name: str, path: str, body: str | None = None) -> Reply:
        """Ask the object ``name`` of ``actor_class`` (``allocator``, ``tag`` or ``bootstrap``).

        ``path`` is ``/route?query``; with ``body`` (JSON text) the request is a POST, without one a GET.
        Each call takes a new stub. Raises ``PeerError`` when no answer came.
        """


Statement: TypeAlias = tuple[str, tuple[Bind, ...]]


class DatabaseError(Exception):
    """The shared database could not be asked, or refused; the outcome of a write is not known.

    Its text is SQLite's code alone, as ``StorageError``'s.
    """


class Database(Protocol):
    """The shared SQL database of the event log (D1). One call is one hop and one transaction."""

    async def batch(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run all statements in one transaction and return the rows of each. Raises ``DatabaseError``."""
