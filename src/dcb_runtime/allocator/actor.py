"""The Allocator's routes: state and lineage, suid allocation, the import fence and the index it fills."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final, TypeVar

from dcb_runtime.actor import Actor, Platform
from dcb_runtime.allocator.allocation import INVALID_ALLOCATION, AllocateBody, Issuer
from dcb_runtime.allocator.bodies import AdmitBody, EventsPage, HolderBody, SeedBody, TagsPage
from dcb_runtime.allocator.fence import ALLOCATOR_NOT_FRESH, BOOTSTRAP_LINEAGE_MISMATCH, Fence, Holder
from dcb_runtime.allocator.index import EventIndex
from dcb_runtime.allocator.tables import MIGRATIONS
from dcb_runtime.bootstrap.errors import COMMAND_REJECTED
from dcb_runtime.dispatch import Request, path_tail, target
from dcb_runtime.errors import ErrorKind
from dcb_runtime.limits import CHUNK_EVENTS_MAX
from dcb_runtime.ports import PeerError, Reply
from dcb_runtime.rules.scope import is_service_id, object_name
from dcb_runtime.rules.suid import is_suid
from dcb_runtime.schema import Schema
from dcb_runtime.wire import decode, encode, reply

T = TypeVar("T")

STATE_SCHEMA_VERSION: Final = 5
"""The version that the reference's state carries (reference-protocol section 6.1)."""

ALLOCATE: Final = "/allocate"
ATTEMPTS: Final = "/attempts/"

ALLOCATOR_ROUTE_NOT_FOUND = ErrorKind("allocator_route_not_found", 404, "the allocator has no such route")
ALLOCATION_NOT_FOUND = ErrorKind("allocation_not_found", 404, "no such attempt was decided here; allocate first")
INVALID_ATTEMPT_ID = ErrorKind("invalid_attempt_id", 400, "the attempt id must be non-empty percent-encoded UTF-8")
INVALID_BOOTSTRAP_SEED = ErrorKind(
    "invalid_bootstrap_seed", 400, "send importId, leaseEpoch and a highWatermark of 30 digits"
)
INVALID_FENCE_REQUEST = ErrorKind(
    "invalid_fence_request", 400, "send importId, digest, leaseEpoch and what the route's structure names"
)
COORDINATOR_UNREACHABLE = ErrorKind(
    "allocator_coordinator_unreachable", 503, "the coordinator could not be asked, nothing was issued; ask again"
)


