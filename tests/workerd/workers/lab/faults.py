"""What a test has ordered of the laboratory: gates that hold or lose calls, a clock that is off, a hook's behaviour.

All of it lives in this module's memory, which the isolate's objects and its entry share, so a restart forgets it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

POLL_S: Final = 0.01
"""Who is held looks again after this: a wake-up from another request's turn is not allowed on this platform."""


@dataclass
class Gate:
    """Acts on calls of one service's ``route``: the first ``skip`` pass, the next ``times`` are held, lost or late.

    A late call is lost for its caller, and arrives when the gate is opened.
    """

    name: str
    service: str
    route: str
    when: str = "before"
    action: str = "hold"
    tag: str | None = None
    skip: int = 0
    times: int = 1
    reached: int = 0
    opened: bool = False

    def takes(self, service: str, route: str, tag: str | None, when: str) -> bool:
        """Whether this call is one to act on; counts it."""
        if (service, route, when) != (self.service, self.route, self.when) or self.tag not in (None, tag):
            return False
        if self.opened or self.reached >= self.times:
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.reached += 1
        return True


class Lost(Exception):
    """A gate lost this call; ``late`` is set when it is to arrive after all."""

    def __init__(self, late: Gate | None = None) -> None:
        super().__init__()
        self.late = late


@dataclass
class Orders:
    """Everything that a test may order, and what was seen since the start."""

    gates: list[Gate] = field(default_factory=list)
    clock_offset_ms: int = 0
    hook: dict[str, str] = field(default_factory=dict)
    hook_runs: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    arrivals: list[dict[str, Any]] = field(default_factory=list)
    late: dict[str, str] = field(default_factory=dict)
    started: bool = False

    def shown(self) -> dict[str, Any]:
        """As a test reads it."""
        return asdict(self)


ORDERS: Final = Orders()


def take_first_orders(text: str | None) -> None:
    """Orders that hold from the start on: objects work before a test's first request."""
    if not ORDERS.started:
        ORDERS.started = True
        take_orders(json.loads(text or "{}"))


def take_orders(orders: dict[str, Any]) -> None:
    """Add gates, open some, set the clock's offset and the hook's behaviour."""
    ORDERS.gates += [Gate(**gate) for gate in orders.get("gates", [])]
    for gate in ORDERS.gates:
        gate.opened = gate.opened or gate.name in orders.get("open", [])
    ORDERS.clock_offset_ms = orders.get("clockOffsetMs", ORDERS.clock_offset_ms)
    ORDERS.hook.update(orders.get("hook", {}))
    if orders.get("forget"):
        ORDERS.calls.clear()
        ORDERS.arrivals.clear()


async def pass_gates(service: str, route: str, tag: str | None, when: str) -> None:
    """Note the call and do what its gates say. Raises ``Lost``."""
    ORDERS.calls.append({"service": service, "route": route, "tag": tag, "when": when})
    for gate in ORDERS.gates:
        if gate.takes(service, route, tag, when):
            if gate.action == "lose":
                raise Lost
            if gate.action == "late":
                raise Lost(gate)
            await wait_opened(gate)


async def wait_opened(gate: Gate) -> None:
    """Come back when the gate is open."""
    while not gate.opened:
        await asyncio.sleep(POLL_S)


def send_late(lost: Lost, call: Callable[[], Awaitable[object]]) -> None:
    """Have a lost call arrive when its gate opens, and note what came of it."""
    gate = lost.late
    if gate is None:
        return

    async def later() -> None:
        await wait_opened(gate)
        try:
            ORDERS.late[gate.name] = str(await call())
        except Exception as fault:
            ORDERS.late[gate.name] = str(fault)

    LATE.append(asyncio.ensure_future(later()))


LATE: Final[list[asyncio.Task[None]]] = []
"""Keeps the tasks: the loop alone would let them go."""
