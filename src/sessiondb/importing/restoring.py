"""Import of our logs: sessions that a reader yields with ``stored``, checked and queued."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlalchemy import or_, select

from sessiondb.effects.project import Place
from sessiondb.effects.restore import OpenRestore, Restoration, WriteRows
from sessiondb.effects.restore_close import CloseRestore, OldPrompt
from sessiondb.effects.restore_fields import LoggedFields
from sessiondb.engine.sql import Statement, p
from sessiondb.errors import InvalidInputError
from sessiondb.importing import checks
from sessiondb.importing import importer as importing
from sessiondb.importing.checks import CheckedSession
from sessiondb.model import (
    Imported,
    Problem,
    Prompt,
    SourceSession,
    StoredSession,
)
from sessiondb.repository import Read
from sessiondb.schema import import_ledger, session, tombstone

_KNOWN = Statement(
    lambda: (
        select(
            session.c.id,
            session.c.time_deleted,
            session.c.time_importing,
            session.c.message_count,
        )
        .where(
            or_(
                session.c.id == p("sid"),
                (session.c.source == p("source"))
                & (session.c.source_id == p("source_id")),
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
    lambda: select(import_ledger.c.digest, import_ledger.c.problems).where(
        import_ledger.c.source == p("source"), import_ledger.c.path == p("path")
    )
)


def _look_up(
    item: SourceSession, of: StoredSession, ledger: str
) -> Read[tuple[str, Any, int]]:
    """Return (outcome, the id here or None, messages here); ``back`` must be reaped first."""
    key = {"source": item.source, "source_id": item.source_id}
    rows = yield _KNOWN, {"sid": of.id, **key}
    buried = yield _BURIED, {**key, "source_id": of.buried_as(item.source_id)}
    noted = yield _DIGEST, {"source": item.source, "path": ledger}
    if not rows or (buried and rows[0][0] != of.id):
        # A new session may have the name that a removed one had.
        return ("deleted" if buried else "imported"), None, 0
    session_id, deleted, importing_since, messages = rows[0]
    if deleted is not None:
        return "leaving", None, 0
    # Damage may have been repaired since: a session with problems is read again.
    if importing_since is None and noted and noted[0] == (item.digest, None):
        return "unchanged", session_id, messages
    return (
        ("imported" if importing_since is not None else "updated"),
        session_id,
        messages,
    )


def restore(
    importer: importing.Importer,
    item: SourceSession,
    ready: CheckedSession,
    place: Place,
) -> Iterator[Imported | Problem]:
    """Write one of our sessions, in transactions of a bounded size."""
    of = item.stored
    assert of is not None
    outcome, known, messages = importer.core.read(_look_up(item, of, ready.ledger))
    if known is None and of.is_deleted:
        outcome = "deleted"
    if outcome in ("deleted", "leaving") and not importer.undelete:
        yield Imported("deleted", of.id, item.source, item.source_id, 0)
        return
    if outcome == "unchanged":
        yield Imported(outcome, known, item.source, item.source_id, messages)
        return
    outcome = "updated" if outcome == "updated" else "imported"
    if importer.dry_run:
        unread: list[Problem] = []
        count = sum(1 for _ in importer.entries(item, unread))
        yield from unread
        sid = known or of.id
        yield Imported(outcome, sid, item.source, item.source_id, count, tuple(unread))
        return
    if known is None and importer.undelete:
        yield from importer.commit()
        importer.reap()
    run = Restoration(of.id, item.source, item.source_id, ready.ledger, stored=of)
    opening = OpenRestore(
        run, place, ready.columns, ready.blobs, item.parent_source_id, item.relation
    )
    yield from _write(importer, item, ready, opening, outcome)


def _write(
    importer: importing.Importer,
    item: SourceSession,
    ready: CheckedSession,
    opening: OpenRestore,
    outcome: str,
) -> Iterator[Imported | Problem]:
    run = opening.run
    problems: list[Problem] = []
    closing = _close(item, ready, run)
    for prompt in run.stored.prompts:
        try:
            closing.prompts.append(_prompt(importer, item, prompt))
        except InvalidInputError as error:
            problems.append(
                Problem(item.path, f"a prompt of {item.source_id}: {error}")
            )
    importer.queue(opening, 0, sum(blob.size for blob in ready.blobs))
    for batch, kept, size, records in importer.batches(item, problems):
        importer.queue(WriteRows(run, batch, kept), records, size)
        yield from importer.commit_if_full()
    yield from problems
    closing.problems.extend(importing.noted(problems))
    importer.queue(closing, 1, sum(blob.size for blob in closing.log.blobs))
    done = Imported(
        outcome, run.session_id, item.source, item.source_id, 0, tuple(problems)
    )
    importer.expect(run, done)
    yield from importer.commit_if_full()


def _prompt(importer: importing.Importer, item: SourceSession, of: Prompt) -> OldPrompt:
    """Return a prompt to be written; typed elsewhere, it may be of another project."""
    text = checks.check_prompt(of)
    place = None
    if of.directory and of.directory != item.directory:
        nowhere = replace(item, worktree=None, vcs=None, remote=None, root_commit=None)
        place = importer.place(replace(nowhere, directory=of.directory))
    return OldPrompt(of.id, text, of.directory, place, of.source, of.time_created)


def _close(
    item: SourceSession, ready: CheckedSession, run: Restoration
) -> CloseRestore:
    packed = ready.columns["data"]
    if ready.columns["data_blob"]:
        packed = next(
            x.data for x in ready.blobs if x.hash == ready.columns["data_blob"]
        )
    todos, diffs = ready.todos or (), ready.diffs or ()
    log = LoggedFields(ready.columns, packed, todos, diffs, ready.diff_blobs)
    return CloseRestore(
        run,
        log,
        item.digest,
        item.size,
        item.mtime_ns,
        [],
        ready.columns["time_updated"],
    )