class Allocator(Actor):
    """The service's one sequencer. Each route is one transaction; only ``/allocate`` may need a hop."""

    actor_class = "allocator"

    def __init__(self, platform: Platform) -> None:
        super().__init__(platform)
        self._storage = platform.storage
        self._schema = Schema(self._storage, MIGRATIONS)
        self._fence = Fence(self._storage)
        self._index = EventIndex(self._storage)
        self._issuer = Issuer(self._storage, platform.clock, platform.entropy)
        self._handlers = {
            ("GET", "/state"): self._state,
            ("GET", "/lineage"): self._peek,
            ("POST", "/seed-after"): self._seed_after,
            ("POST", "/fence/raise"): self._raise_fence,
            ("POST", "/fence/cancel"): self._cancel_fence,
            ("POST", "/fence/open"): self._open,
            ("POST", "/fence/reset"): self._reset,
            ("POST", "/import/admit"): self._admit,
            ("POST", "/index/events"): self._index_events,
            ("POST", "/index/tags"): self._index_tags,
        }
        self.paths = frozenset(path for _, path in self._handlers) | {ALLOCATE}

    async def route(self, request: Request) -> Reply:
        """Dispatch one request. Raises ``CodedError`` for every refusal."""
        if request.method == "GET" and request.path.startswith(ATTEMPTS):
            return self._attempt(request)
        if (request.method, request.path) == ("POST", ALLOCATE):
            return await self._allocate(request)
        handler = self._handlers.get((request.method, request.path))
        if handler is None:
            raise ALLOCATOR_ROUTE_NOT_FOUND()
        return handler(request)

    def operation(self, request: Request) -> str:
        """The route's name for a span."""
        return f"{ATTEMPTS}{{attemptId}}" if request.path.startswith(ATTEMPTS) else super().operation(request)

    def _decide(self, work: Callable[[str], T]) -> T:
        """Run ``work`` with the lineage in one transaction: a refusal leaves nothing.

        The tables come before it, since a refusal would take them back while this activation counts on them.
        """
        self._schema.ensure()
        return self._storage.transaction(lambda: work(self._lineage()))

    def _lineage(self) -> str:
        """The lineage of the service, made at the first touch and the same ever after."""
        rows = self._storage.exec("SELECT allocator_lineage_id FROM identity")
        if rows:
            return str(rows[0][0])
        lineage = self.platform.new_uuid()
        self._storage.exec("INSERT INTO identity VALUES (1, ?, ?)", lineage, self.platform.clock.now_ms())
        return lineage

    def _facts(self) -> dict[str, Any]:
        fingerprint = self._storage.exec("SELECT rollback_fingerprint FROM sequence")[0][0]
        events, tags = self._index.counts()
        return {
            "schemaVersion": STATE_SCHEMA_VERSION,
            "allocatorLineageId": self._lineage(),
            "allocatedWatermark": self._issuer.watermark(),
            "bootstrapSeed": self._issuer.seed(),
            "lastRollbackWarningFingerprint": fingerprint,
            "mode": self._fence.mode(),
            "head": self._index.head(),
            "eventCount": events,
            "tagCount": tags,
        }

    def _state(self, _: Request) -> Reply:
        self._decide(lambda _: None)
        return reply(200, self._facts())

    def _peek(self, _: Request) -> Reply:
        """The lineage if there is one; looking creates nothing."""
        if not self._schema.exists():
            return reply(200, {"allocatorLineageId": None, "mode": "open"})
        rows = self._storage.exec("SELECT allocator_lineage_id FROM identity")
        return reply(200, {"allocatorLineageId": rows[0][0] if rows else None, "mode": self._fence.mode()})

    def _attempt(self, request: Request) -> Reply:
        attempt_id = path_tail(request.path, ATTEMPTS)
        if not attempt_id:
            raise INVALID_ATTEMPT_ID()
        vector = self._issuer.stored(attempt_id) if self._schema.exists() else None
        if vector is None:
            raise ALLOCATION_NOT_FOUND()
        return Reply(200, vector.text)

    async def _allocate(self, request: Request) -> Reply:
        body = decode(request.body, AllocateBody, INVALID_ALLOCATION)
        if body.service_id is not None and body.bootstrap_command_id is not None and body.bootstrap_epoch is not None:
            await self._finalize(body.service_id, body.bootstrap_command_id, body.bootstrap_epoch)
        service_id = request.service_id or body.service_id

        def decide(lineage: str) -> Reply:
            self._fence.refuse_while_importing()
            vector = self._issuer.stored(body.attempt_id) or self._issuer.issue(body, lineage, service_id)
            if vector.rollback_warning is not None:
                self.platform.log_line(json.dumps(vector.rollback_warning))
            return Reply(201 if vector.created else 200, vector.text)

        return self._decide(decide)

    async def _finalize(self, service_id: str, command_id: str, lease_epoch: int) -> None:
        """Ask the coordinator whether the command still holds. One hop."""
        if not is_service_id(service_id):
            raise INVALID_ALLOCATION("serviceId")
        name = object_name(service_id, "bootstrap", "coordinator")
        body = encode({"commandId": command_id, "leaseEpoch": lease_epoch})
        path = target("/command/finalize", service_id=service_id)
        try:
            answer = await self.platform.peers.call("bootstrap", name, path, body)
        except PeerError:
            raise COORDINATOR_UNREACHABLE() from None
        if not answer.ok:
            raise COMMAND_REJECTED()

    def _seed_after(self, request: Request) -> Reply:
        body = decode(request.body, SeedBody, INVALID_BOOTSTRAP_SEED)
        if not is_suid(body.high_watermark):
            raise INVALID_BOOTSTRAP_SEED("highWatermark")

        def decide(_: str) -> int:
            same = self._issuer.refuse_other_seed(body.import_id, body.high_watermark)
            # The reference's body has no digest: the import's id and epoch have to do.
            self._fence.require(Holder(body.import_id, self._fence.digest(), body.lease_epoch))
            self._issuer.set_seed(body.import_id, body.lease_epoch, body.high_watermark)
            return 200 if same else 201

        status = self._decide(decide)
        return reply(status, self._facts())

    def _raise_fence(self, request: Request) -> Reply:
        body = decode(request.body, HolderBody, INVALID_FENCE_REQUEST)

        def decide(lineage: str) -> None:
            if body.allocator_lineage_id is not None and body.allocator_lineage_id != lineage:
                raise BOOTSTRAP_LINEAGE_MISMATCH()
            fresh = self._index.head() == 0 and self._issuer.watermark() is None
            self._fence.raise_for(body.holder(), fresh)

        self._decide(decide)
        return reply(200, {"mode": "importing", "allocatorLineageId": self._lineage()})

    def _cancel_fence(self, request: Request) -> Reply:
        body = decode(request.body, HolderBody, INVALID_FENCE_REQUEST)

        def decide(_: str) -> None:
            if self._index.head() > 0 and self._fence.mode() == "importing":
                raise ALLOCATOR_NOT_FRESH("the import has begun")
            self._fence.cancel(body.holder())

        self._decide(decide)
        return reply(200, {"mode": self._fence.mode()})

    def _open(self, request: Request) -> Reply:
        body = decode(request.body, HolderBody, INVALID_FENCE_REQUEST)

        def decide(_: str) -> None:
            self._fence.lower(body.holder(), "opened")

        self._decide(decide)
        return reply(200, {"mode": "open"})

    def _reset(self, request: Request) -> Reply:
        body = decode(request.body, HolderBody, INVALID_FENCE_REQUEST)

        def decide(_: str) -> None:
            if self._fence.lower(body.holder(), "reset"):
                self._index.clear()

        self._decide(decide)
        return reply(200, {"mode": "open"})

    def _admit(self, request: Request) -> Reply:
        body = decode(request.body, AdmitBody, INVALID_FENCE_REQUEST, own=True)
        # What the database reads is what was validated: never the text as it came.
        events = encode(body.events)

        def decide(_: str) -> int:
            self._fence.require(Holder(body.import_id, body.digest, body.lease_epoch))
            return self._index.admit(body.first_position, len(body.events), events)

        new = self._decide(decide)
        return reply(200, {"new": new, "head": self._index.head()})

    def _index_events(self, request: Request) -> Reply:
        body = decode(request.body, EventsPage, INVALID_FENCE_REQUEST)
        self._schema.ensure()
        if body.until - body.after > 10 * CHUNK_EVENTS_MAX:
            raise INVALID_FENCE_REQUEST("until")
        return reply(200, {"sha256": sha256(self._index.events_text(body.after, body.until).encode()).hexdigest()})

    def _index_tags(self, request: Request) -> Reply:
        body = decode(request.body, TagsPage, INVALID_FENCE_REQUEST)
        self._schema.ensure()
        text = self._index.tags_text(body.tag, body.version, body.limit)
        return reply(200, {"sha256": sha256(text.encode()).hexdigest()})
