"""Spans over a runtime's tracing: whatever the runtime has, lacks or refuses, the work runs once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from dcb_runtime.cloudflare.spans import TracingSpans, in_span, runtime_spans
from dcb_runtime.ports import Reply
from dcb_runtime.spans.guard import traced
from dcb_runtime.spans.none import NO_SPANS
from dcb_runtime.spans.port import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAMES = ("enterSpan", "startActiveSpan", "withActiveSpan")


class Span:
    """A span as the runtime hands it out."""

    def __init__(self, name: str, parent: Span | None, traced: bool = True) -> None:
        self.name = name
        self.parent = parent
        self.isTraced = traced
        self.attributes: dict[str, Any] = {}
        self.status: Any = None
        self.ended = 0

    def setAttribute(self, name: str, value: Any) -> None:  # noqa: N802 - the runtime's name
        assert not self.ended
        self.attributes[name] = value

    def setStatus(self, status: Any) -> None:  # noqa: N802 - the runtime's name
        self.status = status

    def end(self) -> None:
        self.ended += 1


class Tracing:
    """The runtime's tracing with some of its methods; ``refuses`` raise instead of doing anything."""

    def __init__(self, *has: str, refuses: tuple[str, ...] = (), traced: bool = True) -> None:
        self.spans: list[Span] = []
        self.active: Span | None = None
        self._refuses = refuses
        self._traced = traced
        for name in has:
            setattr(self, name, self._within if name == "withActiveSpan" else self._start(name))

    def _start(self, method: str) -> Callable[..., Any]:
        def start(name: str, callback: Callable[..., Any]) -> Any:
            if method in self._refuses:
                raise RuntimeError(method)
            span = Span(name, self.active, self._traced)
            self.spans.append(span)
            return self._within(span, lambda: callback(span))

        return start

    def _within(self, span: Span, callback: Callable[..., Any]) -> Any:
        if "withActiveSpan" in self._refuses:
            raise RuntimeError("withActiveSpan")
        before, self.active = self.active, span
        try:
            return callback()
        finally:
            self.active = before


class Border:
    """The border without JavaScript behind it; counts what was not given back."""

    def __init__(self) -> None:
        self.held = 0
        self.open_promises = 0

    def callback(self, function: Callable[..., Any]) -> Any:
        self.held += 1
        return function

    def release(self, _: Any) -> None:
        self.held -= 1

    def to_object(self, members: Mapping[str, str]) -> Any:
        return dict(members)

    def deferred(self) -> tuple[Any, Callable[[], None]]:
        self.open_promises += 1

        def close() -> None:
            self.open_promises -= 1

        return object(), close


COMMAND = Command("POST /append", "allocator", "orders")


def run(tracing: Any, status: int = 200, fails: Exception | None = None) -> int:
    """Run one command; how often its work ran."""
    border, runs = Border(), []

    async def work() -> Reply:
        runs.append(1)
        await asyncio.sleep(0)
        if fails is not None:
            raise fails
        return Reply(status, "{}")

    async def call() -> None:
        if fails is None:
            assert (await traced(TracingSpans(tracing, border), lambda: COMMAND, work)).status == status
        else:
            with pytest.raises(type(fails)):
                await traced(TracingSpans(tracing, border), lambda: COMMAND, work)

    asyncio.run(call())
    assert (border.held, border.open_promises) == (0, 0)
    return len(runs)


@pytest.mark.parametrize("has", [NAMES, ("enterSpan",), ("startActiveSpan",)])
@pytest.mark.parametrize(("status", "marked"), [(200, None), (409, None), (404, None), (503, {"code": "error"})])
def test_a_span_has_its_attributes_its_status_and_one_end(has: tuple[str, ...], status: int, marked: Any) -> None:
    tracing = Tracing(*has)
    assert run(tracing, status) == 1
    [span] = tracing.spans
    assert span.name == "POST /append"
    assert span.attributes["dcb.service.id"] == "orders"
    assert span.attributes["http.response.status_code"] == status
    assert (span.status, span.ended) == (marked, 1)


