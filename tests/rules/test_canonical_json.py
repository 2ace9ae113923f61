from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dcb_runtime.rules.canonical_json import canonical

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "x"]}, '{"a":[true,null,"x"],"b":1}'),
        ({"a": {"d": {}, "c": []}}, '{"a":{"c":[],"d":{}}}'),
        ("/<>&'", '"/<>&\'"'),
        ('"\\', '"\\"\\\\"'),
        ("\b\t\n\f\r", '"\\b\\t\\n\\f\\r"'),
        ("\x00\x0b\x1f\x7f\x80", '"\\u0000\\u000b\\u001f\x7f\x80"'),
        ("é\u2028\u2029\ufeff", '"é\u2028\u2029\ufeff"'),
        ("😀", '"😀"'),
        ("\ud83d", '"\\ud83d"'),
        ("a\udfffb", '"a\\udfffb"'),
        ({"\udbff": "😀\udc00"}, '{"\\udbff":"😀\\udc00"}'),
        (-0, "0"),
        (2**53 - 1, "9007199254740991"),
    ],
)
def test_the_text_is_the_one_javascript_makes(value: object, text: str) -> None:
    assert canonical(value) == text


def test_keys_sort_by_utf_16_code_unit_at_every_level() -> None:
    astral, private_use = "\U00010000", "\ue000"
    assert private_use < astral, "by code point the order is the other one"
    expected = f'{{"Z":0,"a":0,"é":0,"{astral}":0,"{private_use}":0}}'
    keys = {private_use: 0, astral: 0, "a": 0, "Z": 0, "é": 0}
    assert canonical(keys) == expected
    assert canonical([{"x": [keys]}]) == f'[{{"x":[{expected}]}}]'


def code_unit_order(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key.encode("utf-16-be") for key, _ in pairs]
    assert keys == sorted(keys)
    return dict(pairs)


@given(VALUES)
@example({"\uffff": 1, "\U0010ffff": 2, "": {"\U00010000": [], "\ue000": None}})
def test_it_reads_back_as_the_same_value_with_sorted_keys(value: object) -> None:
    text = canonical(value)
    assert json.loads(text, object_pairs_hook=code_unit_order) == value
    assert canonical(json.loads(text)) == text
    assert canonical(json.loads(json.dumps(value, indent=2))) == text
