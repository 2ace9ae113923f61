from __future__ import annotations

import pytest

from dcb_runtime.rules.events import (
    EVENT_ID_INVALID,
    EVENT_TYPE_INVALID,
    METADATA_INVALID,
    PAYLOAD_INVALID,
    PAYLOAD_TOO_DEEP,
    PAYLOAD_TOO_LARGE,
    TAG_INVALID,
    TAGS_NOT_UNIQUE,
    TAGS_TOO_MANY,
    check_event_id,
    check_event_type,
    check_metadata,
    check_payload,
    check_tag,
    check_tags,
    is_event_id,
    is_timestamp,
)
from tests.rules.builders import refused


@pytest.mark.parametrize(
    "tag", ["a", "a" * 256, "😀" * 256, " ", "...", "a/b", "order:1", "\u00a0", "\u2028", "\u200b", "\ufffd"]
)
def test_a_tag_is_any_text_of_up_to_256_code_points(tag: str) -> None:
    assert check_tag(tag) == tag


@pytest.mark.parametrize(
    "tag",
    ["", "a" * 257, "😀" * 257, ".", "..", "a\0", "a\x1f", "\x7f", "\x80", "\x9f", "a\n", "\ud800", "x\udfff", 1, None],
)
def test_other_tags_are_refused(tag: object) -> None:
    with refused(TAG_INVALID):
        check_tag(tag)


def test_an_event_has_up_to_32_unique_tags_in_its_order() -> None:
    tags = [f"t{number}" for number in range(32, 0, -1)]
    assert check_tags(tags) == tags
    assert check_tags([]) == []
    with refused(TAGS_TOO_MANY):
        check_tags([*tags, "one-more"])
    with refused(TAGS_NOT_UNIQUE):
        check_tags(["a", "b", "a"])
    with refused(TAG_INVALID):
        check_tags(["a", "..", "a"])


@pytest.mark.parametrize("event_type", ["a", "a" * 256, "😀" * 256, "Order.Placed/v2"])
def test_an_event_type_is_up_to_256_characters(event_type: str) -> None:
    assert check_event_type(event_type) == event_type


@pytest.mark.parametrize("event_type", ["", "a" * 257, "😀" * 257, "Order:1", ":", "a\0b", "\ud83d", 5, None])
def test_other_event_types_are_refused(event_type: object) -> None:
    with refused(EVENT_TYPE_INVALID):
        check_event_type(event_type)


@pytest.mark.parametrize("version", "12345678")
@pytest.mark.parametrize("variant", "89abAB")
def test_event_ids_are_rfc_4122_uuids_and_compare_in_lower_case(version: str, variant: str) -> None:
    event_id = f"0123ABCD-0000-{version}00f-{variant}000-0123456789aF"
    assert check_event_id(event_id) == event_id.lower()


@pytest.mark.parametrize(
    "event_id",
    [
        "",
        "00000000-0000-0000-8000-000000000000",
        "00000000-0000-9000-8000-000000000000",
        "00000000-0000-4000-7000-000000000000",
        "00000000-0000-4000-c000-000000000000",
        "00000000-0000-4000-8000-00000000000g",
        "00000000-0000-4000-8000-000000000000\n",
        "00000000000040008000000000000000",
        "{0000000-0000-4000-8000-000000000000}",
        "\u0660\u0660000000-0000-4000-8000-000000000000",
        7,
    ],
)
def test_other_event_ids_are_refused(event_id: object) -> None:
    if isinstance(event_id, str):
        assert not is_event_id(event_id)
    with refused(EVENT_ID_INVALID):
        check_event_id(event_id)


@pytest.mark.parametrize("text", ["2026-08-22T17:00:00.1Z", "2026-08-22T17:00:00.1234567Z", "9999-99-99T99:99:99.9Z"])
def test_a_timestamp_has_one_to_seven_decimals(text: str) -> None:
    assert is_timestamp(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-08-22T17:00:00Z",
        "2026-08-22T17:00:00.Z",
        "2026-08-22T17:00:00.12345678Z",
        "2026-08-22T17:00:00.1+00:00",
        "2026-08-22 17:00:00.1Z",
        "2026-08-22T17:00:00.1z",
        "2026-08-22T17:00:00.1Z\n",
        "\u0662026-08-22T17:00:00.1Z",
    ],
)
def test_other_timestamps_are_none(text: str) -> None:
    assert not is_timestamp(text)


@pytest.mark.parametrize("value", [None, "a", "a" * 1024, "😀" * 1024, "\n"])
def test_metadata_is_null_or_up_to_1024_characters(value: str | None) -> None:
    assert check_metadata(value) == value


@pytest.mark.parametrize("value", ["", "a" * 1025, "😀" * 1025, "\0", "\udc00", 1, []])
def test_other_metadata_is_refused(value: object) -> None:
    with refused(METADATA_INVALID):
        check_metadata(value)


@pytest.mark.parametrize(
    "payload", ["null", "1e400", "1.0", "9" * 5000, ' {"a": [1, "\\ud800"]} ', '"é😀"', '{"a":1,"a":2}']
)
def test_a_payload_is_the_text_of_any_json_value(payload: str) -> None:
    assert check_payload(payload) == payload


@pytest.mark.parametrize("payload", ["", "AQI=", "{'a':1}", "NaN", "-Infinity", "[1,]", "1 2", '"\ud800"', b"1", None])
def test_other_payloads_are_refused(payload: object) -> None:
    with refused(PAYLOAD_INVALID):
        check_payload(payload)


def test_a_payload_has_up_to_196608_bytes_of_utf_8() -> None:
    assert check_payload(f'"{"a" * 196_606}"')
    assert check_payload(f'"{"é" * 98_303}"')
    for payload in (f'"{"a" * 196_607}"', f'"a{"é" * 98_303}"'):
        with refused(PAYLOAD_TOO_LARGE):
            check_payload(payload)


def test_a_payload_nests_up_to_500_levels() -> None:
    assert check_payload("[" * 500 + "]" * 500)
    assert check_payload('{"a":' * 500 + "1" + "}" * 500)
    assert check_payload("[" + ",".join(["[]"] * 600) + "]")
    assert check_payload('"' + "[" * 600 + '"')
    for payload in ("[" * 501 + "]" * 501, '{"a":[' * 251 + "]}" * 251, "[" * 90_000, "[" * 90_000 + "]" * 90_000):
        with refused(PAYLOAD_TOO_DEEP):
            check_payload(payload)


def test_an_error_names_the_place_and_never_the_content() -> None:
    with refused(TAG_INVALID) as caught:
        check_tags(["fine", "secret\n"], "events[3]")
    assert caught.value.text.startswith("events[3], tag 1: ")
    assert "secret" not in caught.value.text
    with refused(PAYLOAD_INVALID) as caught:
        check_payload("secret", "events[4]")
    assert caught.value.text.startswith("events[4]: ")
    assert "secret" not in str(caught.value)
