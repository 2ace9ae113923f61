"""Every fault of a v1 dump has its code, and of two faults the earlier check of the reference wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from dcb_runtime.rules.dump_v1 import DUMP_INVALID
from dcb_runtime.rules.events import TAG_INVALID
from dcb_runtime.rules.manifests import DIGEST_MISMATCH, MANIFEST_INVALID, MANIFEST_MISMATCH, UNKNOWN_OR_MISSING_FIELD
from dcb_runtime.rules.records import RECORD_INVALID, RECORD_ORDER_OR_DUPLICATE
from tests.rules.builders import SOURCE, TARGET, make_dump, make_record, read_all, refused

if TYPE_CHECKING:
    from dcb_runtime.errors import ErrorKind

Dump: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Dump], object]

COMMIT_METADATA = {
    "causationId": make_record(1)["eventId"],
    "correlationId": "SerializedCommit",
    "executedUser": "SerializedSekibanExecutor",
}
MANIFEST_FAULTS: list[tuple[str, object]] = [
    ("format", "sekiban"),
    ("format", None),
    ("version", 2),
    ("version", "1"),
    ("version", True),
    ("version", 1.5),
    ("canonicalization", "utf8"),
    ("contentDigest", ""),
    ("contentDigest", 5),
    ("contentDigest", None),
    ("highWatermark", 5),
    ("highWatermark", []),
    ("eventCount", -1),
    ("eventCount", 1.5),
    ("eventCount", "3"),
    ("eventCount", True),
    ("eventCount", None),
    ("eventCount", 2**53),
    ("eventCount", 1e300),
    ("tagCounts", []),
    ("tagCounts", None),
    ("tagCounts", {"": 1}),
    ("tagCounts", {"a": -1}),
    ("tagCounts", {"a": 1.5}),
    ("tagCounts", {"a": "1"}),
    ("tagCounts", {"a": True}),
    ("tagCounts", {"a": 2**53}),
    ("source", None),
    ("source", []),
    ("target", "x"),
    ("source", {**SOURCE, "serviceId": ""}),
    ("source", {**SOURCE, "lineageId": 1}),
    ("target", {**TARGET, "serviceId": ""}),
    ("target", {**TARGET, "allocatorLineageId": None}),
    ("target", {**TARGET, "allocatorLineageId": ""}),
]
FIELD_FAULTS: list[tuple[str, object]] = [
    ("source", {}),
    ("source", {"serviceId": "a"}),
    ("source", {**SOURCE, "x": 1}),
    ("target", {"serviceId": "a", "lineageId": "b"}),
    ("target", {**TARGET, "x": 1}),
    ("x", 1),
]
RECORD_FAULTS: list[tuple[str, object]] = [
    ("x", 1),
    ("eventId", ""),
    ("eventId", 1),
    ("eventId", "00000001-0000-9000-8000-000000000000"),
    ("eventId", "00000001-0000-4000-7000-000000000000"),
    ("suid", ""),
    ("suid", "suid-00000000000000000000000000000001"),
    ("suid", "1" * 29),
    ("suid", "1" * 29 + "\u0661"),
    ("suid", 5),
    ("payload", ""),
    ("payload", "AQI="),
    ("payload", "NaN"),
    ("payload", "[" * 100_000),
    ("payload", {}),
    ("payload", None),
    ("eventTags", None),
    ("eventTags", "a"),
    ("eventTags", [""]),
    ("eventTags", [1]),
    ("eventTags", ["a", "a"]),
    ("eventTags", [["a"]]),
    ("eventType", ""),
    ("eventType", "Order:1"),
    ("eventType", None),
    ("provenance", "g32"),
    ("provenance", {}),
    ("provenance", {"origin": "g31"}),
    ("provenance", None),
    ("provenance", []),
    ("timestamp", ""),
    ("timestamp", "2026-08-22T17:00:00Z"),
    ("timestamp", 5),
    ("causationId", ""),
    ("causationId", 5),
    ("causationId", make_record(1)["eventId"]),
    ("correlationId", "SerializedCommit"),
    ("executedUser", "SerializedSekibanExecutor"),
]


def set_event(index: int, name: str, value: object) -> Change:
    def change(dump: Dump) -> None:
        dump["events"][index][name] = value

    return change


@pytest.mark.parametrize(("name", "value"), MANIFEST_FAULTS)
def test_manifest_invalid(name: str, value: object) -> None:
    dump = make_dump()
    dump["manifest"][name] = value
    with refused(MANIFEST_INVALID):
        read_all(dump)


@pytest.mark.parametrize("manifest", [None, [], "x", 1])
def test_a_manifest_is_an_object(manifest: object) -> None:
    with refused(MANIFEST_INVALID):
        read_all({**make_dump(), "manifest": manifest})


@pytest.mark.parametrize(("name", "value"), FIELD_FAULTS)
def test_unknown_field_in_the_manifest(name: str, value: object) -> None:
    with refused(UNKNOWN_OR_MISSING_FIELD):
        read_all(make_dump(**{name: value}))


@pytest.mark.parametrize("name", sorted(make_dump()["manifest"]))
def test_missing_field_in_the_manifest(name: str) -> None:
    dump = make_dump()
    del dump["manifest"][name]
    with refused(UNKNOWN_OR_MISSING_FIELD):
        read_all(dump)


@pytest.mark.parametrize(("name", "value"), RECORD_FAULTS)
def test_record_invalid(name: str, value: object) -> None:
    dump = make_dump()
    dump["events"][1][name] = value
    with refused(RECORD_INVALID) as caught:
        read_all(dump)
    assert caught.value.text.startswith("events[1]")
    named = caught.value.text.partition(":")[0]
    assert name in named or "its members" in named


@pytest.mark.parametrize("name", sorted(make_record(1)))
def test_a_record_has_all_ten_fields(name: str) -> None:
    dump = make_dump()
    del dump["events"][0][name]
    with refused(RECORD_INVALID):
        read_all(dump)


@pytest.mark.parametrize("record", [None, 1, "x", []])
def test_a_record_is_an_object(record: object) -> None:
    dump = make_dump()
    dump["events"][2] = record
    with refused(RECORD_INVALID):
        read_all(dump)


def test_metadata_is_all_null_or_exactly_what_commits_write() -> None:
    record = make_record(1, **COMMIT_METADATA)
    assert read_all(make_dump(record)) == [record]
    for name in COMMIT_METADATA:
        for value in (None, "other"):
            with refused(RECORD_INVALID):
                read_all(make_dump({**record, name: value}))
    with refused(RECORD_INVALID):
        read_all(make_dump(make_record(2, **COMMIT_METADATA)))


LADDER: list[tuple[ErrorKind, Change]] = [
    (UNKNOWN_OR_MISSING_FIELD, lambda dump: dump.update(x=1)),
    (DUMP_INVALID, lambda dump: dump.update(events={})),
    (UNKNOWN_OR_MISSING_FIELD, lambda dump: dump["manifest"].update(x=1)),
    (UNKNOWN_OR_MISSING_FIELD, lambda dump: dump["manifest"]["target"].update(x=1)),
    (MANIFEST_INVALID, lambda dump: dump["manifest"].update(version=2)),
    (RECORD_INVALID, set_event(2, "eventType", "")),
    (RECORD_ORDER_OR_DUPLICATE, set_event(1, "suid", make_record(1)["suid"])),
    (RECORD_ORDER_OR_DUPLICATE, lambda dump: dump["manifest"].update(eventCount=7)),
    (MANIFEST_MISMATCH, lambda dump: dump["manifest"]["tagCounts"].update(none=0)),
    (MANIFEST_MISMATCH, lambda dump: dump["manifest"].update(highWatermark=None)),
    (DIGEST_MISMATCH, lambda dump: dump["manifest"].update(contentDigest="x")),
    (TAG_INVALID, lambda _: None),
]
"""Checks in the reference's order, each with a change that breaks it alone; the last is our own limit."""


@pytest.mark.parametrize("first", range(len(LADDER)))
def test_of_two_faults_the_earlier_check_wins(first: int) -> None:
    kind, break_first = LADDER[first]
    for _, break_second in LADDER[first + 1 :]:
        records = [make_record(1, eventTags=[".."]), make_record(2), make_record(3)]
        dump = make_dump(*records)
        break_second(dump)
        break_first(dump)
        with refused(kind):
            read_all(dump)


def test_the_last_of_the_ladder_alone() -> None:
    with refused(TAG_INVALID):
        read_all(make_dump(make_record(1, eventTags=[".."])))


def test_an_invalid_record_beats_faults_of_order_before_it() -> None:
    dump = make_dump(make_record(2), make_record(1), make_record(1), make_record(3, eventTags=["a", "a"]))
    with refused(RECORD_INVALID) as caught:
        read_all(dump)
    assert caught.value.text.startswith("events[3]")


def test_source_is_looked_at_before_target() -> None:
    with refused(MANIFEST_INVALID):
        read_all(make_dump(source=None, target={}))
    with refused(UNKNOWN_OR_MISSING_FIELD):
        read_all(make_dump(source={}, target=None))
