"""The receipt of a READY import: what was moved and what was compared, for the operator's files."""

from __future__ import annotations

from typing import Any, Final

from dcb_runtime.bootstrap.control import Control, ControlStore, iso

PARTS: Final = {
    "verify_index": "index",
    "verify_index_tags": "indexTags",
    "verify_tags": "tags",
    "verify_log": "log",
}
"""What each phase of the verification compared; `indexTags` and `tags` count an event once for each of its tags."""


def receipt(control: Control, store: ControlStore) -> dict[str, Any]:
    """The receipt; two runs of one import differ in ``leaseEpoch`` and ``times`` only."""
    manifest = store.manifest() or {}
    return {
        "serviceId": control.service_id,
        "importId": control.import_id,
        "leaseEpoch": control.lease_epoch,
        "allocatorLineageId": control.lineage_id,
        "source": manifest.get("source"),
        "contentDigest": control.digest,
        "chainDigest": f"sha256:{control.chain_digest}",
        "eventCount": control.event_count,
        "tagCount": control.tag_count,
        "highWatermark": control.high_watermark,
        "compared": {PARTS[phase]: counts for phase, counts in store.verification().items()},
        "times": {
            "plannedAt": iso(control.planned_at_ms),
            "importedAt": iso(control.imported_at_ms),
            "verifiedAt": iso(control.verified_at_ms),
            "readyAt": iso(control.ready_at_ms),
        },
    }
