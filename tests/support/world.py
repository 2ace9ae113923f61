"""All objects of a deployment in one process: peers by name, alarms that run when a test says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from dcb_runtime.actor import Actor, Platform
from dcb_runtime.allocator.actor import Allocator
from dcb_runtime.bootstrap.actor import Bootstrap
from dcb_runtime.dispatch import target
from dcb_runtime.log.event_log import EventLog
from dcb_runtime.ports import PeerError, Reply
from dcb_runtime.rules.scope import object_name
from dcb_runtime.rules.text import has_surrogate
from dcb_runtime.spans.none import NO_SPANS
from dcb_runtime.spans.port import Spans
from dcb_runtime.tag.actor import Tag
from tests.support.sqlite import SqliteDatabase, SqliteStorage

START_MS = 1_787_418_000_123
"""The clock's first reading: 2026-08-22T17:00:00.123Z."""


class ManualClock:
    """Wall time that moves when told to, and a little by itself when somebody waits."""

    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms


class CountingEntropy:
    """Bytes that differ at every call and are the same in every run."""

    def __init__(self) -> None:
        self.calls = 0

    def random_bytes(self, count: int) -> bytes:
        self.calls += 1
        return (self.calls.to_bytes(8, "big") * (count // 8 + 1))[:count]


class NoWait:
    """The ``Timer`` port of an object: lets others come in between, and takes no time."""

    async def sleep(self, wait_ms: int) -> None:
        await asyncio.sleep(0)


@dataclass(frozen=True)
class Call:
    """One call between objects, as a test's fault sees it."""

    actor_class: str
    name: str
    path: str
    body: str | None

    @property
    def route(self) -> str:
        """The path without its query."""
        return self.path.partition("?")[0]


Fault = Callable[[Call], None]


class World:
    """Objects by class and name, created at their first call; ``calls`` lists every hop.

    ``on_hop`` is awaited with ``request`` before each hop and with ``reply`` after it: it may raise
    ``PeerError``, restart the world, or do what others do meanwhile.
    """

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.entropy = CountingEntropy()
        self.database = SqliteDatabase()
        self.storages: dict[tuple[str, str], SqliteStorage] = {}
        self.actors: dict[tuple[str, str], Actor] = {}
        self.calls: list[Call] = []
        self.log_lines: list[str] = []
        self.spans: Spans = NO_SPANS
        self.lose_request: Fault | None = None
        self.lose_reply: Fault | None = None
        self.on_hop: Callable[[str, Call], Awaitable[None]] | None = None

    @property
    def log(self) -> EventLog:
        """A log of its own activation over the shared database."""
        return EventLog(self.database)

    def storage(self, actor_class: str, name: str) -> SqliteStorage:
        """The storage of an object; it outlives activations."""
        return self.storages.setdefault((actor_class, name), SqliteStorage())

    def actor(self, actor_class: str, name: str) -> Actor:
        """The present activation of an object."""
        key = (actor_class, name)
        if key not in self.actors:
            storage = self.storage(actor_class, name)
            platform = Platform(storage, self.clock, self.entropy, self, NoWait(), self.spans, self.log_lines.append)
            made = {"allocator": Allocator, "tag": Tag}
            self.actors[key] = (
                Bootstrap(platform, self.log) if actor_class == "bootstrap" else made[actor_class](platform)
            )
        return self.actors[key]

    def restart(self) -> None:
        """Lose everything that is only in memory."""
        self.actors.clear()

    async def call(self, actor_class: str, name: str, path: str, body: str | None = None) -> Reply:
        """The ``Peers`` port. Faults raise ``PeerError`` before the call or after its commit."""
        call = Call(actor_class, name, path, body)
        self.calls.append(call)
        if self.lose_request is not None:
            self.lose_request(call)
        if self.on_hop is not None:
            await self.on_hop("request", call)
        answer = await self.actor(actor_class, name).handle("GET" if body is None else "POST", path, body)
        if self.lose_reply is not None:
            self.lose_reply(call)
        if self.on_hop is not None:
            await self.on_hop("reply", call)
        return answer

    async def sleep(self, wait_ms: int) -> None:
        """The ``Timer`` port: time passes, and alarms that are due come."""
        self.clock.ms += wait_ms
        await self.run_due_alarms()

    async def run_due_alarms(self) -> int:
        """Run each alarm that is due once; how many there were."""
        due = [
            key
            for key, storage in self.storages.items()
            if storage.at_ms is not None and storage.at_ms <= self.clock.ms
        ]
        for key in due:
            self.storages[key].at_ms = None
            try:
                await self.actor(*key).alarm()
            except BaseException:
                # As on the platform: an alarm whose handler did not come to its end comes again.
                self.storages[key].at_ms = self.clock.ms
                raise
        return len(due)

    async def settle(self, rounds: int = 1000) -> None:
        """Let time pass until no alarm is set any more."""
        for _ in range(rounds):
            pending = [storage.at_ms for storage in self.storages.values() if storage.at_ms is not None]
            if not pending:
                return
            self.clock.ms = max(self.clock.ms, min(pending))
            await self.run_due_alarms()
        raise AssertionError("alarms never come to an end")


class Coordinator:
    """A service's coordinator as its direct callers see it."""

    def __init__(self, world: World, service_id: str) -> None:
        self.world = world
        self.service_id = service_id
        self.name = object_name(service_id, "bootstrap", "coordinator")

    async def post(self, route: str, body: Any) -> tuple[int, dict[str, Any]]:
        """POST a body (JSON, or text as it is); status and parsed answer."""
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        if not isinstance(body, str) and has_surrogate(text):
            text = json.dumps(body)
        return parsed(await self.world.call("bootstrap", self.name, target(route, service_id=self.service_id), text))

    async def get(self, route: str) -> tuple[int, dict[str, Any]]:
        """GET a route; status and parsed answer."""
        return parsed(await self.world.call("bootstrap", self.name, target(route, service_id=self.service_id)))


def parsed(answer: Reply) -> tuple[int, dict[str, Any]]:
    """Status and JSON body of an answer."""
    return answer.status, json.loads(answer.text)


def lose(times: int, *routes: str) -> Fault:
    """A fault that hits the first ``times`` calls of these routes (of any, when none is named)."""
    left = [times]

    def fault(call: Call) -> None:
        if left[0] > 0 and (not routes or call.route in routes):
            left[0] -= 1
            raise PeerError("lost")

    return fault
