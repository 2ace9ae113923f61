"""The coordinator's tables, one a concern.

``control`` is the record with its cursor; the staged dump lies in rows (``staged_*``), never in one value, so
that a dump may come in one request or in chunks. Staged rows go when the import is READY or reset.
"""

from __future__ import annotations

from typing import Final

from dcb_runtime.record_sql import TABLE_COLUMNS
from dcb_runtime.schema import Migration

MIGRATIONS: Final[tuple[Migration, ...]] = (
    (
        """CREATE TABLE control (
            singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
            service_id TEXT NOT NULL,
            status TEXT NOT NULL,
            import_id TEXT,
            digest TEXT,
            chain_digest TEXT,
            event_count INTEGER NOT NULL,
            tag_count INTEGER NOT NULL,
            placement_count INTEGER NOT NULL,
            high_watermark TEXT,
            lineage_id TEXT,
            lease_epoch INTEGER NOT NULL,
            fenced_epoch INTEGER NOT NULL,
            lease_until_ms INTEGER,
            pending_epoch INTEGER,
            retracting INTEGER NOT NULL,
            resetting INTEGER NOT NULL,
            reset_import_id TEXT,
            failure TEXT,
            planned_at_ms INTEGER,
            imported_at_ms INTEGER,
            verified_at_ms INTEGER,
            ready_at_ms INTEGER,
            verified_import_id TEXT,
            verified_lease_epoch INTEGER,
            goal TEXT NOT NULL,
            phase TEXT NOT NULL,
            position INTEGER NOT NULL,
            tag TEXT NOT NULL,
            version INTEGER NOT NULL,
            events_done INTEGER NOT NULL,
            tags_done INTEGER NOT NULL,
            phase_started_ms INTEGER NOT NULL,
            progressed_ms INTEGER NOT NULL,
            failures INTEGER NOT NULL,
            blocked INTEGER NOT NULL,
            error_code TEXT,
            error_status INTEGER,
            error_text TEXT)""",
        "CREATE TABLE manifest_part (part INTEGER PRIMARY KEY, text TEXT NOT NULL)",
        f"""CREATE TABLE staged_event (
            position INTEGER PRIMARY KEY,{TABLE_COLUMNS})""",
        """CREATE TABLE staged_tag (
            tag_id INTEGER PRIMARY KEY,
            tag TEXT NOT NULL UNIQUE,
            event_count INTEGER NOT NULL)""",
        """CREATE TABLE staged_event_tag (
            tag_id INTEGER NOT NULL REFERENCES staged_tag,
            position INTEGER NOT NULL REFERENCES staged_event,
            PRIMARY KEY (tag_id, position)) WITHOUT ROWID""",
        """CREATE TABLE command (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT,
            command_id TEXT NOT NULL UNIQUE,
            lease_epoch INTEGER NOT NULL,
            released INTEGER NOT NULL)""",
        """CREATE TABLE verification (
            part TEXT PRIMARY KEY,
            events INTEGER NOT NULL,
            tags INTEGER NOT NULL) WITHOUT ROWID""",
        """CREATE TABLE hook_claim (
            singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
            token TEXT NOT NULL,
            lease_epoch INTEGER NOT NULL,
            expires_at_ms INTEGER NOT NULL)""",
        "CREATE TABLE receipt (singleton INTEGER PRIMARY KEY CHECK (singleton = 1), text TEXT NOT NULL)",
    ),
)
