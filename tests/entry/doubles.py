"""Stand-ins for what the entry Worker talks to, each a few lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from dcb_runtime.entry.app import Entry
from dcb_runtime.entry.auth import Secrets
from dcb_runtime.entry.hook import Hooks
from dcb_runtime.entry.http import HttpRequest, HttpResponse, body_reader
from dcb_runtime.ports import DatabaseError, PeerError, Reply
from dcb_runtime.spans.activation import Activation
from dcb_runtime.spans.none import NO_SPANS
from dcb_runtime.spans.port import Spans
from dcb_runtime.wire import reply

OPERATOR = "operator-token-of-32-characters!"
API = "api-token-of-27-characters!"


@dataclass(frozen=True)
class Asked:
    """One call of an object as it was made."""

    actor_class: str
    name: str
    route: str
    query: dict[str, list[str]]
    body: str | None

    @property
    def json(self) -> Any:
        return json.loads(self.body or "")


Answer: TypeAlias = Reply | Exception | Callable[[Asked], Reply]


class Objects:
    """Objects that answer by a table ``(class, route)``; a list is answered one by one, its last one for ever."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], Answer | list[Answer]] = {}
        self.asked: list[Asked] = []

    def on(self, actor_class: str, route: str, *answers: Answer) -> None:
        self.answers[actor_class, route] = list(answers)

    async def call(self, actor_class: str, name: str, path: str, body: str | None = None) -> Reply:
        route, _, query = path.partition("?")
        asked = Asked(actor_class, name, route, parse_qs(query, strict_parsing=True), body)
        self.asked.append(asked)
        await asyncio.sleep(0)
        answer = self.answers.get((actor_class, route), PeerError())
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Reply) else answer(asked)

    def routes(self, actor_class: str | None = None) -> list[str]:
        """The routes asked so far, in order."""
        return [asked.route for asked in self.asked if actor_class in (None, asked.actor_class)]


@dataclass
class Hands:
    """A clock and a timer in one; the clock stands still unless ``moving``."""

    now: int = 1_000_000
    moving: bool = True
    slept: list[int] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.now

    async def sleep(self, wait_ms: int) -> None:
        self.slept.append(wait_ms)
        self.now += wait_ms if self.moving else 0
        await asyncio.sleep(0)


@dataclass
class ListLog:
    """An event log in a list; ``None`` is a position that is missing."""

    records: list[dict[str, Any] | None] = field(default_factory=list)
    down: bool = False
    heads: list[int] = field(default_factory=list)
    """What ``head`` answers first."""

    async def head(self, service_id: str) -> int:
        assert service_id == "orders"
        if self.down:
            raise DatabaseError
        return self.heads.pop(0) if self.heads else len(self.records)

    async def page(
        self, service_id: str, after: int, until: int, events_max: int, bytes_max: int
    ) -> list[tuple[int, dict[str, Any]]]:
        assert service_id == "orders"
        if self.down:
            raise DatabaseError
        found: list[tuple[int, dict[str, Any]]] = []
        for position in range(after + 1, min(until, len(self.records)) + 1):
            record = self.records[position - 1]
            if record is not None:
                bytes_max -= len(json.dumps(record))
                if len(found) == events_max or (found and bytes_max < 0):
                    break
                found.append((position, record))
        return found


@dataclass
class World:
    """An entry Worker with everything around it."""

    objects: Objects = field(default_factory=Objects)
    hands: Hands = field(default_factory=Hands)
    log: ListLog = field(default_factory=ListLog)
    hooks: Hooks = field(default_factory=Hooks)
    secrets: Secrets = field(default_factory=lambda: Secrets(API, OPERATOR))
    spans: Spans = NO_SPANS
    activation: Activation | None = None
    lines: list[str] = field(default_factory=list)

    def entry(self) -> Entry:
        return Entry(
            peers=self.objects,
            log=self.log,
            secrets=self.secrets,
            clock=self.hands,
            timer=self.hands,
            hooks=self.hooks,
            spans=self.spans,
            log_line=self.lines.append,
            activation=self.activation,
        )

    def ask(self, method: str, target: str, body: bytes | str = b"", headers: Mapping[str, str] | None = None) -> Got:
        """One request, as the operator unless ``headers`` are given."""
        sent = request(method, target, body, {"authorization": f"Bearer {OPERATOR}"} if headers is None else headers)
        return Got(asyncio.run(self.entry().handle(sent)))

    def post(self, route: str, body: Any) -> Got:
        """A call of the operator's lane for the service ``orders``."""
        return self.ask("POST", f"/operator/bootstrap/orders/{route}", json.dumps(body))


@dataclass(frozen=True)
class Got:
    """An answer, with what every answer must have checked."""

    response: HttpResponse

    def __post_init__(self) -> None:
        assert self.response.headers["cache-control"] == "no-store"
        assert self.response.headers["content-type"] == "application/json; charset=utf-8"
        if self.status >= 400:
            assert self.json.keys() >= {"code", "error"}

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def json(self) -> Any:
        return json.loads(self.response.body)

    @property
    def code(self) -> tuple[int, str]:
        return self.status, self.json["code"]


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    """A body that comes in pieces."""
    for chunk in chunks:
        yield chunk


def request(method: str, target: str, body: bytes | str, headers: Mapping[str, str]) -> HttpRequest:
    """A request as the platform's adapter makes it."""
    path, _, query = target.partition("?")
    content = body.encode() if isinstance(body, str) else body
    return HttpRequest(method, path, query, headers, body_reader(headers, lambda: stream(content)))


def refusal(status: int, code: str) -> Reply:
    """An object's refusal."""
    return reply(status, {"code": code, "error": "said by the object"})
