"""An event's stored fields as SQL: the same columns in a Tag, in the log and in an import's staging area.

Two stores hold the same event when their ``FIELDS`` are equal. Texts for comparison are built by SQLite on
both sides with the same expression, so that a page is compared by one digest and never taken apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dcb_runtime.ports import Row

FIELDS: Final = (
    "event_id",
    "suid",
    "event_type",
    "payload",
    "tags",
    "timestamp",
    "causation_id",
    "correlation_id",
    "executed_user",
)
"""Columns of an event beside its position. ``tags`` is a JSON array in the order of the record."""

COLUMNS: Final = ", ".join(FIELDS)

STORED: Final = f"bytes, {COLUMNS}"
"""All columns of a stored event but its keys: ``FIELDS``, and before them its size."""

TABLE_COLUMNS: Final = """
            bytes INTEGER NOT NULL,
            event_id TEXT NOT NULL,
            suid TEXT NOT NULL,
            event_type TEXT NOT NULL,
            payload TEXT NOT NULL,
            tags TEXT NOT NULL,
            timestamp TEXT NOT NULL,
            causation_id TEXT,
            correlation_id TEXT,
            executed_user TEXT"""
"""How ``STORED`` is declared in a CREATE TABLE. ``bytes`` (the record's JSON) bounds pages: it stands before the
payload, so that reading it never reads one."""

FROM_JSON: Final = """length(CAST(value AS BLOB)) AS bytes,
            value ->> '$.eventId' AS event_id, value ->> '$.suid' AS suid,
            value ->> '$.eventType' AS event_type, value ->> '$.payload' AS payload,
            value -> '$.eventTags' AS tags, value ->> '$.timestamp' AS timestamp,
            value ->> '$.causationId' AS causation_id, value ->> '$.correlationId' AS correlation_id,
            value ->> '$.executedUser' AS executed_user"""
"""Selects ``STORED`` out of the rows of ``json_each`` over an array of dump records."""

AS_JSON: Final = """json_object('eventId', event_id, 'suid', suid, 'eventType', event_type, 'payload', payload,
            'eventTags', json(tags), 'timestamp', timestamp, 'causationId', causation_id,
            'correlationId', correlation_id, 'executedUser', executed_user"""
"""Builds a record from ``FIELDS``; the caller adds members of its own and closes the parenthesis."""

COMPARED: Final = f"json_array(position, {COLUMNS.replace('tags', 'json(tags)')})"
"""One event's text for comparison: equal exactly when position and all ``FIELDS`` are. Not longer than the record."""


def same_fields(left: str, right: str) -> str:
    """An SQL condition: all ``FIELDS`` of the aliases ``left`` and ``right`` are equal."""
    return " AND ".join(f"{left}.{name} IS {right}.{name}" for name in FIELDS)


def last_within(source: str) -> str:
    """The last position of ``source`` (an ordered, limited SELECT of ``position`` and ``bytes``) within a bound.

    Binds one value more than ``source``, the bytes: at least one row counts, then rows while their sum stays within
    it. No row, no position (NULL). Only positions and sizes are gone through, never a payload.
    """
    return f"""SELECT max(position) FROM (SELECT position, sum(bytes) OVER (ORDER BY position) AS total,
                row_number() OVER (ORDER BY position) AS place FROM ({source}))
            WHERE total <= ? OR place = 1"""


def text(rows: Sequence[Row]) -> str:
    """The one text of a one-row, one-column answer."""
    return str(rows[0][0])
