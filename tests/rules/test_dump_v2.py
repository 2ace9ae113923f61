from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcb_runtime.rules.dump_v2 import (
    CHAIN_START,
    ChainDigest,
    check_contents_v2,
    content_digest,
    from_line,
    manifest_v2,
    parse_manifest_v2,
    read_record_v2,
    to_line,
)
from dcb_runtime.rules.events import PAYLOAD_TOO_DEEP, TAG_INVALID
from dcb_runtime.rules.manifests import DIGEST_MISMATCH, MANIFEST_INVALID, MANIFEST_MISMATCH, UNKNOWN_OR_MISSING_FIELD
from dcb_runtime.rules.records import RECORD_INVALID
from tests.rules.builders import SOURCE, TARGET, make_record, refused

RECORDS = [make_record(1), make_record(2, causationId="request-1", executedUser="é😀"), make_record(3, eventTags=[])]


def chain_of(records: list[dict[str, Any]]) -> bytes:
    chain = ChainDigest()
    for record in records:
        chain.add(record)
    return chain.state


def make_manifest(**changes: Any) -> dict[str, Any]:
    manifest = manifest_v2(
        SOURCE,
        TARGET,
        event_count=3,
        tag_count=3,
        high_watermark=RECORDS[-1]["suid"],
        chain_state=chain_of(RECORDS),
    )
    return {**manifest, **changes}


def test_the_chain_is_the_documented_one() -> None:
    state = bytes(32)
    for record in RECORDS:
        text = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        state = hashlib.sha256(state + hashlib.sha256(text.encode()).digest()).digest()
    assert chain_of(RECORDS) == state
    manifest = make_manifest()
    frame = json.dumps({**manifest, "contentDigest": ""}, sort_keys=True, separators=(",", ":")).encode()
    assert manifest["contentDigest"] == "sha256:" + hashlib.sha256(frame + state).hexdigest()


def test_an_empty_chain_is_32_zero_bytes() -> None:
    assert ChainDigest().state == CHAIN_START == bytes(32)


@given(st.integers(0, 3))
def test_a_chain_goes_on_from_its_state(cut: int) -> None:
    resumed = ChainDigest(chain_of(RECORDS[:cut]))
    for record in RECORDS[cut:]:
        resumed.add(record)
    assert resumed.state == chain_of(RECORDS)


@pytest.mark.parametrize("state", [b"", bytes(31), bytes(33)])
def test_a_state_has_32_bytes(state: bytes) -> None:
    with pytest.raises(ValueError, match="32"):
        ChainDigest(state)


def test_the_chain_sees_order_and_every_field() -> None:
    assert chain_of(RECORDS[::-1]) != chain_of(RECORDS)
    for name in RECORDS[1]:
        assert chain_of([RECORDS[0], {**RECORDS[1], name: "x"}, RECORDS[2]]) != chain_of(RECORDS)


def test_a_manifest_is_read_back() -> None:
    manifest = make_manifest()
    assert parse_manifest_v2(json.loads(to_line(manifest))) == manifest
    open_target = make_manifest(target={**TARGET, "allocatorLineageId": None})
    assert parse_manifest_v2(open_target) == open_target
    empty = manifest_v2(SOURCE, TARGET, event_count=0, tag_count=0, high_watermark=None, chain_state=CHAIN_START)
    assert parse_manifest_v2(empty) == empty


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 1},
        {"version": 2.0},
        {"format": "x"},
        {"canonicalization": "x"},
        {"tagCount": -1},
        {"tagCount": None},
        {"tagCount": True},
        {"tagCount": 2**53},
        {"eventCount": "3"},
        {"contentDigest": ""},
        {"contentDigest": "fnv1a32:00000000"},
        {"contentDigest": "sha256:" + "A" * 64},
        {"contentDigest": "sha256:" + "0" * 63},
        {"highWatermark": "x"},
        {"highWatermark": 5},
        {"highWatermark": None},
        {"eventCount": 0},
        {"source": {**SOURCE, "lineageId": None}},
        {"target": {**TARGET, "serviceId": None}},
        {"target": {**TARGET, "allocatorLineageId": ""}},
        {"target": {**TARGET, "allocatorLineageId": 5}},
        {"source": None},
    ],
)
def test_manifest_invalid(changes: dict[str, Any]) -> None:
    with refused(MANIFEST_INVALID):
        parse_manifest_v2(make_manifest(**changes))


def test_manifest_fields_are_exact() -> None:
    manifest = make_manifest()
    for broken in (
        {**manifest, "tagCounts": {}},
        {name: value for name, value in manifest.items() if name != "tagCount"},
        {**manifest, "source": {}},
    ):
        with refused(UNKNOWN_OR_MISSING_FIELD):
            parse_manifest_v2(broken)
    value: object
    for value in (None, [], "x"):
        with refused(MANIFEST_INVALID):
            parse_manifest_v2(value)


def test_a_line_is_canonical_and_reads_back() -> None:
    for record in RECORDS:
        line = to_line(record)
        assert "\n" not in line
        assert line.startswith('{"causationId":')
        assert from_line(line, "line 2") == record


@pytest.mark.parametrize("value", [None, "a", "a" * 1024, "😀" * 1024, "SerializedCommit"])
@pytest.mark.parametrize("name", ["causationId", "correlationId", "executedUser"])
def test_each_metadata_field_is_free(name: str, value: str | None) -> None:
    record = make_record(1, **{name: value})
    assert read_record_v2(record, "line 2") == record


@pytest.mark.parametrize("value", ["", "a" * 1025, 5, "\ud800", "\0"])
def test_metadata_has_its_bounds(value: object) -> None:
    with refused(RECORD_INVALID):
        read_record_v2(make_record(1, correlationId=value), "line 2")


@pytest.mark.parametrize("line", ["", "x", "[]", "1", "{}", "{", to_line(RECORDS[0]) + "x", "[" * 100_000])
def test_a_line_that_is_no_record_is_refused_by_its_place(line: str) -> None:
    with refused(RECORD_INVALID) as caught:
        from_line(line, "chunk 4, line 2")
    assert caught.value.text.startswith("chunk 4, line 2")


def test_limits_name_the_event_and_come_after_the_format() -> None:
    deep = {"payload": "[" * 501 + "]" * 501}
    with refused(PAYLOAD_TOO_DEEP) as caught:
        read_record_v2(make_record(1, **deep), "line 2")
    assert make_record(1)["eventId"] in caught.value.text
    with refused(RECORD_INVALID):
        read_record_v2(make_record(1, **deep, timestamp="x"), "line 2")
    with refused(TAG_INVALID):
        read_record_v2(make_record(1, eventTags=["."]), "line 2")


def test_contents_are_compared_with_the_manifest() -> None:
    manifest = make_manifest()
    watermark, state = RECORDS[-1]["suid"], chain_of(RECORDS)
    check_contents_v2(manifest, 3, watermark, state)
    with refused(MANIFEST_MISMATCH):
        check_contents_v2(manifest, 2, watermark, CHAIN_START)
    with refused(MANIFEST_MISMATCH):
        check_contents_v2(manifest, 3, RECORDS[0]["suid"], CHAIN_START)
    with refused(DIGEST_MISMATCH):
        check_contents_v2(manifest, 3, watermark, CHAIN_START)
    assert content_digest(manifest, state) == manifest["contentDigest"]
