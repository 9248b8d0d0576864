"""Sessions of this database that went to another program and come back from it.

An export names a session by its id here. A session that returns under that name is
never a second session: messages that were added there are appended, after the last one
that both have, and the last of them is the leaf, as `append` does it. Messages that
both have stay as they are here.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from tempfile import SpooledTemporaryFile

from sessiondb.database.core import Core
from sessiondb.dataclass import dataclass
from sessiondb.effects.message import Append
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.disk import translated
from sessiondb.engine.sql import Statement, as_list
from sessiondb.errors import NotFoundError
from sessiondb.formats import registry
from sessiondb.formats.protocol import Outline, own_name
from sessiondb.importing.beside.prompts import PromptsOfBatch
from sessiondb.importing.gate import checks
from sessiondb.importing.policies.derived import Derived
from sessiondb.importing.rows.close import note
from sessiondb.importing.rows.messages import WriteBatch, seq_by_id
from sessiondb.importing.rows.run import CheckedSession, ImportEntry, Run
from sessiondb.importing.units import MAX_BYTES, MAX_RECORDS, Results, Units
from sessiondb.model import Imported, Problem, Problems
from sessiondb.model.handles import MessageHandle
from sessiondb.repository import Read
from sessiondb.repository.references import session_by_id


@dataclass(slots=True, eq=False)
class AppendReturned:
    """Append messages that another program added to a session."""

    verb = "import"
    run: Run
    entries: tuple[ImportEntry, ...]
    typed: PromptsOfBatch = field(init=False)
    _begun: tuple[str | None] | None = None

    def apply(self, tx: Transaction) -> None:
        """Append those that are not stored yet."""
        sid = self.run.session_id
        # One that is retried begins where it began.
        self._begun = self._begun or (self.run.typed,)
        (self.run.typed,) = self._begun
        self.typed = PromptsOfBatch(self.run)
        if self.run.is_gone(tx):
            return
        for entry in self.entries:
            # Whatever another import has written since it was compared stays as it is.
            if seq_by_id(tx, sid, entry.row.id) is not None:
                continue
            handle = MessageHandle(sid, entry.row.id)
            append = Append(
                sid, entry.row, entry.parts, entry.blobs, handle, own_id=True
            )
            append.apply(tx)
            place = tx.peek(sid).last_seq
            self.typed.add(entry, place, tx.at(entry.row.time_created))
            self.run.changed = True


@dataclass(frozen=True, slots=True, eq=False)
class CloseReturned:
    """Record what was read of a session that is not the source's, or is newer here."""

    verb = "import"
    run: Run
    problems: tuple[Problem, ...]

    def apply(self, tx: Transaction) -> None:
        """Write the entry in the ledger."""
        note(tx, self.run, self.problems)


#: The place in errors. Its path is not looked up before something is written there.
_TEMPORARY = Path("temporary directory")

_OUTLINES = Statement("importing.policies.returned.OUTLINES")
_KNOWN = Statement("importing.policies.returned.KNOWN")


def take_back(
    units: Units,
    checked: CheckedSession,
    session_id: str,
    *,
    is_empty: bool,
    dry_run: bool,
) -> Results:
    """Append the new messages to session *session_id*; diverged if the two share none.

    A session that *is_empty* shares all that it has.

    Raises `StorageError`, also for a temporary directory that is full.
    """
    item, problems = checked.item, Problems(checked.problems)

    # More than a transaction could hold waits on the disk, because reading the source
    # twice would take twice as long. Closing that file writes too, so its errors are
    # translated around all of its use.
    with translated(_TEMPORARY), SpooledTemporaryFile(max_size=MAX_BYTES) as file:
        news, sums = _News(file), list[ImportEntry]()
        entries = checks.entries(item, problems)
        for entry, is_known in _compare_entries(
            units.core, session_id, item.source, entries
        ):
            if not _is_sum(entry):
                news.add(entry, is_known)
            elif entry.alias != session_id:
                # Those that the session had when it was written are counted here.
                sums.append(entry)

        yield from problems
        outcome = "updated" if news or sums else "unchanged"
        if news and not (news.shared or is_empty):
            outcome = "diverged"

        names = (session_id, item.source, item.source_id)
        done = Imported(outcome, *names, news.count + len(sums), tuple(problems))
        if dry_run or outcome == "diverged":
            yield done
            return

        run = Run(session_id, checked, Derived(), fresh=False, messages=news.count)
        yield from units.write(run, news, AppendReturned)
        # They grow with each continuation there, so that they are written again.
        yield from units.write(run, sums, WriteBatch)
        yield from units.close(run, CloseReturned(run, done.problems), done)


