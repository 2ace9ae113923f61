"""Calls between objects over RPC: a path and JSON text go in, one text with status and JSON comes out."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pyodide.ffi import JsException

from dcb_runtime.cloudflare.spans import in_span
from dcb_runtime.ports import PeerError, Reply

CALL_MS_MAX: Final = 30_000
"""How long a call may take before its outcome counts as not known: an import must not hang on one object."""

BINDINGS: Final = {"allocator": "ALLOCATOR", "tag": "TAG", "bootstrap": "BOOTSTRAP"}


def to_wire(reply: Reply) -> str:
    """One text is the cheapest thing to pass over RPC: three digits of status, then the JSON text."""
    return f"{reply.status:03d}{reply.text}"


def from_wire(text: str) -> Reply:
    """The reverse of ``to_wire``."""
    return Reply(int(text[:3]), text[3:])


class ObjectPeers:
    """The ``Peers`` port over the deployment's object namespaces."""

    def __init__(self, env: Any) -> None:
        self._env = env

    async def call(self, actor_class: str, name: str, path: str, body: str | None = None) -> Reply:
        """One RPC on a new stub: a stub whose object was reset stays broken."""
        try:
            stub = getattr(self._env, BINDINGS[actor_class]).getByName(name)
            async with asyncio.timeout(CALL_MS_MAX / 1000):
                return from_wire(await in_span(lambda: stub.call(path, body or "")))
        except (JsException, TimeoutError):
            raise PeerError(f"no answer from {actor_class}") from None
