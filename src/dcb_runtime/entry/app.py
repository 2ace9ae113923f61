"""The entry Worker as one function from request to answer, whatever platform it runs on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from dcb_runtime import __version__
from dcb_runtime.bootstrap.errors import BODY_INVALID, DUMP_TOO_LARGE
from dcb_runtime.dispatch import describe_fault
from dcb_runtime.entry.auth import Secrets, TokenGate
from dcb_runtime.entry.coordinator import Coordinator
from dcb_runtime.entry.cursor import CursorSeal
from dcb_runtime.entry.export import Exporter, PagedLog
from dcb_runtime.entry.hook import Hooks, HookStep
from dcb_runtime.entry.http import (
    HttpRefusal,
    HttpRequest,
    HttpResponse,
    ObjectAnswer,
    error_response,
    read_text,
    reply_response,
)
from dcb_runtime.entry.import_lane import ImportLane
from dcb_runtime.entry.inspection import inspect_service, inspect_tag
from dcb_runtime.entry.paths import path_service_id, path_tag
from dcb_runtime.entry.percent import decode_query
from dcb_runtime.entry.routes import Match, Who, find, required
from dcb_runtime.errors import BODY_TOO_LARGE, INTERNAL_ERROR, CodedError, ErrorKind
from dcb_runtime.limits import BODY_BYTES_MAX, PLAN_BODY_BYTES_MAX
from dcb_runtime.ports import Clock, Peers, Reply, Timer
from dcb_runtime.spans.activation import Activation
from dcb_runtime.spans.guard import traced
from dcb_runtime.spans.port import Command, Spans, actor_key_hash
from dcb_runtime.wire import reply

ACTOR_CLASS = "entry"


@dataclass(frozen=True)
class Call:
    """A request that found its route and may use it."""

    request: HttpRequest
    service_id: str
    tag: str
    query: dict[str, str]


Handler: TypeAlias = Callable[[Call], Awaitable[Reply]]


class Entry:
    """Authenticates, routes and answers. Holds nothing of a request: one instance serves an isolate.

    ``log_line`` takes one line of text for the operator's log; it is never given a message of an exception.
    """

    def __init__(
        self,
        *,
        peers: Peers,
        log: PagedLog,
        secrets: Secrets,
        clock: Clock,
        timer: Timer,
        hooks: Hooks,
        spans: Spans,
        log_line: Callable[[str], None],
        activation: Activation | None = None,
    ) -> None:
        self._peers = peers
        self._spans = spans
        self._log_line = log_line
        self._activation = activation
        self._gates = {
            Who.APPLICATION: TokenGate(secrets.api_token),
            Who.OPERATOR: TokenGate(secrets.operator_token),
        }
        lane = ImportLane(peers, clock, timer, HookStep(hooks, timer, log_line))
        exporter = Exporter(peers, log, clock, timer, CursorSeal(secrets.operator_token))
        self.handlers: dict[str, Handler] = {
            "health": _health,
            "bootstrap_status": lambda call: self._read("/state", call),
            "bootstrap_plan": lambda call: self._pass_on("/plan", call, PLAN_BODY_BYTES_MAX, DUMP_TOO_LARGE),
            "bootstrap_import": lambda call: lane.run_import(call.service_id, call.request),
            "bootstrap_verify": lambda call: lane.run_verify(call.service_id, call.request),
            "bootstrap_abort": lambda call: self._pass_on("/abort", call),
            "bootstrap_takeover": lambda call: self._pass_on("/takeover", call),
            "bootstrap_reset": lambda call: lane.run_reset(call.service_id, call.request),
            "bootstrap_receipt": lambda call: self._read("/receipt", call),
            "bootstrap_export": lambda call: exporter.export(call.service_id, call.request),
            "inspect_service": lambda call: inspect_service(peers, call.service_id),
            "inspect_tag": lambda call: inspect_tag(peers, call.service_id, call.tag, call.query),
        }

    async def handle(self, request: HttpRequest) -> HttpResponse:
        """Answer one request. Never raises."""
        return await traced(self._spans, lambda: self._describe(request), lambda: self._answer(request))

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            return reply_response(await self._route(request))
        except ObjectAnswer as answered:
            return reply_response(answered.reply)
        except HttpRefusal as refused:
            return error_response(refused.error, refused.headers)
        except CodedError as refused:
            return error_response(refused)
        except Exception as fault:
            self._log_line(describe_fault(fault))
            return error_response(INTERNAL_ERROR())

    async def _route(self, request: HttpRequest) -> Reply:
        gate = self._gates.get(required(request.path))
        if gate is not None:
            gate.check(request.headers.get("authorization"))
        match = find(request.method, request.path)
        call = _call(match, request)
        return await self.handlers[match.route.handler](call)

    async def _read(self, route: str, call: Call) -> Reply:
        return await Coordinator(self._peers, call.service_id).ask(route)

    async def _pass_on(
        self, route: str, call: Call, bytes_max: int = BODY_BYTES_MAX, too_large: ErrorKind = BODY_TOO_LARGE
    ) -> Reply:
        """Hand the body to the coordinator as it is: it is parsed once, there."""
        body = await read_text(call.request, bytes_max, BODY_INVALID, too_large)
        return await Coordinator(self._peers, call.service_id).ask(route, body)

    def _describe(self, request: HttpRequest) -> Command:
        name, service_id = _label(request)
        activation = self._activation
        return Command(
            name=name,
            actor_class=ACTOR_CLASS,
            service_id=service_id,
            actor_key_hash=actor_key_hash(ACTOR_CLASS, service_id) if service_id else None,
            activation_id=activation.id if activation else None,
            activation_first=activation.take_first() if activation else False,
        )


async def _health(_: Call) -> Reply:
    return reply(200, {"status": "ok", "version": __version__})


def _call(match: Match, request: HttpRequest) -> Call:
    segments = match.segments
    service_id = path_service_id(match.route.template, segments["serviceId"]) if "serviceId" in segments else ""
    tag = path_tag(segments["tag"]) if "tag" in segments else ""
    return Call(request, service_id, tag, decode_query(request.query, match.route.query))


def _label(request: HttpRequest) -> tuple[str, str | None]:
    """What a span may tell of a request: the route's template and a proper service id, never the path."""
    try:
        match = find(request.method, request.path)
    except (CodedError, HttpRefusal):
        return "unmatched", None
    name = f"{match.route.method} {match.route.template}"
    try:
        return name, path_service_id(match.route.template, match.segments.get("serviceId", ""))
    except CodedError:
        return name, None
