"""Whatever a span hook does, the command's result stays its own."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pytest

from dcb_runtime.ports import Reply
from dcb_runtime.spans import guard
from dcb_runtime.spans.attributes import ATTRIBUTES, end_attributes, start_attributes
from dcb_runtime.spans.guard import traced
from dcb_runtime.spans.memory import MemorySpans
from dcb_runtime.spans.none import NO_SPANS
from dcb_runtime.spans.port import Command, Done, Observed, Outcome, actor_key_hash

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

T = TypeVar("T")
COMMAND = Command("POST /append", "allocator", "orders", actor_key_hash("allocator", "orders"), "attempt-1")


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "HOOK_PATIENCE_MS", 5)


class RefusedError(Exception):
    """What the work raises."""


class Work:
    """Counts how often it ran to its end."""

    def __init__(self, status: int = 200, fails: BaseException | None = None) -> None:
        self.reply = Reply(status, "{}")
        self.fails = fails
        self.runs = 0

    async def __call__(self) -> Reply:
        self.runs += 1
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        if self.fails is not None:
            raise self.fails
        return self.reply


@dataclass
class Hook:
    """A span hook made of one function."""

    body: Callable[[Command, Observed], Awaitable[Any]]

    async def run(self, command: Command, work: Observed) -> None:
        await self.body(command, work)


class RaisesAtOnce:
    def run(self, _: Command, __: Observed) -> NoReturn:
        raise RuntimeError("no coroutine even")


class AnswersNoAwaitable:
    def run(self, _: Command, __: Observed) -> Any:
        return None


async def raises_before(_: Command, __: Observed) -> None:
    raise RuntimeError("before")


async def raises_after(_: Command, work: Observed) -> None:
    await work()
    raise RuntimeError("after")


async def exits_before(_: Command, __: Observed) -> None:
    raise SystemExit(3)


async def exits_after(_: Command, work: Observed) -> None:
    await work()
    raise KeyboardInterrupt


async def exits_generator(_: Command, __: Observed) -> None:
    raise GeneratorExit


async def never_calls(_: Command, __: Observed) -> None:
    await asyncio.sleep(0)


async def calls_twice(_: Command, work: Observed) -> None:
    await work()
    await work()


async def calls_twice_at_once(_: Command, work: Observed) -> None:
    await asyncio.gather(work(), work())


async def does_not_wait(_: Command, work: Observed) -> None:
    started = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    started.cancel()


async def swallows(_: Command, work: Observed) -> None:
    try:
        await work()
    except BaseException:
        return


async def answers_something_else(_: Command, work: Observed) -> Reply:
    await work()
    return Reply(500, "made up")


async def hangs_up(_: Command, work: Observed) -> None:
    await asyncio.wait_for(work(), 0.0001)


async def cancels_itself(_: Command, work: Observed) -> None:
    task = asyncio.current_task()
    assert task is not None
    await asyncio.sleep(0)
    task.cancel()
    await work()


async def hangs_before(_: Command, __: Observed) -> None:
    await asyncio.get_running_loop().create_future()


async def hangs_after(_: Command, work: Observed) -> None:
    await work()
    await asyncio.get_running_loop().create_future()


async def hangs_and_will_not_be_cancelled(_: Command, work: Observed) -> None:
    try:
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        await work()


async def drops_the_work(_: Command, work: Observed) -> None:
    work().__await__().close()


async def raises_in_a_group(_: Command, work: Observed) -> None:
    async def fail() -> None:
        raise RuntimeError("an attribute that can't be set")

    await asyncio.gather(work(), fail())


HOOKS: list[Any] = [
    RaisesAtOnce(),
    AnswersNoAwaitable(),
    *(
        Hook(body)
        for body in (
            raises_before,
            raises_after,
            exits_before,
            exits_after,
            exits_generator,
            never_calls,
            calls_twice,
            calls_twice_at_once,
            does_not_wait,
            swallows,
            answers_something_else,
            hangs_up,
            cancels_itself,
            hangs_before,
            hangs_after,
            hangs_and_will_not_be_cancelled,
            drops_the_work,
            raises_in_a_group,
        )
    ),
]
hooks = pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: getattr(getattr(hook, "body", hook), "__name__", None))


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main``, and let what is left behind come to its end."""

    async def all_of_it() -> T:
        try:
            return await main
        finally:
            await asyncio.sleep(0.01)

    return asyncio.run(all_of_it())


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


def test_every_attribute_is_in_the_table_and_the_table_has_no_other() -> None:
    full = Command("POST /append", "tag", "orders", "0" * 64, "attempt-1", "an-activation", True)
    found = start_attributes(full) | end_attributes(Done(Outcome.ERROR, 500, "500"))
    assert found.keys() == ATTRIBUTES.keys()
    assert found["faas.coldstart"] is True
    assert found["dcb.command.id"] == "attempt-1"
    assert found["error.type"] == "500"
    bare = start_attributes(Command("GET /state", "tag")) | end_attributes(Done(Outcome.OK, 200))
    assert bare.keys() == {"dcb.operation", "dcb.actor.class", "dcb.outcome", "http.response.status_code"}


@pytest.mark.parametrize(
    ("command_id", "kept"),
    [("a" * 128, True), ("a" * 129, False), ("A.b_c:d-9", True), ("order/secret", False), ("a b", False), ("", False)],
)
def test_a_command_id_that_is_no_id_is_left_out(command_id: str, kept: bool) -> None:
    attributes = start_attributes(Command("POST /append", "allocator", command_id=command_id))
    assert ("dcb.command.id" in attributes) is kept


def test_the_key_of_a_tag_is_hashed_and_never_fails() -> None:
    assert actor_key_hash("tag", "orders", "order:42") == hashlib.sha256(b"tag:orders:order:42").hexdigest()
    assert actor_key_hash("allocator", "orders") == hashlib.sha256(b"allocator:orders").hexdigest()
    assert len(actor_key_hash("tag", "orders", "\ud800")) == 64
