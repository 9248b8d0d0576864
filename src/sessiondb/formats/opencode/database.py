"""The common part of the databases of both generations.

One file may hold both, so their readers may share one read transaction. Columns came
and went with the versions: a statement selects only columns that exist.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import Shape, integer
from sessiondb.formats.kit.json import OddRecordError, load_value, usable_id
from sessiondb.formats.kit.sqlite import (
    Cursor,
    Error,
    ForeignDatabase,
    columns_of_table,
)
from sessiondb.formats.opencode.projects import facts_of, record_of
from sessiondb.formats.opencode.raw import (
    Head,
    Opened,
    SessionRecord,
    ownerless_problem,
    stamp_of,
)
from sessiondb.model import Problem

#: The counts of a session, and the columns of their sums.
TOKENS: Shape = {
    "input": "tokens_input",
    "output": "tokens_output",
    "reasoning": "tokens_reasoning",
    "cache": {"read": "tokens_cache_read", "write": "tokens_cache_write"},
}


class OpenCodeDatabase:
    """One database file; *file* lets two readers look at the same snapshot."""

    #: The table of sessions, and those whose rows count as their changes.
    SESSIONS: ClassVar[str]
    COUNTED: ClassVar[tuple[str, ...]]
    #: The table of messages, and the columns that order them.
    MESSAGES: ClassVar[str]
    ORDER: ClassVar[str]
    #: The tables that a database of this generation has, and columns that it needs.
    REQUIRED: ClassVar[Mapping[str, set[str]]]

    def __init__(self, path: Path, file: ForeignDatabase | None = None) -> None:
        self.path = path
        self.home = path.parent
        self.file = file or ForeignDatabase(path)
        self._tables: dict[str, frozenset[str]] = {}

    def is_present(self) -> bool:
        """Return whether the file has this generation; only while it is read."""
        return all(self.has(table, *needed) for table, needed in self.REQUIRED.items())

    def path_of(self, *_: str) -> Path:
        """Everything is in one file."""
        return self.path

    def reading(self) -> AbstractContextManager[object]:
        """Hold one read transaction; raises `SourceError`."""
        return self.file.reading()

    # -- statements -----------------------------------------------------------

    def raw(self, column: str) -> str:
        """Return the expression for a text as it is stored; see `stored`."""
        # Bytes spare a decoding; a database in UTF-16 has none in UTF-8.
        return f"CAST({column} AS BLOB)" if self._is_utf8 else column

    @cached_property
    def _is_utf8(self) -> bool:
        return self.file.is_utf8

    def stored(self, raw: Any) -> Any:
        """Return the bytes, in UTF-8, of what was selected by `raw`."""
        return _encoded(raw) if isinstance(raw, str) else raw

    def rows(self, statement: str, *values: Any) -> Cursor:
        """Run a statement."""
        return self.file.connection.execute(statement, values)

    def records(self, statement: str, *values: Any) -> Iterator[dict[str, Any]]:
        """Run a statement and yield its rows by column."""
        cursor = self.rows(statement, *values)
        names = [column[0] for column in cursor.description]
        return (dict(zip(names, row, strict=True)) for row in cursor)

    def first_record(self, statement: str, *values: Any) -> dict[str, Any] | None:
        """Run a statement and return its first row by column; None without a row."""
        for record in self.records(statement, *values):
            return record
        return None

    def first_value(self, statement: str, *values: Any) -> Any:
        """Run a statement and return the only value of its first row; None without."""
        row = self.rows(statement, *values).fetchone()
        return None if row is None else row[0]

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; empty if there is none."""
        if table not in self._tables:
            self._tables[table] = columns_of_table(self.file.connection, table)
        return self._tables[table]

    def has(self, table: str, *names: str) -> bool:
        """Return whether a *table* exists with at least these columns."""
        return self.columns(table).issuperset(names)

    def decode(
        self, row: dict[str, Any], names: tuple[str, ...], problems: list[Problem]
    ) -> None:
        """Decode the JSON columns *names* of a session's *row* in place.

        Anything odd stays as it is.
        """
        for name in names:
            if row.get(name) is None:
                continue
            try:
                row[name] = load_value(_encoded(str(row[name])))
            except OddRecordError as error:
                reason = f"session {row['id']}: {name} {error}"
                problems.append(Problem(str(self.path), reason))

    # -- sessions -------------------------------------------------------------

    def read_heads(self) -> Iterator[Head | Problem]:
        """All sessions; a scan of the table has them in the order they were stored."""
        rows = self._session_columns("id", "parent_id", "time_created", "title")
        for name, parent, time_created, title in rows:
            if usable_id(name):
                yield Head.of(name, parent, time_created, title)
            else:
                reason = f"session {abridged(name)} has no usable id"
                yield Problem(str(self.path), reason)

    def last_used(self) -> dict[str, int]:
        """When each session was last used, 0 if that is unknown."""
        return {
            name: time if integer(time) else 0
            for name, time in self._session_columns("id", "time_updated")
            if usable_id(name)
        }

    def _session_columns(self, *names: str) -> Cursor:
        """Select columns of all sessions; NULL for one that is missing."""
        columns = [name if self.has(self.SESSIONS, name) else "NULL" for name in names]
        return self.rows(f"SELECT {', '.join(columns)} FROM {self.SESSIONS}")

    def session_row(self, session: str) -> dict[str, Any]:
        """Return the row of a session; raises `OddRecordError` if it is gone."""
        statement = f"SELECT * FROM {self.SESSIONS} WHERE id = ?"
        row = self.first_record(statement, session)
        if row is None:
            raise OddRecordError("is gone")
        return row

    def new_record(self, row: dict[str, Any], *stamps: Any) -> SessionRecord:
        """Return the record of a session's *row*, still without its ``info``.

        The *stamps* of files beside the database count as facts of the session.
        """
        facts = [dict(row), self._changes_of(row["id"]), *stamps]
        record = SessionRecord({}, facts, self.path, *self._stamp)
        self._put_project(record, row)
        return record

    @cached_property
    def _stamp(self) -> tuple[int | None, int | None]:
        """Size and modification time (ns) of the file."""
        return stamp_of(self.path)

    def first_times(self) -> dict[str, int]:
        """When the first message of each session was created; the index answers it."""
        rows = self.rows(
            f"SELECT session_id, min(time_created) FROM {self.MESSAGES}"
            " GROUP BY session_id"
        )
        return {name: time for name, time in rows if type(time) is int}

    def list_messages(self, session: str) -> list[Opened]:
        """Name the messages of a session in order."""
        rows = self.rows(
            f"SELECT time_created, id FROM {self.MESSAGES} WHERE session_id = ?"
            f" ORDER BY {self.ORDER}",
            session,
        )
        return [
            Opened(time if type(time) is int else 0, str(name)) for time, name in rows
        ]

    def read_message(self, session: str, message: str) -> bytes | None:
        """Read one message as stored."""
        raw = self.first_value(
            f"SELECT {self.raw('data')} FROM {self.MESSAGES}"
            " WHERE id = ? AND session_id = ?",
            message,
            session,
        )
        stored: bytes | None = self.stored(raw)
        return stored

    # -- projects -------------------------------------------------------------

    @cached_property
    def _projects(self) -> dict[str, dict[str, Any]]:
        """The records of the projects by id."""
        if not self.has("project", "id", "worktree", "vcs"):
            return {}
        rows = self.records("SELECT * FROM project")
        return {row["id"]: record_of(row) for row in rows}

    def _put_project(self, record: SessionRecord, row: Mapping[str, Any]) -> None:
        """Add the facts of the project that the session of *row* belongs to."""
        project = self._projects.get(str(row.get("project_id")), {})
        record.project = project
        record.worktree = project.get("worktree")
        record.vcs = project.get("vcs")
        record.root_commit = project.get("id")
        record.approved = self._approved.get(row.get("project_id"))
        record.facts.append([facts_of(project), record.approved])

    @cached_property
    def _approved(self) -> dict[Any, Any]:
        """The permissions given in each project, by its id."""
        if self.has("permission", "project_id", "data"):
            return self._approved_documents()
        if self.has("permission", "project_id", "action", "resource"):
            return self._approved_rows()
        return {}

    def _approved_documents(self) -> dict[Any, Any]:
        """Version 1.x: the rules of a project are one document."""
        approved: dict[Any, Any] = {}
        for name, data in self.rows("SELECT project_id, data FROM permission"):
            with contextlib.suppress(OddRecordError):
                approved[name] = load_value(_encoded(str(data)))
        return approved

    def _approved_rows(self) -> dict[Any, Any]:
        """Version 2: a row for each approval that was given for always."""
        approved: dict[Any, Any] = {}
        statement = (
            "SELECT project_id, action, resource FROM permission"
            " ORDER BY project_id, action, resource"
        )
        for name, action, resource in self.rows(statement):
            rule = {"action": action, "resource": resource, "effect": "allow"}
            approved.setdefault(name, []).append(rule)

        return approved

    # -- changes and damage ---------------------------------------------------

    @cached_property
    def _changes(self) -> dict[str, list[Any]]:
        """Stamps that change when a session does: three numbers of each table."""
        changes: dict[str, list[Any]] = {}
        for table in self.COUNTED:
            if not self.has(table, "time_updated"):
                continue
            # "+" keeps SQLite from fetching rows one by one, in the order of an index.
            rows = self.rows(
                "SELECT session_id, count(*), max(time_updated),"
                " sum(time_updated & 16777215)"
                f" FROM {table} GROUP BY +session_id"
            )
            for name, *numbers in rows:
                changes.setdefault(name, []).append([table, *numbers])

        return changes

    def _changes_of(self, session: str) -> Any:
        """Return the stamps of a session; in a damaged table, something new."""
        try:
            return self._changes.get(session)
        except Error:
            return os.urandom(8).hex()

    def rows_without_owner(self, table: str, key: str, owner: str) -> Iterator[Problem]:
        """Rows of *table* whose *owner* does not exist; none without such a table."""
        if not self.has(table, key):
            return

        rows = self.rows(
            f"SELECT {key}, count(*) FROM {table} WHERE NOT EXISTS"
            f" (SELECT 1 FROM {owner} WHERE {owner}.id = {table}.{key}) GROUP BY {key}"
        )
        for name, number in rows:
            yield ownerless_problem(self.path, f"{number} {table}(s)", owner, name)


def _encoded(text: str) -> bytes:
    # Bytes that are not UTF-8 were read as surrogates.
    return text.encode("utf-8", "surrogateescape")
