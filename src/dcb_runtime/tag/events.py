"""The events of one tag: admitted in version order, read in pages, compared by digest."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from dcb_runtime.limits import READ_PAGE_BYTES_MAX
from dcb_runtime.ports import Storage
from dcb_runtime.record_sql import COLUMNS, COMPARED, FROM_JSON, STORED, last_within, same_fields, text

_INCOMING: Final = f"""WITH incoming AS (
    SELECT {{first}} + key AS version, value ->> '$.position' AS position, {FROM_JSON} FROM json_each(?))"""

# `data` is put in as it was stored: byte for byte what the application sent.
_EVENT_TEXT: Final = """'{"position":' || position || ',"suid":' || json_quote(suid) || ',"id":' || json_quote(event_id)
    || ',"type":' || json_quote(event_type) || ',"tags":' || tags || ',"data":' || payload
    || ',"timestamp":' || json_quote(timestamp) || ',"metadata":' || json_object('causationId', causation_id,
    'correlationId', correlation_id, 'executedUser', executed_user) || '}'"""


@dataclass(frozen=True)
class Head:
    """The last event before the first gap: its version, position and suid (0, 0 and "" for none)."""

    version: int
    position: int
    suid: str


@dataclass(frozen=True)
class Page:
    """A page of events as JSON text; ``last`` is its last position, ``more`` whether events follow."""

    events: str
    last: int
    more: bool


class EventsConflict(Exception):
    """Other content stands under one of the incoming versions, positions or ids, or the order is broken."""


class TagEvents:
    """The event table of a Tag. Methods that write run inside the caller's transaction."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def head(self) -> Head:
        """One row look-up."""
        row = self._storage.exec("SELECT version, position, suid FROM head")[0]
        return Head(row[0], row[1], row[2])

    def admit(self, first_version: int, count: int, events: str) -> int:
        """Take in ``count`` records as versions from ``first_version`` on; return how many were new.

        What is there already must be the same, the rest must follow the head and rise in position and suid.
        Raises ``EventsConflict`` and then has written nothing. Four statements, whatever the number of events.
        """
        head = self.head()
        last = first_version + count - 1
        if first_version > head.version + 1:
            raise EventsConflict
        known = min(head.version, last) - first_version + 1
        if known > 0 and self._same(first_version, events) != known:
            raise EventsConflict
        if last <= head.version:
            return 0
        incoming = _INCOMING.format(first=first_version)
        fresh = f"{incoming}, fresh AS (SELECT * FROM incoming WHERE version > {head.version})"
        clash = self._storage.exec(
            f"""{fresh}
            SELECT (SELECT count(*) FROM fresh f WHERE EXISTS
                       (SELECT 1 FROM event e WHERE e.event_id = f.event_id COLLATE NOCASE)),
                   (SELECT count(*) - count(DISTINCT lower(event_id)) FROM fresh),
                   (SELECT count(*) FROM (SELECT suid, position, lag(suid, 1, ?) OVER w AS suid_before,
                        lag(position, 1, ?) OVER w AS position_before FROM fresh WINDOW w AS (ORDER BY version))
                    WHERE suid <= suid_before OR position <= position_before)""",
            events,
            head.suid,
            head.position,
        )[0]
        if any(clash):
            raise EventsConflict
        self._storage.exec(
            f"{fresh} INSERT INTO event (version, position, {STORED}) SELECT version, position, {STORED} FROM fresh",
            events,
        )
        self._storage.exec(
            "UPDATE head SET (version, position, suid) = "
            "(SELECT version, position, suid FROM event ORDER BY version DESC LIMIT 1)"
        )
        return last - head.version

    def _same(self, first: int, events: str) -> int:
        rows = self._storage.exec(
            f"""{_INCOMING.format(first=first)} SELECT count(*) FROM incoming i JOIN event e ON e.version = i.version
            WHERE e.position = i.position AND {same_fields("e", "i")}""",
            events,
        )
        return int(rows[0][0])

    def page(self, after: int, limit: int) -> Page:
        """Events behind position ``after`` up to the head: at most ``limit`` and about 1 MiB."""
        head = self.head()
        upcoming = "SELECT position, bytes FROM event WHERE position > ? AND version <= ? ORDER BY position LIMIT ?"
        row = self._storage.exec(
            f"""SELECT ifnull(group_concat(event_text, ','), ''), ifnull(max(position), 0) FROM
            (SELECT position, {_EVENT_TEXT} AS event_text FROM event
             WHERE position <= ({last_within(upcoming)}) AND position > ? ORDER BY position)""",
            after,
            head.version,
            limit,
            READ_PAGE_BYTES_MAX,
            after,
        )[0]
        last = row[1] or after
        return Page(f"[{row[0]}]", last, more=last < head.position and row[1] > 0)

    def digest(self, after: int, limit: int) -> str:
        """SHA-256 in hex over the fields of the ``limit`` events behind version ``after``."""
        rows = self._storage.exec(
            f"""SELECT json_group_array(json_array(version, json({COMPARED}))) FROM
            (SELECT version, position, {COLUMNS} FROM event WHERE version > ? ORDER BY version LIMIT ?)""",
            after,
            limit,
        )
        return sha256(text(rows).encode()).hexdigest()

    def stored_versions(self) -> tuple[int, int]:
        """The lowest and the highest version that is stored, in front of the head or behind it; 0 for none."""
        row = self._storage.exec("SELECT ifnull(min(version), 0), ifnull(max(version), 0) FROM event")[0]
        return int(row[0]), int(row[1])

    def clear(self) -> None:
        """Remove every event."""
        self._storage.exec("DELETE FROM event")
        self._storage.exec("UPDATE head SET version = 0, position = 0, suid = ''")
