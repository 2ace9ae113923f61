"""Dump v1: what is refused, with which code, in which order."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dcb_runtime.limits import PAYLOAD_BYTES_MAX
from dcb_runtime.rules.dump_v1 import (
    DUMP_INVALID,
    DUMP_V1_METADATA,
    compose_dump_v1,
    content_digest_v1,
    manifest_v1_for,
    read_dump_v1,
)
from dcb_runtime.rules.events import EVENT_TYPE_INVALID, PAYLOAD_TOO_DEEP, PAYLOAD_TOO_LARGE, TAG_INVALID, TAGS_TOO_MANY
from dcb_runtime.rules.manifests import DIGEST_MISMATCH, MANIFEST_INVALID, MANIFEST_MISMATCH, UNKNOWN_OR_MISSING_FIELD
from dcb_runtime.rules.records import RECORD_INVALID, RECORD_ORDER_OR_DUPLICATE
from tests.rules.builders import SOURCE, TARGET, make_dump, make_record, read_all, refused

if TYPE_CHECKING:
    from dcb_runtime.errors import ErrorKind

LEGACY = Path(__file__).parents[1] / "data" / "legacy-dump-event.json"
FLIGHTS = Path(__file__).parents[2] / "samples" / "flights-2000.ndjson"
LIMIT_FAULTS: list[tuple[ErrorKind, dict[str, Any]]] = [
    (TAGS_TOO_MANY, {"eventTags": [f"t{number}" for number in range(33)]}),
    (TAG_INVALID, {"eventTags": ["a" * 257]}),
    (TAG_INVALID, {"eventTags": [".."]}),
    (TAG_INVALID, {"eventTags": ["a\n"]}),
    (EVENT_TYPE_INVALID, {"eventType": "a" * 257}),
    (PAYLOAD_TOO_LARGE, {"payload": f'"{"a" * (PAYLOAD_BYTES_MAX - 1)}"'}),
    (PAYLOAD_TOO_DEEP, {"payload": "[" * 90_000 + "]" * 90_000}),
]


def without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: member for key, member in value.items() if key != name}


def test_a_valid_dump_gives_its_records_one_by_one() -> None:
    dump = make_dump()
    reader = read_dump_v1(json.dumps(dump), 0)
    assert reader.manifest == dump["manifest"]
    assert reader.content_digest == dump["manifest"]["contentDigest"]
    assert list(reader.records()) == dump["events"] == list(reader.records())


def test_a_dump_without_events_is_valid() -> None:
    assert read_all(compose_dump_v1(manifest_v1_for([], SOURCE, TARGET), [])) == []


def test_a_dump_is_read_where_it_stands_and_events_may_come_first() -> None:
    dump = make_dump()
    text = json.dumps({"importId": "i", "dump": {"events": dump["events"], "manifest": dump["manifest"]}, "x": 1})
    assert list(read_dump_v1(text, text.index('{"events"')).records()) == dump["events"]


def test_the_digest_of_a_dump_is_known() -> None:
    text = (
        '{"events":[],"manifest":{"canonicalization":"utf8-json-sorted-keys-v1","contentDigest":"","eventCount":0,'
        '"format":"sekiban-dcb-bootstrap","highWatermark":null,"source":{"lineageId":"lineage-a","serviceId":"old-shop"},'
        '"tagCounts":{},"target":{"allocatorLineageId":"lineage-b","serviceId":"new-shop"},"version":1}}'
    )
    digest = 0x811C9DC5
    for byte in text.encode():
        digest = (digest ^ byte) * 0x01000193 % 2**32
    assert manifest_v1_for([], SOURCE, TARGET)["contentDigest"] == f"fnv1a32:{digest:08x}"


def test_the_running_digest_is_that_of_the_whole() -> None:
    records = [make_record(1, eventTags=["😀", "\ue000"], payload='"é😀\\u0001/"'), make_record(2, eventTags=[])]
    manifest = manifest_v1_for(records, SOURCE, TARGET)
    assert manifest["contentDigest"] == content_digest_v1(manifest, records)
    assert read_all({"manifest": manifest, "events": records}) == records


@pytest.mark.parametrize("text", ["[]", "1", "null", '"x"', "", "{", '{"manifest":1,"events":[1,]}', '{"a":NaN}'])
def test_what_is_no_object_is_no_dump(text: str) -> None:
    with refused(DUMP_INVALID):
        read_dump_v1(text, 0)


def test_a_member_given_twice_or_absurd_nesting_is_no_dump() -> None:
    text = json.dumps(make_dump())
    for broken in (text[:-1] + ',"events":[]}', text.replace('"g32"', "[" * 100_000 + "]" * 100_000), text + "x"):
        with refused(DUMP_INVALID):
            read_dump_v1(broken, 0)


def test_the_shape_of_the_dump() -> None:
    dump = make_dump()
    for broken in (without(dump, "events"), without(dump, "manifest"), {**dump, "x": 1}, {}):
        with refused(UNKNOWN_OR_MISSING_FIELD):
            read_all(broken)
    events: object
    for events in ({}, None, "[]"):
        with refused(DUMP_INVALID):
            read_all({**dump, "events": events})


def test_lone_surrogates_are_refused_where_they_stand() -> None:
    for changes in (
        {"payload": '"\ud800"'},
        {"eventTags": ["a\udfff"]},
        {"eventType": "\ud83d"},
        {"correlationId": "\ud83d"},
    ):
        with refused(RECORD_INVALID):
            read_all(make_dump(make_record(1, **changes), tagCounts={}))
    for manifest in (
        {"source": {**SOURCE, "serviceId": "\ud800"}},
        {"target": {**TARGET, "allocatorLineageId": "\ud800"}},
        {"highWatermark": "\ud800"},
        {"tagCounts": {"\ud800": 1}},
    ):
        with refused(MANIFEST_INVALID):
            read_all(make_dump(**manifest))


def test_escaped_surrogates_inside_a_payload_are_json_text_like_any_other() -> None:
    assert read_all(make_dump(make_record(1, payload='"\\ud800"')))[0]["payload"] == '"\\ud800"'


@pytest.mark.parametrize(
    "tag_counts", [{"shop:1": 3}, {}, {"order:1": 1, "order:2": 1, "order:3": 1, "shop:1": 3, "none": 0}]
)
def test_tag_counts_must_be_those_of_the_records(tag_counts: dict[str, int]) -> None:
    with refused(MANIFEST_MISMATCH):
        read_all(make_dump(tagCounts=tag_counts))


@pytest.mark.parametrize("watermark", [None, "", make_record(2)["suid"], make_record(4)["suid"]])
def test_the_watermark_must_be_the_last_suid(watermark: str | None) -> None:
    with refused(MANIFEST_MISMATCH):
        read_all(make_dump(highWatermark=watermark))


def test_without_events_there_is_no_watermark() -> None:
    manifest = manifest_v1_for([], SOURCE, TARGET)
    with refused(MANIFEST_MISMATCH):
        read_all(compose_dump_v1({**manifest, "highWatermark": make_record(1)["suid"]}, []))


@pytest.mark.parametrize("count", [2, 4, 0])
def test_the_events_are_as_many_as_the_manifest_says(count: int) -> None:
    with refused(RECORD_ORDER_OR_DUPLICATE):
        read_all(make_dump(eventCount=count))


@pytest.mark.parametrize(
    "changes",
    [
        {"suid": make_record(2)["suid"]},
        {"suid": make_record(1)["suid"]},
        {"eventId": make_record(1)["eventId"]},
        {"eventId": make_record(2)["eventId"]},
    ],
)
def test_suids_ascend_and_ids_occur_once(changes: dict[str, Any]) -> None:
    with refused(RECORD_ORDER_OR_DUPLICATE):
        read_all(make_dump(make_record(1), make_record(2), make_record(3, **changes)))


def test_ids_that_differ_by_case_only_are_the_same() -> None:
    event_id = "abcdef00-0000-4000-8000-000000000000"
    with refused(RECORD_ORDER_OR_DUPLICATE):
        read_all(make_dump(make_record(1, eventId=event_id), make_record(2, eventId=event_id.upper())))
    (record,) = read_all(make_dump(make_record(1, eventId=event_id.upper())))
    assert record["eventId"] == event_id.upper()


@pytest.mark.parametrize("digest", ["x", "fnv1a32:00000000", "FNV1A32:"])
def test_the_digest_must_be_right(digest: str) -> None:
    dump = make_dump()
    dump["manifest"]["contentDigest"] = digest
    with refused(DIGEST_MISMATCH):
        read_all(dump)


def test_a_change_of_any_field_is_seen_by_the_digest() -> None:
    for changes in (
        {"payload": "1"},
        {"eventType": "Other"},
        {"timestamp": "2026-08-22T17:00:00.1Z"},
        {"eventTags": ["shop:1", "order:1"]},
    ):
        dump = make_dump()
        dump["events"][0] |= changes
        with refused(DIGEST_MISMATCH):
            read_all(dump)


@pytest.mark.parametrize(("kind", "changes"), LIMIT_FAULTS)
def test_our_own_limits_come_last_and_name_the_event(kind: ErrorKind, changes: dict[str, Any]) -> None:
    with refused(kind) as caught:
        read_all(make_dump(make_record(1), make_record(2, **changes), make_record(3)))
    assert caught.value.text.startswith(f"event {make_record(2)['eventId']}")
    with refused(DIGEST_MISMATCH):
        dump = make_dump(make_record(1, **changes))
        dump["manifest"]["contentDigest"] = "x"
        read_all(dump)


def test_from_the_first_fault_on_nothing_is_given_out() -> None:
    records = [make_record(1), make_record(2, eventTags=[".."]), make_record(3)]
    duplicate = [make_record(1), make_record(2, eventId=make_record(1)["eventId"]), make_record(3)]
    for events, kind in ((records, TAG_INVALID), (duplicate, RECORD_ORDER_OR_DUPLICATE)):
        seen: list[dict[str, Any]] = []
        with refused(kind):
            seen.extend(read_dump_v1(json.dumps(make_dump(*events)), 0).records())
        assert seen == [make_record(1)]


def test_provenance_is_reduced_to_its_origin() -> None:
    dump = make_dump()
    dump["events"][0]["provenance"] = {"origin": "g32", "note": "dropped"}
    assert read_all(dump)[0] == make_record(1)
    with refused(DIGEST_MISMATCH):
        read_all(make_dump(make_record(1, provenance={"origin": "g32", "note": "part of this digest"})))


def test_numbers_of_the_manifest_are_javascript_numbers() -> None:
    text = json.dumps(make_dump())
    for written in ('"eventCount": 3.0', '"eventCount": 3e0'):
        assert len(list(read_dump_v1(text.replace('"eventCount": 3', written), 0).records())) == 3


def test_the_legacy_shape_is_refused() -> None:
    data = LEGACY.read_bytes()
    assert hashlib.sha256(data).hexdigest() == "84bdb7dfb04583a2707245de61c401f741f6edc776cb3c70c7c26e0d66f9a517"
    (event,) = json.loads(data)["events"]
    with refused(RECORD_INVALID):
        read_all(compose_dump_v1(make_dump()["manifest"], [event]))
    with refused(UNKNOWN_OR_MISSING_FIELD):
        read_dump_v1(data.decode(), 0)


def test_2000_real_events_make_a_valid_dump() -> None:
    records = [json.loads(line) for line in FLIGHTS.read_text().splitlines()]
    dump = compose_dump_v1(manifest_v1_for(records, SOURCE, TARGET), records)
    assert read_all(dump) == records
    assert dump["manifest"]["eventCount"] == 2000
    assert dump["manifest"]["highWatermark"] == "063492800280000000001030387801"


def test_a_manifest_is_not_made_for_what_v1_cannot_say() -> None:
    with refused(DUMP_V1_METADATA):
        manifest_v1_for([make_record(1, causationId="request-7")], SOURCE, TARGET)
    with refused(RECORD_ORDER_OR_DUPLICATE):
        manifest_v1_for([make_record(2), make_record(1)], SOURCE, TARGET)
