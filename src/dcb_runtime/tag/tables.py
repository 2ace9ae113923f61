"""The tables of a Tag, one a concern.

``event`` is ordered by the tag's own version; ``head`` is the last event before the first gap, and only
events up to it are read. ``admission`` is the one import that may write, or the lowest epoch a later one needs.
"""

from __future__ import annotations

from typing import Final

from dcb_runtime.record_sql import TABLE_COLUMNS
from dcb_runtime.schema import Migration

MIGRATIONS: Final[tuple[Migration, ...]] = (
    (
        """CREATE TABLE identity (
            singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
            service_id TEXT NOT NULL,
            tag TEXT NOT NULL,
            allocator_lineage_id TEXT NOT NULL)""",
        f"""CREATE TABLE event (
            version INTEGER PRIMARY KEY,
            position INTEGER NOT NULL UNIQUE,{TABLE_COLUMNS})""",
        "CREATE UNIQUE INDEX event_by_id ON event (event_id COLLATE NOCASE)",
        """CREATE TABLE head (
            singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
            version INTEGER NOT NULL,
            position INTEGER NOT NULL,
            suid TEXT NOT NULL)""",
        """CREATE TABLE admission (
            singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
            import_id TEXT,
            manifest_digest TEXT,
            lease_epoch INTEGER NOT NULL,
            closed INTEGER NOT NULL CHECK (closed IN (0, 1)))""",
        "INSERT INTO head VALUES (1, 0, 0, '')",
    ),
)
