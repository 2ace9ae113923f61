"""Reading a Tag: state, pages cut by count and bytes, data byte for byte, and looking that creates nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dcb_runtime.limits import READ_PAGE_BYTES_MAX, READ_PAGE_EVENTS_MAX
from tests.objects.test_tag_admission import WRITER, admit, candidate
from tests.support.service import Service

NUMBERS = [
    "1.0",
    "1e400",
    "-0",
    "-0.0",
    "12345678901234567890",
    "1E+2",
    '"\\u00e4\\/\\u0000"',
    '"\U0001f600"',
    '{"b" : 1,\n"a":[ 1.50 ]}',
    "null",
    '{"a":1,"a":2}',
]


async def filled(candidates: list[dict[str, Any]]) -> Service:
    service = Service()
    for first in range(0, len(candidates), 1000):
        status, answer = await admit(service, first + 1, candidates[first : first + 1000])
        assert status == 201, answer
    return service


async def pages(service: Service, **query: int) -> list[list[int]]:
    """The positions of all pages, one after the other."""
    found, after = [], 0
    while True:
        status, page = await service.tag("a", "/events", after=after, **query)
        assert status == 200
        found.append([event["position"] for event in page["events"]])
        if "next" not in page:
            return found
        assert page["next"] == found[-1][-1]
        after = page["next"]


def test_an_event_is_shown_whole() -> None:
    async def scenario() -> None:
        more = {"causationId": "c", "correlationId": 'quote"d', "executedUser": "\U0001f600"}
        service = await filled([candidate(3, "a", "\U0001f600", **more)])
        status, page = await service.tag("a", "/events")
        shown = candidate(3, "a")
        assert (status, page) == (
            200,
            {
                "tag": "a",
                "version": 1,
                "head": 3,
                "suid": shown["suid"],
                "allocatorLineageId": "lineage-1",
                "events": [
                    {
                        "position": 3,
                        "suid": shown["suid"],
                        "id": shown["eventId"],
                        "type": "Noted",
                        "tags": ["a", "\U0001f600"],
                        "data": {"n": 1},
                        "timestamp": shown["timestamp"],
                        "metadata": more,
                    }
                ],
            },
        )

    asyncio.run(scenario())


@pytest.mark.parametrize("payload", NUMBERS)
def test_data_comes_back_byte_for_byte(payload: str) -> None:
    async def scenario() -> None:
        service = await filled([candidate(1, payload=payload)])
        text = (await service.tag_reply("a", "/events")).text
        assert f'"data":{payload},"timestamp"' in text

    asyncio.run(scenario())


def test_pages_are_cut_by_count_and_hold_everything_once() -> None:
    async def scenario() -> None:
        positions = list(range(2, 2 * READ_PAGE_EVENTS_MAX + 4, 2))
        service = await filled([candidate(position) for position in positions])
        assert [len(page) for page in await pages(service)][:2] == [100, 100]
        whole = await pages(service, limit=READ_PAGE_EVENTS_MAX)
        assert [len(page) for page in whole] == [READ_PAGE_EVENTS_MAX, 1]
        for limit in (7, 1000):
            assert [position for page in await pages(service, limit=limit) for position in page] == positions
        _, page = await service.tag("a", "/events", after=positions[-1])
        assert (page["events"], "next" in page) == ([], False)
        _, page = await service.tag("a", "/events", after=positions[-1] + 1)
        assert (page["events"], "next" in page) == ([], False)

    asyncio.run(scenario())


def test_a_page_is_cut_by_bytes_and_holds_at_least_one_event() -> None:
    async def scenario() -> None:
        size = len(json.dumps({**candidate(1, payload='""')}, separators=(",", ":")))
        half = READ_PAGE_BYTES_MAX // 2 - size

        def large(position: int, extra: int) -> dict[str, Any]:
            # Two quotation marks are written as four bytes in the record's JSON.
            return candidate(position, payload='"' + "x" * (half + extra) + '"')

        service = await filled([large(1, 0), large(2, 0), candidate(3)])
        assert [len(page) for page in await pages(service)] == [2, 1]
        service = await filled([large(1, 0), large(2, 1), candidate(3)])
        assert [len(page) for page in await pages(service)] == [1, 2]
        service = await filled([candidate(1, payload='"' + "x" * READ_PAGE_BYTES_MAX + '"'), candidate(2)])
        assert [len(page) for page in await pages(service)] == [1, 1]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": READ_PAGE_EVENTS_MAX + 1},
        {"limit": "x"},
        {"after": -1},
        {"after": 2**53},
        {"after": "1.0"},
        {"after": "0" * 20 + "9" * 20},
    ],
)
def test_a_number_out_of_its_range_is_refused(query: dict[str, Any]) -> None:
    async def scenario() -> None:
        status, answer = await Service().tag("a", "/events", None, **query)
        assert (status, answer["code"]) == (400, "malformed_tag_request")

    asyncio.run(scenario())


def test_looking_at_an_unused_tag_creates_nothing() -> None:
    async def scenario() -> None:
        service = Service()
        unused = {"tag": "a", "version": 0, "head": 0, "suid": "", "allocatorLineageId": None, "events": []}
        assert await service.tag("a", "/events") == (200, unused)
        for path in ("/state", "/head-facts"):
            status, answer = await service.tag("a", path)
            assert (status, answer["code"]) == (404, "tag_not_found")
        assert service.tag_storage("a").rows() == {}
        # A first admission that was refused leaves no trace that is shown either.
        assert (await admit(service, 2, [candidate(1)]))[0] == 409
        assert await service.tag("a", "/events") == (200, unused)

    asyncio.run(scenario())


def test_the_state_shows_head_and_admission() -> None:
    async def scenario() -> None:
        service = await filled([candidate(1), candidate(5)])
        service.world.restart()
        assert await service.tag("a", "/state") == (
            200,
            {
                "schemaVersion": 1,
                "tag": "a",
                "allocatorLineageId": "lineage-1",
                "version": 2,
                "head": candidate(5)["suid"],
                "headPosition": 5,
                "bootstrapAdmission": {
                    "importId": WRITER["importId"],
                    "manifestDigest": WRITER["manifestDigest"],
                    "leaseEpoch": WRITER["leaseEpoch"],
                    "closed": False,
                },
            },
        )

    asyncio.run(scenario())


def test_the_digest_tells_pages_apart_and_changes_with_any_of_them() -> None:
    async def scenario() -> None:
        service = await filled([candidate(n) for n in (1, 2, 3)])
        other = await filled([candidate(1), candidate(2, payload='{"n":1.0}'), candidate(3)])

        async def digest(which: Service, after: int, limit: int) -> str:
            return str((await which.tag("a", "/digest", {"after": after, "limit": limit}))[1]["sha256"])

        assert await digest(service, 0, 1) == await digest(other, 0, 1)
        assert await digest(service, 1, 1) != await digest(other, 1, 1)
        assert await digest(service, 0, 3) != await digest(other, 0, 3)
        assert await digest(service, 2, 1) == await digest(other, 2, 1)
        assert await digest(service, 0, 3) != await digest(service, 0, 2)
        for body in ({"after": 0, "limit": 0}, {"after": 0, "limit": 1001}, {"after": -1, "limit": 1}, {}):
            assert (await service.tag("a", "/digest", body))[1]["code"] == "malformed_tag_request"

    asyncio.run(scenario())


def test_there_are_no_other_routes() -> None:
    async def scenario() -> None:
        service = Service()
        for path, body in (("/", None), ("/events", {}), ("/state", {}), ("/bootstrap/admit", None), ("/append", {})):
            status, answer = await service.tag("a", path, body)
            assert (status, answer["code"]) == (404, "tag_route_not_found")

    asyncio.run(scenario())
