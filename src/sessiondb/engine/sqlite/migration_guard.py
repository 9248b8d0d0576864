"""Guards around migrations, in the same transaction, against loss of data.

Before the first: a backup, what has to be the same afterwards is counted, our
views, search tables and triggers are taken away. After the last: those of the
destination are made, search is rebuilt, the file says what it is, and what
changed without being declared undoes everything. Additive migrations leave
views, search and triggers as they are, because older releases check them.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alembic.runtime.migration import RevisionStep

from sessiondb.engine import disk
from sessiondb.engine.sqlite.chain import Chain, Derived
from sessiondb.engine.sqlite.copying import copied
from sessiondb.engine.sqlite.ddl import tidy
from sessiondb.engine.sqlite.fingerprint import check_schema
from sessiondb.engine.sqlite.version import identity_of, stamp
from sessiondb.errors import (
    ConflictError,
    InvalidInputError,
    NotADatabaseError,
    SchemaVersionError,
    UntrustedDatabaseError,
)
from sessiondb.schema.version import APPLICATION_ID, VERSION

_CREATE = re.compile(r"CREATE (?:VIRTUAL )?(VIEW|TABLE|TRIGGER) (\w+)")
_SEARCH = "CREATE VIRTUAL TABLE"


def recognise(connection: sqlite3.Connection, path: Path) -> tuple[str | None, int]:
    """Return revision (None: empty) and user_version of a file of ours.

    Raises `NotADatabaseError` for a file of another program.
    """
    application, version = identity_of(connection)
    objects = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application != APPLICATION_ID and (application, version, objects) != (0, 0, 0):
        raise NotADatabaseError(
            f"{path} is not a sessiondb database", hint="choose another path"
        )

    return _revision(connection), version


def _revision(connection: sqlite3.Connection) -> str | None:
    there = "SELECT 1 FROM sqlite_schema WHERE name = 'alembic_version'"
    if connection.execute(there).fetchone() is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


class MigrationGuard:
    """One way of a file through the chain.

    ``backup`` is the copy made before it, if any.
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
        if not chain.knows(self._origin):
            raise SchemaVersionError(
                f"{path} is at revision {self._origin}, which is newer than this "
                "release",
                hint="install a newer sessiondb",
            )

        if version != chain.version(self._origin):
            raise UntrustedDatabaseError(
                f"{path} says revision {self._origin} and schema {version}, which is "
                "not the same",
                hint="restore a backup",
            )

    def begin(self, steps: Sequence[RevisionStep]) -> None:
        """Make ready for *steps*.

        Raises `UntrustedDatabaseError` for objects that are not ours.
        """
        ours = self._chain.derived(self._origin)
        self._check_derived(ours)
        modules = [step.revision.module for step in steps]
        additive = all(
            s.is_upgrade and m.ADDITIVE for s, m in zip(steps, modules, strict=True)
        )
        self._rebuilds = self._origin is not None and not additive
        self._changed = {
            table for module in modules for table in getattr(module, "CHANGED", ())
        }
        self._rows, self._orphans = self._count_rows(), self._count_orphans()
        self._indexes = self._find_indexes()

        if self._rebuilds:
            self._back_up()
            self._take_away(ours)

    def end(self) -> None:
        """Complete the file at its destination.

        Raises `ConflictError` if something was lost.
        """
        destination = _revision(self._connection)
        version, derived = (
            self._chain.version(destination),
            self._chain.derived(destination),
        )
        self._derive(derived)
        if destination is not None:
            self._name(version, self._chain.oldest(destination))
        else:
            self._connection.execute("PRAGMA user_version=0")

        self._restore_indexes()
        self._check_kept()
        self._check_derived(derived)
        if version == VERSION:
            check_schema(self._connection, version)

    def _name(self, version: int, oldest: dict[str, str]) -> None:
        if self._origin is None:
            stamp(self._connection, version)
        self._connection.execute(f"PRAGMA user_version={version}")
        self._connection.executemany(
            "UPDATE meta SET value = ? WHERE key = ?",
            [(v, k) for k, v in oldest.items()],
        )

    # -- views, search tables and triggers -----------------------------------

    def _take_away(self, derived: Derived) -> None:
        for statement in reversed(derived):
            kind, name = _named(statement)
            self._connection.execute(f"DROP {kind} {name}")

    def _derive(self, wanted: Derived) -> None:
        """Make what is missing or different again; search is empty until filled.

        Search is empty until filled.
        """
        if not self._rebuilds and self._origin is not None:
            there = self._chain.derived(self._origin)
            stale = tuple(sql for sql in there if sql not in wanted)
            if any(_named(sql)[0] != "VIEW" for sql in {*there} ^ {*wanted}):
                raise InvalidInputError(
                    "a migration that changes search is not additive"
                )
            self._take_away(stale)
            wanted = tuple(sql for sql in wanted if sql not in there)
        for statement in wanted:
            self._connection.execute(statement)
            if self._rebuilds and statement.startswith(_SEARCH):
                _, name = _named(statement)
                self._connection.execute(
                    f"INSERT INTO {name} ({name}) VALUES ('rebuild')"
                )

    def _check_derived(self, derived: Derived) -> None:
        rows = self._connection.execute(
            "SELECT type, name, sql FROM sqlite_schema"
        ).fetchall()
        found = {name: tidy(sql) for _, name, sql in rows if sql}
        expected = {_named(sql)[1]: tidy(sql) for sql in derived}
        triggers = {name for kind, name, _ in rows if kind == "trigger"}

        for name in sorted(expected.keys() | triggers):
            if expected.get(name) != found.get(name):
                state = "not ours" if name not in expected else "changed or missing"
                raise UntrustedDatabaseError(f"{name} in {self._path} is {state}")

    # -- what must not get lost ----------------------------------------------

    def _count_rows(self) -> dict[str, int]:
        sql = (
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = "
            "'table' "
            "AND name != 'alembic_version' AND substr(name, 1, 7) != 'sqlite_'"
        )
        names = [name for (name,) in self._connection.execute(sql)]

        return {
            name: self._one(f"SELECT count(*) FROM {_quoted(name)}") for name in names
        }

    def _count_orphans(self) -> Counter[tuple[str, str]]:
        """Count rows whose parent is missing.

        A DELETE in the shell may have left some.
        """
        rows = self._connection.execute("PRAGMA foreign_key_check")
        return Counter((table, parent) for table, _, parent, _ in rows)

    def _check_kept(self) -> None:
        rows = self._count_rows()
        for table in self._rows.keys() - self._changed:
            before, after = self._rows[table], rows.get(table, "no table")
            if before != after:
                raise ConflictError(
                    f"the migration was undone: {table} had {before} rows, then {after}"
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
        """Make a person's own indexes again where their columns still are.

        Ours begin with ix_.
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
        """Copy the file as it is under the write lock.

        Another connection can still read that.
        """
        with disk.translated(self._backups):
            disk.make_folder(self._backups)
        mark = self._one(
            "SELECT substr(value, 1, 8) FROM meta WHERE key = 'database_uuid'"
        )
        version = self._chain.version(self._origin)
        when = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self.backup = self._backups / f"{self._path.name}.{mark}-schema{version}-{when}"
        with copied(self._path, self.backup):
            pass

    def forget_backup(self) -> None:
        """Remove the copy: nothing was migrated."""
        if self.backup is not None:
            self.backup.unlink(missing_ok=True)

    def _one(self, sql: str) -> Any:
        return self._connection.execute(sql).fetchone()[0]


def _named(statement: str) -> tuple[str, str]:
    match = _CREATE.match(statement)
    assert match is not None, statement
    return match[1], match[2]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
