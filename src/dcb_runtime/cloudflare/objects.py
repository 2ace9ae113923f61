"""The three Durable Object classes: thin shells around the actors, by ``fetch`` and by one RPC method."""

from __future__ import annotations

from typing import Any

from workers import DurableObject, Response

from dcb_runtime.actor import Actor, Platform
from dcb_runtime.allocator.actor import Allocator as AllocatorActor
from dcb_runtime.bootstrap.actor import Bootstrap as BootstrapActor
from dcb_runtime.cloudflare.database import D1Database
from dcb_runtime.cloudflare.peers import ObjectPeers, to_wire
from dcb_runtime.cloudflare.settings import chosen_spans
from dcb_runtime.cloudflare.storage import ObjectStorage
from dcb_runtime.cloudflare.urls import path_and_query
from dcb_runtime.cloudflare.world import SystemClock, SystemEntropy, SystemTimer, log_line
from dcb_runtime.log.event_log import EventLog
from dcb_runtime.tag.actor import Tag as TagActor


class ActorObject(DurableObject):
    """Base of the three: one dispatcher serves both ways in."""

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        self.actor = self.make_actor(self.make_platform())

    def make_platform(self) -> Platform:
        """The ports of this object."""
        storage = ObjectStorage(self.ctx.storage._binding)
        env = self.env._env
        return Platform(
            storage, SystemClock(), SystemEntropy(), ObjectPeers(env), SystemTimer(), chosen_spans(env), log_line
        )

    def make_actor(self, platform: Platform) -> Actor:
        """The rules that this object runs."""
        raise NotImplementedError

    async def fetch(self, request: Any) -> Response:
        """The reference's interface: method, path, query and a JSON body."""
        path, query = path_and_query(request.url)
        method = request.method.value
        body = None if method in ("GET", "HEAD") else await request.text()
        answer = await self.actor.handle(method, f"{path}?{query}", body)
        return Response(answer.text, status=answer.status, headers={"content-type": "application/json; charset=utf-8"})

    async def call(self, target: str, body: str) -> str:
        """The same by RPC: ``/path?query`` and JSON text; without a body it is a GET. See ``peers.to_wire``."""
        return to_wire(await self.actor.handle("POST" if body else "GET", target, body or None))

    async def alarm(self, _info: Any = None) -> None:
        """Do what is due. Never raises: the platform gives up on an alarm after some failures."""
        await self.actor.alarm()


class Allocator(ActorObject):
    """One a service: the sequencer, its index and its fence."""

    def make_actor(self, platform: Platform) -> Actor:
        """The allocator's rules."""
        return AllocatorActor(platform)


class Tag(ActorObject):
    """One a service and tag: the tag's events."""

    def make_actor(self, platform: Platform) -> Actor:
        """A tag's rules."""
        return TagActor(platform)


class Bootstrap(ActorObject):
    """One a service: the coordinator of its import."""

    def make_actor(self, platform: Platform) -> Actor:
        """The coordinator's rules, with the log that it fills."""
        return BootstrapActor(platform, EventLog(D1Database(self.env._env.DB)))
