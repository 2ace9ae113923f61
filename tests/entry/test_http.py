"""Bodies are bounded, paths and queries are decoded strictly, answers look alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from dcb_runtime.entry.http import body_reader
from dcb_runtime.entry.percent import decode_percent, decode_query, query_integer
from dcb_runtime.errors import CodedError
from tests.entry.doubles import stream


def read(headers: dict[str, str], chunks: list[bytes], bytes_max: int) -> bytes | tuple[int, str]:
    try:
        return asyncio.run(_read(headers, chunks, bytes_max))
    except CodedError as refused:
        return refused.status, refused.code


async def _read(headers: dict[str, str], chunks: list[bytes], bytes_max: int) -> bytes:
    return await body_reader(headers, lambda: stream(*chunks))(bytes_max)


TOO_LARGE = (413, "body_too_large")


@pytest.mark.parametrize(
    ("headers", "chunks", "result"),
    [
        ({}, [], b""),
        ({}, [b"12345", b"67890"], b"1234567890"),
        ({}, [b"12345", b"678901"], TOO_LARGE),
        ({}, [b"12345678901"], TOO_LARGE),
        ({"content-length": "10"}, [b"1234567890"], b"1234567890"),
        ({"content-length": "0010"}, [b"1234567890"], b"1234567890"),
        ({"content-length": "11"}, [b"1"], TOO_LARGE),
        ({"content-length": "9" * 5000}, [b"1"], TOO_LARGE),
        ({"content-length": "1"}, [b"12345", b"678901"], TOO_LARGE),
        ({"content-length": "-1"}, [b"1"], b"1"),
        ({"content-length": "\u0661\u0661\u0661"}, [b"1"], b"1"),
        ({"content-length": "many"}, [b"1"], b"1"),
        ({"content-length": "0"}, [b"1"], b"1"),
    ],
)
def test_a_body_is_bounded_by_its_bytes(
    headers: dict[str, str], chunks: list[bytes], result: bytes | tuple[int, str]
) -> None:
    assert read(headers, chunks, 10) == result


def test_a_body_that_declares_too_much_is_not_even_opened() -> None:
    def opened() -> AsyncIterator[bytes]:
        raise AssertionError("opened")

    with pytest.raises(CodedError, match="body_too_large"):
        asyncio.run(_awaited(body_reader({"content-length": "11"}, opened)(10)))


def test_a_stream_is_left_and_closed_at_the_chunk_that_is_too_much() -> None:
    seen: list[str] = []

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                seen.append("chunk")
                yield b"12345"
        finally:
            seen.append("closed")

    async def too_much() -> None:
        with pytest.raises(CodedError, match="body_too_large"):
            await body_reader({}, endless)(10)
        assert seen == ["chunk", "chunk", "chunk", "closed"]

    asyncio.run(too_much())


async def _awaited(awaitable: object) -> object:
    return await awaitable  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("", ""),
        ("orders", "orders"),
        ("a%2Fb%25", "a/b%"),
        ("%C3%BC", "\u00fc"),
        ("%c3%bc", "\u00fc"),
        ("%F0%9F%98%80", "\U0001f600"),
        ("\u00fc", "\u00fc"),
        ("a+b", "a+b"),
        ("%00", "\0"),
        ("%zz", None),
        ("%4", None),
        ("%", None),
        ("a%", None),
        ("%%41", None),
        ("%ff", None),
        ("%C3", None),
        ("%ED%A0%80", None),
        ("%C0%AF", None),
        ("%u0041", None),
        ("%+1", None),
        ("% 1", None),
        ("%\u0661\u0661", None),
        ("\ud800", None),
    ],
)
def test_percent_encoding_is_decoded_strictly(text: str, decoded: str | None) -> None:
    assert decode_percent(text) == decoded


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {}),
        ("after=1", {"after": "1"}),
        ("after=1&limit=2", {"after": "1", "limit": "2"}),
        ("%61fter=%31", {"after": "1"}),
        ("after=", {"after": ""}),
        ("after=a=b", {"after": "a=b"}),
    ],
)
def test_known_query_parameters_are_taken(query: str, found: dict[str, str]) -> None:
    assert decode_query(query, ("after", "limit")) == found


@pytest.mark.parametrize(
    "query",
    [
        "other=1",
        "after=1&after=1",
        "after",
        "&",
        "after=1&",
        "=1",
        "after=%zz",
        "%ff=1",
        "After=1",
        "after=1&%61fter=2",
    ],
)
def test_other_query_parameters_are_refused(query: str) -> None:
    with pytest.raises(CodedError, match="query_invalid") as refused:
        decode_query(query, ("after", "limit"))
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("1", 1), ("1000", 1000), ("999", 999), ("9007199254740991", 2**53 - 1)]
)
def test_an_integer_in_its_range_is_taken(text: str, value: int) -> None:
    assert query_integer({"after": text}, "after", 0) == value
    assert query_integer({}, "after", 0) is None


@pytest.mark.parametrize(
    "text",
    ["", "-1", "+1", "01", "1.0", "1e3", " 1", "1 ", "1_0", "\u0661", "0x1", "9007199254740992", "9" * 5000, "true"],
)
def test_another_integer_is_refused(text: str) -> None:
    with pytest.raises(CodedError, match="query_invalid"):
        query_integer({"after": text}, "after", 0)


@pytest.mark.parametrize(("text", "taken"), [("0", False), ("1", True), ("1000", True), ("1001", False)])
def test_both_ends_of_a_range_belong_to_it(text: str, taken: bool) -> None:
    if taken:
        assert query_integer({"limit": text}, "limit", 1, 1000) == int(text)
    else:
        with pytest.raises(CodedError, match="from 1 to 1000"):
            query_integer({"limit": text}, "limit", 1, 1000)
