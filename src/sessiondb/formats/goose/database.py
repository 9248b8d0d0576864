"""The database of Goose since 1.10: ``sessions.db``, all versions of its schema.

Columns came and went, and forks of the program have others: a statement selects only
columns that exist, and what is not known of a row is kept beside it. Between schema 10
and 12 a conversation could span sessions, as a thread with messages of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError, abridged
from sessiondb.formats.goose import fields
from sessiondb.formats.goose.fields import time_of
from sessiondb.formats.goose.layouts import SessionHead
from sessiondb.formats.goose.visibility import MessageEntry, visibility_of
from sessiondb.formats.kit.fields import (
    as_list,
    clean_text,
    fitting,
    is_object,
    value_at,
    without_empty,
    without_keys,
    without_none,
)
from sessiondb.formats.kit.json import OddRecordError, load_text, load_value, usable_id
from sessiondb.formats.kit.sqlite import (
    Cursor,
    Error,
    ForeignDatabase,
    columns_of_table,
    select_records,
)
from sessiondb.model import Problem
from sessiondb.patterns import late_pattern
from sessiondb.words import count

Record = dict[str, Any]
_REQUIRED = {
    "sessions": {"id"},
    "messages": {"id", "session_id", "role", "content_json"},
}
#: The name of the file, into which a newer release took over the logs beside it.
NAME = "sessions.db"
#: The tables that a session's messages are in, the current one first.
TABLES = ("messages", "thread_messages")
#: The names of messages without one, by their table: as schema 7 made them.
_MADE = {"messages": "msg_{session}_{row}", "thread_messages": "thread_{row}"}
_KNOWN_OF_MESSAGE = frozenset(
    {
        "id", "message_id", "session_id", "role", "content_json",
        "created_timestamp", "metadata_json",
    }
)  # fmt: skip
#: The order of the program, but with times in milliseconds in their place.
_TIME = attrgetter("time")
_UTC = late_pattern(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)(?:Z|\+00:00| UTC)?"
)


def is_store(path: Path) -> bool:
    """Return whether a file is a database of Goose, by its tables."""
    file = ForeignDatabase(path, glance=True)
    try:
        with file.reading() as connection:
            return all(
                needed <= columns_of_table(connection, table)
                for table, needed in _REQUIRED.items()
            )
    except (SourceError, Error):
        return False


class GooseDatabase:
    """One database; everything is read in one read transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = ForeignDatabase(path)
        self._columns: dict[str, frozenset[str]] = {}
        #: The calls that started subagents, by their parents.
        self._calls: dict[str, dict[str, str]] = {}

    def reading(self) -> AbstractContextManager[object]:
        """Hold the read transaction, or join it; raises `SourceError`."""
        return self._file.reading()

    # -- statements ------------------------------------------------------------

    def _run_statement(self, statement: str, *values: Any) -> Cursor:
        return self._file.connection.execute(statement, values)

    def _select_records(self, statement: str, *values: Any) -> Iterator[Record]:
        return select_records(self._file.connection, statement, *values)

    def _columns_of(self, table: str) -> frozenset[str]:
        if table not in self._columns:
            self._columns[table] = columns_of_table(self._file.connection, table)

        return self._columns[table]

    def _has_columns(self, table: str, *names: str) -> bool:
        columns = self._columns_of(table)
        return bool(columns) and columns.issuperset(names)

    def _columns_or_null(self, table: str, *names: str) -> str:
        """Return *names* for a SELECT, with NULL for a column that does not exist."""
        have = self._columns_of(table)
        return ", ".join(name if name in have else f"NULL AS {name}" for name in names)

    # -- sessions ----------------------------------------------------------------

    def session_names(self) -> Iterator[tuple[str, str | None] | Problem]:
        """Yield each session and its parent, the oldest first."""
        chosen = self._columns_or_null(
            "sessions", "id", "parent_session_id", "created_at"
        )
        for name, parent, _ in self._run_statement(
            f"SELECT {chosen} FROM sessions ORDER BY created_at, id"
        ):
            if usable_id(name):
                yield name, parent if usable_id(parent) else None
            else:
                reason = f"session {abridged(name)} has no usable id"
                yield Problem(str(self.path), reason)

    def has_session(self, name: str) -> bool:
        """Return whether there is a session of that name."""
        rows = self._run_statement("SELECT 1 FROM sessions WHERE id = ?", name)
        return rows.fetchone() is not None

    def import_of(self, session: str, message: str) -> str | None:
        """Return the session that was imported from our *session*, None without one.

        Only one that has *message*; of several the one used last.
        """
        chosen = self._columns_or_null("sessions", "id", "updated_at", "extension_data")
        json_path = '$."{}".{}'.format(*fields.OURS[1:])
        for name, *_ in self._run_statement(
            f"SELECT {chosen} FROM sessions WHERE json_valid(extension_data)"
            " AND json_extract(extension_data, ?) = ? ORDER BY updated_at DESC",
            json_path,
            session,
        ):
            if any(entry.name == message for entry in self.message_entries(name)):
                return str(name)
        return None

    def session_head(self, name: str) -> SessionHead:
        """Return a session by its row; raises `OddRecordError` if it is gone."""
        row = next(
            self._select_records("SELECT * FROM sessions WHERE id = ?", name), None
        )
        if row is None:
            raise OddRecordError("is gone")

        thread = self._thread_row(row.get("thread_id"))
        changes = [
            self._changes_by_table[table].get(name) for table in self._changes_by_table
        ]
        first = self._first_message(name)
        # The call of a subagent is known when its parent has the result.
        parent = self._changes_by_table.get("messages", {}).get(
            row.get("parent_session_id")
        )
        facts = [row, thread, changes, self._facts_of_thread(thread), first, parent]
        digest = json.dumps(facts, sort_keys=True, default=repr)
        record, columns = info_of(row)
        raw_rows = {"row": columns, "thread": thread}

        return SessionHead(
            self.path,
            name,
            hashlib.sha256(digest.encode("utf-8", "replace")).hexdigest(),
            record,
            without_empty(raw_rows),
            first=first,
        )

    def _first_message(self, session: str) -> Record | None:
        """Return the first message of a session; None if it has none, or an odd one."""
        for table, changes in self._changes_by_table.items():
            if table in TABLES and session in changes:
                with suppress(OddRecordError):
                    return self._message_record(table, changes[session][-1])
        return None

    @cached_property
    def _changes_by_table(self) -> dict[str, dict[Any, Any]]:
        """The values that change in each table with a session, found by an index."""
        tables = [*TABLES, "usage_ledger"]
        return {
            table: {
                name: numbers
                for name, *numbers in self._run_statement(
                    f"SELECT session_id, count(*), max(id), min(id) FROM {table}"
                    " GROUP BY session_id"
                )
            }
            for table in tables
            if self._has_columns(table, "id", "session_id")
        }

    def ledger_rows(self, session: str) -> list[Record]:
        """Return the rows of what a session's requests cost."""
        if not self._has_columns("usage_ledger", "id", "session_id"):
            return []

        rows = self._select_records(
            "SELECT * FROM usage_ledger WHERE session_id = ? ORDER BY id", session
        )
        return [without_none(without_keys(("id", "session_id"), row)) for row in rows]

    def call_of(self, session: str, parent: Any) -> str | None:
        """Return the call of the *parent* whose result names a session, or None."""
        if not isinstance(parent, str):
            return None
        if parent not in self._calls:
            # Of several results that name a session, the first one is of its start.
            self._calls[parent] = dict(reversed([*self._calls_in(parent)]))
        return self._calls[parent].get(session)

    def _calls_in(self, session: str) -> Iterator[tuple[str, str]]:
        """Yield each subagent that a result names, and its call."""
        rows = self._run_statement(
            "SELECT content_json FROM messages WHERE session_id = ?"
            " AND instr(content_json, ?) ORDER BY id",
            session,
            fields.SUBAGENT[-1],
        )
        for (raw,) in rows:
            with suppress(OddRecordError):
                for block in as_list(load_value(_bytes_of_column(raw))):
                    name, call = (
                        value_at(block, *fields.SUBAGENT),
                        value_at(block, "id"),
                    )
                    if usable_id(name) and clean_text(call):
                        yield name, call

    # -- threads -----------------------------------------------------------------

    def _thread_row(self, name: Any) -> Record:
        """Return the row of a thread; empty if it does not exist."""
        if not isinstance(name, str) or not self._has_columns("threads", "id"):
            return {}

        rows = self._select_records("SELECT * FROM threads WHERE id = ?", name)
        return without_none(next(rows, {}))

    def _facts_of_thread(self, thread: Record) -> Any:
        """Return the facts that change with messages of a thread without a session."""
        if not thread or not self._has_columns("thread_messages", "id", "thread_id"):
            return None

        return self._run_statement(
            "SELECT count(*), max(id) FROM thread_messages"
            " WHERE thread_id = ? AND session_id IS NULL",
            thread["id"],
        ).fetchone()

    # -- messages ------------------------------------------------------------------

    def message_entries(self, session: str) -> list[MessageEntry]:
        """Return the messages of a session in the order of the program.

        A thread repeats what its sessions hold. Its other messages were never sent
        again, unless the session has none of its own.
        """
        names: set[str] = set()
        ordered = sorted(self._entries_of_table("messages", session, names), key=_TIME)
        thread = sorted(
            self._entries_of_table("thread_messages", session, names), key=_TIME
        )
        if ordered:
            thread = [entry._replace(sent=False, shown=False) for entry in thread]

        return ordered + thread

    def _entries_of_table(
        self, table: str, session: str, names: set[str]
    ) -> Iterator[MessageEntry]:
        if not self._has_columns(table, "id", "session_id", "role", "content_json"):
            return

        chosen = self._columns_or_null(
            table, "message_id", "role", "created_timestamp", "metadata_json"
        )
        condition, values = self._messages_condition(table, session)
        # Names of another table; within one, a second message gets a name of its own.
        repeated = names.copy()
        for row, name, role, created, metadata in self._run_statement(
            f"SELECT id, {chosen} FROM {table} WHERE {condition} ORDER BY id", *values
        ):
            if name in repeated:
                continue

            is_own = usable_id(name) and name not in names
            message_name = (
                name if is_own else _MADE[table].format(session=session, row=row)
            )
            names.add(message_name)
            time = (time_of(created) or 0) // 1000
            flags = _flags_of(metadata)
            used = value_at(flags, "usage")
            yield MessageEntry(
                message_name, (table, row), role, time, *visibility_of(flags), used
            )

    def _messages_condition(
        self, table: str, session: str
    ) -> tuple[str, tuple[str, ...]]:
        """Return which messages of a table are those of a session."""
        is_threaded = self._has_columns("sessions", "thread_id") and table != "messages"
        if not is_threaded or not self._has_columns(table, "thread_id"):
            return "session_id = ?", (session,)

        # A message that names no session is in the first one of its thread.
        return (
            "session_id = ? OR session_id IS NULL AND (SELECT min(id) FROM sessions"
            f" WHERE sessions.thread_id = {table}.thread_id) = ?",
            (session, session),
        )

    def record_of_entry(self, entry: MessageEntry) -> Record:
        """Return a message as Goose exports it; raises `OddRecordError`."""
        record = self._message_record(*entry.key)
        if record["id"] is None:
            record["id"] = entry.name

        return record

    def _message_record(self, table: str, number: int) -> Record:
        rows = self._select_records(f"SELECT * FROM {table} WHERE id = ?", number)
        row = next(rows, None)
        if row is None:
            raise OddRecordError("is gone")

        return record_of(row)

    def orphan_problems(self) -> Iterator[Problem]:
        """Yield a problem for messages of sessions that do not exist."""
        rows = self._run_statement(
            "SELECT session_id, count(*) FROM messages WHERE NOT EXISTS"
            " (SELECT 1 FROM sessions WHERE sessions.id = messages.session_id)"
            " GROUP BY session_id"
        )
        for name, number in rows:
            messages = count(number, "message")
            reason = f"{messages} of session {abridged(name)}, which does not exist"
            yield Problem(str(self.path), reason)


