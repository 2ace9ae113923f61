"""What a span hook is told about a command, and the hook's shape."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias


class Outcome(StrEnum):
    """How a command ended. A conflict is an answer that the protocol expects, not an error."""

    OK = "ok"
    CONFLICT = "conflict"
    REJECTED = "rejected"
    ERROR = "error"


@dataclass(frozen=True)
class Command:
    """One command as a hook may see it: never a tag, a payload, a token or a metadata value."""

    name: str
    """The operation, of a small fixed set: a route template or an object's route."""
    actor_class: str
    """``entry``, ``allocator``, ``tag`` or ``bootstrap``."""
    service_id: str | None = None
    actor_key_hash: str | None = None
    """``actor_key_hash`` of the object: tells objects apart without naming a tag."""
    command_id: str | None = None
    """The attempt id of an append or the command id of a coordinator's command."""
    activation_id: str | None = None
    activation_first: bool = False
    """Whether this is the first command since the object came to life (a cold start)."""


@dataclass(frozen=True)
class Done:
    """How the work ended: its status, unless it raised, and the type of what it raised."""

    outcome: Outcome
    status: int | None = None
    error_type: str | None = None


Observed: TypeAlias = Callable[[], Awaitable[Done]]
"""Starts the work, or joins it when it was started already, and tells how it ended. It does not raise
what the work raises: exceptions carry texts that must not reach a trace."""


class Spans(Protocol):
    """A span hook. ``guard.traced`` keeps whatever it does away from the command's result."""

    async def run(self, command: Command, work: Observed) -> None:
        """Call ``work`` inside a span and note how it ended.

        The work starts in the context (``contextvars``) of this call, so that a span which is made the
        parent there is found by the spans inside.
        """


def outcome_of(status: int) -> Outcome:
    """The outcome that an answer's status stands for."""
    if status >= 500:
        return Outcome.ERROR
    if status == 409:
        return Outcome.CONFLICT
    return Outcome.REJECTED if status >= 400 else Outcome.OK


def actor_key_hash(actor_class: str, service_id: str, tag: str | None = None) -> str:
    """The SHA-256 of an object's identity; a tag never leaves in clear. Never raises, whatever the tag."""
    key = f"{actor_class}:{service_id}" if tag is None else f"{actor_class}:{service_id}:{tag}"
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
