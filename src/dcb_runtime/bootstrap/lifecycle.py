"""The transitions that an operator asks for: start, verify, abort, take over, reset, ready.

Each is one transaction on the control row. The duty's alarm is set before it, in the same turn.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from dcb_runtime.bootstrap.control import (
    EMPTY,
    FAILED,
    IMPORT_PHASES,
    IMPORTING,
    OPERATOR_ABORT,
    PLANNED,
    READY,
    RESET_PHASES,
    VERIFYING,
    Control,
    Cursor,
)
from dcb_runtime.bootstrap.errors import (
    BODY_INVALID,
    EPOCH_REJECTED,
    HOOK_LOST,
    LEASE_HELD,
    READ_MODEL_REBUILD_FAILED,
    RESET_IN_PROGRESS,
    STATE_REJECTED,
    TAKEOVER_INVALID,
    TAKEOVER_MISMATCH,
    VERIFICATION_REQUIRED,
)
from dcb_runtime.bootstrap.hook import HookClaims
from dcb_runtime.bootstrap.job import Context
from dcb_runtime.bootstrap.receipt import receipt
from dcb_runtime.limits import LEASE_MS
from dcb_runtime.ports import Reply
from dcb_runtime.wire import Body, Count, Struct, Text, decode, encode, reply


class EpochBody(Struct):
    """Body of the routes that only name the import."""

    import_id: Text
    lease_epoch: Count


class ImportBody(Struct):
    """Body of ``POST /import``; ``through: "verify"`` lets the verification follow by itself."""

    import_id: Text
    lease_epoch: Count
    through: Literal["import", "verify"] = "import"


class ReadyBody(Struct):
    """Body of ``POST /ready``."""

    import_id: Text
    lease_epoch: Count
    hook_token: Text | None = None


class HookBody(Struct):
    """Body of ``POST /hook/renew`` and ``/hook/release``."""

    import_id: Text
    lease_epoch: Count
    token: Text


class TakeoverBody(Struct):
    """Body of ``POST /takeover``."""

    import_id: Text
    digest: Text


class Lifecycle:
    """Decides transitions; the steps themselves are the runner's."""

    def __init__(self, context: Context, hooks: HookClaims) -> None:
        self._context = context
        self._storage = context.platform.storage
        self._store = context.store
        self._hooks = hooks

    def _now_ms(self) -> int:
        return self._context.platform.clock.now_ms()

    def start_import(self, service_id: str, text: str) -> None:
        """PLANNED, IMPORTING or FAILED become IMPORTING at the cursor; anything earlier verified is cleared.

        With ``through: "verify"`` a VERIFYING or READY import is fine too: what is left goes on.
        """
        body = _read(text, ImportBody)
        self._context.wake()

        def start() -> None:
            control = self._fenced(service_id, body.import_id, body.lease_epoch)
            if control.resetting:
                raise RESET_IN_PROGRESS()
            if control.status in (VERIFYING, READY) and body.through == "verify":
                goal = "verify" if control.status == VERIFYING else control.goal
                self._store.save(replace(control.without_error(), goal=goal))
                return
            if control.status not in (PLANNED, IMPORTING, FAILED):
                raise STATE_REJECTED(f"it is {control.status}")
            started = self._importing(control)
            goal = "verify" if body.through == "verify" or control.status == IMPORTING == control.goal else "import"
            self._store.save(replace(started, goal=goal))
            self._store.clear_verification()

        self._storage.transaction(start)

    def _importing(self, control: Control) -> Control:
        now_ms = self._now_ms()
        started = replace(
            control.unverified().without_error(), status=IMPORTING, failure=None, lease_until_ms=now_ms + LEASE_MS
        )
        if control.phase in IMPORT_PHASES:
            return started
        if control.phase == "planned":
            return started.at(Cursor(IMPORT_PHASES[0]), now_ms)
        # Everything was written before: only the end of the last phase is left, then a new verification.
        return started.at(Cursor(IMPORT_PHASES[-1], position=control.event_count), now_ms)

    def start_verify(self, service_id: str, text: str) -> None:
        """Verify, or verify again, what VERIFYING holds."""
        body = _read(text, EpochBody)
        self._context.wake()

        def start() -> None:
            control = self._fenced(service_id, body.import_id, body.lease_epoch)
            if control.status != VERIFYING:
                raise STATE_REJECTED(f"it is {control.status}")
            again = control.verified or control.blocked
            control = replace(control.unverified().without_error(), goal="verify")
            if again:
                control = control.at(Cursor("verify_index"), self._now_ms())
                self._store.clear_verification()
                self._hooks.clear()
            self._store.save(control)

        self._storage.transaction(start)

    def abort(self, service_id: str, text: str) -> Control:
        """Whatever is planned or running becomes FAILED; a pending plan is returned as it is, to be taken back."""
        body = _read(text, EpochBody)

        def abort() -> Control:
            control = self._store.load(service_id)
            if control.pending_epoch is not None:
                if (control.import_id, control.pending_epoch) != (body.import_id, body.lease_epoch):
                    raise EPOCH_REJECTED()
                return control
            control = self._fenced(service_id, body.import_id, body.lease_epoch)
            if control.status in (EMPTY, READY):
                raise STATE_REJECTED(f"it is {control.status}")
            if control.resetting:
                raise RESET_IN_PROGRESS()
            control = replace(control.unverified(), status=FAILED, failure=OPERATOR_ABORT, lease_until_ms=None)
            # What held the import up stays to be seen until it goes on.
            self._store.save(replace(control, failures=0, blocked=0))
            self._hooks.clear()
            return control

        return self._storage.transaction(abort)

    def takeover(self, service_id: str, text: str) -> Control:
        """Raise the epoch of the same import whose lease expired or that FAILED: PLANNED again, cursor kept."""
        body = decode(text, TakeoverBody, TAKEOVER_INVALID, syntax=BODY_INVALID)
        self._context.wake()

        def takeover() -> Control:
            control = self._store.load(service_id)
            if control.status in (EMPTY, READY):
                raise STATE_REJECTED(f"it is {control.status}")
            if (control.import_id, control.digest) != (body.import_id, body.digest):
                raise TAKEOVER_MISMATCH()
            if control.resetting:
                raise RESET_IN_PROGRESS()
            now_ms = self._now_ms()
            if control.status != FAILED and control.lease_until_ms is not None and control.lease_until_ms > now_ms:
                raise LEASE_HELD(leaseUntil=control.lease_until_ms)
            taken = replace(
                control.unverified().without_error(),
                status=PLANNED,
                lease_epoch=control.lease_epoch + 1,
                lease_until_ms=now_ms + LEASE_MS,
                failure=None,
            )
            self._store.save(taken)
            self._hooks.clear()
            return taken

        return self._storage.transaction(takeover)

    def start_reset(self, service_id: str, text: str) -> None:
        """Begin or go on with the way back from FAILED to EMPTY: the epoch is raised before anything is touched.

        Again is fine, also after its end until something else is planned.
        """
        body = _read(text, EpochBody)
        self._context.wake()

        def start() -> None:
            control = self._store.load(service_id)
            if _was_reset(control, body):
                return
            # The first call raised the epoch: a repeat of it still names the one before.
            repeated = control.resetting and body.lease_epoch == control.lease_epoch - 1
            control = self._fenced(service_id, body.import_id, body.lease_epoch + int(repeated))
            if control.status != FAILED:
                raise STATE_REJECTED(f"it is {control.status}")
            if not control.resetting:
                control = replace(control, resetting=1, lease_epoch=control.lease_epoch + 1)
                control = control.at(Cursor(RESET_PHASES[0]), self._now_ms())
            self._store.save(control.without_error())

        self._storage.transaction(start)

    def ready(self, service_id: str, text: str) -> Control:
        """READY: the commit point. Again is fine; the receipt is written in the same transaction."""
        body = _read(text, ReadyBody)
        self._context.wake()

        def ready() -> Control:
            control = self._fenced(service_id, body.import_id, body.lease_epoch)
            if control.status == READY:
                self._store.save(control.without_error())
                return control
            if control.status != VERIFYING or not control.verified:
                raise VERIFICATION_REQUIRED()
            self._hooks.require(control, body.hook_token)
            now_ms = self._now_ms()
            control = replace(control, status=READY, ready_at_ms=now_ms, lease_until_ms=None)
            control = control.at(Cursor("opening", events_done=control.event_count), now_ms)
            self._store.save(control)
            self._storage.exec("INSERT OR REPLACE INTO receipt VALUES (1, ?)", encode(receipt(control, self._store)))
            self._hooks.clear()
            return control

        return self._storage.transaction(ready)

    def claim_hook(self, control: Control, text: str) -> tuple[str, int] | None:
        """Claim the hook of a verified import: (token, expiry), ``None`` while another call holds it."""
        body = _read(text, EpochBody)
        self._require(control, body.import_id, body.lease_epoch)
        if control.status != VERIFYING or not control.verified:
            raise VERIFICATION_REQUIRED()
        claim = self._hooks.claim(control)
        if claim is not None:
            self._store.save(control.without_error())
        return claim

    def renew_hook(self, control: Control, text: str) -> Reply:
        """Extend a claim: it also renews the lease, since a running hook is progress."""
        body = _read(text, HookBody)
        self._require(control, body.import_id, body.lease_epoch)
        if control.status != VERIFYING:
            raise HOOK_LOST()
        expires_at_ms = self._hooks.renew(control, body.token)
        self._store.save(replace(control, lease_until_ms=self._now_ms() + LEASE_MS))
        return reply(200, {"token": body.token, "expiresAtMs": expires_at_ms})

    def release_hook(self, control: Control, text: str) -> Reply:
        """Give a claim back after the hook failed, so that the next call may run it at once; the status tells of it."""
        body = _read(text, HookBody)
        self._require(control, body.import_id, body.lease_epoch)
        if self._hooks.release(body.token):
            failed = READ_MODEL_REBUILD_FAILED()
            noted = replace(control, error_code=failed.code, error_status=failed.status, error_text=failed.text)
            self._store.save(noted)
        return reply(200, {"released": True})

    def _fenced(self, service_id: str, import_id: str, lease_epoch: int) -> Control:
        """The row, if it is this import's and epoch's. Raises ``bootstrap_epoch_rejected`` (409)."""
        control = self._store.load(service_id)
        self._require(control, import_id, lease_epoch)
        return control

    def _require(self, control: Control, import_id: str, lease_epoch: int) -> None:
        if control.pending_epoch is not None or (control.import_id, control.lease_epoch) != (import_id, lease_epoch):
            raise EPOCH_REJECTED()


def _was_reset(control: Control, body: EpochBody) -> bool:
    """Whether this reset has come to its end: the body may name the epoch that it found or the one that it left."""
    same = control.status == EMPTY and control.reset_import_id == body.import_id
    return same and body.lease_epoch in (control.lease_epoch - 1, control.lease_epoch)


def _read(text: str, shape: type[Body]) -> Body:
    """A body that names its import: whatever is wrong with its ids is another epoch, not another shape."""
    return decode(text, shape, EPOCH_REJECTED, syntax=BODY_INVALID, unknown=BODY_INVALID)
