"""Schemas: made by the first write, migrated by the first use, and left alone when they are newer than the code."""

from __future__ import annotations

from typing import Final

import pytest

from dcb_runtime.ports import StorageError
from dcb_runtime.schema import Migration, Schema
from tests.support.sqlite import SqliteStorage

FIRST: Final[Migration] = ("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",)
SECOND: Final[Migration] = (
    "ALTER TABLE note ADD COLUMN length INTEGER",
    "UPDATE note SET length = length(text)",
)
BROKEN: Final[Migration] = ("CREATE TABLE other (id INTEGER)", "INSERT INTO nothing VALUES (1)")


def old_storage() -> SqliteStorage:
    """A storage that code of version 1 has written."""
    storage = SqliteStorage()
    Schema(storage, (FIRST,)).ensure()
    storage.exec("INSERT INTO note VALUES (1, 'four')")
    return storage


def test_looking_creates_nothing() -> None:
    storage = SqliteStorage()
    assert not Schema(storage, (FIRST,)).exists()
    assert storage.rows() == {}


def test_the_first_write_creates_all_versions_at_once() -> None:
    storage = SqliteStorage()
    schema = Schema(storage, (FIRST, SECOND))
    schema.ensure()
    assert schema.exists()
    assert storage.rows() == {"note": [], "schema_version": [(1, 2)]}


@pytest.mark.parametrize("first_use", ["exists", "ensure"])
def test_an_older_version_is_migrated_by_the_first_use_and_keeps_its_rows(first_use: str) -> None:
    storage = old_storage()
    schema = Schema(storage, (FIRST, SECOND))
    getattr(schema, first_use)()
    assert storage.rows() == {"note": [(1, "four", 4)], "schema_version": [(1, 2)]}


def test_an_activation_looks_only_once() -> None:
    storage = old_storage()
    schema = Schema(storage, (FIRST,))
    assert schema.exists()
    storage.fail_next = lambda _: True
    schema.ensure()
    assert schema.exists()


def test_a_migration_that_fails_leaves_the_old_version_and_is_tried_again() -> None:
    storage = old_storage()
    before = storage.rows()
    schema = Schema(storage, (FIRST, SECOND, BROKEN))
    for _ in range(2):
        with pytest.raises(StorageError):
            schema.ensure()
        assert storage.rows() == before
    Schema(storage, (FIRST, SECOND)).ensure()
    assert storage.rows()["schema_version"] == [(1, 2)]


def test_tables_of_a_newer_version_are_not_touched() -> None:
    storage = SqliteStorage()
    Schema(storage, (FIRST, SECOND)).ensure()
    before = storage.rows()
    schema = Schema(storage, (FIRST,))
    for use in (schema.exists, schema.ensure):
        with pytest.raises(RuntimeError, match="version 2, this code knows 1"):
            use()
    assert storage.rows() == before
