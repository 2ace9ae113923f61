"""Dumps at the limits, and contents that are awkward somewhere between JSON, UTF-8, SQLite and object names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.server import OPERATOR_TOKEN
from tests.support.dumps import dump_of, record
from tests.workerd.expected import tags_of
from tests.workerd.operators import FRESH, Got, Operator, ok, send

if TYPE_CHECKING:
    from tests.workerd.lab import Lab

MIB = 1024 * 1024
PAYLOAD_BYTES_MAX = 196_608
ASTRAL = "\U0001f600"

AWKWARD_TAGS = [
    "a/b", "a%2Fb", "a%b", "%", "/", "//", "%25", "...", ".a", " ", "a b", "a+b", "?x=1&__serviceId=other", "#", "&",
    "=", "\\", '"', "'", "{}", "coordinator", "é", "e\u0301", "É", "Tag", "tag", "TAG", ASTRAL, ASTRAL * 256, "\uffff",
    "\ufeff", "\u2028", "\u200b", "x" * 256,
]  # fmt: skip
"""Each a tag of its own: none may be taken for another, whatever is encoded or folded on the way."""


def payload_of(size: int) -> str:
    """A payload of so many bytes."""
    return json.dumps("x" * (size - 2))


def nothing_written(operator: Operator, lease_epoch: int = 0) -> None:
    """The service is as new: no event, no tag, no fence, nothing staged; at most an epoch is used up."""
    status, overview = operator.status(), operator.overview()
    assert (status["status"], status["leaseEpoch"], status["manifest"]) == ("EMPTY", lease_epoch, None)
    assert (overview["mode"], overview["head"], overview["tagCount"]) == ("open", 0, 0)


def refused(operator: Operator, records: list[dict[str, Any]]) -> Got:
    answer = operator.try_plan(operator.compose(records))
    nothing_written(operator)
    return answer


def move(lab: Lab, service: str, records: list[dict[str, Any]]) -> Operator:
    """Import these records and compare everything."""
    operator = lab.operator(service).plan(records)
    operator.run()
    operator.check()
    return operator


def test_a_dump_larger_than_one_stored_value(lab: Lab) -> None:
    records = [record(n, "big", f"half/{n % 2}", payload=payload_of(150_000)) for n in range(1, 21)]
    assert len(json.dumps(records)) > 2.8 * MIB
    move(lab, "large", records)


def test_a_dump_above_the_limit_is_refused_with_its_code(lab: Lab) -> None:
    operator = lab.operator("too-large")
    lineage = operator.overview()["allocatorLineageId"]
    for size in (4 * MIB + 1, 4 * MIB + 70_000):
        text = sized_dump("too-large", lineage, size)
        evidence = json.dumps(FRESH)
        body = f'{{"importId":"i","dump":{text},"targetEvidence":{evidence}}}'.encode()
        assert operator.post("plan", body).code == (413, "dump_too_large")
        nothing_written(operator)


def sized_dump(service: str, lineage: str, size: int) -> str:
    """The text of a valid dump of exactly so many bytes."""

    def text(last: int) -> str:
        payloads = [payload_of(190_000)] * 21 + [payload_of(last)]
        records = [record(n, "one", f"tag/{n % 5}", payload=payload) for n, payload in enumerate(payloads, 1)]
        return json.dumps(dump_of(records, service, lineage), separators=(",", ":"))

    return text(1000 + size - len(text(1000)))


def test_many_events_under_one_tag(lab: Lab) -> None:
    operator = move(lab, "many", [record(n, "busy", f"part/{n % 3}") for n in range(1, 1102)])
    assert operator.tag("busy", limit=1)["version"] == 1101


def test_the_largest_payload_fits_and_one_byte_more_is_a_coded_error(lab: Lab) -> None:
    records = [record(1, "a"), record(2, "a", payload=payload_of(PAYLOAD_BYTES_MAX)), record(3, "a")]
    move(lab, "payload", records)
    records[1]["payload"] = payload_of(PAYLOAD_BYTES_MAX + 1)
    assert refused(lab.operator("payload-more"), records).code == (413, "payload_too_large")


def test_the_deepest_payload_fits_and_one_level_more_is_a_coded_error(lab: Lab) -> None:
    def nested(depth: int) -> str:
        return "[" * (depth - 1) + '{"a":1}' + "]" * (depth - 1)

    move(lab, "deep", [record(1, "a", payload=nested(500)), record(2, "a")])
    for depth in (501, 1001, 60_000):
        answer = refused(lab.operator("deeper"), [record(1, "a", payload=nested(depth))])
        assert answer.code == (400, "payload_too_deep"), depth


def test_an_event_of_six_byte_escapes_fits_too(lab: Lab) -> None:
    """A control character is six bytes in JSON text: what fits as a payload must fit in every chunk on its way."""
    inner = json.dumps("\u0001" * 32_000)
    records = [record(n, "escapes", payload=inner) for n in range(1, 4)]
    move(lab, "escapes", records)


def test_awkward_tags_are_tags_of_their_own(lab: Lab) -> None:
    records = [record(n, *AWKWARD_TAGS[n - 1 : n + 9]) for n in range(1, len(AWKWARD_TAGS) + 1)]
    operator = move(lab, "awkward", records)
    assert len(tags_of(records)) == len(AWKWARD_TAGS)
    assert operator.tag("a%2fb")["version"] == 0
    for arrival in lab.orders()["arrivals"]:
        assert arrival["by"] == "rpc"


@pytest.mark.parametrize("tag", [".", "..", "", "a\nb", "a\0", "\x7f", "\x85", "x" * 257, "\ud800", "a\udc00"])
def test_what_cannot_be_a_tag_is_refused(lab: Lab, tag: str) -> None:
    answer = refused(lab.operator("no-tag"), [record(1, "fine", tag)])
    assert answer.status == 400
    assert answer.json["code"] in ("tag_invalid", "record_invalid", "manifest_invalid")


def test_events_with_no_tag_and_with_all_that_are_allowed(lab: Lab) -> None:
    most = [f"t/{number}" for number in range(32)]
    operator = move(lab, "tag-counts", [record(1), record(2, *most), record(3)])
    assert operator.overview()["eventCount"] == 3
    assert refused(lab.operator("tags-more"), [record(1, *most, "one-more")]).code == (400, "tags_too_many")


def test_a_dump_without_events(lab: Lab) -> None:
    operator = lab.operator("none").plan([])
    operator.run()
    operator.settled()
    assert operator.export(10)[0] == []
    overview = operator.overview()
    assert (overview["mode"], overview["watermark"], overview["head"]) == ("open", None, 0)
    assert ok(operator.get("receipt"))["eventCount"] == 0


def test_payloads_keep_every_character(lab: Lab) -> None:
    values: list[Any] = [
        {"astral": ASTRAL, "escaped": "\u0001\u0008\t\n\u001f\u007f\u0080", "quotes": "\"'\\/"},
        {"nul": "\u0000", "bom": "\ufeff", "separators": "\u2028\u2029", "last": "\uffff"},
        [1e300, -0.5, 12345678901234567890, 1.10, None, True, []],
        "text alone",
        0,
    ]
    texts = [json.dumps(value) for value in values] + [json.dumps(value, ensure_ascii=False) for value in values]
    texts += ['"\\ud83d\\ude00"', '"\\ud800"', ' { "spaces" : [ 1 , 2 ] } ', '{"a":1,"a":2}', "1.0", "-0"]
    records = [record(n, "p", payload=text) for n, text in enumerate(texts, 1)]
    operator = move(lab, "payloads", records)
    data = raw_page(operator, "p")
    for text in texts:
        assert f'"data":{text},"timestamp"' in data
    exported, _ = operator.export(3)
    assert [one["payload"] for one in exported] == texts


def raw_page(operator: Operator, tag: str) -> str:
    """A tag's page as it came."""
    headers = {"authorization": f"Bearer {OPERATOR_TOKEN}"}
    return send(operator.server, "GET", f"/operator/services/{operator.service}/tags/{tag}", headers=headers).text


