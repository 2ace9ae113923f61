"""What the three objects share: their ports, their activation and one guarded way in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from dcb_runtime.dispatch import Request, answer, parse_request
from dcb_runtime.limits import BODY_BYTES_MAX
from dcb_runtime.ports import Clock, Entropy, Peers, Reply, Storage, Timer
from dcb_runtime.rules.json_syntax import deeper_than
from dcb_runtime.spans.activation import Activation
from dcb_runtime.spans.guard import traced
from dcb_runtime.spans.port import Command, Spans, actor_key_hash
from dcb_runtime.wire import DEPTH_MAX


@dataclass(frozen=True)
class Platform:
    """The ports of one object. ``log_line`` takes one line of text for the operator's log."""

    storage: Storage
    clock: Clock
    entropy: Entropy
    peers: Peers
    timer: Timer
    spans: Spans
    log_line: Callable[[str], None]

    def new_uuid(self) -> str:
        """A random UUID, version 4 (RFC 9562), in lower case."""
        raw = bytearray(self.entropy.random_bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Actor(ABC):
    """Base of the objects: a subclass has ``route``, and ``alarm`` when it has duties of its own."""

    actor_class: str
    paths: frozenset[str]
    """The routes' paths, without method."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self._activation = Activation(platform.entropy)

    async def handle(self, method: str, target: str, body: str | None) -> Reply:
        """Answer one request inside a span hook. Never raises: refusals and faults become coded answers."""
        request = parse_request(method, target, body)
        first = self._activation.take_first()
        return await traced(
            self.platform.spans,
            lambda: self._describe(request, first),
            lambda: answer(lambda: self.route(request), self.platform.log_line),
        )

    def _describe(self, request: Request, first: bool) -> Command:
        """What a span may tell of a request: the route, never a tag or a payload."""
        service_id = request.service_id
        tag = request.query.get("__tag")
        return Command(
            name=self.operation(request),
            actor_class=self.actor_class,
            service_id=service_id,
            actor_key_hash=actor_key_hash(self.actor_class, service_id, tag) if service_id else None,
            command_id=command_id(request.body),
            activation_id=self._activation.id,
            activation_first=first,
        )

    def operation(self, request: Request) -> str:
        """The route's name for a span: of a fixed set, never a path that a caller made up."""
        return request.path if request.path in self.paths else "unmatched"

    @abstractmethod
    async def route(self, request: Request) -> Reply:
        """Dispatch one request. Raises ``CodedError`` for every refusal."""

    async def alarm(self) -> None:
        """Do what is due: nothing, for an object without duties. Never raises."""
        return


class _Ids(msgspec.Struct, rename="camel"):
    attempt_id: str | None = None
    command_id: str | None = None


def command_id(body: str | None) -> str | None:
    """The attempt or command id that a body names; only looked for where something observes."""
    if not body or len(body) > BODY_BYTES_MAX or deeper_than(body, DEPTH_MAX):
        return None
    try:
        ids = msgspec.json.decode(body, type=_Ids)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return ids.attempt_id or ids.command_id
