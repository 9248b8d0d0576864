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
from sessiondb.formats.kit.fields import fitting
from sessiondb.formats.kit.files import stamp
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.sqlite import Connection, Error, ForeignDatabase, records
from sessiondb.formats.kit.texts import time_in_utc
from sessiondb.formats.openai_agents import branches
from sessiondb.formats.openai_agents.branches import Branches, branches_of, tokens_of
from sessiondb.formats.openai_agents.drafts import message_draft
from sessiondb.formats.openai_agents.tables import Pair, pairs
from sessiondb.model import MessageDraft, Problem, SourceMessage, SourceSession
from sessiondb.model.namespaces import Namespace
from sessiondb.model.versions import digest

SOURCE = "openai-agents"

#: Characters of the first item that distinguish a session from another one.
_BEGINNING = 4096

Row = dict[str, Any]
#: The values that change with a session, by its name: counts of rows, the last ones.
Stamps = dict[Any, list[Any]]


def read(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a file; raises `SourceError` if it cannot be opened."""
    file = ForeignDatabase(path)
    with file.reading():
        taken: set[str] = set()
        try:
            for pair in pairs(file.connection):
                yield from _Pair(file, pair, taken).sessions()
        except Error as error:
            yield Problem(str(path), f"the rest cannot be read: {error}")


class _Pair:
    """The sessions of a pair of tables; *taken* are the names in pairs before it."""

    def __init__(self, file: ForeignDatabase, pair: Pair, taken: set[str]) -> None:
        self._file = file
        self._pair = pair
        self._taken = taken
        self._stamp = stamp(file.path) or (None, None)

    def sessions(self) -> Iterator[SourceSession | Problem]:
        """Yield the sessions, also those that have messages and no row of their own."""
        stamps = self._stamps()
        for name, row in self._rows(stamps):
            full = self._full(name)
            if full is None:
                why = f"session {abridged(name)} has no usable id"
                yield Problem(str(self._file.path), why)
            else:
                self._taken.add(full)
                yield self._session(name, full, row, stamps.get(name, []))

    def _full(self, name: Any) -> str | None:
        """Return the id of a session; None without a usable one."""
        full = f"{self._pair.messages_name}/{name}" if name in self._taken else name
        found: str | None = fitting(full, usable_id)
        return found

    def _rows(self, stamps: Stamps) -> Iterator[tuple[Any, Row]]:
        statement = f"SELECT * FROM {self._pair.sessions}"
        bare = dict.fromkeys(stamps)
        for row in records(self._file.connection, statement):
            name = row.pop("session_id")
            bare.pop(name, None)
            yield name, row

        yield from ((name, {}) for name in bare)

    def _stamps(self) -> Stamps:
        """Return a stamp of each session, which the index on its messages has."""
        connection = self._file.connection
        found: Stamps = {}
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
                found.setdefault(name, []).append([table, *numbers])

        return found

    def _session(
        self, name: str, full: str, row: Row, stamps: list[Any]
    ) -> SourceSession:
        facts = json.dumps([row, stamps], default=repr).encode()
        size, time = self._stamp
        session = SourceSession(
            SOURCE,
            full,
            str(self._file.path),
            hashlib.sha256(facts).hexdigest(),
            namespace=self._namespace(name),
            time_created=time_in_utc(row.pop("created_at", None)),
            time_updated=time_in_utc(row.pop("updated_at", None)),
            size=size,
            mtime_ns=time,
            data=row,
        )
        return replace(session, complete=partial(self._complete, session, name))

    def _namespace(self, name: str) -> str:
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

    def _complete(self, session: SourceSession, name: str) -> SourceSession:
        """Return a session with its branches; raises ValueError."""
        with self._file.reading() as connection:
            try:
                found = branches_of(connection, name)
                leaf = _id_at(connection, self._pair, found.leaf)
            except Error as error:
                raise ValueError(f"its branches cannot be read: {error}") from error

        messages = Messages(self._file, self._pair, name, found)
        data = {**session.data, "turn_usage": found.unplaced}
        if not found.unplaced:
            del data["turn_usage"]

        return replace(session, leaf=leaf, messages=messages, data=data)


class Messages:
    """The messages of a session and their problems; read again each time."""

    def __init__(
        self, file: ForeignDatabase, pair: Pair, session: str, branches: Branches
    ) -> None:
        self._file = file
        self._pair = pair
        self._session = session
        self._branches = branches

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the session; memory holds one item, and the ids of all."""
        with self._file.reading() as connection:
            try:
                yield from self._read(connection)
            except Error as error:
                yield self._problem(f"its other messages cannot be read: {error}")

    def _read(self, connection: Connection) -> Iterator[SourceMessage | Problem]:
        names: dict[int, str] = {}
        rows = connection.execute(
            "SELECT id, message_data, created_at"
            f" FROM {self._pair.messages} WHERE session_id = ? ORDER BY id",
            (self._session,),
        )
        for number, raw, written in rows:
            names[number] = name = message_id(number, raw)
            try:
                draft = message_draft(_item(raw), name, time_in_utc(written))
            except OddRecordError as error:
                yield self._problem(f"message {number} {error}")
                continue

            first = next(iter(names.values()))
            draft = self._with_rows(draft, number, first)
            yield SourceMessage(draft, parent=self._above(number, names))

    def _with_rows(self, draft: MessageDraft, number: int, first: str) -> MessageDraft:
        """Return a message with the rows of other tables on it."""
        beside: Row = {}
        tokens = None
        if draft.kind == "compaction":
            # What it replaced was removed: all that is before it stays.
            beside["first_kept_id"] = first
        if number in self._branches.structure:
            beside["structure"] = self._branches.structure[number]
        if number in self._branches.usage:
            beside["turn_usage"] = usage = self._branches.usage[number]
            tokens = tokens_of(usage)

        return replace(draft, tokens=tokens, data={**draft.data, **beside})

    def _above(self, number: int, names: dict[int, str]) -> Any:
        """Return the message before one in its branch; without branches, the last."""
        if number not in self._branches.above:
            return ...
        above = self._branches.above[number]
        return None if above is None else names.get(above, ...)

    def _problem(self, why: str) -> Problem:
        return Problem(
            str(self._file.path), f"session {abridged(self._session)}: {why}"
        )


def message_id(number: Any, raw: Any) -> str:
    """Return the id of a row.

    Items may have ids, but those of other providers than OpenAI are all the same one.
    A program that begins a new file counts from 1 again, and may use the same names of
    sessions, so that the content is part of the id.
    """
    content = raw if isinstance(raw, bytes) else str(raw).encode("utf-8", "replace")
    return f"{number}-{zlib.crc32(content):08x}"


def _id_at(connection: Connection, pair: Pair, number: int | None) -> str | None:
    """Return the id of the message in a row; None if there is none."""
    if number is None:
        return None
    row = connection.execute(
        f"SELECT message_data FROM {pair.messages} WHERE id = ?", (number,)
    ).fetchone()
    return None if row is None else message_id(number, row[0])


def _item(raw: Any) -> Row:
    if isinstance(raw, str):
        raw = raw.encode("utf-8", "surrogateescape")
    if not isinstance(raw, bytes):
        raise OddRecordError("is not a text")
    return load_object(raw)
