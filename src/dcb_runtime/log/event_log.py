"""The event log's rules as statements over a shared database.

Every statement of an import carries the condition that the service's row names this import and lease epoch:
a statement that commits late, after a takeover or a reset, changes nothing.
"""

from __future__ import annotations

import json
from typing import Any, Final

from dcb_runtime.errors import LINEAGE_MISMATCH, ErrorKind
from dcb_runtime.log.tables import MIGRATIONS, VERSION_TABLE
from dcb_runtime.ports import Database, Row, Statement
from dcb_runtime.record_sql import AS_JSON, COLUMNS, COMPARED, FROM_JSON, STORED, last_within, same_fields, text

EVENT_IDENTITY_CONFLICT = ErrorKind(
    "BOOTSTRAP_EVENT_IDENTITY_CONFLICT",
    409,
    "the log holds other content under this event's id or position; nothing of the chunk was written",
)
LOG_FENCED = ErrorKind(
    "log_fenced", 409, "the log is fenced for another import or a newer lease epoch; read the bootstrap's status"
)
LOG_NOT_FRESH = ErrorKind(
    "log_not_fresh", 409, "the log holds events of this service already; import into a fresh service"
)

PROVIDER: Final = "d1"

_VERSION: Final[Statement] = ("SELECT version FROM dcb_schema", ())
_OWN: Final = "service = (SELECT service FROM dcb_service WHERE service_id = ?)"
_FENCE: Final = "service_id = ? AND import_id = ? AND lease_epoch = ?"
_INCOMING: Final = f"SELECT {{first}} + key AS position, {FROM_JSON} FROM json_each(?)"
# CROSS JOIN is SQLite's way to fix the order: each incoming event looks the log up, never the other way round.
_CLASHES: Final = f"""SELECT i.event_id FROM incoming i CROSS JOIN dcb_event e
    ON e.{_OWN} AND e.position = i.position WHERE NOT ({same_fields("e", "i")})
    UNION ALL
    SELECT i.event_id FROM incoming i CROSS JOIN dcb_event e
    ON e.{_OWN} AND e.event_id = i.event_id COLLATE NOCASE WHERE e.position <> i.position
    UNION ALL
    SELECT min(event_id) FROM incoming GROUP BY lower(event_id) HAVING count(*) > 1"""


