"""Records as the coordinator answers them, and a world whose import is ready to open."""

from __future__ import annotations

from typing import Any

from dcb_runtime.entry.hook import AfterVerifyBeforeReady, Hooks
from dcb_runtime.ports import Reply
from dcb_runtime.rules.dump_v1 import compose_dump_v1, manifest_v1_for
from dcb_runtime.wire import reply
from tests.entry.doubles import World

IDS = {"importId": "import-1", "leaseEpoch": 1}
RUNNING: dict[str, Any] = {"running": True}
BLOCKED: dict[str, Any] = {
    "blocked": True,
    "lastError": {"code": "bootstrap_tag_admission_failed", "status": 409, "error": "why"},
}
VERIFIED: dict[str, Any] = {"verifiedImportId": "import-1", "verifiedLeaseEpoch": 1}
EVENT = {
    "eventId": "11111111-1111-4111-8111-111111111111",
    "suid": f"{1:030}",
    "payload": "{}",
    "eventTags": ["order:1"],
    "eventType": "Placed",
    "provenance": {"origin": "g32"},
    "timestamp": "2026-01-01T00:00:00.000Z",
    "causationId": None,
    "correlationId": None,
    "executedUser": None,
}
DUMP = compose_dump_v1(
    manifest_v1_for(
        [EVENT],
        {"serviceId": "old", "lineageId": "lineage-old"},
        {"serviceId": "orders", "allocatorLineageId": "lineage-orders"},
    ),
    [EVENT],
)
DIGEST = DUMP["manifest"]["contentDigest"]


def record(status: str = "IMPORTING", answer: int = 200, progress: dict[str, Any] | None = None, **more: Any) -> Reply:
    """An answer of the coordinator with its record."""
    view = {
        "schemaVersion": 1,
        "status": status,
        "importId": "import-1",
        "leaseEpoch": 1,
        "digest": DIGEST,
        "manifest": {"eventCount": 1},
        "progress": {"phase": "tags", "running": False, "blocked": False, "lastError": None, **(progress or {})},
        "verifiedImportId": None,
        "verifiedLeaseEpoch": None,
        **more,
    }
    return reply(answer, view)


GOING_ON = record(answer=202, progress=RUNNING)
RUNS = record(progress=RUNNING)
IS_VERIFIED = record("VERIFYING", **VERIFIED)
READY = record("READY", **VERIFIED)
CLAIMED = reply(200, {"token": "t0ken", "expiresAtMs": 1_030_000})


def ready_to_open(hook: AfterVerifyBeforeReady | None = None) -> World:
    """A world whose import is verified at once and whose claim and ready succeed."""
    world = World(hooks=Hooks(hook))
    world.objects.on("bootstrap", "/import", IS_VERIFIED)
    world.objects.on("bootstrap", "/hook/claim", CLAIMED)
    world.objects.on("bootstrap", "/hook/renew", reply(200, {}))
    world.objects.on("bootstrap", "/hook/release", reply(200, {}))
    world.objects.on("bootstrap", "/ready", READY)
    return world
