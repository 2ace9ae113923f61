"""Slices: the alarm takes one step after another and moves the cursor by compare-and-set.

Only the alarm works, and an object's alarms never overlap, so there is one worker. A step that was overtaken
(abort, takeover, reset) finds the row changed and is forgotten. The alarm never raises: a failure is recorded
in the row and tried again with back-off.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from dcb_runtime.bootstrap import import_steps, other_steps, verify_steps
from dcb_runtime.bootstrap.control import (
    IMPORTING,
    VERIFY_PHASES,
    VERIFYING,
    Control,
    Cursor,
)
from dcb_runtime.bootstrap.job import Context, Delayed, Step
from dcb_runtime.bootstrap.record import working
from dcb_runtime.dispatch import describe_fault
from dcb_runtime.errors import INTERNAL_ERROR, CodedError

STEPS_PER_ALARM: Final = 25
"""After so many steps the alarm ends and comes again at once: a handler has 30 s of CPU by default."""

STEP_PAUSE_MS: Final = 1
"""A wait between two steps: calls between objects of one process are no I/O, and without a pause a local
runtime would not look at its sockets, nor at an operator's abort, before the alarm ends."""

RETRY_MS_MIN: Final = 500
RETRY_MS_MAX: Final = 30_000
"""Back-off after a failure: doubled each time between these two."""

STEPS: Final[dict[str, Step]] = {**import_steps.STEPS, **verify_steps.STEPS, **other_steps.STEPS}


Settle = Callable[[Control], Awaitable[object]]
"""Finishes a pending plan or takes it back."""


class Runner:
    """Takes the steps of the one import of a service."""

    def __init__(self, context: Context, settle: Settle) -> None:
        self._context = context
        self._clock = context.platform.clock
        self._storage = context.platform.storage
        self._store = context.store
        self._settle = settle

    async def run(self) -> None:
        """Take steps until nothing is left, something fails, or the bound of one alarm is reached."""
        for _ in range(STEPS_PER_ALARM):
            control = self._store.load("")
            if not working(control):
                self._storage.clear_alarm()
                return
            if not await self.take_step(control):
                return
            await self._context.platform.timer.sleep(STEP_PAUSE_MS)
        self._context.wake()

    async def take_step(self, control: Control) -> bool:
        """Take the step that ``control`` is at; whether to go on at once.

        A failure is recorded with the time of the next try; a refusal blocks until an operator calls.
        """
        try:
            job = self._context.job(control)
            if control.pending_epoch is not None:
                await self._settle(control)
            elif control.fenced_epoch < control.lease_epoch and not control.resetting:
                await other_steps.raise_fences(job)
                self._move(control, replace(control.without_error(), fenced_epoch=control.lease_epoch))
            else:
                cursor = await STEPS[control.phase](job, control.cursor)
                self._advance(control, cursor)
        except Delayed as delayed:
            self.note(control, delayed.error, blocked=False)
            return False
        except CodedError as refused:
            self.note(control, refused, blocked=True)
            return False
        except Exception as fault:
            self._context.platform.log_line(describe_fault(fault))
            self.note(control, INTERNAL_ERROR(), blocked=False)
            return False
        return True

    def _advance(self, before: Control, cursor: Cursor) -> None:
        now_ms = self._clock.now_ms()
        after = before.at(cursor, now_ms)
        if before.status == IMPORTING and cursor.phase in VERIFY_PHASES:
            after = replace(after, status=VERIFYING, imported_at_ms=now_ms)
        if cursor.phase == "verified":
            after = replace(
                after,
                verified_import_id=before.import_id,
                verified_lease_epoch=before.lease_epoch,
                verified_at_ms=now_ms,
            )
        finished = before.phase if before.phase in VERIFY_PHASES and cursor.phase != before.phase else None
        if cursor.phase == "reset":
            self._move(
                before,
                Control(before.service_id, lease_epoch=before.lease_epoch, reset_import_id=before.import_id),
                cleared=True,
            )
        else:
            self._move(before, after, finished=finished)

    def _move(self, before: Control, after: Control, finished: str | None = None, cleared: bool = False) -> None:
        """Put ``after`` in the place of ``before``, unless status, epoch, cursor or a reset changed meanwhile."""

        def swap() -> None:
            current = self._store.load(before.service_id)
            if not same_place(current, before):
                return
            # What others may have changed in the same place (the goal of the import) is kept.
            self._store.save(replace(after, goal=current.goal))
            if finished is not None:
                self._store.set_verification(finished, before.events_done, before.tags_done)
            if cleared:
                self._context.staging.clear()
                self._store.clear_manifest()
                self._store.clear_verification()

        self._storage.transaction(swap)

    def note(self, before: Control, error: CodedError, blocked: bool) -> None:
        """Record a failure where the status shows it, and set the time of the next try."""
        wait_ms = min(RETRY_MS_MAX, RETRY_MS_MIN << min(before.failures, 10))

        def note() -> None:
            current = self._store.load(before.service_id)
            if not same_place(current, before):
                # Overtaken: whoever did that has set the alarm for what is due now.
                return
            self._storage.set_alarm(self._clock.now_ms() + wait_ms)
            self._store.save(
                replace(
                    current,
                    failures=current.failures + 1,
                    blocked=int(blocked),
                    error_code=error.code,
                    error_status=error.status,
                    error_text=told(error),
                )
            )

        self._storage.transaction(note)


def same_place(current: Control, before: Control) -> bool:
    """Whether nothing that decides has changed: status, epoch, cursor, pending plan and reset."""

    def place(control: Control) -> tuple[object, ...]:
        return (
            control.status,
            control.import_id,
            control.lease_epoch,
            control.fenced_epoch,
            control.pending_epoch,
            control.retracting,
            control.resetting,
            control.cursor,
        )

    return place(current) == place(before)


def told(error: CodedError) -> str:
    """An error's text with the reason that another object gave."""
    reason = error.fields.get("reason")
    return f"{error.text} (reason: {reason})" if reason else error.text
