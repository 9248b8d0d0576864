"""The common part of the databases of both generations.

One file may hold both, so what reads them may share one read transaction.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from sessiondb.errors import abridged
from sessiondb.formats.kit.files import stamp
from sessiondb.formats.kit.json import OddRecordError, load, usable_id
from sessiondb.formats.kit.sqlite import ForeignDatabase, columns
from sessiondb.formats.opencode.projects import facts_of, record_of
from sessiondb.formats.opencode.raw import Head, SessionRecord
from sessiondb.model import Problem


class Database:
    """One database file; *file* lets two readers look at the same snapshot."""

    #: The table of sessions, and those whose rows count as their changes.
    SESSIONS: ClassVar[str]
    COUNTED: ClassVar[tuple[str, ...]]
    #: The tables that a database of this generation has, and columns that it needs.
    REQUIRED: ClassVar[Mapping[str, set[str]]]

    def __init__(self, path: Path, file: ForeignDatabase | None = None) -> None:
        self.path = path
        self.home = path.parent
        self.file = file or ForeignDatabase(path)
        self._tables: dict[str, frozenset[str]] = {}

    def there(self) -> bool:
        """Return whether the file has this generation; only while it is read."""
        return all(
            needed <= self.columns(table) for table, needed in self.REQUIRED.items()
        )

    def where(self, *_: str) -> Path:
        """Everything is in one file."""
        return self.path

    def reading(self) -> AbstractContextManager[object]:
        """Hold one read transaction; raises `SourceError`."""
        return self.file.reading()

    def raw(self, column: str) -> str:
        """Return the expression for a text as it is stored; see `stored`."""
        # Bytes spare a decoding, but those of a database in UTF-16 are not what is meant.
        return f"CAST({column} AS BLOB)" if self._is_utf8 else column

    @cached_property
    def _is_utf8(self) -> bool:
        return self.file.is_utf8

    def stored(self, raw: Any) -> Any:
        """Return the bytes, in UTF-8, of what was selected by `raw`."""
        return raw.encode("utf-8", "surrogateescape") if isinstance(raw, str) else raw

    def rows(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Run a statement."""
        return self.file.connection.execute(statement, values)

    def records(self, statement: str, *values: Any) -> Iterator[dict[str, Any]]:
        """Run a statement and yield its rows by column."""
        cursor = self.rows(statement, *values)
        names = [column[0] for column in cursor.description]
        return (dict(zip(names, row, strict=True)) for row in cursor)

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; empty where there is none."""
        if table not in self._tables:
            self._tables[table] = columns(self.file.connection, table)
        return self._tables[table]

    def heads(self) -> Iterator[Head | Problem]:
        """All sessions, in any order."""
        have = self.columns(self.SESSIONS)
        wanted = ("id", "parent_id", "time_created", "title")
        chosen = ", ".join(name if name in have else "NULL" for name in wanted)
        for name, parent, created, title in self.rows(
            f"SELECT {chosen} FROM {self.SESSIONS}"
        ):
            if not usable_id(name):
                yield Problem(
                    str(self.path), f"session {abridged(name)} has no usable id"
                )
                continue
            yield Head(
                name,
                parent if usable_id(parent) else None,
                created if type(created) is int else 0,
                title if type(title) is str else "",
            )

    def last_used(self) -> dict[str, int]:
        """When each session was last used, 0 where that is unknown."""
        time = (
            "time_updated" if "time_updated" in self.columns(self.SESSIONS) else "NULL"
        )
        rows = self.rows(f"SELECT id, {time} FROM {self.SESSIONS}")
        return {
            name: used if type(used) is int else 0
            for name, used in rows
            if usable_id(name)
        }

    def row(self, session: str) -> dict[str, Any]:
        """Return the row of a session; raises `OddRecordError` where it is gone."""
        found = self.records(f"SELECT * FROM {self.SESSIONS} WHERE id = ?", session)
        row = next(found, None)
        if row is None:
            raise OddRecordError("is gone")
        return row

    def decode(
        self, row: dict[str, Any], names: tuple[str, ...], problems: list[Problem]
    ) -> None:
        """Decode the JSON columns *names* of a session's *row* in place; what is odd stays."""
        for name in names:
            if row.get(name) is None:
                continue
            try:
                row[name] = load(str(row[name]).encode("utf-8", "surrogateescape"))
            except OddRecordError as error:
                why = f"session {row['id']}: {name} {error}"
                problems.append(Problem(str(self.path), why))

    @cached_property
    def stat(self) -> tuple[int | None, int | None]:
        """Size and modification time (ns) of the file."""
        return stamp(self.path) or (None, None)

    @cached_property
    def projects(self) -> dict[str, dict[str, Any]]:
        """The records of the projects by id."""
        if not {"id", "worktree", "vcs"} <= self.columns("project"):
            return {}
        return {
            row["id"]: record_of(row) for row in self.records("SELECT * FROM project")
        }

    def put_project(self, record: SessionRecord, row: Mapping[str, Any]) -> None:
        """Say which project the session of *row* belongs to, and what is known of that."""
        project = self.projects.get(str(row.get("project_id")), {})
        record.project = project
        record.worktree, record.vcs = project.get("worktree"), project.get("vcs")
        record.root_commit = project.get("id")
        record.approved = self._approved.get(row.get("project_id"))
        record.facts.append([facts_of(project), record.approved])

    @cached_property
    def _approved(self) -> dict[Any, Any]:
        """The permissions given in each project, by its id; version 2 keeps them elsewhere."""
        if not {"project_id", "data"} <= self.columns("permission"):
            return {}
        found = {}
        for name, data in self.rows("SELECT project_id, data FROM permission"):
            with contextlib.suppress(OddRecordError):
                found[name] = load(str(data).encode("utf-8", "surrogateescape"))
        return found

    @cached_property
    def changes(self) -> dict[str, list[Any]]:
        """Stamps that change when a session does: for each, three numbers of each table."""
        found: dict[str, list[Any]] = {}
        for table in self.COUNTED:
            if "time_updated" not in self.columns(table):
                continue
            # "+" keeps SQLite from fetching the rows one by one in the order of an index.
            rows = self.rows(
                "SELECT session_id, count(*), max(time_updated), sum(time_updated & 16777215)"
                f" FROM {table} GROUP BY +session_id"
            )
            for name, *numbers in rows:
                found.setdefault(name, []).append([table, *numbers])
        return found

    def changes_of(self, session: str) -> Any:
        """Return what changes when *session* does; where that is damaged, something new."""
        try:
            return self.changes.get(session)
        except sqlite3.Error:
            return os.urandom(8).hex()

    def lost(self, table: str, key: str, owner: str) -> Iterator[Problem]:
        """Rows of *table* whose *owner* is not there."""
        rows = self.rows(
            f"SELECT {key}, count(*) FROM {table} WHERE NOT EXISTS"
            f" (SELECT 1 FROM {owner} WHERE {owner}.id = {table}.{key}) GROUP BY {key}"
        )
        for name, number in rows:
            why = f"{number} {table}(s) of {owner} {abridged(name)}, which is not there"
            yield Problem(str(self.path), why)
