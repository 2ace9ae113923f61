"""What the adapters of the platform rely on, tried on the platform itself."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.server import Server
from tests.support.dumps import record
from tests.workerd.lab import WORKERS
from tests.workerd.operators import eventually, send

if TYPE_CHECKING:
    from collections.abc import Iterator

INTEGER_MAX = 2**53 - 1


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(root=WORKERS / "platform", state=tmp_path_factory.mktemp("platform")) as server:
        yield server


def probe(server: Server, name: str, argument: Any = None, thing: str = "one") -> Any:
    body = json.dumps(argument).encode()
    return send(server, "POST", f"/object/{thing}/{name}", body).raise_for_status().json()


def test_integers_texts_and_null_come_back_as_they_were(platform: Server) -> None:
    values = [0, 1, -1, INTEGER_MAX, -INTEGER_MAX, None, "", "text"]
    rows = probe(platform, "bind", values)
    assert [row[0] for row in rows] == values
    assert [row[1] for row in rows] == values
    assert [row[2] for row in rows] == ["integer"] * 5 + ["null", "text", "text"]


def test_bytes_come_back_as_they_were(platform: Server) -> None:
    every = bytes(range(256)).hex().upper()
    kind, *same, as_hex = probe(platform, "bytes")
    assert (same, as_hex) == ([True, True, True], every), kind


def test_a_statement_takes_a_hundred_binds(platform: Server) -> None:
    assert probe(platform, "many_binds", 100) == sum(range(100))


def test_what_the_platform_would_turn_into_something_else_is_refused(platform: Server) -> None:
    refused = probe(platform, "refused")
    assert len(refused) == 9
    assert all(text.startswith("cannot bind") for text in refused[:8])
    assert refused[8] == "101 binds, the platform takes 100"


def test_texts_keep_control_characters_and_astral_ones(platform: Server) -> None:
    texts = ["a\u0001b", "tab\tnew\nline", "\u007f\u0080", "\U0001f600é", '"\\/', "\ufeff", "\uffff"]
    for text, row in zip(texts, probe(platform, "texts", texts), strict=True):
        assert row == [text, len(text), json.dumps(text, ensure_ascii=False) if text.isprintable() else row[2], text]
        assert json.loads(row[2]) == text


def test_a_nul_ends_a_text_in_sqls_functions_so_the_rules_refuse_it(platform: Server) -> None:
    ((bound, length, quoted, from_json),) = probe(platform, "texts", ["a\0b"])
    assert bound == "a\0b"
    assert (length, json.loads(quoted), from_json) != (3, "a\0b", "a\0b")


def test_the_sql_of_the_rules(platform: Server) -> None:
    assert probe(platform, "functions") == {
        "returning": [[1, "a"]],
        "conflict": [["b"]],
        "nothing": [],
        "unhex": "00FF10",
        "numbered": ["bab"],
        "window": [[1, 1, 0], [2, 3, 1], [4, 7, 2]],
        "array": '[[0,{"a":1}],[1,[2]]]',
        "object": '{"a":["x"],"b":null}',
        "nocase": [1, 0],
        "order": ["B", "b", "é", "\uffff", "\U0001f600"],
        "same_names": [1, 2, 3],
    }


def test_a_transaction_rolls_back_and_gives_the_exception_itself(platform: Server) -> None:
    assert probe(platform, "rollback") == [True, "result", [2, 3, 4]]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("INSERT INTO s VALUES (1)", "SQLITE_CONSTRAINT"),
        ("SELECT absent", "SQLITE_ERROR"),
        ("not sql", "SQLITE_ERROR"),
        ("BEGIN", "unknown"),
        ("SAVEPOINT x", "unknown"),
    ],
)
def test_a_refused_statement_is_a_storage_error_and_undoes_its_transaction(
    platform: Server, sql: str, code: str
) -> None:
    assert probe(platform, "refused_statement", sql) == [code, 0]


def test_d1_batches_are_atomic_and_answer_rows(platform: Server) -> None:
    facts = send(platform, "GET", "/database").raise_for_status().json()
    assert facts["refused"] == "SQLITE_CONSTRAINT"
    assert facts["afterRefusal"] == 0
    inserted, types, none, joined, twice, texts = facts["rows"]
    assert (inserted, none, joined) == ([[7, None]], [], [["ba"]])
    assert types == [["é\U0001f600", INTEGER_MAX, None, "00FF"]]
    assert twice == [["y"]]  # D1 answers with objects: columns of one name fall together, so no statement uses it
    assert json.loads(texts[0][0])[0] == "a\u0001"
    assert facts["many"] == [0, 1, 2, 3, 4]


def test_each_event_of_a_chunk_looks_the_log_up(platform: Server) -> None:
    """Another order of the join compares each chunk with the whole log, and a library elsewhere may not show it."""
    steps = send(platform, "POST", "/plans", [record(1, "a"), record(2, "a")]).raise_for_status().json()
    lookups = [step for step in steps if re.match("(SCAN|SEARCH) (e|dcb_event)\\b", step)]
    assert len(lookups) >= 5
    assert all("position" in step or "event_id=?" in step for step in lookups), steps
    assert not any(step.startswith("SCAN e") for step in steps), steps


def test_alarms_survive_a_kill_and_a_cleared_one_does_not_come(platform: Server) -> None:
    probe(platform, "alarm", 300, "kept")
    probe(platform, "alarm", 300, "cleared")
    probe(platform, "alarm", None, "cleared")
    probe(platform, "alarm_then_clear", 1, "taken-back")
    probe(platform, "alarm", 3_600_000, "moved")
    probe(platform, "alarm", 1, "moved")
    eventually(lambda: probe(platform, "rung", thing="moved") or None)
    probe(platform, "alarm", 60_000, "later")
    platform.kill()
    platform.restart()
    eventually(lambda: probe(platform, "rung", thing="kept") or None)
    assert probe(platform, "rung", thing="cleared") == 0
    assert probe(platform, "rung", thing="taken-back") == 0
    assert probe(platform, "rung", thing="later") == 0
    probe(platform, "alarm", 1, "later")
    eventually(lambda: probe(platform, "rung", thing="later") or None)
