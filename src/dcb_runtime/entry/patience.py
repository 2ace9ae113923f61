"""How long a request waits for work that an object does by itself."""

from __future__ import annotations

from dcb_runtime.limits import WAIT_STEP_MS_MAX, WAIT_STEP_MS_MIN
from dcb_runtime.ports import Clock, Timer


class Patience:
    """A budget of milliseconds, spent in steps that double. It decides nothing but when to answer."""

    def __init__(self, clock: Clock, timer: Timer, budget_ms: int) -> None:
        self._clock = clock
        self._timer = timer
        self._budget_ms = budget_ms
        self._started_ms = clock.now_ms()
        self._slept_ms = 0
        self._step_ms = WAIT_STEP_MS_MIN

    async def wait(self) -> bool:
        """Sleep one step; ``False``, without sleeping, when the budget is spent.

        What counts is the larger of the clock's advance and the time slept: the clock may stand still or go back.
        """
        left_ms = self._budget_ms - max(self._slept_ms, self._clock.now_ms() - self._started_ms)
        if left_ms <= 0:
            return False
        step_ms = min(self._step_ms, left_ms)
        await self._timer.sleep(step_ms)
        self._slept_ms += step_ms
        self._step_ms = min(self._step_ms * 2, WAIT_STEP_MS_MAX)
        return True
