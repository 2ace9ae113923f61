"""One dispatcher for every object: the same routes by ``fetch`` and by the RPC method.

An object is a table of routes. Each command runs inside a span hook that can never change its result;
an expected refusal becomes an answer with a code, anything else a bare 500.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote

from dcb_runtime.errors import INTERNAL_ERROR, CodedError
from dcb_runtime.ports import DatabaseError, Reply, StorageError
from dcb_runtime.wire import error_reply


@dataclass(frozen=True)
class Request:
    """One call of an object: method, path without query, query parameters and the body's text."""

    method: str
    path: str
    query: Mapping[str, str]
    body: str | None

    @property
    def service_id(self) -> str | None:
        """The service that the caller names, if it does."""
        return self.query.get("__serviceId") or None


Handler = Callable[[Request], Awaitable[Reply]]


def parse_request(method: str, target: str, body: str | None) -> Request:
    """Take ``/path?query`` apart; of a repeated parameter the last one counts (callers are our own)."""
    path, _, query = target.partition("?")
    return Request(method, path, dict(parse_qsl(query, keep_blank_values=True)), body)


def target(path: str, **parameters: str | int) -> str:
    """Build ``path?query``; names ``service_id`` and ``tag`` become ``__serviceId`` and ``__tag``."""
    names = {"service_id": "__serviceId", "tag": "__tag"}
    query = "&".join(f"{names.get(name, name)}={quote(str(value), safe='')}" for name, value in parameters.items())
    return f"{path}?{query}" if query else path


def path_tail(path: str, prefix: str) -> str | None:
    """The decoded rest of a path behind ``prefix``; ``None`` when it is not proper percent-encoded UTF-8."""
    try:
        return unquote(path[len(prefix) :], errors="strict")
    except UnicodeDecodeError:
        return None


async def answer(work: Callable[[], Awaitable[Reply]], log_line: Callable[[str], None]) -> Reply:
    """Run a handler and turn its refusal into an answer; nothing of an unexpected exception gets out."""
    try:
        return await work()
    except CodedError as refused:
        return error_reply(refused)
    except Exception as fault:
        log_line(describe_fault(fault))
        return error_reply(INTERNAL_ERROR())


def describe_fault(fault: BaseException) -> str:
    """Name an unexpected exception for the log: its type, the innermost of our lines and of the deployment's own.

    Never a message: it could quote an event.
    """
    places: dict[bool, str] = {}
    trace = fault.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        ours = "dcb_runtime" in file
        name = file.rsplit("dcb_runtime", 1)[1].lstrip("/") if ours else file.rsplit("/", 1)[-1]
        places[ours] = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    place = ", ".join(places[ours] for ours in (True, False) if ours in places) or "?"
    reason = f" ({fault})" if isinstance(fault, StorageError | DatabaseError) else ""
    return f"unexpected {type(fault).__name__}{reason} at {place}"
