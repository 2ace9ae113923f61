"""The entry Worker's shell: requests become values, the answer becomes a Response."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pyodide.ffi import JsException
from workers import Response, WorkerEntrypoint

from dcb_runtime.cloudflare.database import D1Database
from dcb_runtime.cloudflare.peers import ObjectPeers
from dcb_runtime.cloudflare.settings import chosen_spans, text_setting
from dcb_runtime.cloudflare.urls import path_and_query
from dcb_runtime.cloudflare.world import SystemClock, SystemEntropy, SystemTimer, log_line
from dcb_runtime.entry.app import Entry
from dcb_runtime.entry.auth import Secrets
from dcb_runtime.entry.hook import Hooks
from dcb_runtime.entry.http import HttpRequest, body_reader
from dcb_runtime.errors import BODY_INVALID
from dcb_runtime.log.event_log import EventLog
from dcb_runtime.spans.activation import Activation


class EventStore(WorkerEntrypoint):
    """The deployment's entry point. A deployment with a hook of its own subclasses this as ``Default``."""

    _entry: Entry | None = None
    """Made at the isolate's first request: this class is constructed anew for each one."""

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        entry = type(self)._entry or self._make_entry(self.env._env)
        type(self)._entry = entry
        self.entry = entry

    def _make_entry(self, raw: Any) -> Entry:
        return Entry(
            peers=ObjectPeers(raw),
            log=EventLog(D1Database(raw.DB)),
            secrets=Secrets(text_setting(raw, "API_TOKEN"), text_setting(raw, "REPAIR_OPERATOR_TOKEN")),
            clock=SystemClock(),
            timer=SystemTimer(),
            hooks=self.hooks(),
            spans=chosen_spans(raw),
            log_line=log_line,
            activation=Activation(SystemEntropy()),
        )

    def hooks(self) -> Hooks:
        """What the deployment plugs in; asked once, at the isolate's first request."""
        return Hooks()

    async def fetch(self, request: Any) -> Response:
        """Answer one request."""
        raw = request.js_object
        path, query = path_and_query(raw.url)
        headers = {str(name): str(value) for name, value in raw.headers}
        body = body_reader(headers, lambda: _chunks(raw))
        answer = await self.entry.handle(HttpRequest(raw.method, path, query, headers, body))
        return Response(answer.body, status=answer.status, headers=dict(answer.headers))


async def _chunks(request: Any) -> AsyncIterator[bytes]:
    if not request.body:
        return
    reader = request.body.getReader()
    finished = False
    try:
        while not finished:
            try:
                part = await reader.read()
            except JsException:
                finished = True
                raise BODY_INVALID("the body ended early") from None
            finished = part.done
            if not finished:
                yield part.value.to_bytes()
    finally:
        if not finished:
            # A body that is too large is not read to its end.
            reader.cancel()
