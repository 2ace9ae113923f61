"""Plan: an inline dump becomes staged rows, then the allocator and the log are fenced, then it is PLANNED.

A crash between the steps leaves a pending plan: still EMPTY to the outside, finished or taken back by a repeat,
by the alarm, or by an abort.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Final

import msgspec

from dcb_runtime.allocator.fence import (
    ALLOCATOR_NOT_FRESH,
    BOOTSTRAP_LINEAGE_MISMATCH,
    FENCE_MISMATCH,
)
from dcb_runtime.bootstrap.control import EMPTY, PLANNED, READY, Control
from dcb_runtime.bootstrap.errors import (
    BODY_INVALID,
    DUMP_TOO_LARGE,
    NORMAL_COMMAND_IN_FLIGHT,
    PLAN_CONFLICT,
    PLAN_INVALID,
    READY_PERMANENT,
    SOURCE_INVALID,
    TARGET_MISMATCH,
    TARGET_NOT_FRESH,
    WATERMARK_AHEAD,
)
from dcb_runtime.bootstrap.job import Context, ask_log
from dcb_runtime.errors import LINEAGE_MISMATCH, CodedError, ErrorKind
from dcb_runtime.limits import (
    CHUNK_BYTES_MAX,
    IMPORT_ID_CHARACTERS_MAX,
    INLINE_DUMP_BYTES_MAX,
    LEASE_MS,
    SOURCE_ID_CHARACTERS_MAX,
    WATERMARK_AHEAD_MS_MAX,
)
from dcb_runtime.log.event_log import LOG_NOT_FRESH
from dcb_runtime.rules.chunking import chunks
from dcb_runtime.rules.dump_v1 import DumpV1, read_dump_v1
from dcb_runtime.rules.dump_v2 import ChainDigest
from dcb_runtime.rules.json_pieces import members
from dcb_runtime.rules.suid import ticks_of, unix_ms_from_ticks
from dcb_runtime.rules.text import utf8_bytes
from dcb_runtime.wire import Struct, decode, encode, is_json

STAGED_EVENTS_MAX: Final = 200
"""Records of an inline dump that are staged by one statement: bounds memory, not work."""

FENCE_REFUSED = ErrorKind(
    "bootstrap_fence_refused", 409, "allocator or log refused the plan's fence; `reason` says why; read the status"
)


class Evidence(Struct):
    """What the caller found at the target before it planned."""

    binding_exists: bool
    events_exist: bool


class PlanHead(Struct):
    """Body of ``POST /plan`` without its ``dump``, which is read record by record."""

    import_id: Annotated[str, msgspec.Meta(min_length=1, max_length=IMPORT_ID_CHARACTERS_MAX)]
    target_evidence: Evidence


MEMBERS: Final = {"importId", "dump", "targetEvidence"}


def read_plan(text: str) -> tuple[PlanHead, DumpV1]:
    """Take a plan's body apart without building the dump.

    Raises ``bootstrap_body_invalid`` (not JSON), ``bootstrap_plan_invalid`` (its shape), ``dump_too_large``, or the
    dump parser's code (reference-protocol section 2.1).
    """
    try:
        places = {name: (begin, end) for name, begin, end in members(text)}
    except ValueError:
        raise (PLAN_INVALID if is_json(text) else BODY_INVALID)() from None
    if places.keys() != MEMBERS:
        raise PLAN_INVALID("members")
    begin, end = places.pop("dump")
    head = ",".join(f'"{name}":{text[start:stop]}' for name, (start, stop) in places.items())
    body = decode(f"{{{head}}}", PlanHead, PLAN_INVALID)
    if not text.startswith("{", begin):
        raise PLAN_INVALID("dump")
    if utf8_bytes(text[begin:end]) > INLINE_DUMP_BYTES_MAX:
        raise DUMP_TOO_LARGE()
    return body, read_dump_v1(text, begin)


class Planner:
    """Makes, settles and takes back plans."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._clock = context.platform.clock
        self._storage = context.platform.storage
        self._store = context.store
        self._staging = context.staging

    def stage(self, service_id: str, text: str) -> Control:
        """Step 1: check everything that can be checked here, in the reference's order, and record the intended plan.

        One transaction: a refusal leaves nothing. Returns the row: pending for a new plan, as it was for a
        repeat of the same one. Raises the codes of reference-protocol section 1.3.
        """
        body, dump = read_plan(text)
        self._context.wake()

        def stage() -> Control:
            control = self._store.load(service_id)
            new = control.status == EMPTY and control.pending_epoch is None
            chain = self._read_records(dump, stage=new)
            manifest = dump.manifest
            if manifest["target"]["serviceId"] != service_id:
                raise TARGET_MISMATCH()
            if body.target_evidence.binding_exists or body.target_evidence.events_exist:
                raise TARGET_NOT_FRESH("targetEvidence says so")
            if control.status == READY:
                raise READY_PERMANENT()
            if not new:
                same = (control.import_id, control.digest, control.chain_digest)
                other = same != (body.import_id, dump.content_digest, chain) or self._store.manifest() != manifest
                if other or control.retracting or control.resetting:
                    raise PLAN_CONFLICT()
                return control
            if self._storage.exec("SELECT 1 FROM command WHERE released = 0 LIMIT 1"):
                raise NORMAL_COMMAND_IN_FLIGHT()
            self._refuse_far_future(manifest["highWatermark"])
            if max(map(len, manifest["source"].values())) > SOURCE_ID_CHARACTERS_MAX:
                raise SOURCE_INVALID()
            return self._record_intent(control, body.import_id, dump, chain)

        return self._storage.transaction(stage)

    def _read_records(self, dump: DumpV1, stage: bool) -> str:
        """Read all records, which checks them, and stage them if this is a new plan; the chain digest in hex."""
        chain = ChainDigest()

        def read() -> Iterator[str]:
            for record in dump.records():
                chain.add(record)
                yield encode(record)

        first = 1
        for records in chunks(read(), utf8_bytes, STAGED_EVENTS_MAX, CHUNK_BYTES_MAX):
            if stage:
                self._staging.add(first, records)
            first += len(records)
        return chain.state.hex()

    def _refuse_far_future(self, high_watermark: str | None) -> None:
        if high_watermark is None:
            return
        latest_ms = self._clock.now_ms() + WATERMARK_AHEAD_MS_MAX
        if unix_ms_from_ticks(ticks_of(high_watermark)) > latest_ms:
            raise WATERMARK_AHEAD()

    def _record_intent(self, control: Control, import_id: str, dump: DumpV1, chain: str) -> Control:
        manifest = dump.manifest
        events, tags, placements = self._staging.totals()
        pending = Control(
            control.service_id,
            lease_epoch=control.lease_epoch,
            import_id=import_id,
            digest=dump.content_digest,
            chain_digest=chain,
            event_count=events,
            tag_count=tags,
            placement_count=placements,
            high_watermark=manifest["highWatermark"],
            lineage_id=manifest["target"]["allocatorLineageId"],
            pending_epoch=control.lease_epoch + 1,
            planned_at_ms=self._clock.now_ms(),
        )
        self._store.set_manifest(manifest)
        self._store.clear_verification()
        self._store.save(pending)
        return pending

    async def settle(self, control: Control) -> CodedError | None:
        """Steps 2 and 3: fence allocator and log, then PLANNED; a definite refusal takes the plan back.

        Three hops at most. Returns the refusal that was met, if any; raises ``Delayed`` when an outcome is
        not known (the plan stays pending). Safe to repeat.
        """
        if control.retracting:
            await self.retract(control)
            return None
        job = self._context.job(control)
        body = encode({**job.identity, "allocatorLineageId": control.lineage_id})
        try:
            answer = await job.allocator("/fence/raise", body, FENCE_REFUSED)
        except CodedError as refused:
            # The allocator wrote nothing, so there is nothing to cancel.
            self._forget(control)
            return _as_plan_error(refused)
        lineage = str(answer["allocatorLineageId"])
        epoch = control.lease_epoch + 1
        try:
            await ask_log(job.log.fence(control.service_id, lineage, control.import_id or "", epoch))
        except CodedError as refused:
            self.mark_retracting(control)
            await self.retract(replace(control, retracting=1))
            return _as_plan_error(refused)
        self._confirm(control, lineage)
        return None

    def _confirm(self, control: Control, lineage: str) -> None:
        now_ms = self._clock.now_ms()

        def confirm() -> None:
            current = self._store.load(control.service_id)
            if current.pending_epoch != control.pending_epoch or current.retracting:
                return
            epoch = control.lease_epoch + 1
            planned = replace(
                current,
                status=PLANNED,
                lineage_id=lineage,
                lease_epoch=epoch,
                fenced_epoch=epoch,
                pending_epoch=None,
                lease_until_ms=now_ms + LEASE_MS,
                phase="planned",
                phase_started_ms=now_ms,
                progressed_ms=now_ms,
            )
            self._store.save(planned.without_error())

        self._storage.transaction(confirm)

    def mark_retracting(self, control: Control) -> None:
        """Decide durably that the pending plan will not be: from here on only taking back is possible."""
        self._context.wake()

        def mark() -> None:
            current = self._store.load(control.service_id)
            if current.pending_epoch is not None and current.pending_epoch == control.pending_epoch:
                self._store.save(replace(current, retracting=1).without_error())

        self._storage.transaction(mark)

    async def retract(self, control: Control) -> None:
        """Make sure that the fence is down and stays down, then forget the plan. One hop."""
        job = self._context.job(control)
        await job.allocator("/fence/cancel", encode(job.identity), FENCE_REFUSED)
        self._forget(control)

    def _forget(self, control: Control) -> None:
        """Drop the pending plan. Its epoch is used up: it tells a late answer for this plan from one for the next."""

        def forget() -> None:
            current = self._store.load(control.service_id)
            mine = current.pending_epoch is not None and current.pending_epoch == control.pending_epoch
            if not mine or current.retracting != control.retracting:
                return
            self._staging.clear()
            self._store.clear_manifest()
            self._store.save(Control(control.service_id, lease_epoch=current.lease_epoch + 1))

        self._storage.transaction(forget)


def _as_plan_error(refused: CodedError) -> CodedError:
    """What a refused fence means for the plan: not fresh, a foreign lineage, or the refusal as it is."""
    reason = refused.fields.get("reason", refused.code)
    if reason in (ALLOCATOR_NOT_FRESH.code, FENCE_MISMATCH.code, LOG_NOT_FRESH.code):
        return TARGET_NOT_FRESH(reason=reason)
    if reason in (BOOTSTRAP_LINEAGE_MISMATCH.code, LINEAGE_MISMATCH.code):
        return BOOTSTRAP_LINEAGE_MISMATCH()
    return refused
