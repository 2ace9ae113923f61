"""How many bytes an event takes in the allocator's index, in a tag and in the log, read from a state folder.

Usage: python scripts/sizes.py STATE, the folder that was given to scripts/serve or scripts/dev as --state.
What an object takes without events (one page for each table and index) is told apart from what its events take.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PARTS: Final = {
    "index": ("do/dcb-runtime-Allocator", "event"),
    "tags": ("do/dcb-runtime-Tag", "event"),
    "log": ("d1/miniflare-D1DatabaseObject", "dcb_event"),
}
"""Folder of a part's databases below the state, and the table whose rows are its events."""

EVENTS_TO_TELL: Final = 100
"""With fewer than these it is the pages that count, not the events."""


@dataclass(frozen=True)
class Database:
    """One SQLite file, without its free pages."""

    bytes: int
    bytes_without_events: int
    events: int


def databases(state: Path, part: str) -> list[Database]:
    """The databases of one part that hold events, the largest first."""
    folder, table = PARTS[part]
    files = [file for file in (state / "v3" / folder).glob("*.sqlite") if file.name != "metadata.sqlite"]
    found = [database for file in files if (database := _read(file, table)) is not None]
    return sorted(found, key=lambda database: database.events, reverse=True)


def report(state: Path) -> list[str]:
    """One line for each part of the store."""
    lines = []
    for part in PARTS:
        found = databases(state, part)
        if not found:
            lines.append(f"{part:<6} nothing")
            continue
        count = f"{len(found):,} {'database' if part == 'log' else 'object'}{'s' if len(found) > 1 else ''}"
        whole = f"{sum(one.bytes for one in found):>10,} bytes in {count}"
        lines.append(f"{part:<6} {_an_event(found[0])}; {whole}")
    return lines


def _an_event(largest: Database) -> str:
    before = f"{largest.bytes_without_events:>6,} bytes before the first"
    if largest.events < EVENTS_TO_TELL:
        return f"too few events to tell, {before}"
    return f"{(largest.bytes - largest.bytes_without_events) / largest.events:4.0f} bytes an event, {before}"


def _read(file: Path, table: str) -> Database | None:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if table not in tables:
            return None
        events = _number(connection, f"SELECT COUNT(*) FROM {table}")
        page_bytes = _number(connection, "PRAGMA page_size")
        pages = _number(connection, "PRAGMA page_count") - _number(connection, "PRAGMA freelist_count")
        roots = 1 + _number(connection, "SELECT COUNT(*) FROM sqlite_schema WHERE rootpage > 0")
    return Database(pages * page_bytes, roots * page_bytes, events) if events else None


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


if __name__ == "__main__":
    for line in report(Path(sys.argv[1])):
        print(line)
