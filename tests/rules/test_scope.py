from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcb_runtime.rules.scope import (
    SERVICE_ID_INVALID,
    Scope,
    ScopeNameError,
    allocator_object_name,
    bootstrap_object_name,
    check_service_id,
    is_service_id,
    object_name,
    parse_object_name,
    tag_object_name,
)
from tests.rules.builders import refused


@pytest.mark.parametrize("service_id", ["a", "9", "A.b_c-d", "a" * 96])
def test_service_ids_of_the_grammar_are_taken(service_id: str) -> None:
    assert is_service_id(service_id)
    assert check_service_id(service_id) == service_id


@pytest.mark.parametrize("service_id", ["", ".a", "-a", "_a", "a/b", "a b", "a%", "é", "a\n", "a" * 97])
def test_other_service_ids_are_refused(service_id: str) -> None:
    assert not is_service_id(service_id)
    with refused(SERVICE_ID_INVALID):
        check_service_id(service_id)
    with pytest.raises(ScopeNameError):
        tag_object_name(service_id, "tag")


def test_each_class_has_its_name() -> None:
    assert allocator_object_name("shop") == "shop/allocator/allocator"
    assert bootstrap_object_name("shop") == "shop/bootstrap/coordinator"
    assert tag_object_name("shop", "order:1") == "shop/tag/order:1"


@pytest.mark.parametrize(
    ("actor_class", "identity"),
    [("allocator", "coordinator"), ("bootstrap", "allocator"), ("journal", "x"), ("", ""), ("tag", "")],
)
def test_other_classes_and_identities_have_none(actor_class: str, identity: str) -> None:
    with pytest.raises(ScopeNameError):
        object_name("shop", actor_class, identity)


@pytest.mark.parametrize(
    ("tag", "encoded"),
    [
        ("a b", "a b"),
        ("a/b", "a%2Fb"),
        ("100%", "100%25"),
        ("%2F", "%252F"),
        ("%25", "%2525"),
        ("😀", "😀"),
        ("ärger?#", "ärger?#"),
        ("😀" * 256, "😀" * 256),
        ("/" * 256, "%2F" * 256),
    ],
)
def test_only_percent_and_slash_are_encoded(tag: str, encoded: str) -> None:
    assert tag_object_name("shop", tag) == f"shop/tag/{encoded}"
    assert parse_object_name(f"shop/tag/{encoded}") == Scope("shop", "tag", tag)


@given(st.text(min_size=1))
def test_a_name_has_three_parts_and_gives_its_tag_back(tag: str) -> None:
    name = tag_object_name("shop", tag)
    assert name.count("/") == 2
    assert parse_object_name(name).identity == tag


@pytest.mark.parametrize(
    "name",
    [
        "shop/tag",
        "shop/tag/a/b",
        "shop/tag/",
        "/tag/a",
        "shop/journal/a",
        "shop/allocator/a",
        "shop/tag/a%2fb",
        "shop/tag/a%41",
        "shop/tag/100%",
    ],
)
def test_a_name_that_is_never_made_is_not_taken_apart(name: str) -> None:
    with pytest.raises(ScopeNameError):
        parse_object_name(name)
