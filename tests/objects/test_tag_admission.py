"""Who may write an import into a Tag, and what fits: epochs, other imports, lineages, services, order, repeats."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dcb_runtime.limits import CHUNK_EVENTS_MAX
from tests.support.dumps import record
from tests.support.service import Answer, Service
from tests.support.world import parsed

WRITER = {
    "importId": "import-1",
    "leaseEpoch": 2,
    "manifestDigest": "d",
    "targetServiceId": "orders",
    "allocatorLineageId": "lineage-1",
}
FENCED = "bootstrap_fencing_or_manifest_mismatch"
CLOSED = "bootstrap_closed_permanently"
CONFLICT = "bootstrap_identity_or_order_conflict"


def candidate(position: int, *tags: str, **changes: Any) -> dict[str, Any]:
    whole = {**record(position, *(tags or ("a",))), "position": position}
    del whole["provenance"]
    return {**whole, **changes}


STORED = [candidate(1), candidate(4), candidate(9, "a", "b")]


async def admit(service: Service, first: int, candidates: list[dict[str, Any]], **writer: Any) -> Answer:
    body = {**WRITER, **writer, "firstVersion": first, "candidates": candidates}
    return await service.tag("a", "/bootstrap/admit", body)


async def stored() -> Service:
    service = Service()
    assert await admit(service, 1, STORED) == (201, {"status": "bootstrap_admitted", "version": 3})
    return service


async def refused_without_trace(service: Service, reason: str, answer: Any) -> None:
    before = service.tag_storage("a").rows()
    status, got = await answer
    assert (status, got["code"], got["reason"]) == (409, "tag_operation_rejected", reason)
    assert got["error"] == reason
    assert service.tag_storage("a").rows() == before


def test_events_in_order_are_taken_and_repeats_are_told_as_duplicates() -> None:
    async def scenario() -> None:
        service = await stored()
        before = service.tag_storage("a").rows()
        for first, count in ((1, 3), (1, 1), (2, 2), (3, 1)):
            assert await admit(service, first, STORED[first - 1 :][:count]) == (
                200,
                {"status": "duplicate", "version": 3},
            )
        assert service.tag_storage("a").rows() == before
        assert (await admit(service, 3, [STORED[2], candidate(10)]))[1]["version"] == 4
        assert (await service.tag("a", "/head-facts"))[1] == {
            "head": candidate(10)["suid"],
            "headPosition": 10,
            "version": 4,
        }

    asyncio.run(scenario())


OTHER_CONTENT = {
    "eventId": candidate(77)["eventId"],
    "suid": candidate(4)["suid"][:-1] + "9",
    "payload": '{"n":1.0}',
    "eventType": "Other",
    "eventTags": ["a", "z"],
    "timestamp": "2023-11-14T22:13:20.0000Z",
    "causationId": "c",
    "correlationId": "c",
    "executedUser": "c",
    "position": 5,
}


@pytest.mark.parametrize("name", sorted(OTHER_CONTENT))
def test_other_content_under_a_known_version_is_a_conflict(name: str) -> None:
    async def scenario() -> None:
        service = await stored()
        changed = {**STORED[1], name: OTHER_CONTENT[name]}
        await refused_without_trace(service, CONFLICT, admit(service, 2, [changed]))
        await refused_without_trace(service, CONFLICT, admit(service, 1, [STORED[0], changed, STORED[2]]))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("first", "candidates"),
    [
        (5, [candidate(20)]),
        (4, [candidate(20, eventId=STORED[0]["eventId"])]),
        (4, [candidate(20, eventId="0000000A-0000-4000-8000-00000000000F"), candidate(21)]),
        (4, [candidate(20), candidate(21, eventId=candidate(20)["eventId"])]),
        (4, [candidate(9)]),
        (4, [candidate(8)]),
        (4, [candidate(20, suid=STORED[2]["suid"])]),
        (4, [candidate(21), candidate(20)]),
        (4, [candidate(20), candidate(20, eventId=candidate(21)["eventId"], suid=candidate(21)["suid"])]),
    ],
)
def test_what_does_not_follow_is_a_conflict(first: int, candidates: list[dict[str, Any]]) -> None:
    async def scenario() -> None:
        service = Service()
        first_one = candidate(1, eventId="0000000a-0000-4000-8000-00000000000f")
        second = candidate(4, eventId=STORED[0]["eventId"])
        assert (await admit(service, 1, [first_one, second, STORED[2]]))[0] == 201
        await refused_without_trace(service, CONFLICT, admit(service, first, candidates))

    asyncio.run(scenario())


def test_a_new_epoch_is_taken_and_the_old_one_is_out() -> None:
    async def scenario() -> None:
        service = await stored()
        assert (await admit(service, 1, STORED, leaseEpoch=3))[0] == 200
        await refused_without_trace(service, FENCED, admit(service, 4, [candidate(20)]))
        assert (await admit(service, 4, [candidate(20)], leaseEpoch=3))[0] == 201

    asyncio.run(scenario())


@pytest.mark.parametrize("other", [{"importId": "import-2"}, {"manifestDigest": "e"}, {"leaseEpoch": 1}])
def test_another_import_may_not_write(other: dict[str, Any]) -> None:
    async def scenario() -> None:
        service = await stored()
        await refused_without_trace(service, FENCED, admit(service, 4, [candidate(20)], **other))
        newer = {"leaseEpoch": 9, **other}
        if other != {"leaseEpoch": 1}:
            await refused_without_trace(service, FENCED, admit(service, 4, [candidate(20)], **newer))

    asyncio.run(scenario())


def test_another_lineage_service_or_tag_is_refused() -> None:
    async def scenario() -> None:
        service = await stored()
        before = service.tag_storage("a").rows()
        status, answer = await admit(service, 4, [candidate(20)], allocatorLineageId="lineage-2")
        assert (status, answer["code"]) == (409, "lineage_mismatch")
        status, answer = await admit(service, 4, [candidate(20)], targetServiceId="stock")
        assert (status, answer["code"]) == (409, "bootstrap_service_scope_mismatch")
        body = {**WRITER, "firstVersion": 4, "candidates": [candidate(20, "a", "b")]}
        name = "orders/tag/a"
        for query, code in (
            ("__tag=b&__serviceId=orders", "tag_identity_conflict"),
            ("__tag=b", "tag_identity_conflict"),
            ("__serviceId=orders", "tag_identity_required"),
        ):
            status, answer = await raw(service, name, f"/bootstrap/admit?{query}", body)
            assert answer["code"] == code
        status, answer = await raw(
            service, name, "/bootstrap/admit?__tag=a&__serviceId=stock", {**body, "targetServiceId": "stock"}
        )
        assert (status, answer["code"]) == (409, "tag_identity_conflict")
        assert service.tag_storage("a").rows() == before

    asyncio.run(scenario())


async def raw(service: Service, name: str, path: str, body: Any) -> Answer:
    return parsed(await service.world.call("tag", name, path, json.dumps(body)))


def test_closing_is_for_good_and_may_be_repeated() -> None:
    async def scenario() -> None:
        service = await stored()
        close = {"importId": "import-1", "leaseEpoch": 2}
        for wrong in ({**close, "importId": "import-2"}, {**close, "leaseEpoch": 1}):
            await refused_without_trace(service, FENCED, service.tag("a", "/bootstrap/close", wrong))
        for _ in range(2):
            assert await service.tag("a", "/bootstrap/close", close) == (200, {"status": "closed", "version": 3})
        await refused_without_trace(service, CLOSED, admit(service, 4, [candidate(20)]))
        await refused_without_trace(service, CLOSED, admit(service, 1, STORED, leaseEpoch=9))
        await refused_without_trace(service, CLOSED, service.tag("a", "/bootstrap/reset", {**WRITER, "leaseEpoch": 9}))
        service.world.restart()
        await refused_without_trace(service, CLOSED, admit(service, 1, STORED))
        admission = (await service.tag("a", "/state"))[1]["bootstrapAdmission"]
        assert admission == {"importId": "import-1", "manifestDigest": "d", "leaseEpoch": 2, "closed": True}

    asyncio.run(scenario())


def test_a_reset_removes_the_import_and_keeps_its_epoch_out() -> None:
    async def scenario() -> None:
        service = await stored()
        await refused_without_trace(service, FENCED, service.tag("a", "/bootstrap/reset", {**WRITER, "leaseEpoch": 1}))
        other = {**WRITER, "leaseEpoch": 9, "importId": "import-2"}
        await refused_without_trace(service, FENCED, service.tag("a", "/bootstrap/reset", other))
        reset = {**WRITER, "leaseEpoch": 3}
        for _ in range(2):
            assert await service.tag("a", "/bootstrap/reset", reset) == (200, {"status": "reset", "version": 0})
        await refused_without_trace(service, FENCED, admit(service, 1, STORED))
        assert (await admit(service, 1, [candidate(2)], importId="import-2", leaseEpoch=4))[0] == 201
        await refused_without_trace(service, FENCED, service.tag("a", "/bootstrap/reset", reset))

    asyncio.run(scenario())


def test_a_reset_of_an_untouched_tag_keeps_the_old_epoch_out_too() -> None:
    async def scenario() -> None:
        service = Service()
        assert (await service.tag("a", "/bootstrap/reset", {**WRITER, "leaseEpoch": 3}))[0] == 200
        await refused_without_trace(service, FENCED, admit(service, 1, STORED))
        assert (await admit(service, 1, STORED, leaseEpoch=4))[0] == 201

    asyncio.run(scenario())


@pytest.mark.parametrize("route", ["/bootstrap/close", "/digest"])
def test_closing_or_comparing_an_unused_tag_finds_none_and_creates_nothing(route: str) -> None:
    async def scenario() -> None:
        service = Service()
        body = {"importId": "import-1", "leaseEpoch": 2} if route == "/bootstrap/close" else {"after": 0, "limit": 1}
        status, answer = await service.tag("a", route, body)
        assert (status, answer["code"]) == (404, "tag_not_found")
        assert service.tag_storage("a").rows() == {}

    asyncio.run(scenario())


BAD: list[Any] = [
    "[]",
    {},
    {**WRITER, "firstVersion": 1, "candidates": []},
    {**WRITER, "firstVersion": 0, "candidates": [candidate(1)]},
    {**WRITER, "firstVersion": 1, "candidates": [candidate(1, "b")]},
    {**WRITER, "firstVersion": 1, "candidates": [candidate(1, suid="1")]},
    {**WRITER, "firstVersion": 1, "candidates": [candidate(1, suid="1" * 30 + "\n")]},
    {**WRITER, "firstVersion": 1, "candidates": [candidate(1, eventId="x")]},
    {**WRITER, "firstVersion": 1, "candidates": [candidate(1, more=1)]},
    {**WRITER, "firstVersion": 1, "candidates": [candidate(n) for n in range(1, CHUNK_EVENTS_MAX + 2)]},
]


@pytest.mark.parametrize("body", BAD)
def test_a_malformed_admission_is_refused_and_creates_nothing(body: Any) -> None:
    async def scenario() -> None:
        service = Service()
        status, answer = await service.tag("a", "/bootstrap/admit", body)
        assert (status, answer["code"]) == (400, "invalid_bootstrap_admission")
        assert service.tag_storage("a").rows() == {}

    asyncio.run(scenario())


def test_1000_candidates_are_taken_at_once() -> None:
    async def scenario() -> None:
        candidates = [candidate(n) for n in range(1, CHUNK_EVENTS_MAX + 1)]
        assert (await admit(Service(), 1, candidates))[1]["version"] == CHUNK_EVENTS_MAX

    asyncio.run(scenario())


@pytest.mark.parametrize("route", ["/bootstrap/admit", "/bootstrap/close", "/bootstrap/reset", "/digest"])
def test_a_body_that_is_no_json_is_told(route: str) -> None:
    async def scenario() -> None:
        status, answer = await Service().tag("a", route, "not json")
        assert (status, answer["code"]) == (400, "malformed_tag_request")

    asyncio.run(scenario())
