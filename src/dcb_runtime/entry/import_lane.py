"""The operator's calls that wait for an import: import, verify and reset.

The coordinator works by its alarm. A call starts the work, watches the record for a while and answers 202
with it when the work goes on; the same call again goes on watching.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dcb_runtime.bootstrap.errors import BODY_INVALID, DUMP_TOO_LARGE, EPOCH_REJECTED, STATE_REJECTED
from dcb_runtime.entry.coordinator import EMPTY, FAILED, READY, Coordinator, Fence, Record, read_record
from dcb_runtime.entry.hook import HookStep
from dcb_runtime.entry.http import HttpRequest, ObjectAnswer, read_text
from dcb_runtime.entry.patience import Patience
from dcb_runtime.errors import BODY_TOO_LARGE, CodedError, ErrorKind
from dcb_runtime.limits import BODY_BYTES_MAX, IMPORT_WAIT_MS, PLAN_BODY_BYTES_MAX
from dcb_runtime.ports import Clock, Peers, Reply, Timer
from dcb_runtime.rules.dump_v1 import read_dump_v1
from dcb_runtime.wire import Struct, decode

DUMP_INVALID = ErrorKind(
    "bootstrap_dump_invalid", 400, "the dump is not a valid v1 dump; leave it out, import needs only the plan"
)
DUMP_MISMATCH = ErrorKind(
    "bootstrap_dump_mismatch", 409, "this is not the planned dump; leave it out, or abort, reset and plan this one"
)

ACCEPTED: Final = 202


class ImportBody(Struct):
    """Body of ``POST import``. The ids are judged by ``_fence``: a wrong type is another epoch, not another shape."""

    import_id: Any = None
    lease_epoch: Any = None
    dump: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class FenceBody(Struct):
    """Body of ``POST verify``."""

    import_id: Any = None
    lease_epoch: Any = None


class ImportLane:
    """Starts work at the coordinator and waits for it, within a budget."""

    def __init__(self, peers: Peers, clock: Clock, timer: Timer, hook: HookStep) -> None:
        self._peers = peers
        self._clock = clock
        self._timer = timer
        self._hook = hook

    async def run_import(self, service_id: str, request: HttpRequest) -> Reply:
        """Import, verify, run the hook and open. 200 with the READY record, or 202 when it goes on."""
        coordinator = Coordinator(self._peers, service_id)
        text = await read_text(request, PLAN_BODY_BYTES_MAX, BODY_INVALID, DUMP_TOO_LARGE)
        body = decode(text, ImportBody, BODY_INVALID)
        fence = _fence(body)
        if isinstance(body.dump, msgspec.Raw):
            await _check_dump(coordinator, fence, bytes(body.dump).decode())
        elif len(text.encode()) > BODY_BYTES_MAX:
            raise BODY_TOO_LARGE(bytesMax=BODY_BYTES_MAX)
        patience = self._patience()
        started = await coordinator.ask("/import", fence.body(through="verify"))
        reply = await self._settled(coordinator, fence, started, patience)
        while True:
            record = read_record(reply)
            if reply.status == ACCEPTED or record.status == READY or not record.verified_for(fence):
                return reply
            ready = await self._hook.run(coordinator, service_id, fence, record.parsed_manifest())
            if ready.status != ACCEPTED:
                return ready
            # The allocator has not opened yet, or another call runs the hook: wait, or take its place when it died.
            reply = await self._settled(coordinator, fence, ready, patience)

    async def run_verify(self, service_id: str, request: HttpRequest) -> Reply:
        """Compare what was imported with the plan. 200 with the verified record, or 202 when it goes on."""
        coordinator = Coordinator(self._peers, service_id)
        text = await read_text(request, BODY_BYTES_MAX, BODY_INVALID, BODY_TOO_LARGE)
        fence = _fence(decode(text, FenceBody, BODY_INVALID))
        patience = self._patience()
        started = await coordinator.ask("/verify", fence.body())
        return await self._settled(coordinator, fence, started, patience)

    async def run_reset(self, service_id: str, request: HttpRequest) -> Reply:
        """Remove what a failed import wrote. 200 with the EMPTY record, or 202 when it goes on."""
        coordinator = Coordinator(self._peers, service_id)
        text = await read_text(request, BODY_BYTES_MAX, BODY_INVALID, BODY_TOO_LARGE)
        patience = self._patience()
        reply = await coordinator.ask("/reset", text)
        while reply.status == ACCEPTED:
            if not await patience.wait():
                return reply
            record, state = await coordinator.state()
            _raise_blockage(record)
            done = record.status == EMPTY and not record.progress.running
            reply = Reply(200 if done else ACCEPTED, state.text)
        return reply

    def _patience(self) -> Patience:
        return Patience(self._clock, self._timer, IMPORT_WAIT_MS)

    async def _settled(self, coordinator: Coordinator, fence: Fence, reply: Reply, patience: Patience) -> Reply:
        """Wait while the work runs: 200 when this import is verified or READY, else 202 with the last record.

        Raises the error that blocks the work, 409 when the import was aborted or given another epoch meanwhile,
        and whatever the coordinator refuses.
        """
        while True:
            if not reply.ok:
                raise ObjectAnswer(reply)
            if reply.status != ACCEPTED or not await patience.wait():
                return reply
            record, state = await coordinator.state()
            if not record.is_of(fence):
                raise EPOCH_REJECTED()
            if record.status == FAILED:
                raise STATE_REJECTED("it was aborted meanwhile; repeat import only to resume it")
            _raise_blockage(record)
            if not record.progress.running:
                done = record.status == READY or record.verified_for(fence)
                return Reply(200 if done else ACCEPTED, state.text)
            reply = Reply(ACCEPTED, state.text)


def _fence(body: ImportBody | FenceBody) -> Fence:
    if not isinstance(body.import_id, str) or type(body.lease_epoch) is not int:
        raise EPOCH_REJECTED("importId is a text and leaseEpoch an integer")
    return Fence(body.import_id, body.lease_epoch)


async def _check_dump(coordinator: Coordinator, fence: Fence, dump: str) -> None:
    """A dump that is sent again must be valid and the planned one, whose digest is fixed by import and epoch."""
    try:
        sent = read_dump_v1(dump)
        for _ in sent.records():
            pass  # the digest holds when the last record was read
    except CodedError as refused:
        raise DUMP_INVALID(refused.code) from None
    planned, _ = await coordinator.state()
    if not planned.is_of(fence):
        raise EPOCH_REJECTED()
    if planned.digest != sent.content_digest:
        raise DUMP_MISMATCH()


def _raise_blockage(record: Record) -> None:
    blockage = record.blockage()
    if blockage is not None:
        raise blockage
