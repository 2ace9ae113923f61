"""Asking a service's bootstrap coordinator, and reading what it says about its import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from dcb_runtime.dispatch import target
from dcb_runtime.entry.http import ObjectAnswer
from dcb_runtime.errors import CodedError, ErrorKind
from dcb_runtime.ports import PeerError, Peers, Reply
from dcb_runtime.rules.scope import BOOTSTRAP, bootstrap_object_name
from dcb_runtime.wire import encode

BOOTSTRAP_COORDINATOR_UNAVAILABLE = ErrorKind(
    "bootstrap_coordinator_unavailable",
    503,
    "the coordinator could not be asked or its answer was lost; ask again with the same ids, nothing is lost",
)

READY: Final = "READY"
EMPTY: Final = "EMPTY"
FAILED: Final = "FAILED"


_Shape = TypeVar("_Shape")


class _Tolerant(msgspec.Struct, rename="camel", frozen=True):
    """What is read of an object's answer; members that are not needed here are passed over."""


class LastError(_Tolerant, frozen=True):
    """Why the work does not go on."""

    code: str
    status: int
    error: str


class Progress(_Tolerant, frozen=True):
    """How far the work has come."""

    running: bool = False
    blocked: bool = False
    last_error: LastError | None = None


class Record(_Tolerant, frozen=True):
    """The control record."""

    status: str
    import_id: str | None
    lease_epoch: int
    progress: Progress
    digest: str | None = None
    manifest: msgspec.Raw = msgspec.Raw(b"null")
    verified_import_id: str | None = None
    verified_lease_epoch: int | None = None

    def is_of(self, fence: Fence) -> bool:
        """Whether the record is still of this import and lease epoch."""
        return (self.import_id, self.lease_epoch) == (fence.import_id, fence.lease_epoch)

    def verified_for(self, fence: Fence) -> bool:
        """Whether this import was verified under this lease epoch."""
        return (self.verified_import_id, self.verified_lease_epoch) == (fence.import_id, fence.lease_epoch)

    def parsed_manifest(self) -> dict[str, Any]:
        """The plan's manifest, taken apart. It may be large, and only the hook needs it."""
        return msgspec.json.decode(self.manifest, type=dict[str, Any])

    def blockage(self) -> CodedError | None:
        """Why the work cannot go on by itself, if so."""
        if not self.progress.blocked:
            return None
        error = self.progress.last_error
        if error is None or not 400 <= error.status <= 599:
            return BOOTSTRAP_COORDINATOR_UNAVAILABLE("blocked without a reason")
        return CodedError(error.code, error.status, error.error)


class Claim(_Tolerant, frozen=True):
    """The right to run the hook, until it expires."""

    token: str


@dataclass(frozen=True)
class Fence:
    """The import and lease epoch that a call is meant for."""

    import_id: str
    lease_epoch: int

    def body(self, **more: str) -> str:
        """The JSON body of a call."""
        return encode({"importId": self.import_id, "leaseEpoch": self.lease_epoch, **more})


class Coordinator:
    """One service's coordinator. Nothing of the incoming request reaches it but what is passed here."""

    def __init__(self, peers: Peers, service_id: str) -> None:
        self._peers = peers
        self._service_id = service_id

    async def ask(self, route: str, body: str | None = None) -> Reply:
        """One hop. Raises ``bootstrap_coordinator_unavailable`` when no answer came."""
        name = bootstrap_object_name(self._service_id)
        try:
            return await self._peers.call(BOOTSTRAP, name, target(route, service_id=self._service_id), body)
        except PeerError:
            raise BOOTSTRAP_COORDINATOR_UNAVAILABLE() from None

    async def state(self) -> tuple[Record, Reply]:
        """The present record, read and as it came. A refusal ends the request and is passed on."""
        reply = await self.ask("/state")
        return read_record(reply), reply


def read_record(reply: Reply) -> Record:
    """The record of an answer. Raises ``ObjectAnswer`` for a refusal, 503 for an answer that is none."""
    return _read(reply, Record)


def read_claim(reply: Reply) -> Claim:
    """The claim of an answer. Raises as ``read_record``."""
    return _read(reply, Claim)


def _read(reply: Reply, shape: type[_Shape]) -> _Shape:
    if not reply.ok:
        raise ObjectAnswer(reply)
    try:
        return msgspec.json.decode(reply.text, type=shape)
    except (msgspec.DecodeError, UnicodeError):
        raise BOOTSTRAP_COORDINATOR_UNAVAILABLE("unreadable answer") from None
