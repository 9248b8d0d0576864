"""The sessions of one file, from cheap stamps; their items are read one at a time."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sessiondb.errors import abridged
from sessiondb.formats.kit.files import file_stamp
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.sqlite import (
    Connection,
    Error,
    ForeignDatabase,
    select_records,
)
from sessiondb.formats.kit.texts import time_in_utc
from sessiondb.formats.openai_agents import branches
from sessiondb.formats.openai_agents.branches import Branches, read_branches, tokens_of
from sessiondb.formats.openai_agents.tables import TablePair, table_pairs
from sessiondb.formats.providers.responses.drafts import message_draft
from sessiondb.model import MessageDraft, Problem, SourceMessage, SourceSession
from sessiondb.model.namespaces import Namespace
from sessiondb.model.versions import digest

SOURCE = "openai-agents"

#: Characters of the first item that distinguish a session from another one.
_BEGINNING = 4096

Row = dict[str, Any]
#: The values that change with a session, by its name: counts of rows, the last ones.
Stamps = dict[Any, list[Any]]


def read_sessions(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a file; raises `SourceError` if it cannot be opened."""
    file = ForeignDatabase(path)
    with file.reading():
        taken_ids: set[str] = set()
        try:
            for pair in table_pairs(file.connection):
                yield from _PairReader(file, pair, taken_ids).read_pair()
        except Error as error:
            yield Problem(str(path), f"the rest cannot be read: {error}")


class _PairReader:
    """The sessions of a pair of tables; *taken_ids* are those of the pairs before."""

    def __init__(
        self, file: ForeignDatabase, pair: TablePair, taken_ids: set[str]
    ) -> None:
        self._file = file
        self._pair = pair
        self._taken_ids = taken_ids
        self._stamp = file_stamp(file.path) or (None, None)

    def read_pair(self) -> Iterator[SourceSession | Problem]:
        """Yield the sessions, also those that have messages and no row of their own."""
        stamps = self._read_stamps()
        for name, row in self._read_rows(stamps):
            is_taken = name in self._taken_ids
            session_id = f"{self._pair.messages_name}/{name}" if is_taken else name
            if usable_id(session_id):
                self._taken_ids.add(session_id)
                yield self._session_of(name, session_id, row, stamps.get(name, []))
            else:
                message = f"session {abridged(name)} has no usable id"
                yield Problem(str(self._file.path), message)

    def _read_rows(self, stamps: Stamps) -> Iterator[tuple[Any, Row]]:
        """Yield each session and its row, at the end those without a row."""
        without_row = dict.fromkeys(stamps)
        statement = f"SELECT * FROM {self._pair.sessions}"
        for row in select_records(self._file.connection, statement):
            name = row.pop("session_id")
            without_row.pop(name, None)
            yield name, row

        for name in without_row:
            yield name, {}

    def _read_stamps(self) -> Stamps:
        """Return a stamp of each session, which the index on its messages has."""
        connection = self._file.connection
        stamps: Stamps = {}
        tables = [(self._pair.messages, "max(id)")]
        if branches.has_structure(connection):
            tables.append((branches.STRUCTURE, "max(id)"))
        if branches.has_usage(connection):
            tables.append((branches.USAGE, "sum(input_tokens) || ' ' || max(id)"))

        for table, last in tables:
            rows = connection.execute(
                f"SELECT session_id, count(*), {last} FROM {table} GROUP BY session_id"
            )
            for name, *numbers in rows:
                stamps.setdefault(name, []).append([table, *numbers])

        return stamps

    def _session_of(
        self, name: str, session_id: str, row: Row, stamps: list[Any]
    ) -> SourceSession:
        facts = json.dumps([row, stamps], default=repr).encode()
        size, time = self._stamp
        session = SourceSession(
            SOURCE,
            session_id,
            str(self._file.path),
            hashlib.sha256(facts).hexdigest(),
            namespace=self._namespace_of(name),
            time_created=time_in_utc(row.pop("created_at", None)),
            time_updated=time_in_utc(row.pop("updated_at", None)),
            size=size,
            mtime_ns=time,
            data=row,
        )
        return replace(session, complete=partial(self._complete_session, session, name))

    def _namespace_of(self, name: str) -> str:
        """Return the namespace of a session: its first item distinguishes it.

        Its row does not: `clear_session` removes that, too, and a compaction begins
        with it.
        """
        first = self._file.connection.execute(
            f"SELECT created_at, substr(message_data, 1, {_BEGINNING})"
            f" FROM {self._pair.messages}"
            " WHERE session_id = ? ORDER BY id LIMIT 1",
            (name,),
        ).fetchone()
        return str(Namespace(first=digest(list(first)) if first else ""))

    def _complete_session(self, session: SourceSession, name: str) -> SourceSession:
        """Return a session with its branches; raises ValueError."""
        with self._file.reading() as connection:
            try:
                branches = read_branches(connection, name)
                leaf = _message_id_at(connection, self._pair, branches.leaf)
            except Error as error:
                raise ValueError(f"its branches cannot be read: {error}") from error

        data = dict(session.data)
        if branches.unplaced_usage:
            data["turn_usage"] = branches.unplaced_usage
        messages = AgentsMessages(self._file, self._pair, name, branches)
        return replace(session, leaf=leaf, messages=messages, data=data)


