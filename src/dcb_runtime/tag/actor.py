"""The Tag's routes: admission of an import, its end or its reset, state, pages of events and their digest."""

from __future__ import annotations

from typing import Annotated

import msgspec

from dcb_runtime.actor import Actor, Platform
from dcb_runtime.dispatch import Request
from dcb_runtime.errors import LINEAGE_MISMATCH, ErrorKind
from dcb_runtime.limits import CHUNK_EVENTS_MAX, READ_PAGE_EVENTS_MAX, SAFE_INTEGER_MAX
from dcb_runtime.ports import Reply, Row
from dcb_runtime.schema import Schema
from dcb_runtime.tag.admission import CONFLICT, Admission, Writer, rejection
from dcb_runtime.tag.events import EventsConflict, TagEvents
from dcb_runtime.tag.tables import MIGRATIONS
from dcb_runtime.wire import Count, Number, Struct, Text, decode, encode, reply

STATE_SCHEMA_VERSION = 1

TAG_IDENTITY_REQUIRED = ErrorKind("tag_identity_required", 400, "name the tag in the query parameter __tag")
TAG_IDENTITY_CONFLICT = ErrorKind("tag_identity_conflict", 409, "this object serves another tag or service")
MALFORMED_TAG_REQUEST = ErrorKind("malformed_tag_request", 400, "the request must be JSON of the route's shape")
TAG_ROUTE_NOT_FOUND = ErrorKind("tag_route_not_found", 404, "a tag has no such route")
TAG_NOT_FOUND = ErrorKind("tag_not_found", 404, "nothing was ever written under this tag")
INVALID_BOOTSTRAP_ADMISSION = ErrorKind(
    "invalid_bootstrap_admission", 400, "send the import's identity and 1 to 1,000 candidates that carry this tag"
)
INVALID_BOOTSTRAP_CLOSE = ErrorKind("invalid_bootstrap_close", 400, "send importId and leaseEpoch")
INVALID_BOOTSTRAP_RESET = ErrorKind("invalid_bootstrap_reset", 400, "send the import's identity and its new epoch")
BOOTSTRAP_SERVICE_SCOPE_MISMATCH = ErrorKind(
    "bootstrap_service_scope_mismatch", 409, "targetServiceId is not the service that this object belongs to"
)


class Candidate(Struct):
    """One imported event. Its payload was checked to be JSON when the dump was read and is not parsed again."""

    position: Number
    event_id: Annotated[str, msgspec.Meta(min_length=36, max_length=36)]
    suid: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{30}\Z")]
    event_type: Text
    payload: Text
    event_tags: list[Text]
    timestamp: Text
    causation_id: Text | None
    correlation_id: Text | None
    executed_user: Text | None


class ImportBody(Struct):
    """Which import asks. Alone it is the body of ``POST /bootstrap/reset``."""

    import_id: Text
    lease_epoch: Count
    manifest_digest: Text
    target_service_id: Text
    allocator_lineage_id: Text

    def writer(self) -> Writer:
        """The import as the admission knows it."""
        return Writer(self.import_id, self.manifest_digest, self.lease_epoch)


class AdmitBody(ImportBody):
    """Body of ``POST /bootstrap/admit``: the tag's events from ``first_version`` on, in version order."""

    first_version: Number
    candidates: Annotated[list[Candidate], msgspec.Meta(min_length=1, max_length=CHUNK_EVENTS_MAX)]


class CloseBody(Struct):
    """Body of ``POST /bootstrap/close``."""

    import_id: Text
    lease_epoch: Count


class DigestBody(Struct):
    """Body of ``POST /digest``: ``limit`` events behind version ``after``."""

    after: Count
    limit: Annotated[int, msgspec.Meta(ge=1, le=CHUNK_EVENTS_MAX)]


