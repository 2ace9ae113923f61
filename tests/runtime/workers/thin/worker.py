"""The thinnest worker: one object with one SQLite table, the event log's database and the secrets."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import msgspec
from workers import DurableObject, Response, WorkerEntrypoint

import dcb_runtime


class Tag(DurableObject):
    """Counts its calls in a table of its own."""

    async def fetch(self, _request: Any) -> Response:
        """Add a row and answer how many there are."""
        sql = self.ctx.storage.sql
        sql.exec("CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY AUTOINCREMENT)")
        sql.exec("INSERT INTO calls DEFAULT VALUES")
        return Response(str(sql.exec("SELECT count(*) AS calls FROM calls").one().calls))


class Allocator(Tag):
    """Bound in the configuration, so it has to be there."""


class Bootstrap(Tag):
    """Bound in the configuration, so it has to be there."""


class Default(WorkerEntrypoint):
    """Routes for what the tooling tests look at."""

    async def fetch(self, request: Any) -> Response:
        """Answer one of the routes below."""
        path = urlsplit(request.url).path
        if path.startswith("/tags/"):
            stub = self.env.TAG.get(self.env.TAG.idFromName(path))
            answer: Response = await stub.fetch(request.url)
            return answer
        if path == "/log":
            database = self.env.DB
            await database.exec("CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY AUTOINCREMENT)")
            await database.prepare("INSERT INTO calls DEFAULT VALUES").run()
            return Response(str(await database.prepare("SELECT count(*) AS calls FROM calls").first("calls")))
        if path == "/fail":
            raise RuntimeError("asked to fail")
        facts = {
            "version": dcb_runtime.__version__,
            "msgspec": msgspec.json.encode([1, 2]).decode(),
            "tokens": [self.env.API_TOKEN, self.env.REPAIR_OPERATOR_TOKEN],
            "extra": getattr(self.env, "EXTRA", None),
        }
        return Response(json.dumps(facts))