class EventLog:
    """The log of all services. Each method is one hop to the database (two on an activation's first use)."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._migrated = False

    async def _batch(self, *statements: Statement) -> list[list[Row]]:
        if not self._migrated:
            rows = await self._database.batch(
                [(VERSION_TABLE, ()), ("INSERT OR IGNORE INTO dcb_schema VALUES (1, 0)", ()), _VERSION]
            )
            version = int(rows[-1][0][0])
            missing = [(sql, ()) for migration in MIGRATIONS[version:] for sql in migration]
            if missing:
                await self._database.batch(
                    [*missing, ("UPDATE dcb_schema SET version = max(version, ?)", (len(MIGRATIONS),))]
                )
            self._migrated = True
        return await self._database.batch(statements)

    async def head(self, service_id: str) -> int:
        """The last position that the log holds of the service, 0 when it holds none."""
        rows = await self._batch((f"SELECT ifnull(max(position), 0) FROM dcb_event WHERE {_OWN}", (service_id,)))
        return int(rows[0][0][0])

    async def count(self, service_id: str) -> int:
        """How many events the log holds of the service."""
        rows = await self._batch((f"SELECT count(*) FROM dcb_event WHERE {_OWN}", (service_id,)))
        return int(rows[0][0][0])

    async def lineage(self, service_id: str) -> str | None:
        """The lineage that the service's events belong to, if the log knows the service."""
        rows = await self._batch(
            ("SELECT allocator_lineage_id FROM dcb_service WHERE service_id = ?", (service_id,)),
        )
        return str(rows[0][0][0]) if rows[0] else None

    async def fence(self, service_id: str, lineage: str, import_id: str, lease_epoch: int) -> None:
        """Let only this import and epoch write from now on; the same again changes nothing.

        Raises ``log_not_fresh`` when the log holds events that are not this import's, ``log_fenced`` when a
        newer epoch was here, ``lineage_mismatch`` when the service's rows belong to another lineage.
        """
        rows = await self._batch(
            (
                f"""INSERT INTO dcb_service (service_id, allocator_lineage_id, import_id, lease_epoch)
                VALUES (?, ?, ?, ?) ON CONFLICT (service_id) DO UPDATE
                SET import_id = excluded.import_id, lease_epoch = excluded.lease_epoch
                WHERE excluded.lease_epoch >= lease_epoch AND allocator_lineage_id = excluded.allocator_lineage_id
                  AND (import_id IS excluded.import_id OR NOT EXISTS (SELECT 1 FROM dcb_event WHERE {_OWN}))""",
                (service_id, lineage, import_id, lease_epoch, service_id),
            ),
            (
                f"""SELECT import_id, lease_epoch, allocator_lineage_id,
                EXISTS (SELECT 1 FROM dcb_event WHERE {_OWN}) FROM dcb_service WHERE service_id = ?""",
                (service_id, service_id),
            ),
        )
        holder, epoch, bound, has_events = rows[1][0]
        if (holder, epoch, bound) == (import_id, lease_epoch, lineage):
            return
        if bound != lineage:
            raise LINEAGE_MISMATCH("the log")
        if has_events and holder != import_id:
            raise LOG_NOT_FRESH()
        raise LOG_FENCED()

    async def admit(
        self, service_id: str, import_id: str, lease_epoch: int, first_position: int, count: int, events: str
    ) -> int:
        """Write a chunk of ``count`` records (a JSON array) at ``first_position``; return how many were new.

        The same events again are fine. Raises ``BOOTSTRAP_EVENT_IDENTITY_CONFLICT`` for other content under a
        known id or position, ``log_fenced`` for a stale epoch; then nothing of the chunk is written. One
        transaction of four statements.
        """
        incoming = f"WITH incoming AS ({_INCOMING.format(first=first_position)})"
        chunk = (events,)
        ours = (service_id, import_id, lease_epoch)
        rows = await self._batch(
            (f"{incoming} {_CLASHES} LIMIT 1", (*chunk, service_id, service_id)),
            (
                f"""{incoming} INSERT INTO dcb_event (service, position, {STORED})
                SELECT s.service, position, {STORED} FROM incoming, dcb_service s
                WHERE s.service_id = ? AND s.import_id = ? AND s.lease_epoch = ? AND NOT EXISTS ({_CLASHES})
                ON CONFLICT DO NOTHING RETURNING position""",
                (*chunk, *ours, service_id, service_id),
            ),
            (f"SELECT count(*) FROM dcb_service WHERE {_FENCE}", ours),
            (
                f"SELECT count(*) FROM dcb_event WHERE {_OWN} AND position >= ? AND position < ?",
                (service_id, first_position, first_position + count),
            ),
        )
        if rows[2][0][0] != 1:
            raise LOG_FENCED()
        if rows[0] or rows[3][0][0] != count:
            named = {"eventId": rows[0][0][0]} if rows[0] else {}
            raise EVENT_IDENTITY_CONFLICT(provider=PROVIDER, **named)
        return len(rows[1])

    async def remove(self, service_id: str, import_id: str, lease_epoch: int, limit: int) -> int:
        """Remove at most ``limit`` events that this import wrote; return how many are left.

        Raises ``log_fenced`` when the fence is not this import's and epoch's.
        """
        ours = (service_id, import_id, lease_epoch)
        rows = await self._batch(
            (
                f"""DELETE FROM dcb_event WHERE rowid IN (SELECT e.rowid FROM dcb_event e JOIN dcb_service s
                USING (service) WHERE s.{_FENCE} ORDER BY e.position DESC LIMIT ?)""",
                (*ours, limit),
            ),
            (f"SELECT count(*) FROM dcb_service WHERE {_FENCE}", ours),
            (f"SELECT count(*) FROM dcb_event WHERE {_OWN}", (service_id,)),
        )
        if rows[1][0][0] != 1:
            raise LOG_FENCED()
        return int(rows[2][0][0])

    async def close_import(self, service_id: str, import_id: str, lease_epoch: int) -> None:
        """Let no import up to this epoch write any more (after READY); again is fine."""
        await self._batch(
            (
                f"UPDATE dcb_service SET lease_epoch = lease_epoch + 1 WHERE {_FENCE}",
                (service_id, import_id, lease_epoch),
            )
        )

    async def compared(self, service_id: str, after: int, until: int) -> str:
        """The texts for comparison (``record_sql.COMPARED``) of the events behind ``after`` up to ``until``."""
        rows = await self._batch(
            (
                f"""SELECT json_group_array(json({COMPARED})) FROM (SELECT position, {COLUMNS} FROM dcb_event
                WHERE {_OWN} AND position > ? AND position <= ? ORDER BY position)""",
                (service_id, after, until),
            )
        )
        return text(rows[0])

    async def page(
        self, service_id: str, after: int, until: int, events_max: int, bytes_max: int
    ) -> list[tuple[int, dict[str, Any]]]:
        """``(position, ten-field dump record)`` behind ``after`` up to ``until``, in order, cut by count or bytes."""
        upcoming = f"""SELECT position, bytes FROM dcb_event
            WHERE {_OWN} AND position > ? AND position <= ? ORDER BY position LIMIT ?"""
        rows = await self._batch(
            (
                f"""SELECT position, {AS_JSON}, 'provenance', json('{{"origin":"g32"}}')) FROM dcb_event
                WHERE {_OWN} AND position > ? AND position <= ({last_within(upcoming)}) ORDER BY position""",
                (service_id, after, service_id, after, until, events_max, bytes_max),
            )
        )
        return [(int(row[0]), json.loads(row[1])) for row in rows[0]]
