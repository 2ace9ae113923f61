"""The control record: the import's state, its lease and the cursor of its slices.

One row decides. It is changed only inside transactions, and a slice moves the cursor by compare-and-set, so
that whatever happened while it was away (abort, takeover, reset) wins.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Final

from dcb_runtime.limits import LEASE_MS
from dcb_runtime.ports import Storage

EMPTY: Final = "EMPTY"
PLANNED: Final = "PLANNED"
IMPORTING: Final = "IMPORTING"
VERIFYING: Final = "VERIFYING"
READY: Final = "READY"
FAILED: Final = "FAILED"

STORE_COMPLETION: Final = "prepopulated-manifest"
OPERATOR_ABORT: Final = "operator_abort"

IMPORT_PHASES: Final = ("index", "seed", "tags", "log")
VERIFY_PHASES: Final = ("verify_index", "verify_index_tags", "verify_tags", "verify_log")
READY_PHASES: Final = ("opening", "closing", "clearing", "done")
RESET_PHASES: Final = ("reset_fence", "reset_tags", "reset_log", "reset_index")

MANIFEST_PART_CHARACTERS: Final = 400_000
"""A part stays below the platform's 2 MB a value, whatever its characters take in UTF-8."""


@dataclass(frozen=True)
class Cursor:
    """How far the phase has come: a position, and a tag with the version reached in it."""

    phase: str
    position: int = 0
    tag: str = ""
    version: int = 0
    events_done: int = 0
    tags_done: int = 0


@dataclass(frozen=True)
class Control:
    """The stored row; field names are the column names."""

    service_id: str
    status: str = EMPTY
    import_id: str | None = None
    digest: str | None = None
    chain_digest: str | None = None
    event_count: int = 0
    tag_count: int = 0
    placement_count: int = 0
    high_watermark: str | None = None
    lineage_id: str | None = None
    lease_epoch: int = 0
    fenced_epoch: int = 0
    lease_until_ms: int | None = None
    pending_epoch: int | None = None
    retracting: int = 0
    resetting: int = 0
    reset_import_id: str | None = None
    failure: str | None = None
    planned_at_ms: int | None = None
    imported_at_ms: int | None = None
    verified_at_ms: int | None = None
    ready_at_ms: int | None = None
    verified_import_id: str | None = None
    verified_lease_epoch: int | None = None
    goal: str = "import"
    phase: str = "idle"
    position: int = 0
    tag: str = ""
    version: int = 0
    events_done: int = 0
    tags_done: int = 0
    phase_started_ms: int = 0
    progressed_ms: int = 0
    failures: int = 0
    blocked: int = 0
    error_code: str | None = None
    error_status: int | None = None
    error_text: str | None = None

    @property
    def cursor(self) -> Cursor:
        """The cursor's part of the row."""
        return Cursor(self.phase, self.position, self.tag, self.version, self.events_done, self.tags_done)

    @property
    def verified(self) -> bool:
        """Whether the present import and epoch have been verified."""
        return self.verified_import_id is not None and (self.verified_import_id, self.verified_lease_epoch) == (
            self.import_id,
            self.lease_epoch,
        )

    @property
    def normal(self) -> bool:
        """Whether normal traffic is admitted: nothing planned, or everything READY."""
        return self.status in (EMPTY, READY) and self.pending_epoch is None

    def at(self, cursor: Cursor, now_ms: int) -> Control:
        """The row with the cursor moved: a sign of life, so the lease is renewed and earlier errors are forgotten."""
        started = self.phase_started_ms if cursor.phase == self.phase else now_ms
        return replace(
            self,
            phase=cursor.phase,
            position=cursor.position,
            tag=cursor.tag,
            version=cursor.version,
            events_done=cursor.events_done,
            tags_done=cursor.tags_done,
            phase_started_ms=started,
            progressed_ms=now_ms,
            lease_until_ms=None if self.status in (READY, FAILED) else now_ms + LEASE_MS,
        ).without_error()

    def without_error(self) -> Control:
        """The row with its last error forgotten, so that work goes on."""
        return replace(self, failures=0, blocked=0, error_code=None, error_status=None, error_text=None)

    def unverified(self) -> Control:
        """The row with an earlier verification cleared."""
        return replace(self, verified_import_id=None, verified_lease_epoch=None, verified_at_ms=None)


_COLUMNS: Final = tuple(field.name for field in fields(Control))
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM control"
_WRITE: Final = f"INSERT OR REPLACE INTO control (singleton, {', '.join(_COLUMNS)}) VALUES (1{', ?' * len(_COLUMNS)})"


class ControlStore:
    """Reads and writes the row, the manifest and what was verified."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def load(self, service_id: str) -> Control:
        """The stored row, or the default one; loading never writes."""
        rows = self._storage.exec(_SELECT)
        return Control(*rows[0]) if rows else Control(service_id)

    def save(self, control: Control) -> None:
        """Write the row. Only inside a transaction that has loaded it."""
        self._storage.exec(_WRITE, *(getattr(control, column) for column in _COLUMNS))

    def set_manifest(self, manifest: dict[str, Any]) -> None:
        """Keep the manifest in parts: its tag counts may exceed one value."""
        self.clear_manifest()
        whole = json.dumps(manifest, ensure_ascii=False, separators=(",", ":"))
        for part, start in enumerate(range(0, len(whole), MANIFEST_PART_CHARACTERS)):
            self._storage.exec(
                "INSERT INTO manifest_part VALUES (?, ?)", part, whole[start : start + MANIFEST_PART_CHARACTERS]
            )

    def clear_manifest(self) -> None:
        """Forget the manifest."""
        self._storage.exec("DELETE FROM manifest_part")

    def manifest(self) -> dict[str, Any] | None:
        """The whole parsed manifest of the plan."""
        parts = self._storage.exec("SELECT text FROM manifest_part ORDER BY part")
        if not parts:
            return None
        parsed: dict[str, Any] = json.loads("".join(row[0] for row in parts))
        return parsed

    def set_verification(self, part: str, events: int, tags: int) -> None:
        """Note what one part of the verification compared."""
        self._storage.exec("INSERT OR REPLACE INTO verification VALUES (?, ?, ?)", part, events, tags)

    def clear_verification(self) -> None:
        """Forget what was compared: a new verification begins."""
        self._storage.exec("DELETE FROM verification")

    def verification(self) -> dict[str, dict[str, int]]:
        """What each part of the verification compared."""
        rows = self._storage.exec("SELECT part, events, tags FROM verification ORDER BY part")
        return {row[0]: {"events": row[1], "tags": row[2]} for row in rows}


def iso(ms: int | None) -> str | None:
    """Unix ms as ISO 8601 text in UTC with three decimals."""
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
