"""The coordinator's routes (reference section 1.3, and design section 4 beyond it)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from dcb_runtime.actor import Actor, Platform
from dcb_runtime.bootstrap.commands import Commands
from dcb_runtime.bootstrap.control import PLANNED, Control, ControlStore
from dcb_runtime.bootstrap.errors import (
    BODY_INVALID,
    RECEIPT_MISSING,
    ROUTE_NOT_FOUND,
    SERVICE_REQUIRED,
    STATE_REJECTED,
)
from dcb_runtime.bootstrap.hook import HookClaims
from dcb_runtime.bootstrap.job import Context, Delayed
from dcb_runtime.bootstrap.lifecycle import Lifecycle
from dcb_runtime.bootstrap.plan import Planner
from dcb_runtime.bootstrap.record import record, running
from dcb_runtime.bootstrap.runner import RETRY_MS_MAX, Runner
from dcb_runtime.bootstrap.staging import Staging
from dcb_runtime.bootstrap.tables import MIGRATIONS
from dcb_runtime.dispatch import Request, describe_fault
from dcb_runtime.errors import CodedError
from dcb_runtime.log.event_log import EventLog
from dcb_runtime.ports import Reply
from dcb_runtime.schema import Schema
from dcb_runtime.wire import is_json, reply

READ_ONLY: Final = ("/state", "/receipt")
"""Routes that are looked at by GET and have no POST."""


class Bootstrap(Actor):
    """Coordinates the one import of a service. The alarm does the work, the routes decide and tell."""

    actor_class = "bootstrap"

    def __init__(self, platform: Platform, log: EventLog) -> None:
        super().__init__(platform)
        self._storage = platform.storage
        self._schema = Schema(self._storage, MIGRATIONS)
        self._store = ControlStore(self._storage)
        self._commands = Commands(self._storage)
        context = Context(platform, self._store, Staging(self._storage), log)
        self._planner = Planner(context)
        self._runner = Runner(context, self._planner.settle)
        self._life = Lifecycle(context, HookClaims(platform))
        # Routes that may need hops, routes that are one transaction, and routes that leave work to the alarm.
        self._asked: dict[str, Callable[[str, str], Awaitable[Reply]]] = {
            "/plan": self._plan,
            "/abort": self._abort,
            "/takeover": self._takeover,
            "/ready": self._ready,
        }
        self._decided: dict[str, Callable[[Control, str], Reply]] = {
            "/command/admit": self._commands.admit,
            "/command/finalize": self._commands.finalize,
            "/command/release": self._commands.release,
            "/route/check": self._commands.check_route,
            "/hook/claim": self._claim,
            "/hook/renew": self._life.renew_hook,
            "/hook/release": self._life.release_hook,
        }
        self._started: dict[str, Callable[[str, str], None]] = {
            "/import": self._life.start_import,
            "/verify": self._life.start_verify,
            "/reset": self._life.start_reset,
        }
        self.paths = frozenset({*READ_ONLY, *self._asked, *self._decided, *self._started})

    async def route(self, request: Request) -> Reply:
        """Dispatch one request in the reference's order of checks. Raises ``CodedError`` for every refusal."""
        service_id = request.service_id
        if not service_id:
            raise SERVICE_REQUIRED()
        if (request.method, request.path) == ("GET", "/state"):
            return reply(200, self._record(service_id))
        if (request.method, request.path) == ("GET", "/receipt"):
            return self._receipt()
        if request.method == "POST" and request.path in self.paths and request.path not in READ_ONLY:
            return await self._post(service_id, request)
        # The reference looks at the body before it looks at method and path.
        raise ROUTE_NOT_FOUND() if is_json(request.body) else BODY_INVALID()

    async def _post(self, service_id: str, request: Request) -> Reply:
        text = request.body or ""
        self._schema.ensure()
        if request.path in self._asked:
            return await self._asked[request.path](service_id, text)
        if request.path in self._decided:
            decide = self._decided[request.path]
            return self._storage.transaction(lambda: decide(self._store.load(service_id), text))
        self._started[request.path](service_id, text)
        return self._told(service_id)

    async def alarm(self) -> None:
        """Take the steps that are due. Never raises."""
        try:
            if self._schema.exists():
                await self._runner.run()
        except Exception as fault:
            # The object's own storage refused, so that not even the failure could be recorded.
            self.platform.log_line(describe_fault(fault))
            self._storage.set_alarm(self.platform.clock.now_ms() + RETRY_MS_MAX)

    def _record(self, service_id: str) -> dict[str, Any]:
        if not self._schema.exists():
            return record(Control(service_id), None, None)
        return record(self._store.load(service_id), self._store, self._storage)

    def _told(self, service_id: str, done: int = 200) -> Reply:
        """The record: 202 while work is on its way, else ``done``."""
        control = self._store.load(service_id)
        return reply(202 if running(control) else done, record(control, self._store, self._storage))

    def _receipt(self) -> Reply:
        rows = self._storage.exec("SELECT text FROM receipt") if self._schema.exists() else []
        if not rows:
            raise RECEIPT_MISSING()
        return Reply(200, str(rows[0][0]))

    async def _plan(self, service_id: str, text: str) -> Reply:
        control = self._planner.stage(service_id, text)
        if control.pending_epoch is not None:
            await self._settle(control)
        planned = self._store.load(service_id)
        same = (planned.import_id, planned.chain_digest) == (control.import_id, control.chain_digest)
        if planned.pending_epoch is not None or not same:
            raise STATE_REJECTED("the plan was taken back meanwhile")
        return self._told(service_id, 201 if planned.status == PLANNED else 200)

    async def _settle(self, control: Control) -> None:
        """Finish the pending plan now; when that is not possible the alarm goes on and the caller gets a 503."""
        try:
            refused = await self._planner.settle(control)
        except Delayed as delayed:
            self._runner.note(control, delayed.error, blocked=False)
            raise delayed.error from None
        if refused is not None:
            raise refused

    async def _abort(self, service_id: str, text: str) -> Reply:
        control = self._life.abort(service_id, text)
        if control.pending_epoch is not None:
            self._planner.mark_retracting(control)
            await self._settle(replace(control, retracting=1))
        return self._told(service_id)

    async def _takeover(self, service_id: str, text: str) -> Reply:
        """Take over under a new epoch; the old one is out of allocator and log before the caller is told 200."""
        control = self._life.takeover(service_id, text)
        await self._runner.take_step(control)
        return self._finished(service_id)

    async def _ready(self, service_id: str, text: str) -> Reply:
        """READY first, then the allocator opens, then the caller is told."""
        control = self._life.ready(service_id, text)
        if control.phase == "opening":
            await self._runner.take_step(control)
        return self._finished(service_id)

    def _finished(self, service_id: str) -> Reply:
        """The record after a step that the caller asked for; raises what the step was refused with."""
        control = self._store.load(service_id)
        if control.blocked and control.error_code is not None:
            raise CodedError(control.error_code, control.error_status or 500, control.error_text or "")
        return self._told(service_id)

    def _claim(self, control: Control, text: str) -> Reply:
        claim = self._life.claim_hook(control, text)
        if claim is None:
            return reply(202, record(control, self._store, self._storage))
        return reply(200, {"token": claim[0], "expiresAtMs": claim[1]})
