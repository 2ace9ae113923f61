"""Spans over the runtime's own tracing, as far as this runtime has it. Whatever it refuses, the work goes on.

The runtime mixes up the active span between concurrent tasks, so the parent is carried in ``contextvars`` and
made active only for the moment in which the child starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from dcb_runtime.spans.attributes import Attribute, end_attributes, start_attributes
from dcb_runtime.spans.none import NO_SPANS
from dcb_runtime.spans.port import Command, Done, Observed, Outcome, Spans

T = TypeVar("T")


class Border(Protocol):
    """What the adapter needs of the border to JavaScript."""

    def callback(self, function: Callable[..., Any]) -> Any:
        """``function`` as JavaScript may call it, once and at once; ``release`` it afterwards."""

    def release(self, callback: Any) -> None:
        """Give a callback back."""

    def to_object(self, members: Mapping[str, str]) -> Any:
        """A JavaScript object."""

    def deferred(self) -> tuple[Any, Callable[[], None]]:
        """A promise, and what resolves it."""


_active: ContextVar[_Active | None] = ContextVar("dcb_runtime_span", default=None)


def in_span(start: Callable[[], T]) -> T:
    """Start a call of the platform so that its own span becomes a child of the one that this context carries.

    ``start`` runs exactly once; without a span, or without the runtime's help, it just runs.
    """
    active = _active.get()
    if active is None:
        return start()
    results: list[T] = []
    raised: list[BaseException] = []

    def enter(*_: Any) -> None:
        if results or raised:
            return
        try:
            results.append(start())
        except BaseException as fault:  # kept here: on its way through JavaScript it would lose its type
            raised.append(fault)

    _quietly(lambda: active.enter(enter))
    enter()
    if raised:
        raise raised[0]
    return results[0]


class _Active:
    """A span that is open, and how to make it the active one for a moment."""

    def __init__(self, tracing: Any, border: Border, span: Any) -> None:
        self._tracing = tracing
        self._border = border
        self._span = span

    def enter(self, function: Callable[..., Any]) -> None:
        """Call ``function`` while the span is active, where the runtime can do that; else not at all."""
        within = getattr(self._tracing, "withActiveSpan", None)
        if within is None or self._span is None:
            return
        callback = self._border.callback(function)
        try:
            within(self._span, callback)
        finally:
            self._border.release(callback)


class TracingSpans:
    """The ``Spans`` port over ``cloudflare:workers``' ``tracing``; each of its methods may be missing."""

    def __init__(self, tracing: Any, border: Border) -> None:
        self._tracing = tracing
        self._border = border

    async def run(self, command: Command, work: Observed) -> None:
        """Keep one span open around the work, with the table's attributes if anyone records it."""
        started: list[asyncio.Future[Done]] = []
        spans: list[Any] = []
        promise, close = self._border.deferred()

        def enter(span: Any = None, *_: Any) -> Any:
            if started:
                return promise
            spans.append(span)
            _active.set(_Active(self._tracing, self._border, span))
            started.append(asyncio.ensure_future(work()))
            return promise

        try:
            in_span(lambda: _quietly(lambda: self._start(command.name, enter)))
            if not started:
                enter()
            span = spans[0]  # None when the runtime made none
            _quietly(lambda: _set_attributes(span, start_attributes(command)))
            done = await started[0]
            _quietly(lambda: _set_attributes(span, end_attributes(done)))
            if done.outcome is Outcome.ERROR:
                _quietly(lambda: span.setStatus(self._border.to_object({"code": "error"})))
        finally:
            _quietly(lambda: spans[0].end())
            _quietly(close)

    def _start(self, name: str, enter: Callable[..., Any]) -> None:
        start = getattr(self._tracing, "startActiveSpan", None) or getattr(self._tracing, "enterSpan", None)
        if start is None:
            return
        callback = self._border.callback(enter)
        try:
            start(name, callback)
        finally:
            self._border.release(callback)


def _set_attributes(span: Any, attributes: Mapping[str, Attribute]) -> None:
    if span is not None and getattr(span, "isTraced", False):
        for name, value in attributes.items():
            span.setAttribute(name, value)


def _quietly(step: Callable[[], Any]) -> None:
    """Take one step of tracing; a span that cannot be made, told or ended is only a lack of a span."""
    try:
        step()
    except Exception:
        return


def runtime_spans() -> Spans:
    """The runtime's tracing, or no spans when this runtime has none."""
    try:
        from workers import import_from_javascript

        tracing = import_from_javascript("cloudflare:workers").tracing
        return TracingSpans(tracing, _PyodideBorder()) if hasattr(tracing, "enterSpan") else NO_SPANS
    except Exception:
        return NO_SPANS


class _PyodideBorder:
    """The border as Pyodide has it."""

    def callback(self, function: Callable[..., Any]) -> Any:
        from pyodide.ffi import create_proxy

        return create_proxy(function)

    def release(self, callback: Any) -> None:
        callback.destroy()

    def to_object(self, members: Mapping[str, str]) -> Any:
        from js import Object
        from pyodide.ffi import to_js

        return to_js(dict(members), dict_converter=Object.fromEntries)

    def deferred(self) -> tuple[Any, Callable[[], None]]:
        from js import Promise

        made = Promise.withResolvers()
        return made.promise, made.resolve
