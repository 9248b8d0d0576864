"""Import of logs of ours: what a reader yields with ``stored``, checked and queued."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlalchemy import or_, select

from sessiondb import ids
from sessiondb.effects import encode
from sessiondb.effects.encode import Blob
from sessiondb.effects.fields import diff_row
from sessiondb.effects.project import Place
from sessiondb.effects.restore import OpenRestore, Restoration, WriteRows
from sessiondb.effects.restore_close import CloseRestore, OldPrompt
from sessiondb.engine.sql import Statement, p
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import (
    Imported,
    Problem,
    Prompt,
    SourceMessage,
    SourceSession,
    StoredMessage,
    StoredSession,
    bounds,
)
from sessiondb.opened import importing
from sessiondb.repository import Read
from sessiondb.schema import import_ledger, session, tombstone

_KNOWN = Statement(
    lambda: (
        select(
            session.c.id, session.c.time_deleted, session.c.time_importing, session.c.message_count
        )
        .where(
            or_(
                session.c.id == p("sid"),
                (session.c.source == p("source")) & (session.c.source_id == p("source_id")),
            )
        )
        .order_by(session.c.id != p("sid"))
    )
)
_BURIED = Statement(
    lambda: select(tombstone.c.time_deleted).where(
        tombstone.c.source == p("source"), tombstone.c.source_id == p("source_id")
    )
)
_DIGEST = Statement(
    lambda: select(import_ledger.c.digest).where(
        import_ledger.c.source == p("source"), import_ledger.c.path == p("path")
    )
)


def _look_up(item: SourceSession, of: StoredSession, ledger: str) -> Read[tuple[str, Any, int]]:
    """Return (outcome, the id here or None, messages here); ``back`` must be reaped first."""
    key = {"source": item.source, "source_id": item.source_id}
    rows = yield _KNOWN, {"sid": of.id, **key}
    buried = yield _BURIED, key
    noted = yield _DIGEST, {"source": item.source, "path": ledger}
    if not rows:
        return ("deleted" if buried else "imported"), None, 0
    session_id, deleted, importing_since, messages = rows[0]
    if deleted is not None:
        return "leaving", None, 0
    if importing_since is None and noted and noted[0][0] == item.digest:
        return "unchanged", session_id, messages
    return ("imported" if importing_since is not None else "updated"), session_id, messages


def restore(
    importer: importing.Importer, item: SourceSession, place: Place
) -> Iterator[Imported | Problem]:
    """Write one session of ours, in transactions of a bounded size."""
    of = _checked(item)
    ledger = f"{item.path}#{item.source_id}"
    outcome, known, messages = importer.core.read(_look_up(item, of, ledger))
    if outcome in ("deleted", "leaving") and not importer.restore:
        yield Imported("deleted", of.id, item.source, item.source_id, 0)
        return
    if outcome == "unchanged":
        yield Imported(outcome, known, item.source, item.source_id, messages)
        return
    outcome = "updated" if outcome == "updated" else "imported"
    if importer.dry_run:
        count = sum(1 for entry in item.messages if isinstance(entry, SourceMessage))
        yield Imported(outcome, known or of.id, item.source, item.source_id, count)
        return
    if known is None and importer.restore:
        yield from importer.commit()
        importer.reap()
    run = Restoration(of.id, item.source, item.source_id, ledger, stored=of)
    yield from _write(importer, item, place, run, outcome)


def _checked(item: SourceSession) -> StoredSession:
    """Return what makes a session one of ours; raises `InvalidInputError` for what is none."""
    of = item.stored
    assert of is not None
    for name, what in ((of.id, "a session id"), (item.source, "a source")):
        ids.valid_id(name, what)
    ids.valid_id(item.source_id, "a source id")
    for optional in ("slug", "root_id", "parent_id", "leaf"):
        value = getattr(of, optional)
        if value is not None:
            ids.valid_id(value, optional)
    encode.one_of(item.relation, ("fork", "subagent"), "relation")
    encode.one_of(item.title_source, ("user", "agent", "derived"), "title_source")
    encode.string(item.parent_source_id, "parent_source_id")
    for number in ("last_seq", "revision", "parent_seq"):
        bounds.integer(getattr(of, number), number, least=0)
    bounds.integer(of.time_detached, "time_detached")
    for _, label in of.labels:
        ids.valid_id(label, "a label")
    for place in (item.directory, item.worktree, item.vcs, item.remote, item.root_commit):
        if place is not None and (not isinstance(place, str) or "\0" in place):
            raise InvalidInputError(f"not a place: {abridged(place)}")
    return of


def _write(
    importer: importing.Importer,
    item: SourceSession,
    place: Place,
    run: Restoration,
    outcome: str,
) -> Iterator[Imported | Problem]:
    blobs: list[Blob] = []
    columns = importing.columns_of(item, blobs)
    columns["title_source"] = item.title_source
    closing = _close(item, run)
    for prompt in run.stored.prompts:
        try:
            closing.prompts.append(_prompt(importer, item, prompt))
        except InvalidInputError as error:
            yield Problem(item.path, f"a prompt of {item.source_id}: {error}")
    opening = OpenRestore(run, place, columns, tuple(blobs), item.parent_source_id, item.relation)
    importer.queue(opening, 0, sum(blob.size for blob in blobs))
    problems: list[Problem] = []
    kept: dict[str, StoredMessage] = {}
    for batch, size, records in importer.batches(_noting(item, kept), problems):
        importer.queue(WriteRows(run, batch, {e.row.id: kept.pop(e.row.id) for e in batch}),
                       records, size)  # fmt: skip
        yield from importer.commit_if_full()
    yield from problems
    closing.problems.extend({"source": x.source, "line": x.line, "why": x.why} for x in problems)
    importer.queue(closing, 1, sum(blob.size for blob in closing.blobs))
    done = Imported(outcome, run.session_id, item.source, item.source_id, 0, tuple(problems))
    importer.expect(run, done)
    yield from importer.commit_if_full()


def _noting(item: SourceSession, kept: dict[str, StoredMessage]) -> SourceSession:
    """Return *item* whose messages note in *kept* what they were, while they are read."""

    def messages() -> Iterator[SourceMessage | Problem]:
        for found in item.messages:
            if isinstance(found, SourceMessage):
                try:
                    kept[found.draft.id or ""] = _placed(found)
                except InvalidInputError as error:
                    name = f"message {found.draft.id} of {item.source_id}"
                    yield Problem(item.path, f"{name}: {error}")
                    continue
            yield found

    return replace(item, messages=messages())


def _placed(found: SourceMessage) -> StoredMessage:
    """Return what a message was; raises `InvalidInputError`."""
    of = found.stored
    if of is None:
        raise InvalidInputError("a message of a log needs its seq")
    bounds.integer(of.seq, "seq", least=1)
    encode.string(of.usage_key, "usage_key")
    if found.parent is not None:
        ids.valid_id(found.parent, "parent_id")
    return of


def _prompt(importer: importing.Importer, item: SourceSession, of: Prompt) -> OldPrompt:
    """Return a prompt to be written; typed elsewhere, it may be of another project."""
    for name, what in ((of.id, "a prompt id"), (of.source, "a source")):
        ids.valid_id(name, what)
    place = None
    if of.directory and of.directory != item.directory:
        nowhere = replace(item, worktree=None, vcs=None, remote=None, root_commit=None)
        place = importer.place(replace(nowhere, directory=of.directory))
    text = encode.string(of.text, "text") or ""
    return OldPrompt(of.id, text, of.directory, place, of.source, of.time_created)


def _close(item: SourceSession, run: Restoration) -> CloseRestore:
    blobs: list[Blob] = []
    todos = tuple(
        (
            encode.string(t.id, "a todo id"),
            encode.string(t.content, "content") or "",
            encode.string(t.status, "status") or "pending",
            encode.string(t.priority, "priority"),
            bounds.integer(t.time_created, "time_created"),
            bounds.integer(t.time_updated, "time_updated"),
        )
        for t in item.todos or ()
    )
    diffs = tuple(diff_row(diff, blobs) for diff in item.diffs or ())
    used = bounds.integer(item.time_updated, "time_updated")
    return CloseRestore(
        run, item.digest, item.size, item.mtime_ns, [],
        (item.time_created or 0) if used is None else used, todos, diffs, tuple(blobs),
    )  # fmt: skip
