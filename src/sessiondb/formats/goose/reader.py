"""The sessions of Goose, from its database, its logs and its exports.

A session is yielded by its own record alone. Which messages the agent still sees, and
what the session cost, is found by `complete_session`, for a session that changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError, abridged
from sessiondb.formats.goose import fields
from sessiondb.formats.goose.database import NAME, GooseDatabase, is_store
from sessiondb.formats.goose.drafts import message_draft
from sessiondb.formats.goose.export_file import ExportFile
from sessiondb.formats.goose.layouts import Contents, Fetch, Layout, SessionHead
from sessiondb.formats.goose.logs import log_at
from sessiondb.formats.goose.usage import carried_event, usage_event
from sessiondb.formats.goose.visibility import (
    MessageEntry,
    VisiblePlace,
    last_sent_to_agent,
    place_entries,
)
from sessiondb.formats.kit.fields import (
    as_text,
    check_storable,
    fitting,
    is_object,
    take_fields,
    value_at,
)
from sessiondb.formats.kit.json import OddRecordError, usable_id
from sessiondb.formats.kit.order import in_order
from sessiondb.formats.kit.sqlite import Error
from sessiondb.formats.kit.texts import text_of_time, time_of_text
from sessiondb.model import Problem, SourceMessage, SourceSession

SOURCE = "goose"
_UNREADABLE = (Error, OddRecordError)

Record = dict[str, Any]


# -- stores ------------------------------------------------------------------


def read_log(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the session of a log, unless the database beside it has it."""
    if _is_taken_over(path):
        return

    try:
        log = log_at(path)
        yield session_of_record(log.head, log)
    except OddRecordError as error:
        yield Problem(str(path), f"the log {error}")


def _is_taken_over(log: Path) -> bool:
    """Return whether the database beside a log has the same session."""
    database_path = log.with_name(NAME)
    # A name that is not UTF-8 cannot be looked for; the log reports it itself.
    if not usable_id(log.stem) or not is_store(database_path):
        return False

    database = GooseDatabase(database_path)
    # A database that cannot be read is reported when it is its turn.
    with contextlib.suppress(SourceError, *_UNREADABLE), database.reading():
        return database.has_session(log.stem)

    return False