class _News:
    """The new messages of a session: all of them follow the last known one.

    Which one that is, is certain only at the end, so they wait in a *file*. ``count``
    is the number of all messages, ``shared`` of those that both sides have.
    """

    def __init__(self, file: SpooledTemporaryFile[bytes]) -> None:
        self._file = file
        self.count = self.shared = 0

    def add(self, entry: ImportEntry, is_known: bool) -> None:
        """Add the next message."""
        self.count += 1
        if not is_known:
            pickle.dump(entry, self._file)
            return

        self.shared += 1
        # A new message before one that both have was left out here.
        self._file.seek(0)
        self._file.truncate()

    def __bool__(self) -> bool:
        return self._file.tell() > 0

    def __iter__(self) -> Iterator[ImportEntry]:
        # The file is our own, so it can be trusted.
        end = self._file.tell()
        self._file.seek(0)
        while self._file.tell() < end:
            yield pickle.load(self._file)  # noqa: S301


def _is_sum(entry: ImportEntry) -> bool:
    """Return whether a message is what the complete session cost, beside the path."""
    return entry.row.kind == "usage" and entry.parent is None


def _compare_entries(
    core: Core, session_id: str, source: str, entries: Iterable[ImportEntry]
) -> Iterator[tuple[ImportEntry, bool]]:
    """Yield each message, and whether the session has it under one of its names.

    These are its ids here, and those that it was written with for *source*.
    """
    written: set[str] | None = None
    for batch in _batches_of(entries):
        names = {name for entry in batch for name in _names_of_entry(entry)}
        known_ids = core.read(_known_names(session_id, names))
        if written is None and names - known_ids:
            written = core.read(_written_ids(core.base, session_id, source))
        known_ids |= names & (written or set())
        # A record of the session itself, such as its title, is named after it.
        known_ids.add(session_id)
        for entry in batch:
            yield entry, not known_ids.isdisjoint(_names_of_entry(entry))


def _batches_of(entries: Iterable[ImportEntry]) -> Iterator[list[ImportEntry]]:
    batch: list[ImportEntry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += entry.size
        if len(batch) >= MAX_RECORDS or size >= MAX_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def _names_of_entry(entry: ImportEntry) -> set[str]:
    """Return the names under which a message may be known here."""
    return {entry.row.id} if entry.alias is None else {entry.row.id, entry.alias}


def _known_names(session_id: str, names: Iterable[str]) -> Read[set[str]]:
    rows = yield _KNOWN, {"sid": session_id, "names": as_list(names)}
    return {name for (name,) in rows}


def _written_ids(base: str | None, session_id: str, source: str) -> Read[set[str]]:
    """Return the ids that the messages of a session have in program *source*."""
    names_of = registry.names_of(source)
    if names_of is own_name:
        return set()

    try:
        session = yield from session_by_id(base, session_id)
    except NotFoundError:
        # It was deleted since it was looked up.
        return set()

    rows = yield _OUTLINES, {"sid": session_id}
    return {
        name
        for message_id, seq, time, inherited, parts in rows
        for name in names_of(
            session, Outline(message_id, seq, time, bool(inherited), parts)
        )
    }
