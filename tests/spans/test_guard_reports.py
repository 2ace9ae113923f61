"""A span hook learns how the command ended, before the caller does, and nothing of its content."""

from __future__ import annotations

import asyncio

import pytest

from dcb_runtime.ports import Reply
from dcb_runtime.spans.guard import traced
from dcb_runtime.spans.memory import MemorySpans
from dcb_runtime.spans.port import Command, Done, Outcome
from tests.spans.hooks import COMMAND, RefusedError, Work, run

pytestmark = pytest.mark.usefixtures("little_patience")


@pytest.mark.parametrize(
    ("status", "outcome", "error_type"),
    [
        (200, Outcome.OK, None),
        (202, Outcome.OK, None),
        (399, Outcome.OK, None),
        (400, Outcome.REJECTED, None),
        (404, Outcome.REJECTED, None),
        (409, Outcome.CONFLICT, None),
        (410, Outcome.REJECTED, None),
        (499, Outcome.REJECTED, None),
        (500, Outcome.ERROR, "500"),
        (503, Outcome.ERROR, "503"),
    ],
)
def test_the_hook_learns_outcome_and_status(status: int, outcome: Outcome, error_type: str | None) -> None:
    spans = MemorySpans()
    run(traced(spans, lambda: COMMAND, Work(status)))
    assert spans.spans[0].done == Done(outcome, status, error_type)


def test_the_hook_learns_the_type_of_an_exception_and_nothing_else_of_it() -> None:
    spans = MemorySpans()

    async def call() -> None:
        with pytest.raises(RefusedError):
            await traced(spans, lambda: COMMAND, Work(fails=RefusedError("a payload")))

    run(call())
    assert spans.spans[0].done == Done(Outcome.ERROR, None, "RefusedError")
    assert "a payload" not in repr(spans.spans)


def test_the_hook_reports_before_the_caller_gets_its_answer() -> None:
    spans = MemorySpans()

    async def call() -> None:
        await traced(spans, lambda: COMMAND, Work())
        assert spans.spans[0].done is not None

    run(call())


def test_spans_inside_the_work_find_their_parent_and_neighbours_do_not_mix() -> None:
    spans = MemorySpans()

    async def command(name: str) -> Reply:
        async def inner() -> Reply:
            await asyncio.sleep(0.001)
            return await traced(spans, lambda: Command(f"{name}.inner", "tag"), Work())

        return await traced(spans, lambda: Command(name, "entry"), inner)

    async def call() -> None:
        await asyncio.gather(command("a"), command("b"))

    run(call())
    parents = {span.name: span.parent.name if span.parent else None for span in spans.spans}
    assert parents == {"a": None, "b": None, "a.inner": "a", "b.inner": "b"}
