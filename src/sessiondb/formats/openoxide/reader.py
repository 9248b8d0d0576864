"""The sessions of one file, parents first; messages are read one at a time.

A fork begins with copies of the messages of its parent, as far as role, time and
content agree: they are counted once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import (
    clean_name,
    clean_text,
    fitting,
    without_keys,
    without_none,
)
from sessiondb.formats.kit.files import file_stamp
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.order import in_order
from sessiondb.formats.kit.spelled import Table, spelled, take_spelled
from sessiondb.formats.kit.sqlite import Error, ForeignDatabase
from sessiondb.formats.openoxide import tables
from sessiondb.formats.openoxide.drafts import message_draft, time_of
from sessiondb.model import Problem, SourceMessage, SourceSession

SOURCE = "openoxide"
Row = dict[str, Any]
#: How many ancestors of a fork are compared with it.
_ANCESTORS = 50
#: Columns of a message that are not kept with it.
_IDS = ("id", "session_id")
#: Columns in which a copy of a message is equal to it.
_COMPARED = ("role", "time_created", "content")
_SESSION: Table = {
    "title": spelled(clean_text, "title"),
    "directory": spelled(clean_text, "directory"),
    "model_id": spelled(clean_name, "model_id"),
    "provider_id": spelled(clean_name, "provider_id"),
    "agent": spelled(clean_name, "agent"),
    "version": spelled(clean_name, "version"),
}


def read(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a file; raises `SourceError` if it cannot be opened."""
    file = ForeignDatabase(path)
    with file.reading():
        try:
            yield from _OpenOxideFile(file).sessions()
        except Error as error:
            yield Problem(str(path), f"the rest cannot be read: {error}")


class _OpenOxideFile:
    """The sessions of a file: their rows, by id."""

    def __init__(self, file: ForeignDatabase) -> None:
        self.file = file
        self._rows: dict[str, Row] = {}

    def parent(self, name: str) -> str | None:
        """Return the parent of a session; None without one."""
        parent_name = _name_of(self._rows[name].get("parent_id")) if name else None
        return parent_name if usable_id(parent_name) else None

    def sessions(self) -> Iterator[SourceSession | Problem]:
        """Yield the sessions, parents first."""
        stamps = tables.stamps(self.file.connection)
        listed = [*tables.sessions(self.file.connection)]
        # A file without foreign keys may have messages of a session without a row.
        lost = sorted(stamps.keys() - {row["id"] for row in listed}, key=repr)
        rows = ({"id": name, "time_created": stamps[name][-2]} for name in lost)
        for row in chain(listed, rows):
            name = _name_of(row["id"])
            if usable_id(name):
                self._rows[str(name)] = row
            else:
                yield self.problem(f"session {abridged(name)} has no usable id")

        def session(name: str, cut: bool) -> list[SourceSession]:
            row = self._rows[name]
            if cut:
                row["parent_id"] = None
            return [self._session(name, dict(row), stamps.get(row["id"], ()))]

        yield from in_order(self._rows, self.parent, session, lambda _: self.file.path)

    def problem(self, reason: str) -> Problem:
        """Return a problem of this file."""
        return Problem(str(self.file.path), reason)

    def _session(self, name: str, row: Row, facts: tuple[Any, ...]) -> SourceSession:
        # Not of the file: a message in one session would change all of them.
        digest = hashlib.sha256(
            repr((sorted(row.items()), facts)).encode("utf-8", "surrogatepass")
        )
        size, changed = file_stamp(self.file.path) or (None, None)
        parent = self.parent(name)

        columns = take_spelled(row, _SESSION)
        oid = row.pop("revert_oid", None)
        session = SourceSession(
            SOURCE,
            name,
            str(self.file.path),
            digest.hexdigest(),
            OpenOxideMessages(self, name),
            parent_source_id=parent,
            relation=None if parent is None else "fork",
            revert=None if oid is None else {"snapshot": oid},
            time_created=time_of(row, "time_created"),
            time_updated=time_of(row, "time_updated"),
            size=size,
            mtime_ns=changed,
            **columns,
        )
        # Values that were taken have left the row by now.
        others = without_keys(("id", "parent_id"), without_none(row))
        return replace(session, data=others)

    # -- messages --------------------------------------------------------------

    def rows(self, name: str) -> Iterator[Row]:
        """Yield the rows of the messages of a session."""
        key = self._rows[name]["id"]
        return tables.messages(self.file.connection, key)

    def copies(self, name: str, depth: int = _ANCESTORS) -> Iterator[tuple[Row, Any]]:
        """Yield the rows of a session, each with the id of the one it is a copy of."""
        parent = self.parent(name)
        is_here = parent in self._rows and depth > 0
        copies_of_parent = self.copies(str(parent), depth - 1) if is_here else iter(())

        for row in self.rows(name):
            row_of_parent, original = next(copies_of_parent, ({}, None))
            # Copies are at the beginning: the same words again later are a message.
            if any(row.get(key) != row_of_parent.get(key) for key in _COMPARED):
                copies_of_parent, original = iter(()), row.get("id")
            yield row, original


def _name_of(value: Any) -> Any:
    """Return the name of a session or message, whose id may be a number or a UUID."""
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if type(value) is int else value


class OpenOxideMessages:
    """The messages of a session and their problems; read again each time."""

    def __init__(self, file: _OpenOxideFile, session: str) -> None:
        self._file = file
        self._session = session

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the session; memory holds one message."""
        with self._file.file.reading():
            try:
                yield from self._read()
            except Error as error:
                yield self._problem(f"its other messages cannot be read: {error}")

    def _read(self) -> Iterator[SourceMessage | Problem]:
        for number, (row, original) in enumerate(self._file.copies(self._session), 1):
            place = f"{self._session[:60]}:{number}"
            name = fitting(_name_of(row.get("id")), usable_id, place)
            others = {"content": None, **without_keys(_IDS, without_none(row))}
            try:
                draft = message_draft(others, name)
            except OddRecordError as error:
                yield self._problem(f"message {abridged(name)} {error}")
                continue

            # Copies have the usage of their original, which is counted once.
            usage = fitting(_name_of(original), usable_id)
            yield SourceMessage(draft, usage_id=usage)

    def _problem(self, reason: str) -> Problem:
        return self._file.problem(f"session {abridged(self._session)}: {reason}")
