"""Span hooks that misbehave, each in a way of its own, and work that counts how often it ran."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pytest

from dcb_runtime.ports import Reply
from dcb_runtime.spans.port import Command, Observed, actor_key_hash

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

T = TypeVar("T")
COMMAND = Command("POST /append", "allocator", "orders", actor_key_hash("allocator", "orders"), "attempt-1")


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
