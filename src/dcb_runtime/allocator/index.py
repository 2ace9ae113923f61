"""The index of all decided events: position, id, suid, type and tags, without payloads.

Conditions read it (a tag's or a type's rows behind a position); an import fills it first. All writes are
statements over sets: a chunk of events goes in as one JSON text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dcb_runtime.errors import ErrorKind
from dcb_runtime.ports import Row, Storage

INDEX_CONFLICT = ErrorKind(
    "index_conflict",
    409,
    "the index holds other content under one of these positions, ids or suids; abort and compare the sources",
)

# A chunk as a table: `?` is a JSON array of {eventId, suid, eventType, eventTags} in position order.
_INCOMING: Final = """
    SELECT {first} + key AS position, unhex(replace(value ->> '$.eventId', '-', '')) AS event_id,
           value ->> '$.suid' AS suid, value ->> '$.eventType' AS type_name, value -> '$.eventTags' AS tags
    FROM json_each(?)"""

_TAGS_OF: Final = "(SELECT json_group_array(name) FROM (SELECT name FROM tag JOIN event_tag USING (tag_id) WHERE {}))"


@dataclass(frozen=True)
class TagHead:
    """A tag's version (number of its events) and the position of its last event; both 0 for an unused tag."""

    version: int
    head: int


class EventIndex:
    """The allocator's index. Methods that write run inside the caller's transaction."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def head(self) -> int:
        """The last position that was given, 0 when none was."""
        return int(self._storage.exec("SELECT head FROM sequence")[0][0])

    def counts(self) -> tuple[int, int]:
        """Number of events and of distinct tags. Two counts over B-trees: an operator's call, not a hot path."""
        row = self._storage.exec("SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM tag)")[0]
        return int(row[0]), int(row[1])

    def tag_head(self, tag: str) -> TagHead:
        """Version and head of a tag: one look-up."""
        rows = self._storage.exec("SELECT version, head FROM tag WHERE name = ?", tag)
        return TagHead(rows[0][0], rows[0][1]) if rows else TagHead(0, 0)

    def admit(self, first_position: int, count: int, events: str) -> int:
        """Take in a chunk of imported events at ``first_position`` and behind it; return how many were new.

        ``events`` is a JSON array of ``count`` objects ``{eventId, suid, eventType, eventTags}``. What is there
        already must be the same, the rest must follow the head without a gap and rise in suid order, else
        ``index_conflict`` (409). Eight statements, whatever the number of events.
        """
        head = self.head()
        last = first_position + count - 1
        if first_position > head + 1:
            raise INDEX_CONFLICT(f"position {first_position} does not follow {head}")
        known = min(head, last) - first_position + 1
        if known > 0 and self._same(first_position, events) != known:
            raise INDEX_CONFLICT(f"positions {first_position} to {min(head, last)}")
        if last <= head:
            return 0
        self._insert(first_position, head, events)
        return last - head

    def _same(self, first: int, events: str) -> int:
        """How many of the incoming events stand in the index with exactly these fields and tags."""
        stored = _TAGS_OF.format("event_tag.position = e.position ORDER BY name")
        rows = self._storage.exec(
            f"""WITH incoming AS ({_INCOMING.format(first=first)})
            SELECT count(*) FROM incoming i JOIN event e ON e.position = i.position
            JOIN event_type t ON t.type_id = e.type_id
            WHERE e.event_id = i.event_id AND e.suid = i.suid AND t.name = i.type_name
              AND {stored} = (SELECT json_group_array(value)
                              FROM (SELECT value FROM json_each(i.tags) ORDER BY value))""",
            events,
        )
        return int(rows[0][0])

    def _insert(self, first: int, head: int, events: str) -> None:
        incoming = f"WITH incoming AS (SELECT * FROM ({_INCOMING.format(first=first)}) WHERE position > {head})"
        execute = self._storage.exec
        clash = execute(
            f"""{incoming}
            SELECT (SELECT count(*) FROM incoming WHERE event_id IN (SELECT event_id FROM event)),
                   (SELECT count(*) - count(DISTINCT event_id) FROM incoming),
                   (SELECT count(*) FROM (SELECT suid, lag(suid, 1, ?) OVER (ORDER BY position) AS before
                                          FROM incoming) WHERE suid <= before)""",
            events,
            self._last_suid(),
        )[0]
        if any(clash):
            raise INDEX_CONFLICT("a repeated event id or a suid that does not rise")
        execute(
            f"{incoming} INSERT INTO event_type (name) SELECT DISTINCT type_name FROM incoming WHERE true "
            "ON CONFLICT (name) DO NOTHING",
            events,
        )
        execute(
            f"{incoming} INSERT INTO tag (name, version, head) SELECT DISTINCT j.value, 0, 0 "
            "FROM incoming i, json_each(i.tags) j WHERE true ON CONFLICT (name) DO NOTHING",
            events,
        )
        execute(
            f"""{incoming} INSERT INTO event (position, event_id, suid, type_id)
            SELECT position, event_id, suid, (SELECT type_id FROM event_type WHERE name = type_name) FROM incoming""",
            events,
        )
        execute(
            f"""{incoming} INSERT INTO event_tag (tag_id, position, version)
            SELECT t.tag_id, i.position, t.version + row_number() OVER (PARTITION BY t.tag_id ORDER BY i.position)
            FROM incoming i, json_each(i.tags) j JOIN tag t ON t.name = j.value""",
            events,
        )
        execute(
            f"""{incoming} UPDATE tag SET version = version + fresh.added, head = fresh.last
            FROM (SELECT j.value AS name, count(*) AS added, max(i.position) AS last
                  FROM incoming i, json_each(i.tags) j GROUP BY j.value) AS fresh
            WHERE tag.name = fresh.name""",
            events,
        )
        execute("UPDATE sequence SET head = (SELECT max(position) FROM event)")

    def _last_suid(self) -> str:
        rows = self._storage.exec("SELECT suid FROM event ORDER BY position DESC LIMIT 1")
        return str(rows[0][0]) if rows else ""

    def events_text(self, after: int, until: int) -> str:
        """JSON text of ``[position, id in hex, suid, type]`` rows behind ``after`` up to ``until``, in order."""
        return _text(
            self._storage.exec(
                """SELECT json_group_array(json_array(position, lower(hex(event_id)), suid, name)) FROM
                (SELECT e.position, e.event_id, e.suid, t.name FROM event e JOIN event_type t USING (type_id)
                 WHERE e.position > ? AND e.position <= ? ORDER BY e.position)""",
                after,
                until,
            )
        )

    def tags_text(self, tag: str, version: int, limit: int) -> str:
        """JSON text of ``[tag, version, position, the tag's version, the tag's head]`` rows, by tag and position.

        They are those behind (``tag``, ``version``).
        """
        return _text(
            self._storage.exec(
                """SELECT json_group_array(json_array(name, version, position, tag_version, tag_head)) FROM
                (SELECT t.name, x.version, x.position, t.version AS tag_version, t.head AS tag_head
                 FROM tag t JOIN event_tag x USING (tag_id)
                 WHERE t.name >= ?1 AND (t.name > ?1 OR x.version > ?2) ORDER BY t.name, x.position LIMIT ?3)""",
                tag,
                version,
                limit,
            )
        )

    def clear(self) -> None:
        """Remove every event, tag and type, and the order that they gave."""
        for table in ("event_tag", "event", "tag", "event_type", "bootstrap_seed"):
            self._storage.exec(f"DELETE FROM {table}")
        self._storage.exec("UPDATE sequence SET head = 0, watermark = NULL")


def _text(rows: list[Row]) -> str:
    return str(rows[0][0])
