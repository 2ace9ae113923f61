"""An export is one snapshot in pages: dense and anchored at its first page; what it can't prove it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dcb_runtime.limits import EXPORT_PAGE_EVENTS_DEFAULT, LOG_WAIT_MS, READ_PAGE_BYTES_MAX
from dcb_runtime.ports import PeerError, Reply
from dcb_runtime.wire import reply
from tests.entry.doubles import Hands, refusal
from tests.entry.exports import SOURCE, TARGET, check, event, export, holding, pages, state


@pytest.mark.parametrize("page_size", [1, 2, 3, 4, 5, 6, 7, 1000])
def test_the_pages_are_the_snapshot_and_their_manifest_proves_it(page_size: int) -> None:
    world = holding(6)
    found = pages(world, pageSize=page_size)
    assert [record for page in found for record in page["page"]] == world.log.records
    assert [len(page["page"]) for page in found[:-1]] == [page_size] * (len(found) - 1)
    assert [page["complete"] for page in found] == [False] * (len(found) - 1) + [True]
    assert all("manifest" not in page for page in found[:-1])
    assert found[-1]["cursor"] is None
    assert check(found) == {
        "format": "sekiban-dcb-bootstrap",
        "version": 2,
        "source": {"serviceId": "orders", "lineageId": SOURCE},
        "target": {"serviceId": "copy", "allocatorLineageId": TARGET},
        "highWatermark": f"{6:030}",
        "eventCount": 6,
        "tagCount": 3,
        "canonicalization": "utf8-json-sorted-keys-v1",
        "contentDigest": found[-1]["manifest"]["contentDigest"],
    }


def test_a_service_without_events_is_one_empty_page() -> None:
    [page] = pages(holding(0))
    assert page["page"] == []
    manifest = check([page])
    assert (manifest["eventCount"], manifest["highWatermark"]) == (0, None)


def test_a_page_has_128_events_by_default_and_is_cut_by_its_bytes() -> None:
    found = pages(holding(EXPORT_PAGE_EVENTS_DEFAULT + 1))
    assert [len(page["page"]) for page in found] == [EXPORT_PAGE_EVENTS_DEFAULT, 1]
    world = holding(0)
    big = json.dumps("x" * 190_000)
    world.log.records = [event(number, big) for number in range(1, 8)]
    world.objects.on("allocator", "/state", state(7))
    found = pages(world)
    assert [len(page["page"]) for page in found] == [5, 2]
    assert len(json.dumps(found[0]["page"])) < READ_PAGE_BYTES_MAX
    check(found)


def test_what_is_appended_later_never_enters() -> None:
    world = holding(3)
    first = export(world, pageSize=2)
    world.log.records += [event(4), event(5)]
    world.objects.on("allocator", "/state", state(5))
    second = export(world, pageSize=2, cursor=first["cursor"])
    assert second["complete"]
    assert check([first, second])["eventCount"] == 3


def test_only_the_first_page_asks_for_the_anchor_and_nothing_creates_a_lineage_of_the_target() -> None:
    world = holding(2)
    pages(world, pageSize=1)
    assert [(asked.name.split("/")[0], asked.route) for asked in world.objects.asked] == [
        ("orders", "/state"),
        ("copy", "/lineage"),
        ("orders", "/lineage"),
    ]
    assert {asked.query["__serviceId"][0] for asked in world.objects.asked} == {"orders", "copy"}
    assert {asked.body for asked in world.objects.asked} == {None}


@pytest.mark.parametrize("target", ["never-used", "orders"])
def test_a_target_that_lives_elsewhere_has_no_lineage(target: str) -> None:
    [page] = pages(holding(1), targetServiceId=target)
    assert page["manifest"]["target"] == {"serviceId": target, "allocatorLineageId": None}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"targetServiceId": None},
        {"targetServiceId": 1},
        {"targetServiceId": ""},
        {"targetServiceId": "-copy"},
        {"targetServiceId": "a/b"},
        {"targetServiceId": "a" * 97},
        {"targetServiceId": "copy", "allocatorLineageId": TARGET},
        {"targetServiceId": "copy", "allocatorLineageId": None},
        {"targetServiceId": "copy", "lineage": TARGET},
        {"targetServiceId": "copy", "pageSize": 0},
        {"targetServiceId": "copy", "pageSize": 1001},
        {"targetServiceId": "copy", "pageSize": -1},
        {"targetServiceId": "copy", "pageSize": "128"},
        {"targetServiceId": "copy", "pageSize": 1.5},
        {"targetServiceId": "copy", "pageSize": True},
        {"targetServiceId": "copy", "pageSize": None},
        {"targetServiceId": "copy", "cursor": 1},
        {"targetServiceId": "copy", "cursor": ""},
        {"targetServiceId": "copy", "cursor": {"highWatermark": None, "nextEventId": None}},
        {"targetServiceId": "copy", "cursor": "A" * 4096},
        {"targetServiceId": "copy", "cursor": "A" * 4097},
        [],
        "text",
    ],
)
def test_another_body_is_refused_before_anything_is_asked(body: Any) -> None:
    world = holding(1)
    assert world.post("export", body).code == (400, "bootstrap_export_invalid")
    assert world.objects.asked == []


@pytest.mark.parametrize("body", ["", "{", "\ufeff{}"])
def test_a_body_that_is_not_json_is_refused(body: str) -> None:
    got = holding(1).ask("POST", "/operator/bootstrap/orders/export", body)
    assert got.code == (400, "bootstrap_body_invalid")


@pytest.mark.parametrize("first_page", [True, False])
def test_a_source_that_is_being_imported_into_is_a_409(first_page: bool) -> None:
    world = holding(3)
    cursor = None if first_page else export(world, pageSize=1)["cursor"]
    world.objects.on("allocator", "/state", state(3, mode="importing"))
    world.objects.on("allocator", "/lineage", reply(200, {"allocatorLineageId": SOURCE, "mode": "importing"}))
    got = world.post("export", {"targetServiceId": "copy", "cursor": cursor})
    assert got.code == (409, "bootstrap_in_progress")


def test_a_target_that_is_being_imported_into_may_be_exported_for() -> None:
    world = holding(1)
    world.objects.on("allocator", "/lineage", reply(200, {"allocatorLineageId": TARGET, "mode": "importing"}))
    assert check(pages(world))["target"]["allocatorLineageId"] == TARGET


@pytest.mark.parametrize("now", [TARGET, None])
def test_a_source_of_another_lineage_than_the_first_pages_is_a_409(now: str | None) -> None:
    world = holding(3)
    cursor = export(world, pageSize=1)["cursor"]
    world.objects.on("allocator", "/lineage", reply(200, {"allocatorLineageId": now, "mode": "open"}))
    got = world.post("export", {"targetServiceId": "copy", "cursor": cursor})
    assert got.code == (409, "lineage_mismatch")


@pytest.mark.parametrize("route", ["/state", "/lineage"])
@pytest.mark.parametrize("answer", [PeerError(), refusal(500, "internal_error"), refusal(409, "anything")])
def test_an_allocator_that_cannot_be_asked_is_a_503(route: str, answer: Any) -> None:
    world = holding(1)
    world.objects.on("allocator", route, answer)
    got = world.post("export", {"targetServiceId": "copy"})
    assert got.code == (503, "bootstrap_allocator_unavailable")


@pytest.mark.parametrize(
    ("route", "answer"),
    [
        ("/state", Reply(200, "")),
        ("/state", Reply(200, "[]")),
        ("/state", state(1, allocatorLineageId=None)),
        ("/state", state(1, allocatorLineageId="")),
        ("/state", state(1, mode="closed")),
        ("/state", state(1, head=-1)),
        ("/state", state(1, head="1")),
        ("/state", state(1, tagCount=None)),
        ("/state", state(1, eventCount=2**53)),
        ("/lineage", reply(200, {})),
        ("/lineage", reply(200, {"allocatorLineageId": "", "mode": "open"})),
        ("/lineage", reply(200, {"allocatorLineageId": 1, "mode": "open"})),
    ],
)
def test_an_allocator_that_answers_nonsense_is_a_500(route: str, answer: Reply) -> None:
    world = holding(1)
    world.objects.on("allocator", route, answer)
    got = world.post("export", {"targetServiceId": "copy"})
    assert got.code == (500, "bootstrap_allocator_invalid")


def test_the_export_waits_for_the_log_to_catch_up() -> None:
    world = holding(3)
    world.log.heads = [0, 2]
    check(pages(world))
    assert world.hands.slept == [20, 40]


@pytest.mark.parametrize("moving", [True, False])
def test_a_log_that_does_not_catch_up_in_time_is_a_503(moving: bool) -> None:
    world = holding(3)
    world.hands = Hands(moving=moving)
    world.log.records.pop()
    assert world.post("export", {"targetServiceId": "copy"}).code == (503, "log_lagging")
    assert sum(world.hands.slept) == LOG_WAIT_MS


@pytest.mark.parametrize("first_page", [True, False])
def test_a_log_that_cannot_be_asked_is_a_503(first_page: bool) -> None:
    world = holding(3)
    cursor = None if first_page else export(world, pageSize=1)["cursor"]
    world.log.down = True
    got = world.post("export", {"targetServiceId": "copy", "cursor": cursor})
    assert got.code == (503, "log_unavailable")


@pytest.mark.parametrize("missing", [1, 2, 3])
@pytest.mark.parametrize("page_size", [1, 2, 3])
def test_a_hole_in_the_log_never_becomes_an_export(missing: int, page_size: int) -> None:
    world = holding(4)
    world.log.records[missing - 1] = None
    cursor, code, given = None, None, 0
    for _ in range(4):
        got = world.post("export", {"targetServiceId": "copy", "pageSize": page_size, "cursor": cursor})
        if got.status != 200:
            code = got.code
            break
        assert not got.json["complete"]
        given += len(got.json["page"])
        assert given < missing
        cursor = got.json["cursor"]
    assert code == (503, "log_incomplete")


def test_a_log_that_lost_its_end_between_two_pages_is_a_503() -> None:
    world = holding(3)
    cursor = export(world, pageSize=1)["cursor"]
    del world.log.records[1:]
    got = world.post("export", {"targetServiceId": "copy", "cursor": cursor})
    assert got.code == (503, "log_incomplete")


@pytest.mark.parametrize("page_size", [1, 3])
def test_suids_that_do_not_rise_with_the_positions_never_become_an_export(page_size: int) -> None:
    world = holding(3)
    world.log.records[2] = event(2)
    cursor = None
    for _ in range(2 if page_size == 1 else 0):
        cursor = export(world, pageSize=page_size, cursor=cursor)["cursor"]
    got = world.post("export", {"targetServiceId": "copy", "pageSize": page_size, "cursor": cursor})
    assert got.code == (503, "log_incomplete")
