"""A cursor is sealed: it belongs to its source and target, and none is taken that was not made here."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import pytest

from dcb_runtime.entry.cursor import Anchor, Cursor, CursorSeal
from dcb_runtime.rules.dump_v2 import ChainDigest
from tests.entry.doubles import OPERATOR
from tests.entry.exports import SOURCE, TARGET, export, holding

SEAL = CursorSeal(OPERATOR)


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
