"""Schemas with versions: each object brings its tables up to date once per activation."""

from __future__ import annotations

from collections.abc import Sequence

from dcb_runtime.ports import Storage

Migration = Sequence[str]
"""The statements that lead from one version to the next."""


class Schema:
    """The tables of one object: created by the first write, migrated by the first use after a deploy."""

    def __init__(self, storage: Storage, migrations: Sequence[Migration]) -> None:
        self._storage = storage
        self._migrations = migrations
        self._ready = False

    def exists(self) -> bool:
        """Whether anything was ever written here; brings existing tables up to date, creates none.

        Costs one look-up of the catalogue until the tables exist, nothing after that.
        """
        if not self._ready and self._version() > 0:
            self.ensure()
        return self._ready

    def ensure(self) -> None:
        """Create or migrate the tables, all missing versions in one transaction."""
        if self._ready:
            return
        version = self._version()
        if version > len(self._migrations):
            raise RuntimeError(f"the tables have version {version}, this code knows {len(self._migrations)}")
        if version < len(self._migrations):
            self._storage.transaction(lambda: self._migrate(version))
        self._ready = True

    def _version(self) -> int:
        if not self._storage.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'"):
            return 0
        return int(self._storage.exec("SELECT version FROM schema_version")[0][0])

    def _migrate(self, version: int) -> None:
        if version == 0:
            self._storage.exec(
                "CREATE TABLE schema_version "
                "(singleton INTEGER PRIMARY KEY CHECK (singleton = 1), version INTEGER NOT NULL)"
            )
            self._storage.exec("INSERT INTO schema_version VALUES (1, 0)")
        for migration in self._migrations[version:]:
            for statement in migration:
                self._storage.exec(statement)
        self._storage.exec("UPDATE schema_version SET version = ?", len(self._migrations))
