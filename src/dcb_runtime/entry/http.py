"""Requests and answers of the entry Worker, free of any platform's types."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from dcb_runtime.errors import BODY_TOO_LARGE, CodedError, ErrorKind
from dcb_runtime.ports import Reply
from dcb_runtime.wire import encode, error_reply

ReadBody: TypeAlias = Callable[[int], Awaitable[bytes]]
"""Reads the whole body, or raises ``body_too_large`` when it is longer than the given number of bytes."""

JSON_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {"content-type": "application/json; charset=utf-8", "cache-control": "no-store"}
)


@dataclass(frozen=True)
class HttpRequest:
    """One request as it came: nothing of it is decoded yet."""

    method: str
    path: str
    """The path of the URL, percent-encoded."""
    query: str
    """The query of the URL without "?", percent-encoded."""
    headers: Mapping[str, str]
    """Names in lower case; a header that came twice is joined by ", "."""
    read_body: ReadBody


@dataclass(frozen=True)
class HttpResponse:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: str


class HttpRefusal(Exception):
    """A refusal whose answer needs headers of its own."""

    def __init__(self, error: CodedError, headers: Mapping[str, str]) -> None:
        super().__init__(error.code)
        self.error = error
        self.headers = headers


class ObjectAnswer(Exception):
    """An object's answer that ends the request: passed on as it is."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def reply_response(reply: Reply, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Pass an object's answer on, its text unchanged."""
    return HttpResponse(reply.status, {**(headers or {}), **JSON_HEADERS}, reply.text)


def json_response(status: int, value: object) -> HttpResponse:
    """An answer with a JSON body."""
    return HttpResponse(status, JSON_HEADERS, encode(value))


def error_response(error: CodedError, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """The answer that tells of a refusal."""
    return reply_response(error_reply(error), headers)


def body_reader(headers: Mapping[str, str], chunks: Callable[[], AsyncIterable[bytes]]) -> ReadBody:
    """Make ``read_body`` from a body's stream, which is not opened when its declared length is too much already.

    The declared length is only a promise, so the bytes are counted as well.
    """

    async def read_body(bytes_max: int) -> bytes:
        declared = headers.get("content-length", "")
        if declared.isascii() and declared.isdecimal() and _above(declared, bytes_max):
            raise BODY_TOO_LARGE(bytesMax=bytes_max)
        body = bytearray()
        pieces = chunks()
        try:
            async for chunk in pieces:
                if len(body) + len(chunk) > bytes_max:
                    raise BODY_TOO_LARGE(bytesMax=bytes_max)
                body += chunk
        finally:
            close = getattr(pieces, "aclose", None)  # a generator that is left halfway has a reader to give back
            if close is not None:
                await close()
        return bytes(body)

    return read_body


async def read_text(request: HttpRequest, bytes_max: int, invalid: ErrorKind, too_large: ErrorKind) -> str:
    """Read the body as strict UTF-8."""
    try:
        body = await request.read_body(bytes_max)
    except CodedError as refused:
        if refused.code != BODY_TOO_LARGE.code:
            raise
        raise too_large(bytesMax=bytes_max) from None
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise invalid(f"not UTF-8 at byte {fault.start}") from None


def _above(digits: str, bound: int) -> bool:
    digits = digits.lstrip("0")
    return len(digits) > len(str(bound)) or int(digits or "0") > bound
