"""A cancelled command is cancelled whatever its span hook does, and whoever hears of it is told the truth."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dcb_runtime.ports import Reply
from dcb_runtime.spans import guard
from dcb_runtime.spans.guard import traced
from dcb_runtime.spans.memory import MemorySpans
from dcb_runtime.spans.port import Command, Done, Observed, Outcome
from tests.spans.hooks import COMMAND, Hook, Work, hooks, run

pytestmark = pytest.mark.usefixtures("little_patience")


@hooks
def test_a_cancelled_caller_cancels_the_work_and_hears_of_it(hook: Any) -> None:
    tidied: list[str] = []

    async def work() -> Reply:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            tidied.append("tidied")
        return Reply(200, "{}")

    async def call() -> None:
        caller = asyncio.ensure_future(traced(hook, lambda: COMMAND, work))
        await asyncio.sleep(0.02)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert tidied == ["tidied"]

    run(call())


@hooks
def test_work_that_outlives_a_cancellation_keeps_its_answer(hook: Any) -> None:
    async def work() -> Reply:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return Reply(202, "{}")
        return Reply(200, "{}")

    async def call() -> Reply:
        caller = asyncio.ensure_future(traced(hook, lambda: COMMAND, work))
        await asyncio.sleep(0.02)
        caller.cancel()
        return await caller

    assert run(call()).status == 202


@hooks
def test_a_timeout_of_the_caller_stays_a_timeout(hook: Any) -> None:
    async def work() -> Reply:
        await asyncio.sleep(60)
        return Reply(200, "{}")

    async def call() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await traced(hook, lambda: COMMAND, work)

    run(call())


@pytest.mark.parametrize("ticks", range(8))
def test_a_cancellation_is_never_lost_and_never_leaves_work_behind(ticks: int) -> None:
    state = ["not started"]

    async def work() -> Reply:
        state.append("running")
        try:
            await asyncio.sleep(0.005)
        finally:
            state.append("ended")
        return Reply(200, "{}")

    async def call() -> None:
        caller = asyncio.ensure_future(traced(MemorySpans(), lambda: COMMAND, work))
        for _ in range(ticks):
            await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert state[-1] in {"not started", "ended"}
        before = list(state)
        await asyncio.sleep(0.01)
        assert state == before

    run(call())


@pytest.mark.parametrize("ticks", range(16))
def test_whoever_is_told_that_the_call_is_cancelled_is_told_the_truth(ticks: int) -> None:
    async def work() -> Reply:
        for _ in range(3):
            await asyncio.sleep(0)
        return Reply(200, "{}")

    async def call() -> None:
        caller = asyncio.ensure_future(traced(MemorySpans(), lambda: COMMAND, work))
        for _ in range(ticks):
            await asyncio.sleep(0)
        if caller.cancel():
            with pytest.raises(asyncio.CancelledError):
                await caller
        else:
            assert (await caller).status == 200

    run(call())


def test_a_hook_that_comes_late_does_not_start_work_whose_caller_has_gone() -> None:
    learned: list[Done] = []

    async def late(_: Command, work: Observed) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            learned.append(await work())

    async def call(work: Work) -> None:
        caller = asyncio.ensure_future(traced(Hook(late), lambda: COMMAND, work))
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller

    work = Work()
    run(call(work))
    assert work.runs == 0
    assert learned == [Done(Outcome.ERROR, None, "CancelledError")]


def test_a_cancellation_while_the_hook_reports_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "HOOK_PATIENCE_MS", 1000)

    async def report(_: Command, work: Observed) -> None:
        await work()
        await asyncio.sleep(60)

    async def call() -> None:
        caller = asyncio.ensure_future(traced(Hook(report), lambda: COMMAND, Work()))
        await asyncio.sleep(0.02)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller

    run(call())
