from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dcb_runtime.rules.event_digest import EventDigestError, event_digest

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "event-digest-vectors.json").read_text())["vectors"]
CASES = [
    (f"{vector['id']} {kind}", vector[kind], vector[expected])
    for vector in VECTORS
    for kind, expected in (
        ("input", "expectedDigest"),
        ("left", "expectedLeftDigest"),
        ("right", "expectedRightDigest"),
        ("absent", "expectedAbsentDigest"),
        ("presentEmpty", "expectedPresentEmptyDigest"),
    )
    if kind in vector
]


def fields() -> dict[str, Any]:
    vector = dict(VECTORS[0]["input"])
    payload = bytes.fromhex(vector.pop("payloadHex"))
    return {**vector, "payload": payload}


@pytest.mark.parametrize(("vector", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_published_vectors(vector: dict[str, Any], expected: str) -> None:
    plain = {name: value for name, value in vector.items() if name != "payloadHex"}
    assert event_digest({**plain, "payload": bytes.fromhex(vector["payloadHex"])}) == expected


def test_there_are_nine_vectors() -> None:
    assert len(CASES) == 9


def test_order_and_repetition_of_tags_do_not_matter_but_another_tag_does() -> None:
    digest = event_digest({**fields(), "declaredTagSet": ["a", "é", "b"]})
    assert event_digest({**fields(), "declaredTagSet": ["é", "b", "a", "b"]}) == digest
    assert event_digest({**fields(), "declaredTagSet": ["a", "b"]}) != digest


@pytest.mark.parametrize("name", ["causationId", "correlationId", "executedUser", "payloadHex", "x"])
def test_unknown_fields_are_refused(name: str) -> None:
    with pytest.raises(EventDigestError, match="unknown"):
        event_digest({**fields(), name: "x"})


@pytest.mark.parametrize("name", sorted(fields().keys() - {"allocatorLineageId"}))
def test_required_fields_may_not_be_missing_or_null(name: str) -> None:
    complete = fields()
    with pytest.raises(EventDigestError, match=name):
        event_digest({key: value for key, value in complete.items() if key != name})
    with pytest.raises(EventDigestError, match=name):
        event_digest({**complete, name: None})
