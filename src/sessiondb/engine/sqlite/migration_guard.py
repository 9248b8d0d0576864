"""Guards that run around migrations, in the same transaction, against loss of data.

Before the first migration, the file is copied, its rows are counted, and our views,
search tables and triggers are dropped. After the last, those of the destination are
made, search is rebuilt, and the file gets its new version; a change that no migration
declared then undoes all of it. Additive migrations keep views, search and triggers,
because older releases verify them.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alembic.runtime.migration import RevisionStep

from sessiondb.engine import disk
from sessiondb.engine.chain import Chain, Derived
from sessiondb.engine.sqlite.admission import EMPTY, schema_of
from sessiondb.engine.sqlite.copying import copied
from sessiondb.engine.sqlite.ddl import named
from sessiondb.engine.sqlite.fingerprint import check_derived, check_schema
from sessiondb.engine.sqlite.search import SQLiteSearchIndex
from sessiondb.engine.sqlite.version import stamp
from sessiondb.errors import (
    ConflictError,
    InvalidInputError,
    SchemaVersionError,
)
from sessiondb.schema.version import VERSION


def recognise(connection: sqlite3.Connection, path: Path) -> tuple[str | None, int]:
    """Return the revision of our file, None for an empty one, and its user_version.

    Raises `NotADatabaseError` for a file of another program.
    """
    version = schema_of(connection, path)
    return _revision_of(connection), version


def check_revision(
    chain: Chain, path: Path, revision: str | None, version: int
) -> None:
    """Raise `SchemaVersionError` unless *revision* is ours and has this *version*."""
    if not chain.knows(revision):
        raise SchemaVersionError(
            f"{path} is at revision {revision}, newer than this release",
            hint="install a newer sessiondb",
        )

    if version not in (chain.version(revision), EMPTY):
        raise SchemaVersionError(
            f"{path} has revision {revision} but schema {version}",
            hint="restore a backup",
        )


def _revision_of(connection: sqlite3.Connection) -> str | None:
    query = "SELECT 1 FROM sqlite_schema WHERE name = 'alembic_version'"
    if connection.execute(query).fetchone() is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


class MigrationGuard:
    """The guard of one file on its way from a revision to another.

    ``backup`` is the copy made before, None if none was needed. Raises
    `NotADatabaseError`, and `SchemaVersionError` for a revision that this release does
    not have, or that contradicts the version.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        chain: Chain,
        path: Path,
        backups: Path | None,
    ) -> None:
        self._connection, self._chain = connection, chain
        self._path, self._backups = path, backups or path.parent
        self._rebuilds = False
        self._changed: set[str] = set()
        self._rows: dict[str, int] = {}
        self._orphans: Counter[tuple[str, str]] = Counter()
        self._indexes: dict[str, str] = {}
        self.backup: Path | None = None
        self._origin, version = recognise(connection, path)
        check_revision(chain, path, self._origin, version)

    def begin(self, steps: Sequence[RevisionStep]) -> None:
        """Prepare the file for *steps*.

        Raises `UntrustedDatabaseError` for objects that are not ours, and the errors
        of a backup.
        """
        derived = self._chain.derived(self._origin)
        check_derived(self._connection, self._path, derived)
        modules = [step.revision.module for step in steps]
        additive = all(step.is_upgrade for step in steps) and all(
            module.ADDITIVE for module in modules
        )
        self._rebuilds = self._origin is not None and not additive
        self._changed.update(*(getattr(module, "CHANGED", ()) for module in modules))
        self._rows, self._orphans = self._count_rows(), self._count_orphans()
        self._indexes = self._find_indexes()

        if self._rebuilds:
            self._back_up()
            self._drop_derived(derived)

    def end(self) -> None:
        """Complete the file after the last step.

        Raises `ConflictError` if something was lost, `InvalidInputError` for an
        additive migration that changes search, and `UntrustedDatabaseError`.
        """
        destination = _revision_of(self._connection)
        version = self._chain.version(destination)
        derived = self._chain.derived(destination)
        self._derive_wanted(derived)
        if destination is not None:
            self._stamp_versions(version, self._chain.oldest(destination))
        else:
            self._connection.execute("PRAGMA user_version=0")

        self._restore_indexes()
        self._check_kept()
        check_derived(self._connection, self._path, derived)
        if version == VERSION:
            check_schema(self._connection, self._path, version)

    def _stamp_versions(self, version: int, oldest: dict[str, str]) -> None:
        if self._origin is None:
            stamp(self._connection, version)
        self._connection.execute(f"PRAGMA user_version={version}")
        self._connection.executemany(
            "UPDATE meta SET value = ? WHERE key = ?",
            [(v, k) for k, v in oldest.items()],
        )

    # -- views, search tables and triggers -----------------------------------

    def _drop_derived(self, derived: Derived) -> None:
        for statement in reversed(derived):
            kind, name = named(statement)
            self._connection.execute(f"DROP {kind} {name}")

    def _derive_wanted(self, wanted: Derived) -> None:
        """Make the views, search tables and triggers of the destination.

        Additive migrations replace only the views that differ.
        """
        if self._rebuilds or self._origin is None:
            self._make_derived(wanted)
            return

        derived = self._chain.derived(self._origin)
        kinds = {kind for kind, _ in map(named, {*derived} ^ {*wanted})}
        if not kinds <= {"view"}:
            raise InvalidInputError("a migration that changes search is not additive")
        self._drop_derived(tuple(sql for sql in derived if sql not in wanted))
        self._make_derived(sql for sql in wanted if sql not in derived)

    def _make_derived(self, derived: Iterable[str]) -> None:
        """Make *derived*; after a rebuild, search is filled again."""
        created = []
        for statement in derived:
            self._connection.execute(statement)
            created.append(named(statement))

        if self._rebuilds:
            tables = [name for kind, name in created if kind == "table"]
            SQLiteSearchIndex().rebuild(self._connection, tables)

    # -- rows, references and indexes ----------------------------------------

    def _count_rows(self) -> dict[str, int]:
        sql = (
            "SELECT name FROM pragma_table_list "
            "WHERE schema = 'main' AND type = 'table' "
            "AND name != 'alembic_version' AND substr(name, 1, 7) != 'sqlite_'"
        )
        names = [name for (name,) in self._connection.execute(sql)]

        counts = {}
        for name in names:
            quoted = '"' + name.replace('"', '""') + '"'
            counts[name] = self._one_value(f"SELECT count(*) FROM {quoted}")
        return counts

    def _count_orphans(self) -> Counter[tuple[str, str]]:
        """Count rows whose parent is missing: a DELETE in a shell leaves some."""
        rows = self._connection.execute("PRAGMA foreign_key_check")
        return Counter((table, parent) for table, _, parent, _ in rows)

    def _check_kept(self) -> None:
        rows = self._count_rows()
        for table in self._rows.keys() - self._changed:
            rows_before, rows_after = self._rows[table], rows.get(table, "no table")
            if rows_before != rows_after:
                raise ConflictError(
                    f"the migration was undone: {table} had {rows_before} rows, "
                    f"then {rows_after}"
                )

        orphans = self._count_orphans() - self._orphans
        if orphans:
            (table, parent), count = orphans.most_common(1)[0]
            raise ConflictError(
                f"the migration was undone: {count} rows of {table} lost their {parent}"
            )

    def _find_indexes(self) -> dict[str, str]:
        sql = (
            "SELECT name, sql FROM sqlite_schema"
            " WHERE type = 'index' AND sql IS NOT NULL"
        )
        return dict(self._connection.execute(sql).fetchall())

    def _restore_indexes(self) -> None:
        """Make the user's own indexes again if their columns still exist.

        The names of ours begin with ix_.
        """
        for name in self._indexes.keys() - self._find_indexes().keys():
            if name.startswith("ix_"):
                continue
            try:
                self._connection.execute(self._indexes[name])
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                    raise

    def _back_up(self) -> None:
        """Copy the file, through another connection, which reads the old state."""
        with disk.translated(self._backups):
            disk.make_folder(self._backups)
        mark = self._one_value(
            "SELECT substr(value, 1, 8) FROM meta WHERE key = 'database_uuid'"
        )
        version = self._chain.version(self._origin)
        when = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self.backup = self._backups / f"{self._path.name}.{mark}-schema{version}-{when}"
        with copied(self._path, self.backup):
            pass

    def forget_backup(self) -> None:
        """Remove the copy, as nothing was migrated; a no-op without one."""
        if self.backup is not None:
            self.backup.unlink(missing_ok=True)

    def _one_value(self, sql: str) -> Any:
        return self._connection.execute(sql).fetchone()[0]
