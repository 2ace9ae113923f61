from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcb_runtime.rules.json_pieces import decode, decode_at, elements, members, values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)

REASON = r"expected at|Expecting|Extra data|levels|not JSON|occurs twice|more text|delimiter|property name|Illegal"


@given(st.dictionaries(st.text(), JSON, max_size=5), st.sampled_from([None, 1]))
def test_an_object_is_walked_member_by_member(value: dict[str, Any], indent: int | None) -> None:
    text = f" {json.dumps(value, indent=indent)}\n"
    walked = {key: (begin, end) for key, begin, end in members(text)}
    assert {key: decode_at(text, begin) for key, (begin, _) in walked.items()} == value
    assert {key: json.loads(text[begin:end]) for key, (begin, end) in walked.items()} == value
    assert decode(text) == value


@given(st.lists(JSON, max_size=5), st.sampled_from([None, 1]))
def test_an_array_is_walked_element_by_element(value: list[Any], indent: int | None) -> None:
    text = f"\t{json.dumps(value, indent=indent)} "
    assert [json.loads(text[begin:end]) for begin, end in elements(text)] == value
    assert list(values(text)) == value


def test_an_inner_walk_does_not_care_what_follows() -> None:
    text = '{"a": {"b": [1, 2]}, "c": 0}'
    ((_, inner, _), (_, _, end)) = members(text)
    ((key, array, _),) = members(text, inner)
    assert (key, list(values(text, array)), text[end:]) == ("b", [1, 2], "}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "1",
        "{",
        '{"a"',
        '{"a" 1}',
        '{"a":}',
        '{"a":1',
        '{"a":1,}',
        '{,"a":1}',
        '{"a":1 "b":2}',
        "{a:1}",
        "{1:1}",
        '{"a":[}',
        '{"a":NaN}',
        '{"a":[-Infinity]}',
        '{"a":1}}',
        '{"a":1} x',
        '{"a":1,"a":1}',
        '{"a":1,"\\u0061":1}',
        '{"a":' * 501 + "1" + "}" * 501,
        '{"a":' + "[" * 100_000,
    ],
)
def test_what_is_no_object_of_unique_members_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=REASON):
        list(members(text))


@pytest.mark.parametrize(
    "text", ["", "{}", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "[NaN]", "[1]]", "[" * 100_000]
)
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=REASON):
        list(elements(text))
    with pytest.raises(ValueError, match=REASON):
        list(values(text))


@pytest.mark.parametrize("text", ["", "1 1", "nul", "NaN", "[" * 100_000 + "]" * 100_000, "[" * 501 + "]" * 501])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=REASON):
        decode(text)


def test_a_document_may_nest_500_levels() -> None:
    assert list(elements("[" * 500 + "]" * 500)) == [(1, 999)]
    assert decode("[" * 500 + "]" * 500)


def test_numbers_are_those_of_javascript() -> None:
    numbers = decode("[1.0, 1e2, -0, -0.0, 1.5, 9007199254740991, 9007199254740992, 1e400]")
    assert numbers == [1, 100, 0, 0, 1.5, 2**53 - 1, 2.0**53, float("inf")]
    assert [type(number) for number in numbers] == [int, int, int, int, float, int, float, float]
    assert decode("9" * 5_000) == float("inf")


def test_memory_is_bounded_by_one_piece() -> None:
    text = json.dumps({"events": [{"payload": "x" * 1_000, "number": number} for number in range(4_000)]})
    tracemalloc.start()
    try:
        ((_, begin, _),) = members(text)
        count = sum(1 for _ in values(text, begin))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 4_000
    assert peak < len(text) / 4
