"""The coordinator's refusals; codes and statuses are the reference's (its section 1.3) where it has them."""

from __future__ import annotations

from dcb_runtime.errors import ErrorKind

SERVICE_REQUIRED = ErrorKind("bootstrap_service_required", 400, "name the service in the query parameter __serviceId")
BODY_INVALID = ErrorKind("bootstrap_body_invalid", 400, "the body must be one JSON document of the route's shape")
ROUTE_NOT_FOUND = ErrorKind("bootstrap_route_not_found", 404, "the coordinator has no such route")
EPOCH_REJECTED = ErrorKind(
    "bootstrap_epoch_rejected", 409, "importId and leaseEpoch must be those of the present plan; read the status"
)
STATE_REJECTED = ErrorKind(
    "bootstrap_state_rejected", 409, "the import is not in a state that allows this; read the status"
)
PLAN_INVALID = ErrorKind(
    "bootstrap_plan_invalid",
    400,
    "send importId (1 to 256 characters), dump and targetEvidence {bindingExists, eventsExist}",
)
TARGET_MISMATCH = ErrorKind(
    "bootstrap_target_mismatch", 409, "manifest.target.serviceId is another service; export for this one"
)
TARGET_NOT_FRESH = ErrorKind(
    "bootstrap_target_not_fresh", 409, "the service holds events or has issued an order; import into a fresh one"
)
READY_PERMANENT = ErrorKind(
    "bootstrap_ready_permanent", 409, "this service was imported and is READY for ever; import into another one"
)
PLAN_CONFLICT = ErrorKind(
    "bootstrap_plan_conflict", 409, "another import is planned here; finish it, or abort and reset it first"
)
NORMAL_COMMAND_IN_FLIGHT = ErrorKind(
    "bootstrap_normal_command_in_flight", 409, "a normal command is admitted and not released; try again after it"
)
WATERMARK_AHEAD = ErrorKind(
    "bootstrap_watermark_ahead",
    400,
    "highWatermark lies more than a day ahead of the clock and would poison the order; check the source's clock",
)
SOURCE_INVALID = ErrorKind(
    "bootstrap_source_invalid", 400, "manifest.source.serviceId and lineageId may have at most 1,024 characters each"
)
DUMP_TOO_LARGE = ErrorKind(
    "dump_too_large",
    413,
    "an inline dump may have at most 4 MiB of JSON text; a larger one does not fit into one request",
)
ALLOCATOR_UNAVAILABLE = ErrorKind(
    "bootstrap_allocator_unavailable", 503, "the allocator could not be reached; ask again, nothing is lost"
)
LOG_UNAVAILABLE = ErrorKind(
    "bootstrap_log_unavailable", 503, "the event log could not be reached; ask again, nothing is lost"
)
TAG_UNAVAILABLE = ErrorKind(
    "bootstrap_tag_unavailable", 503, "a tag could not be reached; the import goes on by itself"
)
TAG_ADMISSION_FAILED = ErrorKind(
    "bootstrap_tag_admission_failed", 409, "a tag refused its events; `reason` says why; abort and reset"
)
INDEX_ADMISSION_FAILED = ErrorKind(
    "bootstrap_index_admission_failed", 409, "the allocator refused events; `reason` says why; abort and reset"
)
ALLOCATOR_SEED_FAILED = ErrorKind(
    "bootstrap_allocator_seed_failed", 409, "the allocator refused the watermark; `reason` says why"
)
ALLOCATOR_OPEN_FAILED = ErrorKind(
    "bootstrap_allocator_open_failed", 409, "the allocator refused to open; `reason` says why"
)
TAG_CLOSE_FAILED = ErrorKind("bootstrap_tag_close_failed", 409, "a tag refused to close; `reason` says why")
RESET_FAILED = ErrorKind("bootstrap_reset_failed", 409, "a part of the service refused the reset; `reason` says why")
RESET_IN_PROGRESS = ErrorKind(
    "bootstrap_reset_in_progress", 409, "a reset is on its way; repeat reset until the status is EMPTY"
)
FENCE_FAILED = ErrorKind(
    "bootstrap_fence_failed", 409, "allocator or log refused the lease epoch; `reason` says why; read the status"
)
VERIFY_INDEX_MISMATCH = ErrorKind(
    "bootstrap_verify_index_mismatch", 409, "the allocator's index differs from the dump; abort and reset"
)
VERIFY_TAG_MISSING = ErrorKind(
    "bootstrap_verify_tag_missing", 409, "a tag of the dump does not answer with its events; abort and reset"
)
VERIFY_TAG_MISMATCH = ErrorKind(
    "bootstrap_verify_tag_mismatch", 409, "a tag's events differ from the dump; abort and reset"
)
VERIFY_STORE_MISMATCH = ErrorKind(
    "bootstrap_verify_store_mismatch", 409, "the log's events differ from the dump; abort and reset"
)
VERIFICATION_REQUIRED = ErrorKind(
    "bootstrap_verification_required", 409, "verify this import and epoch first, then call ready"
)
LEASE_HELD = ErrorKind(
    "bootstrap_lease_held", 409, "the lease has not expired; wait until leaseUntil, or abort, then take over"
)
TAKEOVER_INVALID = ErrorKind("bootstrap_takeover_invalid", 400, "send importId and the digest of the plan")
TAKEOVER_MISMATCH = ErrorKind(
    "bootstrap_takeover_mismatch", 409, "importId and digest must be those of the present plan; read the status"
)
ROUTE_INVALID = ErrorKind("bootstrap_route_invalid", 400, "send the name of the route")
ROUTE_REJECTED = ErrorKind("bootstrap_route_rejected", 409, "an import is on its way; try again when it is READY")
COMMAND_INVALID = ErrorKind("bootstrap_command_invalid", 400, "send commandId, a non-empty text")
HOOK_HELD = ErrorKind(
    "bootstrap_hook_held", 409, "another call runs the deployment's hook; wait for it or for its claim to expire"
)
HOOK_LOST = ErrorKind("bootstrap_hook_lost", 409, "the claim on the hook expired or went to another call; import again")
READ_MODEL_REBUILD_FAILED = ErrorKind(
    "bootstrap_read_model_rebuild_failed",
    503,
    "the deployment's hook failed; the import stays VERIFYING: mend the hook, then repeat import",
)
RECEIPT_MISSING = ErrorKind("bootstrap_receipt_missing", 404, "there is a receipt when the import is READY")
STAGING_MISSING = ErrorKind(
    "bootstrap_plan_missing", 500, "the staged dump does not match its plan; abort and reset, then plan again"
)
COMMAND_REJECTED = ErrorKind(
    "bootstrap_command_rejected", 409, "the bootstrap does not admit this command; read its status, then try again"
)
