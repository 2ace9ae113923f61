"""The allocator's index takes in an import: whole chunks or nothing, and versions as a plain model counts them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcb_runtime.allocator.index import EventIndex
from dcb_runtime.limits import CHUNK_EVENTS_MAX
from tests.support.dumps import record
from tests.support.service import Answer, Service

HOLDER = {"importId": "import-1", "digest": "d", "leaseEpoch": 1}
TAGS = ("a", "b", "a/b", "100%", "\U0001f600", "B", "ä")


def indexed(number: int, *tags: str, **changes: Any) -> dict[str, Any]:
    whole = record(number, *tags)
    return {name: whole[name] for name in ("eventId", "suid", "eventType", "eventTags")} | changes


async def fenced() -> Service:
    service = Service()
    assert (await service.allocator("/fence/raise", HOLDER))[0] == 200
    return service


async def admit(service: Service, first: int, events: list[dict[str, Any]]) -> Answer:
    return await service.allocator("/import/admit", {**HOLDER, "firstPosition": first, "events": events})


STORED = [indexed(1, "a", "b"), indexed(2), indexed(3, "b")]

CONFLICTS: dict[str, tuple[int, list[dict[str, Any]]]] = {
    "another suid": (1, [{**STORED[0], "suid": STORED[0]["suid"][:-1] + "9"}]),
    "another id": (2, [{**STORED[1], "eventId": indexed(9)["eventId"]}]),
    "another type": (1, [{**STORED[0], "eventType": "Other"}]),
    "a tag more": (3, [{**STORED[2], "eventTags": ["b", "c"]}]),
    "a tag less": (1, [{**STORED[0], "eventTags": ["a"]}]),
    "another tag": (3, [{**STORED[2], "eventTags": ["B"]}]),
    "one of a chunk": (2, [STORED[1], {**STORED[2], "eventType": "Other"}, indexed(4)]),
    "a gap": (5, [indexed(5)]),
    "an id that is there": (4, [indexed(4, eventId=STORED[0]["eventId"])]),
    "an id that is there in other case": (4, [indexed(4, eventId="0000000A-0000-4000-8000-00000000000A")]),
    "an id twice": (4, [indexed(4), indexed(5, eventId=indexed(4)["eventId"])]),
    "a suid that stays": (4, [indexed(4, suid=STORED[2]["suid"])]),
    "a suid that falls": (4, [indexed(5), indexed(4)]),
    "a suid below the last": (4, [indexed(4, suid=STORED[0]["suid"])]),
}


@pytest.mark.parametrize("name", sorted(CONFLICTS))
def test_a_chunk_that_does_not_fit_is_refused_and_leaves_nothing(name: str) -> None:
    async def scenario() -> None:
        service = await fenced()
        first, events = CONFLICTS[name]
        stored = [*STORED]
        if "other case" in name:
            stored[0] = {**stored[0], "eventId": "0000000a-0000-4000-8000-00000000000a"}
        assert await admit(service, 1, stored) == (200, {"new": 3, "head": 3})
        before = service.allocator_storage().rows()
        status, answer = await admit(service, first, events)
        assert (status, answer["code"]) == (409, "index_conflict")
        assert service.allocator_storage().rows() == before

    asyncio.run(scenario())


def test_what_is_there_may_come_again_in_any_piece_and_in_any_order_of_its_tags() -> None:
    async def scenario() -> None:
        service = await fenced()
        await admit(service, 1, STORED)
        before = service.allocator_storage().rows()
        for first, count in ((1, 3), (1, 1), (2, 2), (3, 1)):
            assert await admit(service, first, STORED[first - 1 :][:count]) == (200, {"new": 0, "head": 3})
        turned = {**STORED[0], "eventTags": ["b", "a"]}
        assert await admit(service, 1, [turned]) == (200, {"new": 0, "head": 3})
        assert service.allocator_storage().rows() == before
        assert await admit(service, 3, [STORED[2], indexed(4, "a")]) == (200, {"new": 1, "head": 4})

    asyncio.run(scenario())


def test_a_chunk_has_1_to_1000_events() -> None:
    async def scenario() -> None:
        service = await fenced()
        events = [indexed(number) for number in range(1, CHUNK_EVENTS_MAX + 2)]
        for wrong in ([], events):
            status, answer = await admit(service, 1, wrong)
            assert (status, answer["code"]) == (400, "invalid_fence_request")
        assert (await admit(service, 1, events[:-1]))[0] == 200

    asyncio.run(scenario())


@pytest.mark.parametrize("event_id", ["", "0" * 35, "0" * 37, "g" * 36])
def test_an_id_that_is_no_uuid_is_refused(event_id: str) -> None:
    async def scenario() -> None:
        service = await fenced()
        status, answer = await admit(service, 1, [indexed(1, eventId=event_id)])
        assert (status, answer["code"]) == (400, "invalid_fence_request")

    asyncio.run(scenario())


@settings(max_examples=60, deadline=None)
@given(
    tags=st.lists(st.lists(st.sampled_from(TAGS), unique=True, max_size=4), min_size=1, max_size=30),
    cuts=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 5)), min_size=30, max_size=30),
)
def test_versions_and_heads_are_those_of_a_plain_model(tags: list[list[str]], cuts: list[tuple[int, int]]) -> None:
    events = [indexed(number, *names, eventType=f"T{number % 3}") for number, names in enumerate(tags, start=1)]

    async def scenario() -> EventIndex:
        service = await fenced()
        head = 0
        for size, back in cuts:
            first = max(1, head + 1 - back)
            status, answer = await admit(service, first, events[first - 1 : head + size])
            assert status == 200, answer
            head = answer["head"]
            if head == len(events):
                break
        assert head == len(events)
        return EventIndex(service.allocator_storage())

    index = asyncio.run(scenario())
    for tag in TAGS:
        positions = [place for place, names in enumerate(tags, start=1) if tag in names]
        got = index.tag_head(tag)
        assert (got.version, got.head) == (len(positions), positions[-1] if positions else 0)
    assert index.counts() == (len(events), len({tag for names in tags for tag in names}))
    rows = index.tags_text("", 0, 1000)
    again = asyncio.run(one_chunk(events))
    assert rows == again.tags_text("", 0, 1000)
    assert index.events_text(0, len(events)) == again.events_text(0, len(events))


async def one_chunk(events: list[dict[str, Any]]) -> EventIndex:
    service = await fenced()
    assert (await admit(service, 1, events))[0] == 200
    return EventIndex(service.allocator_storage())
