"""A database of sessiondb as it is at one moment, read like any other one.

The file itself is only copied, by SQLite and from a connection that cannot write, so
it stays as it is while programs use it. The copy is private, and checked like a file
that is opened: what is in it may come from another person.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from sessiondb import location
from sessiondb.database.exports import extension_rows
from sessiondb.database.reading import read_on
from sessiondb.engine.base import Connection
from sessiondb.engine.default import ENGINE
from sessiondb.engine.sql import Statement
from sessiondb.errors import UNREADABLE, CorruptionError, SessionDBError, SourceError
from sessiondb.formats.jsonl import relay_session
from sessiondb.formats.kit.order import parents_first
from sessiondb.formats.kit.sqlite import Error, ForeignDatabase
from sessiondb.hints import command
from sessiondb.model import (
    Export,
    Message,
    Problem,
    SourceSession,
    SourceValue,
    SourceValues,
    versions,
)
from sessiondb.model.damage import message_name, session_name
from sessiondb.repository import Read, family, lists, selection, transcript
from sessiondb.repository.references import session_by_id
from sessiondb.repository.selection import Range
from sessiondb.repository.values import rows_after

T = TypeVar("T")

_FAMILIES = Statement("importing.snapshot.FAMILIES")
_IDS = Statement("importing.snapshot.IDS")
#: Values that are read at once; each may be large.
_VALUES_AT_ONCE = 20


@contextlib.contextmanager
def snapshot_of(path: Path) -> Iterator[Snapshot]:
    """Copy the database at *path* for the length of the block.

    Raises `SourceError` for a file that this release cannot read, with what to do.
    """
    with tempfile.TemporaryDirectory(prefix="sessiondb-") as folder:
        copy = Path(folder, "sessions.db")
        try:
            _copy_database(path, copy)
            connection = ENGINE.upkeep.open_copy(copy, path)
        except SessionDBError as error:
            raise _unusable_error(path, copy, error) from error

        with contextlib.closing(connection):
            yield Snapshot(path, connection)


def _copy_database(path: Path, copy: Path) -> None:
    source = ForeignDatabase(path, schema=False)
    with source.reading():
        try:
            source.copy_to(copy)
        except Error as error:
            raise SourceError(f"cannot read {path}: {error}") from error


def _unusable_error(path: Path, copy: Path, error: SessionDBError) -> SourceError:
    """Return the error of a database that cannot be read, with its hint in one line."""
    message_text = str(error).replace(str(copy), str(path))

    hint = error.hint
    # Its own hint is about the database that is imported into.
    if hint is None or isinstance(error, CorruptionError):
        hint = f"{command('--db', str(path), 'check')} verifies it"
    prefix = "" if str(path) in message_text else f"cannot read {path}: "
    return SourceError(f"{prefix}{message_text}; {hint}", hint=hint)


class Snapshot:
    """The sessions of a database at one moment."""

    def __init__(self, path: Path, connection: Any) -> None:
        self._path = path
        self._connection = connection
        # Directories of a project-local database are relative to where it was.
        root = location.resolve(path).root
        self._base = None if root is None else str(root)

    def _read_here(self, query: Read[T]) -> T:
        return read_on(self._connection, query)

    def sessions(self) -> Iterator[SourceSession | Problem]:
        """Yield all that lists would show, and subagents, parents first.

        One that cannot be read is a problem, and the next one is read. So is one that
        is not complete: merged, its missing messages would look like removed ones.
        """
        rows = self._read_here(_families_query())
        # A damaged page gives rows without an id.
        parents = {name: parent for name, parent in rows if isinstance(name, str)}
        for name, _ in parents_first(parents, parents.get):
            try:
                yield from self._read_session(name)
            # A damaged value may be of any type.
            except (SessionDBError, AttributeError, *UNREADABLE) as error:
                yield self._problem_of(session_name(name), error)

        for name in self._read_here(lists.half_imported()):
            yield Problem(
                str(self._path),
                f"{session_name(name)} was left out: its import into that database did "
                "not end; import it there again, or from its source",
            )

    def values(self) -> Iterator[SourceValues]:
        """Yield the values that have not expired, read while they are iterated.

        Nothing for a database without values.
        """
        values = self._read_values()
        for first in values:
            yield SourceValues(str(self._path), chain([first], values))

    def _read_values(self) -> Iterator[SourceValue | Problem]:
        last = ("", "")
        try:
            while rows := self._read_here(rows_after(last, _VALUES_AT_ONCE)):
                yield from [SourceValue(*row) for row in rows]
                last = rows[-1][:2]
        except UNREADABLE as error:
            yield self._problem_of("values by namespace and key", error)

    def _read_session(self, name: str) -> Iterator[SourceSession | Problem]:
        export = self._read_here(_export_of(self._base, name))
        ids = dict(self._read_here(_ids_of(name)))

        # Whatever is written to a session raises its revision.
        digest = hashlib.sha256(repr(export).encode("utf-8", "surrogatepass"))
        export, lost = self._with_diffs(export)
        rows = extension_rows(self._read_here, name)
        export = replace(export, extension_rows=rows)
        messages = chain(lost, self._read_messages(name))
        yield from relay_session(self._path, export, messages, ids, digest.hexdigest())

    def _with_diffs(self, export: Export) -> tuple[Export, list[Problem]]:
        """Return *export* with its diffs, or why it has none."""
        sid = export.session.id
        try:
            diffs = self._read_here(lists.diffs(sid))
        except UNREADABLE as error:
            # Without a version, too: a session without diffs would remove those here.
            base = dict(export.base)
            base.pop(versions.DIFFS, None)
            return replace(export, base=base), [
                self._problem_of(session_name(sid), error)
            ]
        return replace(export, diffs=tuple(diffs)), []

    def _read_messages(self, name: str) -> Iterator[Message | Problem]:
        missing = _MissingRows()
        query = selection.pages(name, Range(None, branches=True))
        for seqs in read_on(self._connection, query, missing):
            try:
                page = self._read_here(transcript.load(name, seqs, resolve=False))
            except UNREADABLE:
                # Again one by one: those beside a damaged one are intact.
                yield from self._one_by_one(name, seqs)
            else:
                yield from page
        for line in missing.lines:
            yield Problem(str(self._path), line)

    def _one_by_one(self, name: str, seqs: list[int]) -> Iterator[Message | Problem]:
        for seq in seqs:
            try:
                yield from self._read_here(transcript.load(name, [seq], resolve=False))
            except UNREADABLE as error:
                yield self._problem_of(message_name(name, seq), error)

    def _problem_of(self, name: str, error: Exception) -> Problem:
        """Return an error as a problem, which names *name* unless the error does."""
        reason = str(error)
        return Problem(
            str(self._path), reason if name in reason else f"{name}: {reason}"
        )


class _MissingRows:
    """The messages that are missing in a session, whose others are imported."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def helps(self, _: Exception) -> bool:
        """Return False: a damaged page is a problem of its own."""
        return False

    def connection(self) -> Connection:
        """Never called: nothing helps."""
        raise AssertionError

    def leaves_out(self, session_id: str, missing: str, reason: str) -> bool:
        """Record what is missing; the read continues without it."""
        prefix = "" if session_id in missing else f"{session_name(session_id)}: "
        self.lines.append(f"{prefix}{missing}: {reason}")
        return True


def _families_query() -> Read[list[tuple[str, str | None]]]:
    return (yield _FAMILIES, {})


def _ids_of(name: str) -> Read[list[tuple[int, str]]]:
    return (yield _IDS, {"sid": name})


def _export_of(base: str | None, name: str) -> Read[Export]:
    """Return a session with all that belongs to it but messages, diffs and parent."""
    stored = yield from session_by_id(base, name)
    projects = yield from lists.projects(base)
    return Export(
        session=stored,
        project=next((x for x in projects if x.id == stored.project_id), None),
        messages=(),
        todos=tuple((yield from lists.todos(name))),
        labels=tuple((yield from family.labels(name))),
        prompts=tuple((yield from lists.prompts_of(base, name))),
        base=(yield from lists.merge_base_of(name)),
    )