def read_export(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the session of an export."""
    try:
        export = ExportFile(path)
        yield session_of_record(export.head, export)
    except OddRecordError as error:
        yield Problem(str(path), f"the file {error}")


def read_database(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a database, parents first."""
    database = GooseDatabase(path)
    with database.reading():
        try:
            yield from _sessions_of_database(database)
            yield from database.orphan_problems()
        except _UNREADABLE as error:
            yield Problem(str(path), f"the rest cannot be read: {error}")


def _sessions_of_database(database: GooseDatabase) -> Iterator[SourceSession | Problem]:
    parents: dict[str, str | None] = {}
    try:
        for item in database.session_names():
            if isinstance(item, Problem):
                yield item
            else:
                parents[item[0]] = item[1]
    except Error as error:
        reason = f"its other sessions cannot be read: {error}"
        yield Problem(str(database.path), reason)

    def read_session(name: str, cut: bool) -> Iterator[SourceSession | Problem]:
        try:
            row = DatabaseRow(database, name)
            yield session_of_record(row.head, row, is_cut=cut)
        except _UNREADABLE as error:
            reason = f"session {abridged(name)} cannot be read: {error}"
            yield Problem(str(database.path), reason)

    yield from in_order(
        parents, parents.__getitem__, read_session, lambda _: database.path
    )


class DatabaseRow:
    """One session of a database; see `layouts.Layout`."""

    def __init__(self, database: GooseDatabase, name: str) -> None:
        self._database = database
        self.head = database.session_head(name)

    def index_messages(self) -> Contents:
        """Index its rows."""
        name, database = self.head.source_id, self._database
        try:
            with database.reading():
                entries, ledger = (
                    database.message_entries(name),
                    database.ledger_rows(name),
                )
                call = database.call_of(name, self.head.record.get("parent_session_id"))
                return Contents(entries, ledger=ledger, call=call)
        except Error as error:
            raise OddRecordError(f"cannot be read: {error}") from error

    @contextlib.contextmanager
    def open_records(self) -> Iterator[Fetch]:
        """Read rows by their number."""
        with self._database.reading():
            yield self._database.record_of_entry

    def place_of(self, _: MessageEntry) -> None:
        """Return None: a row has no line."""
        return


# -- sessions ----------------------------------------------------------------


def session_of_record(
    head: SessionHead, layout: Layout, *, is_cut: bool = False
) -> SourceSession:
    """Return a session by its own record."""
    record = dict(head.record)
    # The head is read again by `complete_session`, so nothing is taken out of it.
    if is_object(record.get("model_config")):
        record["model_config"] = dict(record["model_config"])

    # An export may have the name as an import takes it, too: as the description.
    metadata = take_fields(dict(record), fields.METADATA)
    columns = take_fields(record, fields.METADATA if head.is_log else fields.SESSION)
    columns = metadata | columns

    # The session at which a cycle of parents is cut has no parent.
    stated_parent = fitting(record.get("parent_session_id"), usable_id)
    parent = None if is_cut else stated_parent
    # Before schema 15 no subagent has a parent.
    is_subagent = parent is not None or record.get("session_type") == "sub_agent"
    data = {"metadata" if head.is_log else "session": record, **head.raw_rows}
    check_storable(data)

    return SourceSession(
        SOURCE,
        head.source_id,
        str(head.path),
        head.digest,
        parent_source_id=parent,
        relation="subagent" if is_subagent else None,
        time_created=time_of_text(record.get("created_at")),
        time_updated=time_of_text(record.get("updated_at")),
        time_archived=time_of_text(record.get("archived_at")),
        data=data,
        namespace=head.namespace,
        alias=fitting(value_at(head.record, *fields.OURS), usable_id),
        complete=partial(complete_session, head, layout, is_cut=is_cut),
        **columns,
    )


def complete_session(
    head: SessionHead, layout: Layout, *, is_cut: bool
) -> SourceSession:
    """Return a session with the facts of its messages; raises `OddRecordError`."""
    contents = layout.index_messages()
    session = session_of_record(head, layout, is_cut=is_cut)
    times = [entry.time * 1000 for entry in contents.entries if entry.time]
    first = min(times, default=session.time_created)
    last = max(times, default=session.time_updated)

    # Releases that write the parent also export the time of the last message.
    is_recent = "parent_session_id" in head.record
    if "last_message_at" not in head.record and is_recent:
        record = session.data["session"]
        shown = text_of_time(last or 0).replace(".000Z", "Z") if times else None
        record |= {"last_message_at": shown, "last_message_snippet": None}

    messages = GooseMessages(session, contents, layout)
    return replace(
        session,
        call_id=contents.call if session.parent_source_id else None,
        time_created=first if session.time_created is None else session.time_created,
        time_updated=last if session.time_updated is None else session.time_updated,
        leaf=last_sent_to_agent(contents.entries),
        message_count=len(contents.entries) + len(messages.sums),
        is_excerpt=head.is_export,
        messages=messages,
    )


class GooseMessages:
    """The messages of a session and their problems; read again each time.

    ``sums`` are the events of what the session cost, beside the path.
    """

    def __init__(
        self, session: SourceSession, contents: Contents, layout: Layout
    ) -> None:
        self._session = session
        self._contents = contents
        self._layout = layout
        self.sums = tuple(self._usage_events())

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read one record at a time."""
        yield from self.sums
        try:
            with self._layout.open_records() as fetch:
                for place in place_entries(self._contents.entries):
                    yield self._read_message(place, fetch)
        except Error as error:
            reason = f"its other messages cannot be read: {error}"
            yield self._problem_of_session(reason)

        yield from self._contents.problems

    def _usage_events(self) -> Iterator[SourceMessage]:
        session = self._session
        record = session.data.get("session") or session.data.get("metadata") or {}
        name = f"usage_{session.source_id}"
        if not usable_id(name):
            return

        began = carried_event(f"{name}_before", record, session.time_created)
        if began is not None:
            yield SourceMessage(began, parent=None, alias=session.alias)

        contents = self._contents
        answers = [x.used for x in contents.entries if x.role == "assistant"]
        used = usage_event(name, record, contents.ledger, answers, session.time_updated)
        if used is not None:
            models = {row.get("model") for row in contents.ledger} - {None}
            model = as_text(models.pop()) if len(models) == 1 else session.model_id
            used = replace(used, provider_id=session.provider_id, model_id=model)
            yield SourceMessage(used, parent=None)

    def _read_message(
        self, place: VisiblePlace, fetch: Fetch
    ) -> SourceMessage | Problem:
        entry = place.entry
        try:
            record = fetch(entry)
            draft = message_draft(record, entry.name, is_summary=place.is_summary)
        except OddRecordError as error:
            line = self._layout.place_of(entry)
            return self._problem_of_session(
                f"message {abridged(entry.name)} {error}", line
            )

        # Names that messages get in one store only; schema 7 made the first of them.
        session_id = self._session.source_id
        prefixes = (f"msg_{session_id}_", f"usage_{session_id}", "thread_")
        usage_id = None if entry.name.startswith(prefixes) else entry.name
        return SourceMessage(draft, parent=place.parent, usage_id=usage_id)

    def _problem_of_session(self, reason: str, line: int | None = None) -> Problem:
        name = abridged(self._session.source_id)
        return Problem(self._session.path, f"session {name}: {reason}", line)
