"""The attributes of a span are those of the table, and none gives a key or a payload away."""

from __future__ import annotations

import hashlib

import pytest

from dcb_runtime.spans.attributes import ATTRIBUTES, end_attributes, start_attributes
from dcb_runtime.spans.port import Command, Done, Outcome, actor_key_hash


def test_every_attribute_is_in_the_table_and_the_table_has_no_other() -> None:
    full = Command("POST /append", "tag", "orders", "0" * 64, "attempt-1", "an-activation", True)
    found = start_attributes(full) | end_attributes(Done(Outcome.ERROR, 500, "500"))
    assert found.keys() == ATTRIBUTES.keys()
    assert found["faas.coldstart"] is True
    assert found["dcb.command.id"] == "attempt-1"
    assert found["error.type"] == "500"
    bare = start_attributes(Command("GET /state", "tag")) | end_attributes(Done(Outcome.OK, 200))
    assert bare.keys() == {"dcb.operation", "dcb.actor.class", "dcb.outcome", "http.response.status_code"}


@pytest.mark.parametrize(
    ("command_id", "kept"),
    [("a" * 128, True), ("a" * 129, False), ("A.b_c:d-9", True), ("order/secret", False), ("a b", False), ("", False)],
)
def test_a_command_id_that_is_no_id_is_left_out(command_id: str, kept: bool) -> None:
    attributes = start_attributes(Command("POST /append", "allocator", command_id=command_id))
    assert ("dcb.command.id" in attributes) is kept


def test_the_key_of_a_tag_is_hashed_and_never_fails() -> None:
    assert actor_key_hash("tag", "orders", "order:42") == hashlib.sha256(b"tag:orders:order:42").hexdigest()
    assert actor_key_hash("allocator", "orders") == hashlib.sha256(b"allocator:orders").hexdigest()
    assert len(actor_key_hash("tag", "orders", "\ud800")) == 64
