"""What one step of an import works with, and how the answers of other objects are read.

A step never decides that something is lost: an answer that did not come, or a 5xx, only delays it. A refusal
blocks it until an operator looks.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dcb_runtime.actor import Platform
from dcb_runtime.bootstrap.control import Control, ControlStore, Cursor
from dcb_runtime.bootstrap.errors import ALLOCATOR_UNAVAILABLE, LOG_UNAVAILABLE, TAG_UNAVAILABLE
from dcb_runtime.bootstrap.staging import Staging
from dcb_runtime.dispatch import target
from dcb_runtime.errors import CodedError, ErrorKind
from dcb_runtime.log.event_log import EventLog
from dcb_runtime.ports import DatabaseError, PeerError, Peers, Reply
from dcb_runtime.rules.scope import object_name, tag_object_name
from dcb_runtime.wire import encode

Step = Callable[["Job", Cursor], Awaitable[Cursor]]
"""One bounded piece of work from a cursor; returns the cursor behind it. Repeating it changes nothing."""


class Delayed(Exception):
    """The step could not be finished now; it is tried again. Carries what the status shows meanwhile."""

    def __init__(self, error: CodedError) -> None:
        super().__init__(error.code)
        self.error = error


@dataclass(frozen=True)
class Job:
    """One import as its steps see it: the control row as it was when the step began, and the ways out."""

    control: Control
    staging: Staging
    peers: Peers
    log: EventLog

    @property
    def identity(self) -> dict[str, Any]:
        """The import's identity as the allocator wants it."""
        return {
            "importId": self.control.import_id,
            "digest": self.control.digest,
            "leaseEpoch": self.control.pending_epoch or self.control.lease_epoch,
        }

    @property
    def tag_identity(self) -> dict[str, Any]:
        """The import's identity as a tag wants it."""
        return {
            "importId": self.control.import_id,
            "leaseEpoch": self.control.lease_epoch,
            "manifestDigest": self.control.digest,
            "targetServiceId": self.control.service_id,
            "allocatorLineageId": self.control.lineage_id,
        }

    async def allocator(self, path: str, body: str | None, refused: ErrorKind) -> dict[str, Any]:
        """Ask the allocator; one hop. Raises ``refused`` with its status for a 4xx, ``Delayed`` otherwise."""
        service_id = self.control.service_id
        name = object_name(service_id, "allocator", "allocator")
        call = self.peers.call("allocator", name, target(path, service_id=service_id), body)
        return await _read(call, refused, ALLOCATOR_UNAVAILABLE, "")

    async def tag(self, tag: str, path: str, body: str, refused: ErrorKind) -> dict[str, Any]:
        """Ask a tag; one hop. Raises as ``allocator``."""
        service_id = self.control.service_id
        name = tag_object_name(service_id, tag)
        call = self.peers.call("tag", name, target(path, tag=tag, service_id=service_id), body)
        return await _read(call, refused, TAG_UNAVAILABLE, f"tag {encode(tag)}")


async def _read(call: Awaitable[Reply], refused: ErrorKind, unavailable: ErrorKind, place: str) -> dict[str, Any]:
    try:
        answer = await call
    except PeerError:
        raise Delayed(unavailable(place)) from None
    if answer.status >= 500:
        raise Delayed(unavailable(place))
    body: dict[str, Any] = json.loads(answer.text)
    if not answer.ok:
        raise refused(place, status=answer.status, reason=body.get("reason") or body.get("code"))
    return body


@dataclass(frozen=True)
class Context:
    """What planning, stepping and the routes share: the object's ports, its rows, and the log."""

    platform: Platform
    store: ControlStore
    staging: Staging
    log: EventLog

    def job(self, control: Control) -> Job:
        """What a step works with."""
        return Job(control, self.staging, self.platform.peers, self.log)

    def wake(self) -> None:
        """Have the alarm come at once: called in the turn that creates a duty, before its transaction."""
        self.platform.storage.set_alarm(self.platform.clock.now_ms())


async def ask_log(call: Awaitable[Any]) -> Any:
    """Await a call of the log; an outage only delays the step. The log's own refusals pass."""
    try:
        return await call
    except DatabaseError:
        raise Delayed(LOG_UNAVAILABLE()) from None


async def at_once(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    """Run calls in parallel, all to their end; then raise the first failure, refusals before delays."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in sorted(failures, key=lambda failure: not isinstance(failure, CodedError)):
        raise failure
    return list(results)


def envelope(identity: dict[str, Any], **texts: str) -> str:
    """A JSON body of ``identity`` and members whose values are JSON texts already."""
    members = "".join(f",{encode(name)}:{value}" for name, value in texts.items())
    return f"{encode(identity)[:-1]}{members}}}"
