"""The staged dump as rows, and the chunks that are cut from it for index, tags and log.

Chunk bodies are built by SQLite as JSON text and go out as they are: no event becomes a Python object again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from dcb_runtime.limits import CHUNK_BYTES_MAX, CHUNK_EVENTS_MAX
from dcb_runtime.ports import Storage
from dcb_runtime.record_sql import AS_JSON, COMPARED, FROM_JSON, STORED, last_within, text

TAG_ROWS_MAX: Final = CHUNK_EVENTS_MAX
"""Rows of the index's tag part that one verification step compares: below 2 MB even when each tag takes 1 KiB."""


@dataclass(frozen=True)
class Chunk:
    """Some events in position order: their JSON, how many, and the last one's position."""

    text: str
    count: int
    last: int

    @property
    def sha256(self) -> str:
        """The digest of the text in hex, for comparison with what another store has."""
        return sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class StagedTag:
    """A tag of the dump with the number of its events."""

    tag_id: int
    tag: str
    event_count: int


@dataclass(frozen=True)
class TagPlace:
    """A place in the order of all (tag, event) pairs: the tag, its version and the event's position."""

    tag: str
    version: int
    position: int


class Staging:
    """The staged rows. Reads cost the rows of one chunk; nothing loads the whole dump."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def add(self, first_position: int, records: Sequence[str]) -> None:
        """Stage dump records, each as JSON text, at ``first_position`` and behind it.

        Three statements, whatever their number; together the records must stay below 2 MB, the platform's value.
        """
        rows = f"[{','.join(records)}]"
        incoming = f"WITH incoming AS (SELECT {first_position} + key AS position, value FROM json_each(?))"
        self._storage.exec(
            f"""{incoming} INSERT INTO staged_event (position, {STORED}) SELECT position, {FROM_JSON} FROM incoming""",
            rows,
        )
        tags = f"""{incoming}, tagged AS
            (SELECT position, j.value AS tag FROM incoming i, json_each(i.value, '$.eventTags') j)"""
        self._storage.exec(
            f"""{tags} INSERT INTO staged_tag (tag, event_count)
            SELECT tag, count(*) FROM tagged WHERE true GROUP BY tag
            ON CONFLICT (tag) DO UPDATE SET event_count = event_count + excluded.event_count""",
            rows,
        )
        self._storage.exec(
            f"""{tags} INSERT INTO staged_event_tag (tag_id, position)
            SELECT t.tag_id, g.position FROM tagged g JOIN staged_tag t ON t.tag = g.tag""",
            rows,
        )

    def totals(self) -> tuple[int, int, int]:
        """Number of staged events, of distinct tags, and of (event, tag) pairs."""
        row = self._storage.exec(
            "SELECT (SELECT count(*) FROM staged_event), count(*), ifnull(sum(event_count), 0) FROM staged_tag"
        )[0]
        return int(row[0]), int(row[1]), int(row[2])

    def index_chunk(self, after: int) -> Chunk:
        """The next events for the index: id, suid, type and tags."""
        return self._chunk(
            "json_object('eventId', event_id, 'suid', suid, 'eventType', event_type, 'eventTags', json(tags))",
            _events(after),
        )

    def log_chunk(self, after: int) -> Chunk:
        """The next whole records for the log."""
        return self._chunk(
            f"{AS_JSON})",
            _events(after),
        )

    def tag_chunk(self, tag: StagedTag, after: int) -> Chunk:
        """The next whole records of one tag behind position ``after``, with their positions."""
        return self._chunk(f"{AS_JSON}, 'position', position)", _tagged(tag, after))

    def tag_compared(self, tag: StagedTag, after: int, version: int) -> Chunk:
        """What ``POST /digest`` of the tag covers: the next events, numbered on from ``version``."""
        return self._chunk(f"json_array({version} + place, json({COMPARED}))", _tagged(tag, after))

    def log_compared(self, after: int) -> Chunk:
        """The texts for comparison of the next events in the log."""
        return self._chunk(
            f"json({COMPARED})",
            _events(after),
        )

    def index_compared(self, after: int) -> Chunk:
        """What ``POST /index/events`` of the allocator covers: the next positions."""
        return self._chunk(
            "json_array(position, lower(replace(event_id, '-', '')), suid, event_type)",
            _events(after),
        )

    def index_tags_digest(self, tag: str, version: int, position: int) -> tuple[str, int, TagPlace | None]:
        """What ``POST /index/tags`` must answer, the number of rows, and where the last of them is.

        The rows are those behind (``tag``, ``position``); versions are counted on from ``version``.
        """
        row = self._storage.exec(
            f"""WITH upcoming AS (SELECT t.tag, x.position, t.event_count,
                    (SELECT max(y.position) FROM staged_event_tag y WHERE y.tag_id = t.tag_id) AS head
                FROM staged_tag t JOIN staged_event_tag x USING (tag_id)
                WHERE t.tag >= ? AND (t.tag > ? OR x.position > ?) ORDER BY t.tag, x.position
                LIMIT {TAG_ROWS_MAX}),
            numbered AS (SELECT *, row_number() OVER (PARTITION BY tag ORDER BY position)
                + iif(tag = ?, {version}, 0) AS version FROM upcoming)
            SELECT (SELECT json_group_array(json_array(tag, version, position, event_count, head))
                    FROM (SELECT * FROM numbered ORDER BY tag, position)),
                (SELECT count(*) FROM upcoming),
                (SELECT json_array(tag, version, position) FROM numbered ORDER BY tag DESC, position DESC LIMIT 1)""",
            tag,
            tag,
            position,
            tag,
        )[0]
        last = TagPlace(*json.loads(row[2])) if row[2] is not None else None
        return sha256(row[0].encode()).hexdigest(), int(row[1]), last

    def tags_after(self, tag: str, limit: int) -> list[StagedTag]:
        """The next tags in the order of their UTF-8 bytes, ``tag`` itself excluded."""
        rows = self._storage.exec(
            "SELECT tag_id, tag, event_count FROM staged_tag WHERE tag > ? ORDER BY tag LIMIT ?", tag, limit
        )
        return [StagedTag(*row) for row in rows]

    def tag(self, tag: str) -> StagedTag | None:
        """One tag of the dump."""
        rows = self._storage.exec("SELECT tag_id, tag, event_count FROM staged_tag WHERE tag = ?", tag)
        return StagedTag(*rows[0]) if rows else None

    def suid_at(self, position: int) -> str:
        """The suid of the event at ``position``."""
        return str(self._storage.exec("SELECT suid FROM staged_event WHERE position = ?", position)[0][0])

    def clear(self) -> None:
        """Remove all staged rows."""
        for table in ("staged_event_tag", "staged_tag", "staged_event"):
            self._storage.exec(f"DELETE FROM {table}")

    def _chunk(self, element: str, upcoming: str) -> Chunk:
        """The JSON array of ``element`` over the rows of ``upcoming`` that fit into a chunk."""
        row = self._storage.exec(
            f"""WITH upcoming AS ({upcoming})
            SELECT json_group_array({element}), count(*), ifnull(max(position), 0) FROM
            (SELECT *, row_number() OVER (ORDER BY position) AS place FROM staged_event
             WHERE position IN (SELECT position FROM upcoming WHERE position <= ({last_within("upcoming")}))
             ORDER BY position)""",
            CHUNK_BYTES_MAX,
        )[0]
        return Chunk(text([row]), int(row[1]), int(row[2]))


def _events(after: int) -> str:
    return (
        f"SELECT position, bytes FROM staged_event WHERE position > {after} ORDER BY position LIMIT {CHUNK_EVENTS_MAX}"
    )


def _tagged(tag: StagedTag, after: int) -> str:
    return f"""SELECT x.position, e.bytes FROM staged_event_tag x JOIN staged_event e USING (position)
        WHERE x.tag_id = {tag.tag_id} AND x.position > {after} ORDER BY x.position LIMIT {CHUNK_EVENTS_MAX}"""
