"""The wall between a command and its span hook: the command's result never depends on the hook.

The work runs exactly once, in a task of its own, and the caller gets its result or exception whatever
the hook does: raise (``SystemExit`` too), return without calling the work, call it twice, cancel it, or
never come back. The caller's own cancellation reaches the work and comes back out, as without a hook.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from dcb_runtime.spans.none import NoSpans
from dcb_runtime.spans.port import Command, Done, Observed, Outcome, Spans, outcome_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

HOOK_PATIENCE_MS: Final = 50
"""How long a hook may take before it starts the work, and again after the work has ended."""


class HasStatus(Protocol):
    """An answer."""

    @property
    def status(self) -> int:
        """Its HTTP status."""


Answer = TypeVar("Answer", bound=HasStatus)


async def traced(spans: Spans, describe: Callable[[], Command], work: Callable[[], Awaitable[Answer]]) -> Answer:
    """Run ``work`` inside a span.

    ``describe`` is called once, before anything is awaited, and not at all when nothing observes; when it
    raises the work runs untraced.
    """
    if isinstance(spans, NoSpans):
        return await work()
    try:
        command = describe()
    except BaseException:
        return await work()
    once = _Once(work)
    hook = asyncio.ensure_future(_hooked(spans, command, once.observed))
    try:
        await _until_started(once, hook)
        try:
            return await once.finish()
        finally:
            await _wait_for(hook)
    finally:
        once.close()
        hook.cancel()


async def _until_started(once: _Once[Answer], hook: asyncio.Future[None]) -> None:
    try:
        await _wait_for(hook, once.started)
    except asyncio.CancelledError:
        if not once.started.done():
            raise
        once.start().cancel()


async def _hooked(spans: Spans, command: Command, observed: Observed) -> None:
    # Caught here, inside the task: asyncio lets SystemExit out of a task into the event loop.
    try:
        await spans.run(command, observed)
    except BaseException:
        return


async def _wait_for(*one_of: asyncio.Future[None]) -> None:
    if not any(future.done() for future in one_of):
        await asyncio.wait(one_of, timeout=HOOK_PATIENCE_MS / 1000, return_when=asyncio.FIRST_COMPLETED)


class _Once(Generic[Answer]):
    """Runs the work at most once, keeps how it ended, and lets any number of observers join."""

    def __init__(self, work: Callable[[], Awaitable[Answer]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._answers: list[Answer] = []
        self._raised: BaseException = asyncio.CancelledError()  # unless the work gets to run
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def start(self) -> asyncio.Task[None]:
        """The task of the work, in the context of whoever asks first."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
            self.started.set_result(None)
        return self._task

    async def observed(self) -> Done:
        """What the hook calls: join the work without being able to cancel it, and tell how it ended."""
        if self._task is None and self._closed:
            return Done(Outcome.ERROR, None, asyncio.CancelledError.__name__)
        await asyncio.wait({self.start()})
        return self._done()

    async def finish(self) -> Answer:
        """Wait for the work's end; a cancellation of the caller is handed to the work."""
        task = self.start()
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as cancelled:
                if task.done():
                    raise
                task.cancel(*cancelled.args)
        if self._answers:
            return self._answers[0]
        raise self._raised

    def close(self) -> None:
        """From now on the work is not started any more."""
        self._closed = True

    async def _run(self) -> None:
        # Kept instead of raised: what leaves a task is logged by asyncio, or stops the event loop.
        try:
            self._answers.append(await self._work())
        except BaseException as raised:
            self._raised = raised

    def _done(self) -> Done:
        if not self._answers:
            return Done(Outcome.ERROR, None, type(self._raised).__name__)
        status = self._answers[0].status
        outcome = outcome_of(status)
        return Done(outcome, status, str(status) if outcome is Outcome.ERROR else None)
