"""An object that runs probes of the platform adapters, and an entry that runs one of the shared database."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from pyodide.ffi import jsnull
from workers import DurableObject, Response, WorkerEntrypoint

from dcb_runtime.cloudflare.convert import BINDS_MAX, INTEGER_MAX
from dcb_runtime.cloudflare.database import D1Database
from dcb_runtime.cloudflare.storage import ObjectStorage
from dcb_runtime.log.event_log import EventLog
from dcb_runtime.ports import DatabaseError, Row, Statement, StorageError


class _Own(Exception):
    """An exception of our own that must come back as it was."""


class Tag(DurableObject):
    """Runs probes on its own storage. Answers are JSON texts."""

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        self.storage = ObjectStorage(self.ctx.storage._binding)

    async def run(self, name: str, argument: str) -> str:
        """Run one probe."""
        result: object = getattr(self, f"probe_{name}")(json.loads(argument))
        return json.dumps(result)

    def probe_bind(self, values: list[Any]) -> object:
        """What comes back of these values, and SQLite's types of them in columns without a type and of integers."""
        self.storage.exec("CREATE TABLE IF NOT EXISTS bound (plain, number INTEGER)")
        self.storage.exec("DELETE FROM bound")
        for value in values:
            self.storage.exec("INSERT INTO bound VALUES (?, ?)", value, value)
        return self.storage.exec("SELECT plain, number, typeof(number) FROM bound ORDER BY rowid")

    def probe_bytes(self, _: Any) -> object:
        """Bytes of every value, there and back; an empty text of bytes; NULL beside them."""
        every = bytes(range(256))
        row = self.storage.exec("SELECT ? AS a, ? AS b, NULL AS c, hex(?) AS d", every, b"", every)[0]
        return [type(row[0]).__name__, bytes(row[0]) == every, bytes(row[1]) == b"", row[2] is None, row[3]]

    def probe_many_binds(self, count: int) -> object:
        """So many binds in one statement."""
        return self.storage.exec(f"SELECT {'+'.join('?' * count)}", *range(count))[0][0]

    def probe_refused(self, _: Any) -> object:
        """The names of what raises before the database is asked."""
        unfit: list[Any] = [True, 1.5, INTEGER_MAX + 1, -INTEGER_MAX - 1, [], {}, bytearray(b"1"), jsnull]
        raised = []
        for value in unfit:
            try:
                self.storage.exec("SELECT ?", value)
            except TypeError as refused:
                raised.append(str(refused))
        try:
            self.storage.exec("SELECT 1", *range(BINDS_MAX + 1))
        except TypeError as refused:
            raised.append(str(refused))
        return raised

    def probe_texts(self, texts: list[str]) -> object:
        """Texts there and back, as binds and out of JSON, and their lengths in SQLite."""
        return [
            list(
                self.storage.exec(
                    "SELECT ?, length(?), json_quote(?), ? ->> '$[0]'", text, text, text, json.dumps([text])
                )[0]
            )
            for text in texts
        ]

    def probe_functions(self, _: Any) -> object:
        """The SQL that the rules lean on."""
        execute = self.storage.exec
        execute("CREATE TABLE IF NOT EXISTS f (k INTEGER PRIMARY KEY, v TEXT UNIQUE)")
        execute("DELETE FROM f")
        inserted = execute(
            "INSERT INTO f SELECT value ->> 'k', value ->> 'v' FROM json_each(?) RETURNING k, v", '[{"k":1,"v":"a"}]'
        )
        return {
            "returning": [list(row) for row in inserted],
            "conflict": [
                list(row)
                for row in execute(
                    "INSERT INTO f VALUES (1, 'b') ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING v"
                )
            ],
            "nothing": execute("INSERT INTO f VALUES (1, 'c') ON CONFLICT DO NOTHING RETURNING v"),
            "unhex": execute("SELECT hex(unhex(?))", "00ff10")[0][0],
            "numbered": list(execute("SELECT ?2 || ?1 || ?2", "a", "b")[0]),
            "window": [
                list(row)
                for row in execute(
                    "SELECT value, sum(value) OVER (ORDER BY key), lag(value, 1, 0) OVER (ORDER BY key) "
                    "FROM json_each('[1,2,4]')"
                )
            ],
            "array": execute("SELECT json_group_array(json_array(key, json(value))) FROM json_each('[{\"a\":1},[2]]')")[
                0
            ][0],
            "object": execute("SELECT json_object('a', json('[\"x\"]'), 'b', NULL)")[0][0],
            "nocase": execute("SELECT 'ABC-f' = 'abc-F' COLLATE NOCASE, 'É' = 'é' COLLATE NOCASE")[0][:],
            "order": [
                row[0]
                for row in execute(
                    'SELECT value FROM json_each(\'["b","B","é","\U0001f600","\\uffff"]\') ORDER BY value'
                )
            ],
            "same_names": list(execute("SELECT 1 AS x, 2 AS x, 3")[0]),
        }

    def probe_rollback(self, _: Any) -> object:
        """A transaction that raises leaves nothing and gives its exception back; nested ones are savepoints."""
        self.storage.exec("CREATE TABLE IF NOT EXISTS r (n INTEGER)")
        self.storage.exec("DELETE FROM r")
        error = _Own("original")

        def insert(number: int) -> None:
            self.storage.exec("INSERT INTO r VALUES (?)", number)

        def fail() -> None:
            insert(1)
            raise error

        caught = None
        try:
            self.storage.transaction(fail)
        except _Own as raised:
            caught = raised

        def outer() -> str:
            insert(2)
            try:
                self.storage.transaction(fail)
            except _Own:
                insert(3)
            self.storage.transaction(lambda: insert(4))
            return "result"

        def outer_fails() -> None:
            self.storage.transaction(lambda: insert(5))
            raise error

        result = self.storage.transaction(outer)
        with contextlib.suppress(_Own):
            self.storage.transaction(outer_fails)
        return [caught is error, result, [row[0] for row in self.storage.exec("SELECT n FROM r ORDER BY n")]]

    def probe_refused_statement(self, sql: str) -> object:
        """What a statement that the database refuses raises, and that the transaction around it is undone."""
        self.storage.exec("CREATE TABLE IF NOT EXISTS s (n INTEGER PRIMARY KEY)")
        self.storage.exec("DELETE FROM s")

        def work() -> None:
            self.storage.exec("INSERT INTO s VALUES (1)")
            self.storage.exec(sql)

        try:
            self.storage.transaction(work)
        except StorageError as refused:
            return [str(refused), self.storage.exec("SELECT count(*) FROM s")[0][0]]
        return None

    def probe_alarm(self, wait_ms: int | None) -> object:
        """Set the alarm, or clear it."""
        self.storage.exec("CREATE TABLE IF NOT EXISTS rung (n INTEGER)")
        if wait_ms is None:
            self.storage.clear_alarm()
        else:
            self.storage.set_alarm(time.time_ns() // 1_000_000 + wait_ms)
        return None

    def probe_alarm_then_clear(self, wait_ms: int) -> object:
        """Set it and take it back in one turn."""
        self.probe_alarm(wait_ms)
        return self.probe_alarm(None)

    def probe_rung(self, _: Any) -> object:
        """How often the alarm came."""
        return self.storage.exec("SELECT count(*) FROM rung")[0][0]

    async def alarm(self, _info: Any = None) -> None:
        """Count."""
        self.storage.exec("INSERT INTO rung VALUES (1)")


class Allocator(DurableObject):
    """Bound in the configuration, so it has to be there."""


class Bootstrap(DurableObject):
    """Bound in the configuration, so it has to be there."""


class Default(WorkerEntrypoint):
    """``/object/{name}/{probe}`` with the argument as the body, ``/database`` and ``/plans``."""

    async def fetch(self, request: Any) -> Response:
        """Run one probe."""
        parts = urlsplit(request.url).path.split("/")
        if parts[1] == "object":
            return Response(await self.env.TAG.getByName(parts[2]).run(parts[3], await request.text()))
        if parts[1] == "database":
            return Response(json.dumps(await _probe_database(D1Database(self.env._env.DB))))
        if parts[1] == "plans":
            return Response(json.dumps(await _plans_of_admit(D1Database(self.env._env.DB), await request.text())))
        return Response("no such probe", status=404)


class _Recorder(D1Database):
    """Keeps the statements that pass."""

    def __init__(self, raw: Any) -> None:
        super().__init__(raw)
        self.passed: list[Statement] = []

    async def batch(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self.passed = list(statements)
        return await super().batch(statements)


async def _plans_of_admit(database: D1Database, events: str) -> list[str]:
    """How the database goes about a chunk of the log: the steps of its plans."""
    recorder = _Recorder(database._raw)
    log = EventLog(recorder)
    await log.fence("plans", "lineage", "import", 1)
    await log.admit("plans", "import", 1, 1, len(json.loads(events)), events)
    plans = await database.batch([(f"EXPLAIN QUERY PLAN {sql}", binds) for sql, binds in recorder.passed])
    return [str(row[-1]) for rows in plans for row in rows]


async def _probe_database(database: D1Database) -> dict[str, Any]:
    await database.batch([("DROP TABLE IF EXISTS t", ()), ("CREATE TABLE t (n INTEGER PRIMARY KEY, v)", ())])
    refused = None
    try:
        await database.batch([("INSERT INTO t VALUES (?, ?)", (1, "a")), ("INSERT INTO t VALUES (?, ?)", (1, "b"))])
    except DatabaseError as error:
        refused = str(error)
    after_refusal = await database.batch([("SELECT count(*) AS n FROM t", ())])
    types = await database.batch(
        [
            ("INSERT INTO t VALUES (?, ?) RETURNING n, v", (7, None)),
            (
                "SELECT ? AS text, ? AS number, ? AS absent, hex(?) AS bytes",
                ("é\U0001f600", 2**53 - 1, None, b"\x00\xff"),
            ),
            ("SELECT n FROM t WHERE n < 0", ()),
            ("SELECT ?2 || ?1 AS joined", ("a", "b")),
            ("SELECT 'x' AS twice, 'y' AS twice", ()),
            ("SELECT json_group_array(value) AS texts FROM json_each(?)", ('["a\\u0001","\\u0000b"]',)),
        ]
    )
    many = await asyncio.gather(*(database.batch([("SELECT ? AS n", (number,))]) for number in range(5)))
    return {
        "refused": refused,
        "afterRefusal": after_refusal[0][0][0],
        "rows": [[list(row) for row in rows] for rows in types],
        "many": [rows[0][0][0] for rows in many],
    }