def test_event_types_and_metadata_keep_every_character(lab: Lab) -> None:
    types = ["\u0001", "a\nb", "\u007f", ASTRAL * 256, '"', "'", " ", "É", "é", "%", "/"]
    records = [record(n, "t", event_type=name) for n, name in enumerate(types, 1)]
    for written in records[::2]:
        commit = {"causationId": written["eventId"], "correlationId": "SerializedCommit"}
        written.update(commit, executedUser="SerializedSekibanExecutor")
    move(lab, "types", records)
    for wrong in ("a:b", "", "a\0b", "x" * 257):
        answer = refused(lab.operator("no-type"), [record(1, "t", event_type=wrong)])
        assert answer.status == 400
        assert answer.json["code"] in ("record_invalid", "event_type_invalid")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("payload", "{"),
        ("eventId", "not-a-uuid"),
        ("suid", "12"),
        ("timestamp", "today"),
        ("causationId", "half"),
        ("eventTags", ["a", "a"]),
        ("extra", 1),
    ],
)
def test_a_record_that_is_none_is_refused_before_anything_is_written(lab: Lab, field: str, value: Any) -> None:
    operator = lab.operator("no-record")
    dump = operator.compose([record(1, "a"), record(2, "a"), record(3, "a")])
    dump["events"][1][field] = value
    assert operator.try_plan(dump).code == (400, "record_invalid")
    nothing_written(operator)