# -- rows as records -----------------------------------------------------------------


def record_of(row: Record) -> Record:
    """Return the record of a message's *row*; raises `OddRecordError`."""
    record = {
        "id": row.get("message_id"),
        "role": row.get("role"),
        "created": row.get("created_timestamp"),
        "content": load_value(_bytes_of_column(row.get("content_json"))),
        "metadata": _flags_of(row.get("metadata_json")),
    }
    columns = without_keys(_KNOWN_OF_MESSAGE, row)
    if record["metadata"] is None:
        # Read by the program as a message that both sides see.
        record["metadata"] = dict(fields.VISIBLE)
        columns["metadata_json"] = row.get("metadata_json")

    columns = without_none(columns)

    return {**record, "row": columns} if columns else record


def _flags_of(raw: Any) -> Record | None:
    """Return the flags of a message; None if they cannot be read."""
    with suppress(OddRecordError):
        flags: Record | None = fitting(load_value(_bytes_of_column(raw)), is_object)
        return flags

    return None


def _bytes_of_column(value: Any) -> bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")

    return value if isinstance(value, bytes) else None


def info_of(row: Record) -> tuple[Record, Record]:
    """Return the record of a session's *row* as Goose exports it, and what is left.

    It has a key for each of these columns that exists.
    """
    columns = dict(row)
    record = {key: columns.pop(key) for key in fields.PLAIN_COLUMNS if key in row}
    record["name"] = _take_name(columns)
    if "user_set_name" in columns:
        record["user_set_name"] = bool(columns.pop("user_set_name"))

    for key in fields.TIME_COLUMNS:
        if key in row:
            record[key] = _text_of_time(columns.pop(key))

    for column, key in fields.JSON_COLUMNS.items():
        if column in row:
            record[key] = _take_json(columns, column)

    _take_tokens(record, columns)

    return record, without_none(columns)