class Tag(Actor):
    """One tag's events. Every route is local: no hops, a handful of statements over sets."""

    actor_class = "tag"

    def __init__(self, platform: Platform) -> None:
        super().__init__(platform)
        self._storage = platform.storage
        self._schema = Schema(self._storage, MIGRATIONS)
        self._events = TagEvents(self._storage)
        self._admission = Admission(self._storage)
        self._handlers = {
            ("GET", "/state"): self._state,
            ("GET", "/head-facts"): self._head_facts,
            ("GET", "/events"): self._page,
            ("POST", "/digest"): self._digest,
            ("POST", "/bootstrap/admit"): self._admit,
            ("POST", "/bootstrap/close"): self._close,
            ("POST", "/bootstrap/reset"): self._reset,
        }
        self.paths = frozenset(path for _, path in self._handlers)

    async def route(self, request: Request) -> Reply:
        """Dispatch one request. Raises ``CodedError`` for every refusal."""
        tag = request.query.get("__tag")
        if not tag:
            raise TAG_IDENTITY_REQUIRED()
        handler = self._handlers.get((request.method, request.path))
        if handler is None:
            raise TAG_ROUTE_NOT_FOUND()
        return handler(request, tag)

    def _bound(self) -> Row | None:
        """Service, tag and lineage that the object is bound to, if it is; looking creates nothing."""
        used = self._schema.exists()
        rows = self._storage.exec("SELECT service_id, tag, allocator_lineage_id FROM identity") if used else []
        return rows[0] if rows else None

    def _identity(self, request: Request, tag: str) -> str:
        """The lineage this tag is bound to. Raises ``tag_not_found`` or ``tag_identity_conflict``."""
        bound = self._bound()
        if bound is None:
            raise TAG_NOT_FOUND()
        if bound[1] != tag or request.service_id not in (None, bound[0]):
            raise TAG_IDENTITY_CONFLICT()
        return str(bound[2])

    def _bind(self, service_id: str, tag: str, lineage: str) -> None:
        """Bind the object to its first service, tag and lineage; refuse any other."""
        bound = self._bound()
        if bound is None:
            self._storage.exec("INSERT INTO identity VALUES (1, ?, ?, ?)", service_id, tag, lineage)
        elif (bound[0], bound[1]) != (service_id, tag):
            raise TAG_IDENTITY_CONFLICT()
        elif bound[2] != lineage:
            raise LINEAGE_MISMATCH()

    def _state(self, request: Request, tag: str) -> Reply:
        lineage = self._identity(request, tag)
        head = self._events.head()
        return reply(
            200,
            {
                "schemaVersion": STATE_SCHEMA_VERSION,
                "tag": tag,
                "allocatorLineageId": lineage,
                "version": head.version,
                "head": head.suid,
                "headPosition": head.position,
                "bootstrapAdmission": self._admission.state(),
            },
        )

    def _head_facts(self, request: Request, tag: str) -> Reply:
        self._identity(request, tag)
        head = self._events.head()
        return reply(200, {"head": head.suid, "headPosition": head.position, "version": head.version})

    def _page(self, request: Request, tag: str) -> Reply:
        """A page of events; an unused tag has none, and looking at it creates nothing."""
        after = _number(request.query.get("after", "0"), 0, 2**53 - 1)
        limit = _number(request.query.get("limit", "100"), 1, READ_PAGE_EVENTS_MAX)
        if self._bound() is None:
            unused = {"tag": tag, "version": 0, "head": 0, "suid": "", "allocatorLineageId": None, "events": []}
            return reply(200, unused)
        lineage = self._identity(request, tag)
        head = self._events.head()
        page = self._events.page(after, limit)
        following = f',"next":{page.last}' if page.more else ""
        return Reply(
            200,
            f'{{"tag":{encode(tag)},"version":{head.version},"head":{head.position},"suid":"{head.suid}",'
            f'"allocatorLineageId":{encode(lineage)},"events":{page.events}{following}}}',
        )

    def _digest(self, request: Request, tag: str) -> Reply:
        body = decode(request.body, DigestBody, MALFORMED_TAG_REQUEST)
        lineage = self._identity(request, tag)
        head = self._events.head()
        first, last = self._events.stored_versions()
        return reply(
            200,
            {
                "allocatorLineageId": lineage,
                "storedFrom": first,
                "storedTo": last,
                "version": head.version,
                "head": head.suid,
                "headPosition": head.position,
                "sha256": self._events.digest(body.after, body.limit),
            },
        )

    def _admit(self, request: Request, tag: str) -> Reply:
        body = decode(request.body, AdmitBody, INVALID_BOOTSTRAP_ADMISSION, syntax=MALFORMED_TAG_REQUEST, own=True)
        if any(tag not in candidate.event_tags for candidate in body.candidates):
            raise INVALID_BOOTSTRAP_ADMISSION("eventTags")
        self._require_service(request, body.target_service_id)
        # What the database reads is what was validated: never the text as it came.
        events = encode(body.candidates)

        def admit() -> int:
            self._bind(body.target_service_id, tag, body.allocator_lineage_id)
            self._admission.enter(body.writer(), self._events.head().version > 0)
            return self._events.admit(body.first_version, len(body.candidates), events)

        self._schema.ensure()
        try:
            new = self._storage.transaction(admit)
        except EventsConflict:
            raise rejection(CONFLICT) from None
        status, said = (201, "bootstrap_admitted") if new else (200, "duplicate")
        return reply(status, {"status": said, "version": self._events.head().version})

    def _close(self, request: Request, tag: str) -> Reply:
        body = decode(request.body, CloseBody, INVALID_BOOTSTRAP_CLOSE, syntax=MALFORMED_TAG_REQUEST)
        self._identity(request, tag)
        self._storage.transaction(lambda: self._admission.close(body.import_id, body.lease_epoch))
        return reply(200, {"status": "closed", "version": self._events.head().version})

    def _reset(self, request: Request, tag: str) -> Reply:
        """Remove what the import wrote, and leave the epoch that any later import needs at least."""
        body = decode(request.body, ImportBody, INVALID_BOOTSTRAP_RESET, syntax=MALFORMED_TAG_REQUEST)
        self._require_service(request, body.target_service_id)

        def reset() -> None:
            self._bind(body.target_service_id, tag, body.allocator_lineage_id)
            if self._admission.forget(body.writer()):
                self._events.clear()

        self._schema.ensure()
        self._storage.transaction(reset)
        return reply(200, {"status": "reset", "version": self._events.head().version})

    def _require_service(self, request: Request, target_service_id: str) -> None:
        if request.service_id not in (None, target_service_id):
            raise BOOTSTRAP_SERVICE_SCOPE_MISMATCH()


def _number(value: str, low: int, high: int) -> int:
    digits = value.isascii() and value.isdecimal() and len(value) <= len(str(SAFE_INTEGER_MAX))
    if not digits or not low <= int(value) <= high:
        raise MALFORMED_TAG_REQUEST("after or limit")
    return int(value)
