"""The allocator's tables, one a concern.

The index (``event``, ``event_tag``) interns tags and types, and keeps an event id as its 16 bytes: ids that
differ only in the case of their digits are the same UUID. Everything in it can be rebuilt from the log.
"""

from __future__ import annotations

from typing import Final

from dcb_runtime.schema import Migration

MIGRATIONS: Final[tuple[Migration, ...]] = (
    (
        """CREATE TABLE identity (
            singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
            allocator_lineage_id TEXT NOT NULL,
            created_at_ms INTEGER NOT NULL)""",
        """CREATE TABLE sequence (
            singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
            head INTEGER NOT NULL,
            watermark TEXT,
            rollback_fingerprint TEXT)""",
        """CREATE TABLE fence (
            singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
            mode TEXT NOT NULL CHECK (mode IN ('open', 'importing')),
            import_id TEXT,
            digest TEXT,
            lease_epoch INTEGER NOT NULL,
            outcome TEXT CHECK (outcome IN ('opened', 'reset')))""",
        """CREATE TABLE bootstrap_seed (
            singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
            import_id TEXT NOT NULL,
            lease_epoch INTEGER NOT NULL,
            high_watermark TEXT NOT NULL)""",
        "CREATE TABLE allocation (attempt_id TEXT PRIMARY KEY, vector TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE tag (
            tag_id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            version INTEGER NOT NULL,
            head INTEGER NOT NULL)""",
        "CREATE TABLE event_type (type_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
        """CREATE TABLE event (
            position INTEGER PRIMARY KEY,
            event_id BLOB NOT NULL UNIQUE,
            suid TEXT NOT NULL,
            type_id INTEGER NOT NULL REFERENCES event_type)""",
        "CREATE INDEX event_by_type ON event (type_id, position)",
        """CREATE TABLE event_tag (
            tag_id INTEGER NOT NULL REFERENCES tag,
            position INTEGER NOT NULL REFERENCES event,
            version INTEGER NOT NULL,
            PRIMARY KEY (tag_id, position)) WITHOUT ROWID""",
        "INSERT INTO sequence VALUES (1, 0, NULL, NULL)",
        "INSERT INTO fence VALUES (1, 'open', NULL, NULL, 0, NULL)",
    ),
)
