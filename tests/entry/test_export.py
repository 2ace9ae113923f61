"""An export is one snapshot in pages: dense, anchored at its first page, and its digest travels in the cursor."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import pytest

from dcb_runtime.entry.cursor import Anchor, Cursor, CursorSeal
from dcb_runtime.limits import EXPORT_PAGE_EVENTS_DEFAULT, LOG_WAIT_MS, READ_PAGE_BYTES_MAX
from dcb_runtime.ports import PeerError, Reply
from dcb_runtime.rules.dump_v2 import ChainDigest, check_contents_v2, parse_manifest_v2, read_record_v2
from dcb_runtime.wire import reply
from tests.entry.doubles import OPERATOR, Asked, Hands, ListLog, World, refusal

SOURCE = "11111111-1111-4111-8111-111111111111"
TARGET = "22222222-2222-4222-8222-222222222222"
SEAL = CursorSeal(OPERATOR)


def event(number: int, payload: str = "{}") -> dict[str, Any]:
    return {
        "eventId": f"00000000-0000-4000-8000-{number:012}",
        "suid": f"{number:030}",
        "payload": payload,
        "eventTags": [f"order:{number % 3}"],
        "eventType": "Placed",
        "provenance": {"origin": "g32"},
        "timestamp": "2026-01-01T00:00:00.000Z",
        "causationId": "any",
        "correlationId": None,
        "executedUser": None,
    }


def state(head: int, /, **more: Any) -> Reply:
    facts = {
        "schemaVersion": 1,
        "allocatorLineageId": SOURCE,
        "mode": "open",
        "head": head,
        "eventCount": head,
        "tagCount": min(head, 3),
        "allocatedWatermark": f"{head:030}" if head else None,
    }
    return reply(200, {**facts, **more})


def lineage(of: Asked) -> Reply:
    known = {"orders/allocator/allocator": SOURCE, "copy/allocator/allocator": TARGET}
    return reply(200, {"allocatorLineageId": known.get(of.name), "mode": "open"})


def holding(count: int) -> World:
    """A world whose service ``orders`` holds that many events."""
    world = World(log=ListLog([event(number) for number in range(1, count + 1)]))
    world.objects.on("allocator", "/state", state(count))
    world.objects.on("allocator", "/lineage", lineage)
    return world


def export(world: World, **body: Any) -> Any:
    got = world.post("export", {"targetServiceId": "copy", **body})
    assert got.status == 200, got.json
    return got.json


def pages(world: World, **body: Any) -> list[Any]:
    """All pages of an export."""
    found = [export(world, **body)]
    while not found[-1]["complete"]:
        found.append(export(world, **body, cursor=found[-1]["cursor"]))
    return found


def check(found: list[Any]) -> dict[str, Any]:
    """Read the pages as a dump, digest and all; return its manifest."""
    manifest = parse_manifest_v2(found[-1]["manifest"])
    chain, tags, last = ChainDigest(), set(), None
    records = [read_record_v2(record, "event") for page in found for record in page["page"]]
    for record in records:
        chain.add(record)
        tags |= set(record["eventTags"])
        last = record["suid"]
    assert len(records) == manifest["eventCount"]
    check_contents_v2(manifest, len(tags), last, chain.state)
    return manifest


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


def test_the_longest_service_ids_and_numbers_still_make_a_cursor_that_fits() -> None:
    name = "a" * 96
    cursor = Cursor(Anchor(name, name, "l" * 256, "l" * 256, 2**53 - 1, 2**53 - 1), 2**53 - 2, "9" * 30, "f" * 64)
    text = SEAL.write(cursor)
    assert SEAL.read(text) == cursor
    assert len(text) <= 4096


@pytest.mark.parametrize("other", [{"targetServiceId": "another"}, {"targetServiceId": "orders"}])
def test_a_cursor_belongs_to_its_target(other: dict[str, str]) -> None:
    world = holding(3)
    cursor = export(world, pageSize=1)["cursor"]
    assert world.post("export", {**other, "cursor": cursor}).code == (400, "bootstrap_export_invalid")


def test_a_cursor_is_taken_as_long_as_its_token_is() -> None:
    cursor = SEAL.read(sealed(*GOOD))
    assert cursor is not None
    new = "another-token-of-32-characters!!"
    old_text = SEAL.write(cursor)
    assert CursorSeal(f"{new},{OPERATOR}").read(old_text) == cursor
    assert CursorSeal(new).read(old_text) is None
    assert CursorSeal(None).read(old_text) is None


def test_a_cursor_belongs_to_its_source() -> None:
    world = holding(3)
    cursor = export(world, pageSize=1)["cursor"]
    body = json.dumps({"targetServiceId": "copy", "cursor": cursor})
    got = world.ask("POST", "/operator/bootstrap/another/export", body)
    assert got.code == (400, "bootstrap_export_invalid")


def test_no_changed_cursor_is_taken() -> None:
    cursor = export(holding(3), pageSize=1)["cursor"]
    assert SEAL.read(cursor) is not None
    for place, character in enumerate(cursor):
        swapped = "B" if character == "A" else "A"
        assert SEAL.read(cursor[:place] + swapped + cursor[place + 1 :]) is None
        assert SEAL.read(cursor[:place]) is None
    for changed in (cursor + "A", cursor + "=", " " + cursor, cursor + "\n", cursor * 2, "\u00fc" + cursor):
        assert SEAL.read(changed) is None


def sealed(*content: Any) -> str:
    """A cursor of any content with a right seal."""
    raw = json.dumps(content, separators=(",", ":")).encode()
    seal = hmac.digest(b"export cursor\0" + OPERATOR.encode(), raw, "sha256")[:16]
    return urlsafe_b64encode(seal + raw).rstrip(b"=").decode()


ANCHOR = ["orders", "copy", SOURCE, TARGET, 3, 3]
GOOD: tuple[Any, ...] = (ANCHOR, 1, "0" * 30, "0" * 64)


def test_a_cursor_made_by_hand_is_taken_only_when_it_could_have_been_made_here() -> None:
    assert SEAL.read(sealed(*GOOD)) is not None
    assert SEAL.read(sealed([*ANCHOR[:3], None, 3, 3], *GOOD[1:])) is not None
    for content in (
        (*GOOD, 1),
        GOOD[:3],
        (ANCHOR, 0, *GOOD[2:]),
        (ANCHOR, -1, *GOOD[2:]),
        (ANCHOR, 3, *GOOD[2:]),
        (ANCHOR, 4, *GOOD[2:]),
        (ANCHOR, 1.0, *GOOD[2:]),
        (ANCHOR, True, *GOOD[2:]),
        (ANCHOR, 1, "0" * 29, GOOD[3]),
        (ANCHOR, 1, "0" * 30 + "\n", GOOD[3]),
        (ANCHOR, 1, None, GOOD[3]),
        (ANCHOR, 1, GOOD[2], "0" * 63),
        (ANCHOR, 1, GOOD[2], "F" * 64),
        ([*ANCHOR, 1], *GOOD[1:]),
        (ANCHOR[:5], *GOOD[1:]),
        ([*ANCHOR[:2], "", TARGET, 3, 3], *GOOD[1:]),
        ([*ANCHOR[:2], None, TARGET, 3, 3], *GOOD[1:]),
        ([*ANCHOR[:4], 3, -1], *GOOD[1:]),
        ([*ANCHOR[:4], 2**53, 3], *GOOD[1:]),
    ):
        assert SEAL.read(sealed(*content)) is None, content


def test_a_cursor_is_safe_in_a_url_and_carries_the_chain() -> None:
    world = holding(3)
    cursor = export(world, pageSize=2)["cursor"]
    assert cursor.replace("-", "a").replace("_", "a").isalnum()
    chain = ChainDigest()
    for record in world.log.records[:2]:
        assert record is not None
        chain.add(record)
    assert chain.state.hex().encode() in urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))


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
