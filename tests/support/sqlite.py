"""Storage and the shared database on ``sqlite3``: the same SQL as in workerd, in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from dcb_runtime.ports import Bind, DatabaseError, Row, Statement, StorageError

T = TypeVar("T")

SAFE_INTEGER = 2**53 - 1
VALUE_BYTES_MAX = 2_000_000
"""The platform's limit for a value or row (2 MB)."""


def connect() -> sqlite3.Connection:
    """An empty database in memory, with what older SQLite versions lack."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
    if sqlite3.sqlite_version_info < (3, 41):
        connection.create_function("unhex", 1, _unhex, deterministic=True)
    return connection


def stored_rows(connection: sqlite3.Connection) -> dict[str, list[Row]]:
    """All rows of all tables in the order of their columns."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return {
        name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
        for name in names
        if not name.startswith("sqlite_")
    }


def _unhex(text: str | None) -> bytes | None:
    try:
        return None if text is None else bytes.fromhex(text)
    except ValueError:
        return None


def _checked(binds: Sequence[Bind]) -> Sequence[str | float | bytes | None]:
    """The platform's own rules about what may be bound; like there, a number arrives as a REAL."""
    assert len(binds) <= 100, "at most 100 binds"
    for bind in binds:
        assert bind is None or type(bind) in (str, int, bytes), f"may not bind {type(bind)}"
        assert not isinstance(bind, int) or abs(bind) <= SAFE_INTEGER
    return [float(bind) if isinstance(bind, int) else bind for bind in binds]


class SqliteStorage:
    """One object's storage. ``at_ms`` is the alarm that is set, if any."""

    def __init__(self) -> None:
        self.connection = connect()
        self.at_ms: int | None = None
        self.fail_next: Callable[[str], bool] | None = None
        self._depth = 0

    def exec(self, sql: str, *binds: Bind) -> list[Row]:
        if self.fail_next is not None and self.fail_next(sql):
            raise StorageError("SQLITE_FULL")
        try:
            return self.connection.execute(sql, _checked(binds)).fetchall()
        except sqlite3.Error as refused:
            raise StorageError(refused.sqlite_errorname) from None

    def rows(self) -> dict[str, list[Row]]:
        """Everything that is stored, by table: what a test compares."""
        return stored_rows(self.connection)

    def transaction(self, work: Callable[[], T]) -> T:
        name = f"s{self._depth}"
        self._depth += 1
        self.connection.execute(f"SAVEPOINT {name}")
        try:
            result = work()
        except BaseException:
            self.connection.execute(f"ROLLBACK TO {name}")
            self.connection.execute(f"RELEASE {name}")
            raise
        else:
            self.connection.execute(f"RELEASE {name}")
            return result
        finally:
            self._depth -= 1

    def set_alarm(self, at_ms: int) -> None:
        self.at_ms = at_ms

    def clear_alarm(self) -> None:
        self.at_ms = None


class SqliteDatabase:
    """The shared database. ``before`` and ``after`` a batch a test may raise ``DatabaseError``.

    ``on_hop`` is the same for coroutines, told ``request`` or ``reply``.
    """

    def __init__(self) -> None:
        self.connection = connect()
        self.before: Callable[[Sequence[Statement]], None] | None = None
        self.after: Callable[[Sequence[Statement]], None] | None = None
        self.on_hop: Callable[[str, Sequence[Statement]], Awaitable[None]] | None = None
        self.batches = 0

    async def batch(self, statements: Sequence[Statement]) -> list[list[Row]]:
        if self.before is not None:
            self.before(statements)
        if self.on_hop is not None:
            await self.on_hop("request", statements)
        result = self.commit(statements)
        if self.after is not None:
            self.after(statements)
        if self.on_hop is not None:
            await self.on_hop("reply", statements)
        return result

    def commit(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run the statements in one transaction now."""
        self.batches += 1
        self.connection.execute("BEGIN")
        try:
            rows = [self.connection.execute(sql, _checked(binds)).fetchall() for sql, binds in statements]
        except sqlite3.Error as refused:
            self.connection.execute("ROLLBACK")
            raise DatabaseError(refused.sqlite_errorname) from None
        self.connection.execute("COMMIT")
        return rows
