"""The deployable worker: the main module that `wrangler.toml` names."""

from __future__ import annotations

from typing import Any

from workers import DurableObject, Response, WorkerEntrypoint


class Allocator(DurableObject):
    """The sequencer of a service."""


class Tag(DurableObject):
    """The events of one tag."""


class Bootstrap(DurableObject):
    """The import into a fresh service."""


class Default(WorkerEntrypoint):
    """The entry worker."""

    async def fetch(self, _request: Any) -> Response:
        """Answer every request alike, until there are routes."""
        return Response("ok")