class AgentsMessages:
    """The messages of a session and their problems; read again each time."""

    def __init__(
        self, file: ForeignDatabase, pair: TablePair, session: str, branches: Branches
    ) -> None:
        self._file = file
        self._pair = pair
        self._session = session
        self._branches = branches

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the session; memory holds one item, and the ids of all."""
        with self._file.reading() as connection:
            try:
                yield from self._read_messages(connection)
            except Error as error:
                yield self._problem_of_session(
                    f"its other messages cannot be read: {error}"
                )

    def _read_messages(
        self, connection: Connection
    ) -> Iterator[SourceMessage | Problem]:
        names: dict[int, str] = {}
        rows = connection.execute(
            "SELECT id, message_data, created_at"
            f" FROM {self._pair.messages} WHERE session_id = ? ORDER BY id",
            (self._session,),
        )
        for number, raw, created in rows:
            name = message_id(number, raw)
            names[number] = name
            try:
                draft = message_draft(_load_item(raw), name, time_in_utc(created))
            except OddRecordError as error:
                yield self._problem_of_session(f"message {number} {error}")
                continue

            draft = self._with_rows(draft, number)
            yield SourceMessage(draft, parent=self._parent_of(number, names))

    def _with_rows(self, draft: MessageDraft, number: int) -> MessageDraft:
        """Return a message with the rows of other tables on it."""
        rows: Row = {}
        tokens = None
        if number in self._branches.structure:
            rows["structure"] = self._branches.structure[number]
        if number in self._branches.usage:
            rows["turn_usage"] = self._branches.usage[number]
            tokens = tokens_of(self._branches.usage[number])

        return replace(draft, tokens=tokens, data={**draft.data, **rows})

    def _parent_of(self, number: int, names: dict[int, str]) -> Any:
        """Return the message before one in its branch; without branches, the last."""
        if number not in self._branches.parents:
            return ...
        parent = self._branches.parents[number]
        return None if parent is None else names.get(parent, ...)

    def _problem_of_session(self, message: str) -> Problem:
        return Problem(
            str(self._file.path), f"session {abridged(self._session)}: {message}"
        )


def message_id(number: Any, raw: Any) -> str:
    """Return the id of a row.

    Items may have ids, but those of other providers than OpenAI are all the same one.
    A program that begins a new file counts from 1 again, and may use the same names of
    sessions, so that the content is part of the id.
    """
    content = raw if isinstance(raw, bytes) else str(raw).encode("utf-8", "replace")
    return f"{number}-{zlib.crc32(content):08x}"


def _message_id_at(
    connection: Connection, pair: TablePair, number: int | None
) -> str | None:
    """Return the id of the message in a row; None if there is none."""
    if number is None:
        return None
    row = connection.execute(
        f"SELECT message_data FROM {pair.messages} WHERE id = ?", (number,)
    ).fetchone()
    return None if row is None else message_id(number, row[0])


def _load_item(raw: Any) -> Row:
    if isinstance(raw, str):
        raw = raw.encode("utf-8", "surrogateescape")
    if not isinstance(raw, bytes):
        raise OddRecordError("is not a text")
    return load_object(raw)
