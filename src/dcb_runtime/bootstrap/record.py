"""The control record as the routes show it: the reference's fields, `progress` as counts."""

from __future__ import annotations

from typing import Any, Final

from dcb_runtime.bootstrap.control import (
    IMPORTING,
    PLANNED,
    READY,
    STORE_COMPLETION,
    VERIFYING,
    Control,
    ControlStore,
    iso,
)
from dcb_runtime.bootstrap.hook import claimed_until_ms
from dcb_runtime.ports import Storage

RECORD_SCHEMA_VERSION: Final = 1

_PAIR_PHASES: Final = ("tags", "verify_index_tags", "verify_tags")
"""Phases that count an event once for each of its tags."""


def working(control: Control) -> bool:
    """Whether the alarm has something to do for this import that nothing blocks."""
    if control.blocked:
        return False
    if control.pending_epoch is not None or control.resetting:
        return True
    if control.status in (PLANNED, IMPORTING, VERIFYING) and control.fenced_epoch < control.lease_epoch:
        return True
    if control.status == IMPORTING:
        return True
    if control.status == VERIFYING:
        return control.goal == "verify" and not control.verified
    return control.status == READY and control.phase != "done"


def running(control: Control) -> bool:
    """Whether the caller should wait: work is on its way whose outcome the caller is to be told."""
    return working(control) and control.phase not in ("closing", "clearing")


def progress(control: Control) -> dict[str, Any]:
    """How far the present phase has come, its rate, and the last error if it has not been overcome."""
    total = control.placement_count if control.phase in _PAIR_PHASES else control.event_count
    elapsed_ms = control.progressed_ms - control.phase_started_ms
    rate = round(control.events_done * 1000 / elapsed_ms, 1) if elapsed_ms > 0 else None
    error = None
    if control.error_code is not None:
        error = {"code": control.error_code, "status": control.error_status, "error": control.error_text}
    return {
        "phase": control.phase,
        "running": running(control),
        "blocked": bool(control.blocked),
        "events": {"done": control.events_done, "total": total},
        "tags": {"done": control.tags_done, "total": control.tag_count},
        "ratePerSecond": rate,
        "lastError": error,
    }


def record(control: Control, store: ControlStore | None, storage: Storage | None) -> dict[str, Any]:
    """The whole record; without stores (nothing was ever written) its default."""
    hidden = control.pending_epoch is not None
    shown = Control(control.service_id, lease_epoch=control.lease_epoch) if hidden else control
    manifest = store.manifest() if store is not None and not hidden else None
    normal, released = _commands(storage)
    view: dict[str, Any] = {
        "schemaVersion": RECORD_SCHEMA_VERSION,
        "status": shown.status,
        "importId": shown.import_id,
        "targetServiceId": shown.service_id,
        "allocatorLineageId": shown.lineage_id,
        "source": manifest["source"] if manifest else None,
        "digest": shown.digest,
        "manifest": manifest,
        "progress": progress(control),
        "leaseEpoch": shown.lease_epoch,
        "leaseUntil": shown.lease_until_ms,
        "failure": shown.failure,
        "readyAt": iso(shown.ready_at_ms),
        "normalInFlight": len(normal),
        "normalCommands": normal,
        "releasedCommands": released,
        "verifiedImportId": shown.verified_import_id,
        "verifiedLeaseEpoch": shown.verified_lease_epoch,
        "hookClaimedUntil": claimed_until_ms(storage) if storage is not None else None,
        "storeCompletion": STORE_COMPLETION if shown.verified else None,
        "resetting": bool(shown.resetting),
    }
    if hidden:
        view["pendingPlan"] = {"importId": control.import_id, "leaseEpoch": control.pending_epoch}
    return view


def _commands(storage: Storage | None) -> tuple[dict[str, int], dict[str, int]]:
    if storage is None:
        return {}, {}
    rows = storage.exec("SELECT command_id, lease_epoch, released FROM command ORDER BY sequence")
    normal = {row[0]: row[1] for row in rows if not row[2]}
    released = {row[0]: row[1] for row in rows if row[2]}
    return normal, released
