"""Asking a service's allocator what it is and how far it has come."""

from __future__ import annotations

from typing import Final, Literal, TypeVar

import msgspec

from dcb_runtime.bootstrap.errors import ALLOCATOR_UNAVAILABLE
from dcb_runtime.dispatch import target
from dcb_runtime.errors import ErrorKind
from dcb_runtime.ports import PeerError, Peers
from dcb_runtime.rules.scope import ALLOCATOR, allocator_object_name
from dcb_runtime.wire import Count, Text

ALLOCATOR_INVALID = ErrorKind(
    "bootstrap_allocator_invalid", 500, "the allocator's answer makes no sense; look at what is deployed there"
)

OPEN: Final = "open"

Mode = Literal["open", "importing"]


class Lineage(msgspec.Struct, rename="camel", frozen=True):
    """Answer of ``GET /lineage``, which creates nothing: without a lineage the service was never used."""

    allocator_lineage_id: Text | None
    mode: Mode


class AllocatorState(msgspec.Struct, rename="camel", frozen=True):
    """Answer of ``GET /state``, which gives a service that was never used its lineage."""

    allocator_lineage_id: Text
    mode: Mode
    head: Count
    event_count: Count
    tag_count: Count
    allocated_watermark: Text | None


_Shape = TypeVar("_Shape")


async def ask_state(peers: Peers, service_id: str) -> AllocatorState:
    """The state of a service's allocator.

    Raises ``bootstrap_allocator_unavailable`` (503) when there is no good answer, ``bootstrap_allocator_invalid``
    (500) for one that makes no sense.
    """
    return await _ask(peers, service_id, "/state", AllocatorState)


async def ask_lineage(peers: Peers, service_id: str) -> Lineage:
    """The lineage of a service, if it has one. Raises as ``ask_state``."""
    return await _ask(peers, service_id, "/lineage", Lineage)


async def _ask(peers: Peers, service_id: str, route: str, shape: type[_Shape]) -> _Shape:
    path = target(route, service_id=service_id)
    try:
        reply = await peers.call(ALLOCATOR, allocator_object_name(service_id), path)
    except PeerError:
        raise ALLOCATOR_UNAVAILABLE() from None
    if not reply.ok:
        raise ALLOCATOR_UNAVAILABLE(f"answered {reply.status}")
    try:
        return msgspec.json.decode(reply.text, type=shape)
    except (msgspec.DecodeError, UnicodeError):
        raise ALLOCATOR_INVALID() from None