def _take_name(columns: Record) -> Any:
    """Take the name, which was the description before schema 4."""
    name, description = columns.pop("name", None), columns.get("description")
    if not name and description:
        return columns.pop("description")
    if description == "":
        del columns["description"]

    return name if name is not None else ""


def _text_of_time(time: Any) -> Any:
    """Return a time of SQL in RFC 3339; anything else as it is."""
    match = _UTC.fullmatch(time) if isinstance(time, str) else None
    return time if match is None else f"{match[1]}T{match[2]}Z"


def _take_json(columns: Record, column: str) -> Any:
    """Take a column of JSON; one that is not stays in *columns*, and is null."""
    raw = columns.get(column)
    if not isinstance(raw, str):
        del columns[column]
        return raw

    try:
        value = load_text(raw)
    except OddRecordError:
        return {} if column == "extension_data" else None

    del columns[column]

    return value


def _take_tokens(record: Record, columns: Record) -> None:
    """Take the counts: objects in an export since they have caches, flat before."""
    is_nested = "cache_read_tokens" in columns
    for prefix, key in (("", "usage"), (fields.ACCUMULATED, "accumulated_usage")):
        counts = {
            name: columns.pop(prefix + name)
            for name in fields.TOKEN_COLUMNS
            if prefix + name in columns
        }
        if is_nested:
            record[key] = {fields.NESTED[name]: counts[name] for name in counts}
        else:
            record |= {prefix + name: value for name, value in counts.items()}
