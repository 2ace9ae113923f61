"""Issuing suids without events (the seed's ``/allocate``), and the seed that an import sets.

An attempt is remembered with its vector: the same attempt id gets the same vector, whatever it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from dcb_runtime.errors import ErrorKind
from dcb_runtime.ports import Clock, Entropy, Storage
from dcb_runtime.rules.order_clock import allocated_at, issue_suids
from dcb_runtime.wire import Count, Struct, Text, encode

INVALID_ALLOCATION = ErrorKind(
    "invalid_allocation",
    400,
    "send attemptId and 1 to 500 candidates with the indexes 0..n-1, each once, and unique non-empty event ids",
)
ALLOCATOR_ORDER_CLOCK_FAILED = ErrorKind(
    "allocator_order_clock_failed", 503, "the clock could not be read, nothing was issued; ask again"
)
ALLOCATOR_SEED_REJECTED = ErrorKind(
    "allocator_seed_rejected", 409, "the allocator has an order already; only a fresh service can be seeded"
)

CANDIDATES_MAX: Final = 500


class Candidate(Struct):
    """One event that wants a suid; the optional members are the reference's and are not used."""

    candidate_index: Count
    event_id: Text
    target_tags: list[str] | None = None
    pinned_writer_epoch: Count | None = None


class AllocateBody(Struct):
    """Body of ``POST /allocate``."""

    attempt_id: Text
    candidates: Annotated[list[Candidate], msgspec.Meta(min_length=1, max_length=CANDIDATES_MAX)]
    service_id: Text | None = None
    bootstrap_command_id: Text | None = None
    bootstrap_epoch: Count | None = None


@dataclass(frozen=True)
class Vector:
    """A stored vector as JSON text, whether this call made it, and the clock's rollback if it showed one."""

    text: str
    created: bool
    rollback_warning: dict[str, Any] | None = None


class Issuer:
    """Issues suids above the watermark. Methods run inside the caller's transaction."""

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy

    def watermark(self) -> str | None:
        """The highest suid that was issued or imported."""
        value = self._storage.exec("SELECT watermark FROM sequence")[0][0]
        return None if value is None else str(value)

    def stored(self, attempt_id: str) -> Vector | None:
        """The vector of an attempt that was decided before."""
        rows = self._storage.exec("SELECT vector FROM allocation WHERE attempt_id = ?", attempt_id)
        return Vector(rows[0][0], created=False) if rows else None

    def issue(self, body: AllocateBody, lineage_id: str, service_id: str | None) -> Vector:
        """Give each candidate a suid in index order; store vector and watermark together.

        Raises ``invalid_allocation`` (400) or ``allocator_order_clock_failed`` (503).
        """
        candidates = sorted(body.candidates, key=lambda candidate: candidate.candidate_index)
        if [candidate.candidate_index for candidate in candidates] != list(range(len(candidates))):
            raise INVALID_ALLOCATION("candidateIndex")
        if len({candidate.event_id for candidate in candidates}) != len(candidates):
            raise INVALID_ALLOCATION("eventId")
        try:
            now_ms = self._clock.now_ms()
        except Exception:
            raise ALLOCATOR_ORDER_CLOCK_FAILED() from None
        watermark = self.watermark()
        issue = issue_suids(now_ms, watermark, len(candidates), self._entropy.random_bytes)
        vector = encode(
            {
                "attemptId": body.attempt_id,
                "allocatorLineageId": lineage_id,
                "candidates": [
                    {"candidateIndex": candidate.candidate_index, "eventId": candidate.event_id, "suid": suid}
                    for candidate, suid in zip(candidates, issue.suids, strict=True)
                ],
                "allocatedAt": allocated_at(issue.base_ticks),
            }
        )
        self._storage.exec("INSERT INTO allocation VALUES (?, ?)", body.attempt_id, vector)
        self._storage.exec("UPDATE sequence SET watermark = ?", issue.suids[-1])
        warning = self._rollback_warning(now_ms, watermark, lineage_id, service_id) if issue.rolled_back else None
        return Vector(vector, created=True, rollback_warning=warning)

    def _rollback_warning(
        self, now_ms: int, watermark: str | None, lineage_id: str, service_id: str | None
    ) -> dict[str, Any] | None:
        """What to log about a clock that went back, once for each second that it shows."""
        fingerprint = f"rollback:{lineage_id}:{now_ms // 1000}"
        if self._storage.exec("SELECT rollback_fingerprint FROM sequence")[0][0] == fingerprint:
            return None
        self._storage.exec("UPDATE sequence SET rollback_fingerprint = ?", fingerprint)
        return {
            "type": "allocator_clock_rollback",
            "tick": now_ms,
            "watermark": watermark,
            "serviceId": service_id or "unknown-service",
            "allocatorLineageId": lineage_id,
        }

    def seed(self) -> dict[str, Any] | None:
        """The seed that an import set, as the reference shows it."""
        rows = self._storage.exec("SELECT import_id, lease_epoch, high_watermark FROM bootstrap_seed")
        if not rows:
            return None
        return {"importId": rows[0][0], "leaseEpoch": rows[0][1], "highWatermark": rows[0][2]}

    def refuse_other_seed(self, import_id: str, high_watermark: str) -> bool:
        """Whether this seed is set already; raises ``allocator_seed_rejected`` (409) when another order is."""
        seed = self.seed()
        if seed is None:
            if self.watermark() is not None:
                raise ALLOCATOR_SEED_REJECTED("allocator already allocating")
            return False
        if (seed["importId"], seed["highWatermark"]) != (import_id, high_watermark):
            raise ALLOCATOR_SEED_REJECTED("allocator already seeded")
        return True

    def set_seed(self, import_id: str, lease_epoch: int, high_watermark: str) -> None:
        """Let the order continue above ``high_watermark``."""
        self._storage.exec(
            "INSERT INTO bootstrap_seed VALUES (1, ?, ?, ?) "
            "ON CONFLICT (singleton) DO UPDATE SET lease_epoch = excluded.lease_epoch",
            import_id,
            lease_epoch,
            high_watermark,
        )
        self._storage.exec("UPDATE sequence SET watermark = ?", high_watermark)
