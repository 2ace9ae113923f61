"""The deployment's own step of an import: run under a claim, between verification and READY."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from dcb_runtime.bootstrap.errors import READ_MODEL_REBUILD_FAILED
from dcb_runtime.dispatch import describe_fault
from dcb_runtime.entry.coordinator import Coordinator, Fence, read_claim
from dcb_runtime.errors import CodedError
from dcb_runtime.limits import HOOK_RENEW_MS
from dcb_runtime.ports import Reply, Timer


class AfterVerifyBeforeReady(Protocol):
    """Builds what the deployment needs before a service opens: read models, caches."""

    def __call__(
        self, service_id: str, import_id: str, lease_epoch: int, manifest: dict[str, Any], /
    ) -> Awaitable[None] | None:
        """Do the deployment's part, at once or as an awaitable.

        It **may run again** after a crash, a lost claim or a failure later on, also while an earlier run has
        not ended, so it must be idempotent: the same ``import_id`` and ``lease_epoch`` must lead to the same
        end. It gets the import's manifest (counts, watermark, digest), not the events. Raising leaves the
        service VERIFYING, and the next import call runs it again.
        """


@dataclass(frozen=True)
class Hooks:
    """What a deployment may plug in; ``None`` does nothing."""

    after_verify_before_ready: AfterVerifyBeforeReady | None = None


class HookStep:
    """Claims the hook, runs it while renewing the claim, and asks for READY."""

    def __init__(self, hooks: Hooks, timer: Timer, log_line: Callable[[str], None]) -> None:
        self._hooks = hooks
        self._timer = timer
        self._log_line = log_line

    async def run(self, coordinator: Coordinator, service_id: str, fence: Fence, manifest: dict[str, Any]) -> Reply:
        """The coordinator's answer to ready, or to the claim when another call holds it (202) or it is refused.

        Raises ``bootstrap_read_model_rebuild_failed`` when the hook raises. A claim that was lost meanwhile is
        found out by ready, which refuses it.
        """
        claimed = await coordinator.ask("/hook/claim", fence.body())
        if claimed.status != 200:
            return claimed
        token = read_claim(claimed).token
        renewal = asyncio.ensure_future(self._renew(coordinator, fence.body(token=token)))
        try:
            await self._call(service_id, fence, manifest)
        except Exception as fault:
            self._log_line(describe_fault(fault))
            await _release(coordinator, fence.body(token=token))
            raise READ_MODEL_REBUILD_FAILED() from None
        finally:
            renewal.cancel()
            await asyncio.wait({renewal})
        return await coordinator.ask("/ready", fence.body(hookToken=token))

    async def _call(self, service_id: str, fence: Fence, manifest: dict[str, Any]) -> None:
        hook = self._hooks.after_verify_before_ready
        if hook is None:
            return
        result = hook(service_id, fence.import_id, fence.lease_epoch, manifest)
        if inspect.isawaitable(result):
            await result

    async def _renew(self, coordinator: Coordinator, body: str) -> None:
        while True:
            await self._timer.sleep(HOOK_RENEW_MS)
            try:
                reply = await coordinator.ask("/hook/renew", body)
            except CodedError:
                continue  # not reached: the claim holds for some renewals more
            if reply.status == 409:
                return


async def _release(coordinator: Coordinator, body: str) -> None:
    """Let another call have the hook at once; when this is lost the claim expires by itself."""
    try:
        await coordinator.ask("/hook/release", body)
    except CodedError:
        return
