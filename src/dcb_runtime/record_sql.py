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

TABLE_COLUMNS: Final = """
            event_id TEXT NOT NULL,
            suid TEXT NOT NULL,
            event_type TEXT NOT NULL,
            payload TEXT NOT NULL,
            tags TEXT NOT NULL,
            timestamp TEXT NOT NULL,
            causation_id TEXT,
            correlation_id TEXT,
            executed_user TEXT"""
"""How ``FIELDS`` are declared in a CREATE TABLE."""

FROM_JSON: Final = """value ->> '$.eventId' AS event_id, value ->> '$.suid' AS suid,
            value ->> '$.eventType' AS event_type, value ->> '$.payload' AS payload,
            value -> '$.eventTags' AS tags, value ->> '$.timestamp' AS timestamp,
            value ->> '$.causationId' AS causation_id, value ->> '$.correlationId' AS correlation_id,
            value ->> '$.executedUser' AS executed_user"""
"""Selects ``FIELDS`` out of the rows of ``json_each`` over an array of dump records."""

AS_JSON: Final = """json_object('eventId', event_id, 'suid', suid, 'eventType', event_type, 'payload', payload,
            'eventTags', json(tags), 'timestamp', timestamp, 'causationId', causation_id,
            'correlationId', correlation_id, 'executedUser', executed_user"""
"""Builds a record from ``FIELDS``; the caller adds members of its own and closes the parenthesis."""

COMPARED: Final = f"json_array(position, {COLUMNS})"
"""One event's text for comparison: equal exactly when position and all ``FIELDS`` are."""

BYTES: Final = f"({' + '.join(f'ifnull(length(CAST({name} AS BLOB)), 0)' for name in FIELDS)} + 256)"
"""About how many bytes an event takes in a page: its fields and the names around them."""


def same_fields(left: str, right: str) -> str:
    """An SQL condition: all ``FIELDS`` of the aliases ``left`` and ``right`` are equal."""
    return " AND ".join(f"{left}.{name} IS {right}.{name}" for name in FIELDS)


def bounded(source: str, order: str) -> str:
    """Cut ``source`` (an ordered, limited SELECT with a column ``bytes``) at a number of bytes.

    The result binds one more value, the bytes: at least one row comes, then rows while the sum stays within it.
    """
    return f"""SELECT * FROM (SELECT *, sum(bytes) OVER (ORDER BY {order}) AS total,
                row_number() OVER (ORDER BY {order}) AS place FROM ({source}))
            WHERE total <= ? OR place = 1"""


def text(rows: Sequence[Row]) -> str:
    """The one text of a one-row, one-column answer."""
    return str(rows[0][0])
