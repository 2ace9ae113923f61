"""Whatever a span hook does, the command's result stays its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from dcb_runtime.ports import Reply
from dcb_runtime.spans.guard import traced
from dcb_runtime.spans.memory import MemorySpans
from dcb_runtime.spans.none import NO_SPANS
from dcb_runtime.spans.port import Command
from tests.spans.hooks import COMMAND, RefusedError, Work, hooks, run

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("little_patience")


@hooks
def test_the_caller_gets_the_answer_of_work_that_ran_once(hook: Any) -> None:
    work = Work()
    assert run(traced(hook, lambda: COMMAND, work)) is work.reply
    assert work.runs == 1


@hooks
@pytest.mark.parametrize("fault", [RefusedError("no"), SystemExit(1), asyncio.CancelledError("own")], ids=repr)
def test_the_caller_gets_the_exception_of_work_that_ran_once(hook: Any, fault: BaseException) -> None:
    work = Work(fails=fault)

    async def call() -> BaseException:
        with pytest.raises(type(fault)) as raised:
            await traced(hook, lambda: COMMAND, work)
        return raised.value

    assert run(call()) is fault
    assert work.runs == 1


@pytest.mark.parametrize("fault", [ValueError("attribute"), SystemExit(2)], ids=repr)
def test_a_description_that_cannot_be_made_leaves_the_work_untraced(fault: BaseException) -> None:
    spans, work = MemorySpans(), Work()

    def describe() -> Command:
        raise fault

    assert run(traced(spans, describe, work)) is work.reply
    assert work.runs == 1
    assert spans.spans == []


def test_no_spans_means_no_description_and_no_task() -> None:
    async def work() -> Reply:
        return Reply(200, str(len(asyncio.all_tasks())))

    def describe() -> Command:
        raise AssertionError("asked for a description")

    async def call() -> Reply:
        return await traced(NO_SPANS, describe, work)

    assert asyncio.run(call()).text == "1"


def test_the_description_is_made_before_anything_is_awaited() -> None:
    async def call() -> None:
        seen: list[str] = []

        def describing(name: str) -> Callable[[], Command]:
            def describe() -> Command:
                seen.append(name)
                return COMMAND

            return describe

        calls = [traced(MemorySpans(), describing(name), Work()) for name in "ab"]
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0)
        assert seen == ["a", "b"]
        await asyncio.gather(*tasks)

    run(call())