@pytest.mark.parametrize(
    ("field", "value"), [("payload", '"\ud800"'), ("eventType", "\udc00"), ("eventTags", ["\ud83d"])]
)
def test_lone_surrogates_are_refused_before_anything_is_written(lab: Lab, field: str, value: Any) -> None:
    """They cannot be stored as UTF-8."""
    operator = lab.operator("surrogates")
    dump = operator.compose([record(1, "a")])
    dump["events"][0][field] = value
    assert operator.try_plan(dump).code == (400, "record_invalid")
    nothing_written(operator)


def test_the_digest_covers_astral_characters(lab: Lab) -> None:
    operator = lab.operator("digest")
    dump = operator.compose([record(1, f"a{ASTRAL}", payload=json.dumps(ASTRAL))])
    dump["events"][0]["payload"] = json.dumps("\U0001f601", ensure_ascii=False)
    assert operator.try_plan(dump).code == (400, "digest_mismatch")
    nothing_written(operator)


def test_ids_in_capitals_stay_as_they_were_and_are_the_same_id(lab: Lab) -> None:
    records = [record(n, "case") for n in (171, 172, 173)]
    records[1]["eventId"] = records[1]["eventId"].upper()
    move(lab, "capitals", records)
    records[2]["eventId"] = records[0]["eventId"].upper()
    operator = lab.operator("capitals-twice")
    dump = operator.compose(records[:2])
    dump["events"].append(records[2])
    dump["manifest"]["eventCount"] = 3
    assert operator.try_plan(dump).code == (400, "record_order_or_duplicate")


def test_a_lineage_or_a_service_of_another_is_refused(lab: Lab) -> None:
    operator = lab.operator("bound")
    other = dump_of([record(1, "a")], "bound", "22222222-2222-4222-8222-222222222222")
    assert operator.try_plan(other).code == (409, "bootstrap_lineage_mismatch")
    nothing_written(operator, lease_epoch=1)
    foreign = dump_of([record(1, "a")], "elsewhere", operator.overview()["allocatorLineageId"])
    assert operator.try_plan(foreign).code == (409, "bootstrap_target_mismatch")
    nothing_written(operator, lease_epoch=1)
