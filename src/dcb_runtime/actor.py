"""What the three objects share: their ports, their activation and one guarded way in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dcb_runtime.dispatch import Request, answer, parse_request
from dcb_runtime.ports import Clock, Entropy, Peers, Reply, Storage


@dataclass(frozen=True)
class Platform:
    """The ports of one object. ``log_line`` takes one line of text for the operator's log."""

    storage: Storage
    clock: Clock
    entropy: Entropy
    peers: Peers
    log_line: Callable[[str], None]

    def new_uuid(self) -> str:
        """A random UUID, version 4 (RFC 9562), in lower case."""
        raw = bytearray(self.entropy.random_bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Actor:
    """Base of the objects: a subclass has ``route``, and ``alarm`` when it has duties of its own."""

    actor_class: str

    def __init__(self, platform: Platform) -> None:
        self.platform = platform

    async def handle(self, method: str, target: str, body: str | None) -> Reply:
        """Answer one request. Never raises: refusals and faults become coded answers."""
        request = parse_request(method, target, body)
        return await answer(lambda: self.route(request), self.platform.log_line)

    async def route(self, request: Request) -> Reply:
        """Dispatch one request. Raises ``CodedError`` for every refusal."""
        raise NotImplementedError

    async def alarm(self) -> None:
        """Do what is due. Never raises."""