def test_a_span_of_work_that_raises_is_ended_and_has_no_message() -> None:
    tracing = Tracing(*NAMES)
    assert run(tracing, fails=ValueError("a payload")) == 1
    [span] = tracing.spans
    assert span.attributes["error.type"] == "ValueError"
    assert (span.status, span.ended) == ({"code": "error"}, 1)
    assert "a payload" not in repr(vars(span))


def test_a_span_that_nobody_records_is_given_no_attributes() -> None:
    tracing = Tracing(*NAMES, traced=False)
    assert run(tracing) == 1
    assert tracing.spans[0].attributes == {}


@pytest.mark.parametrize("tracing", [None, Tracing(), Tracing("withActiveSpan"), Tracing(*NAMES, refuses=NAMES)])
def test_a_runtime_without_spans_runs_the_work(tracing: Any) -> None:
    assert run(tracing) == 1


@pytest.mark.parametrize("broken", ["isTraced", "setAttribute", "setStatus", "end"])
def test_a_span_that_refuses_changes_nothing(broken: str) -> None:
    class Refusing:
        def __getattr__(self, name: str) -> Any:
            if name == broken:
                raise RuntimeError(name)
            return True if name == "isTraced" else lambda *_: None

    class Made(Tracing):
        def startActiveSpan(self, _: str, callback: Callable[..., Any]) -> Any:  # noqa: N802 - the runtime's name
            return callback(Refusing())

    assert run(Made(), 503) == 1


def test_a_tracer_that_raises_after_the_start_or_calls_twice_changes_nothing() -> None:
    class Late(Tracing):
        def startActiveSpan(self, name: str, callback: Callable[..., Any]) -> Any:  # noqa: N802 - the runtime's name
            for _ in range(2):
                callback(Span(name, None))
            raise RuntimeError("late")

    assert run(Late()) == 1


def test_children_name_their_own_parent_when_tasks_run_at_once() -> None:
    tracing = Tracing(*NAMES)
    spans = TracingSpans(tracing, Border())
    calls: list[tuple[str, str | None]] = []

    async def leaf(name: str) -> Reply:
        await asyncio.sleep(0)
        in_span(lambda: calls.append((name, tracing.active.name if tracing.active else None)))
        return Reply(200, "{}")

    async def branch(name: str) -> Reply:
        async def inner() -> Reply:
            await asyncio.sleep(0)
            return await traced(spans, lambda: Command(f"{name}.leaf", "tag"), lambda: leaf(name))

        return await traced(spans, lambda: Command(name, "entry"), inner)

    async def call() -> None:
        await asyncio.gather(branch("a"), branch("b"))

    asyncio.run(call())
    assert {span.name: span.parent.name if span.parent else None for span in tracing.spans} == {
        "a": None,
        "b": None,
        "a.leaf": "a",
        "b.leaf": "b",
    }
    assert sorted(calls) == [("a", "a.leaf"), ("b", "b.leaf")]
    assert tracing.active is None


@pytest.mark.parametrize("has", [NAMES, ("enterSpan",)])
@pytest.mark.parametrize("refuses", [(), ("withActiveSpan",)])
@pytest.mark.parametrize("fault", [None, ValueError("own")])
def test_a_call_in_a_span_starts_once_and_keeps_its_result(
    has: tuple[str, ...], refuses: tuple[str, ...], fault: Exception | None
) -> None:
    starts: list[int] = []

    def start() -> str:
        starts.append(1)
        if fault is not None:
            raise fault
        return "result"

    async def work() -> Reply:
        if fault is None:
            assert in_span(start) == "result"
        else:
            with pytest.raises(ValueError, match="own") as raised:
                in_span(start)
            assert raised.value is fault
        return Reply(200, "{}")

    tracing = Tracing(*has)
    tracing._refuses = ()
    border = Border()

    async def call() -> None:
        spans = TracingSpans(tracing, border)

        async def refusing() -> Reply:
            tracing._refuses = refuses
            return await work()

        assert (await traced(spans, lambda: COMMAND, refusing)).status == 200

    asyncio.run(call())
    assert starts == [1]
    assert border.held == 0


def test_without_a_span_a_call_just_starts() -> None:
    assert in_span(lambda: "result") == "result"


def test_outside_the_runtime_there_are_no_spans() -> None:
    assert runtime_spans() is NO_SPANS
