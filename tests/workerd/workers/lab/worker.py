"""The product in a laboratory: the same objects and entry, with faults that a test orders below ``/lab/``."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from faults import ORDERS, POLL_S, take_first_orders, take_orders  # type: ignore[import-not-found]
from ports import LabClock, LabLog, LabPeers, LabStorage  # type: ignore[import-not-found]
from workers import Response

from dcb_runtime.actor import Actor, Platform
from dcb_runtime.bootstrap.actor import Bootstrap as BootstrapActor
from dcb_runtime.cloudflare import objects
from dcb_runtime.cloudflare.database import D1Database
from dcb_runtime.cloudflare.entry import EventStore
from dcb_runtime.cloudflare.peers import BINDINGS, ObjectPeers
from dcb_runtime.cloudflare.settings import text_setting
from dcb_runtime.cloudflare.urls import path_and_query
from dcb_runtime.entry.hook import Hooks


class _Observed(objects.ActorObject):
    """Notes what arrives at an object, and puts the laboratory's ports in."""

    def make_platform(self) -> Platform:
        platform = super().make_platform()
        take_first_orders(text_setting(self.env._env, "ORDERS"))
        storage = LabStorage(self.ctx.storage._binding)
        return replace(platform, storage=storage, clock=LabClock(), peers=LabPeers(platform.peers))

    async def fetch(self, request: Any) -> Response:
        headers = {str(name): str(value) for name, value in request.js_object.headers}
        ORDERS.arrivals.append({"by": "fetch", "url": request.url, "headers": headers, "body": None})
        return await super().fetch(request)

    async def call(self, target: str, body: str) -> str:
        ORDERS.arrivals.append({"by": "rpc", "url": target, "headers": {}, "body": body[:500]})
        return await super().call(target, body)


class Allocator(_Observed, objects.Allocator):
    """The product's allocator."""


class Tag(_Observed, objects.Tag):
    """The product's tag."""


class Bootstrap(_Observed, objects.Bootstrap):
    """The product's coordinator, with gates around its log."""

    def make_actor(self, platform: Platform) -> Actor:
        return BootstrapActor(platform, LabLog(D1Database(self.env._env.DB)))


class Default(EventStore):
    """The product's entry, with a hook that does what a test ordered, and the laboratory's own routes."""

    def hooks(self) -> Hooks:
        return Hooks(after_verify_before_ready=_hook)

    async def fetch(self, request: Any) -> Response:
        path, _ = path_and_query(request.url)
        if not path.startswith("/lab/"):
            return await super().fetch(request)
        body = json.loads(await request.text()) if request.method.value == "POST" else None
        answer = await self.lab(path.removeprefix("/lab/"), body)
        return Response(json.dumps(answer), headers={"content-type": "application/json"})

    async def lab(self, route: str, body: Any) -> Any:
        """One of the laboratory's routes."""
        if route == "orders":
            if body is not None:
                take_orders(body)
            return ORDERS.shown()
        if route == "call":
            return await self.call_object(**body)
        raise ValueError(f"no such route: {route}")

    async def call_object(
        self, actor: str, name: str, path: str, method: str, body: str | None, by: str, headers: dict[str, str]
    ) -> dict[str, Any]:
        """Call an object directly, by fetch or by RPC; status, text and content type of its answer."""
        if by == "rpc":
            answer = await ObjectPeers(self.env._env).call(actor, name, path, body)
            return {"status": answer.status, "text": answer.text}
        stub = getattr(self.env, BINDINGS[actor]).getByName(name)
        options: dict[str, Any] = {"method": method, "headers": headers}
        if body is not None:
            options["body"] = body
        response = await stub.fetch(f"https://bootstrap.internal{path}", **options)
        return {
            "status": response.status,
            "text": await response.text(),
            "type": response.headers.get("content-type"),
        }


async def _hook(service_id: str, import_id: str, lease_epoch: int, manifest: dict[str, Any]) -> None:
    run = {
        "service": service_id,
        "importId": import_id,
        "leaseEpoch": lease_epoch,
        "manifest": manifest,
        "ended": False,
    }
    ORDERS.hook_runs.append(run)
    if ORDERS.hook.get(service_id) == "raise":
        raise RuntimeError("the hook was asked to fail with a secret")
    while ORDERS.hook.get(service_id) == "hold":
        await asyncio.sleep(POLL_S)
    run["ended"] = True
