from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dcb_runtime.rules.json_syntax import _is_deep_json, deeper_than, is_json_text, json_depth

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
NOT_JSON = [
    "",
    " ",
    "[1,]",
    '{"a"}',
    '{"a":1,}',
    "{1:2}",
    '{"a":}',
    '{"a":1 "b":2}',
    "[1 2]",
    "[,1]",
    "tru",
    "truefalse",
    "01",
    "1.",
    ".5",
    "+1",
    "1e",
    "-",
    "[",
    "[[]",
    "]",
    "[}",
    '{"a":[}]',
    '"a',
    '"\\x"',
    '"\\u12g4"',
    '"\x01"',
    '"a\nb"',
    "NaN",
    "[Infinity]",
    "-Infinity",
    "\ufeff1",
    "\u00a01",
    "1 1",
    "[]]",
    "{}[]",
    ",",
    ":",
    "'a'",
]


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def wrapped(text: str) -> str:
    """The same text deep enough for the scanner without recursion."""
    return "[" * 600 + text + "]" * 600


@given(JSON)
@example(['"[{\\', {"[": "]"}])
def test_json_is_known_and_measured(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert is_json_text(text)
        assert is_json_text(wrapped(text))
        assert json_depth(text) == depth_of(value)
        assert json_depth(wrapped(text)) == 600 + depth_of(value)


@pytest.mark.parametrize("text", NOT_JSON)
def test_what_is_not_json_is_known_at_any_depth(text: str) -> None:
    assert not is_json_text(text)
    assert not is_json_text("[" * 600 + text)
    assert not _is_deep_json(text)
    if text.strip(" "):
        assert not is_json_text(wrapped(text))


@given(st.text(alphabet='[]{}:,"\\ 01e.-ntrufals\n', max_size=12))
def test_both_scanners_say_the_same(text: str) -> None:
    assert is_json_text(text) == _is_deep_json(text)


def test_numbers_of_any_size_are_json() -> None:
    for text in ("9" * 5_000, "-" + "9" * 5_000, "1e400", "1.0", "-0", "1E+5"):
        assert is_json_text(text)
        assert is_json_text(wrapped(text))


def test_depth_is_a_limit_with_two_sides() -> None:
    assert not deeper_than("[" * 5 + "]" * 5, 5)
    assert deeper_than("[" * 6 + "]" * 6, 5)
    assert not deeper_than("x[[" + "[]", 1, start=3)
    assert deeper_than("x[[" + "[[]]", 1, start=3)
    assert not deeper_than('["[[[["]', 1)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 600 + '"' + '\\"' * 100_000,
        "[" * 600 + '"' + "\\" * 100_001,
        '"' * 100_000 + "[" * 600,
    ],
)
def test_hostile_text_takes_linear_time_and_no_recursion(text: str) -> None:
    began = time.perf_counter()
    assert not is_json_text(text)
    assert time.perf_counter() - began < 2


def test_100_000_levels_are_json_all_the_same() -> None:
    assert is_json_text("[" * 100_000 + "]" * 100_000)
