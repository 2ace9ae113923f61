"""The log's tables in the shared database (D1), created on first use and migrated by version."""

from __future__ import annotations

from typing import Final

from dcb_runtime.record_sql import TABLE_COLUMNS

VERSION_TABLE: Final = """CREATE TABLE IF NOT EXISTS dcb_schema (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1), version INTEGER NOT NULL)"""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """CREATE TABLE IF NOT EXISTS dcb_service (
            service INTEGER PRIMARY KEY,
            service_id TEXT NOT NULL UNIQUE,
            allocator_lineage_id TEXT NOT NULL,
            import_id TEXT,
            lease_epoch INTEGER NOT NULL)""",
        f"""CREATE TABLE IF NOT EXISTS dcb_event (
            service INTEGER NOT NULL REFERENCES dcb_service,
            position INTEGER NOT NULL,{TABLE_COLUMNS},
            PRIMARY KEY (service, position))""",
        "CREATE UNIQUE INDEX IF NOT EXISTS dcb_event_by_id ON dcb_event (service, event_id COLLATE NOCASE)",
    ),
)
"""Each migration may run twice at once (two objects after one deploy): its statements bear that."""
