from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dcb_runtime.rules.fnv1a import Fnv1a32


def naive(text: str) -> str:
    digest = 0x811C9DC5
    for character in text:
        units = character.encode("utf-16-be", "surrogatepass")
        digest = ((digest ^ int.from_bytes(units[:2], "big")) * 0x01000193) % 2**32
    return "fnv1a32:" + format(digest, "08x")


def digest_of(*parts: str) -> str:
    digest = Fnv1a32()
    for part in parts:
        digest.update(part)
    return digest.text()


@pytest.mark.parametrize(
    ("text", "known"),
    [("", "811c9dc5"), ("a", "e40c292c"), ("foobar", "bf9cf968"), ("b", "e70c2de5")],
)
def test_published_answers(text: str, known: str) -> None:
    assert digest_of(text) == f"fnv1a32:{known}"


@given(st.lists(st.text(st.characters())))
@example(["a" * 7, "a" * 8, "a" * 9])
@example(["é" * 17, "😀" * 17, "\ud800\udfff", "\uffff" * 9])
def test_it_is_the_digest_of_the_parts_put_together(parts: list[str]) -> None:
    assert digest_of(*parts) == naive("".join(parts)) == digest_of("".join(parts))


def test_of_an_astral_character_only_the_high_surrogate_counts() -> None:
    assert digest_of("\U0001f600") == digest_of("\ud83d") == digest_of("\U0001f601")
    assert digest_of("\U0001f600") != digest_of("\U0001f800")
