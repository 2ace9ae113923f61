"""The ports of the product with a test's faults around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from faults import ORDERS, Lost, pass_gates, send_late  # type: ignore[import-not-found]

from dcb_runtime.cloudflare.storage import ObjectStorage
from dcb_runtime.cloudflare.world import SystemClock
from dcb_runtime.dispatch import parse_request
from dcb_runtime.log.event_log import EventLog
from dcb_runtime.ports import DatabaseError, PeerError, Peers, Reply

T = TypeVar("T")


class LabClock(SystemClock):
    """The system's clock, off by what a test ordered."""

    def now_ms(self) -> int:
        """Unix time in whole milliseconds."""
        offset_ms: int = ORDERS.clock_offset_ms
        return super().now_ms() + offset_ms


class LabStorage(ObjectStorage):
    """An object's storage whose alarms come by the real clock."""

    def set_alarm(self, at_ms: int) -> None:
        """Set the alarm."""
        super().set_alarm(at_ms - ORDERS.clock_offset_ms)


class LabPeers:
    """The ``Peers`` port with gates before a call is sent and after its answer has come."""

    def __init__(self, inner: Peers) -> None:
        self._inner = inner

    async def call(self, actor_class: str, name: str, path: str, body: str | None = None) -> Reply:
        """One call of another object."""
        request = parse_request("", path, body)
        service, tag = name.split("/")[0], request.query.get("__tag")
        try:
            await pass_gates(service, request.path, tag, "before")
            answer = await self._inner.call(actor_class, name, path, body)
            await pass_gates(service, request.path, tag, "after")
        except Lost as lost:
            send_late(lost, lambda: self._inner.call(actor_class, name, path, body))
            raise PeerError("lost") from None
        return answer


class LabLog(EventLog):
    """The event log with gates around each of its calls; their routes are ``log/admit`` and so on."""

    async def count(self, service_id: str) -> int:
        """How many events the log holds."""
        return await _gated("count", service_id, lambda: EventLog.count(self, service_id))

    async def fence(self, service_id: str, lineage: str, import_id: str, lease_epoch: int) -> None:
        """Let only this import and epoch write."""
        await _gated("fence", service_id, lambda: EventLog.fence(self, service_id, lineage, import_id, lease_epoch))

    async def admit(self, service_id: str, *more: Any) -> int:
        """Write a chunk."""
        return await _gated("admit", service_id, lambda: EventLog.admit(self, service_id, *more))

    async def remove(self, service_id: str, *more: Any) -> int:
        """Remove some events of an import."""
        return await _gated("remove", service_id, lambda: EventLog.remove(self, service_id, *more))

    async def close_import(self, service_id: str, *more: Any) -> None:
        """End the import."""
        await _gated("close", service_id, lambda: EventLog.close_import(self, service_id, *more))

    async def compared(self, service_id: str, after: int, until: int) -> str:
        """Texts for comparison."""
        return await _gated("compared", service_id, lambda: EventLog.compared(self, service_id, after, until))


async def _gated(name: str, service_id: str, call: Callable[[], Awaitable[T]]) -> T:
    try:
        await pass_gates(service_id, f"log/{name}", None, "before")
        answer = await call()
        await pass_gates(service_id, f"log/{name}", None, "after")
    except Lost as lost:
        send_late(lost, call)
        raise DatabaseError("lost") from None
    return answer
