"""Import: what a reader yields, written in transactions of a bounded size.

The reader and the database meet only here. Sessions that did not change since
the ledger's entry are skipped without reading their messages; several small
sessions share a transaction, a large one takes as many as it needs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from sessiondb import ids, location
from sessiondb.database.core import Core
from sessiondb.effects import encode
from sessiondb.effects.delete import Reap
from sessiondb.effects.ingest import Entry, OpenImport, Run
from sessiondb.effects.ingest_batch import WriteBatch
from sessiondb.effects.ingest_close import CloseImport
from sessiondb.effects.project import Place
from sessiondb.effects.project_facts import DescribeProject
from sessiondb.effects.restore import OpenRestore
from sessiondb.effects.restore_close import CloseRestore, LinkRestored
from sessiondb.effects.unit import Unit
from sessiondb.engine.sql import Statement, p
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.importing import checks
from sessiondb.importing import returned as returning
from sessiondb.importing.checks import CheckedSession
from sessiondb.model import Imported, Problem, SourceSession, StoredMessage
from sessiondb.repository import Read
from sessiondb.schema import import_ledger, session, tombstone

MAX_RECORDS = 500
MAX_BYTES = 4 * 1024 * 1024
#: Problems of one session that the ledger keeps.
MAX_NOTED = 1000

_KNOWN = Statement(
    lambda: select(
        session.c.id, session.c.time_detached, session.c.time_imported, session.c.time_deleted,
        session.c.time_importing, session.c.message_count,
    ).where(session.c.source == p("source"), session.c.source_id == p("source_id"))
)  # fmt: skip
_BURIED = Statement(
    lambda: select(tombstone.c.time_deleted).where(
        tombstone.c.source == p("source"), tombstone.c.source_id == p("source_id")
    )
)
_DIGEST = Statement(
    lambda: select(
        import_ledger.c.digest, import_ledger.c.offset, import_ledger.c.problems
    ).where(import_ledger.c.source == p("source"), import_ledger.c.path == p("path"))
)


@dataclass(frozen=True, slots=True)
class _Known:
    session_id: str | None = None
    detached: bool = False
    leaving: bool = False
    buried: bool = False
    whole: bool = False
    digest: str | None = None
    #: Its content may be what it was and has to be read all the same: a parent came
    #: later, or something could not be read, which may have been mended since.
    again: bool = False
    messages: int = 0

    @property
    def new(self) -> bool:
        """Nothing that anybody sees is here: also where an import or a removal is not over."""
        return self.session_id is None or self.leaving or not self.whole


def _look_up(source: SourceSession, ledger: str) -> Read[_Known]:
    key = {"source": source.source, "source_id": source.source_id}
    rows = yield _KNOWN, key
    buried = yield _BURIED, key
    noted = yield _DIGEST, {"source": source.source, "path": ledger}
    digest, offset, problems = noted[0] if noted else (None, None, None)
    if not rows:
        return _Known(buried=bool(buried), digest=digest)
    session_id, detached, imported, deleted, importing, messages = rows[0]
    # A session that a program opened here under that name was never the source's.
    own = detached is not None or imported is None
    return _Known(
        session_id, own, deleted is not None, bool(buried), importing is None,
        digest, offset is None or problems is not None, messages,
    )  # fmt: skip


@dataclass(slots=True)
class Importer:
    """One import: feed it what readers yield, and it yields what became of each session."""

    core: Core
    undelete: bool = False
    as_fork: bool = False
    dry_run: bool = False
    project_root: str | None = None
    _unit: Unit | None = None
    _records: int = 0
    _bytes: int = 0
    _restored: bool = False
    _results: list[tuple[Run, Imported]] = field(default_factory=list)

    def run(
        self, found: Iterable[SourceSession | Problem]
    ) -> Iterator[Imported | Problem]:
        """Import everything; problems are yielded as they are met, results once committed."""
        for item in found:
            if isinstance(item, Problem):
                yield item
                continue
            if not isinstance(item, SourceSession):
                raise InvalidInputError(
                    f"a source yields sessions and problems, not {abridged(item)}"
                )
            try:
                ready = checks.check_session(item)
                if item.stored is not None:
                    checks.check_stored(item.stored)
                place = self.place(item)
            except InvalidInputError as error:
                yield checks.refused_session(item, error)
                continue
            if not self._takes(item, place):
                continue
            if item.stored is None:
                yield from self._session(item, ready, place)
            else:
                yield from self._stored_session(item, ready, place)
        if self._restored:
            self.queue(LinkRestored(), 0, 0)
        yield from self.commit()

    def _takes(self, item: SourceSession, place: Place) -> bool:
        root = self.project_root
        if root is None or place.root == root:
            return True
        # Outside of a repository each directory is a project; a log names the one it was part of.
        return item.stored is not None and place.directory.startswith(
            root.rstrip(os.sep) + os.sep
        )

    def _stored_session(
        self, item: SourceSession, ready: CheckedSession, place: Place
    ) -> Iterator[Imported | Problem]:
        from sessiondb.importing import restoring

        self._restored = not self.dry_run
        yield from restoring.restore(self, item, ready, place)

    def _session(
        self, item: SourceSession, ready: CheckedSession, place: Place
    ) -> Iterator[Imported | Problem]:
        known = self.core.read(_look_up(item, ready.ledger))
        own = None if known.session_id else self.core.read(returning.original(item))
        if own is not None:
            yield from returning.bring_back(self.core, item, own, self.dry_run)
            return
        outcome = self._outcome(item, known)
        if outcome != "write":
            sid = known.session_id or ""
            yield Imported(outcome, sid, item.source, item.source_id, known.messages)
            return
        if self.dry_run:
            yield from self._counted(item, ready, known)
            return
        if known.leaving:
            yield from self.commit()
            self.reap()
        yield from self._write(item, ready, place, known)

    def _outcome(self, item: SourceSession, known: _Known) -> str:
        if (known.buried or known.leaving) and not self.undelete:
            return "deleted"
        if known.new:
            return "write"
        if known.digest == item.digest and (known.detached or not known.again):
            return "unchanged"
        if known.detached and not self.as_fork:
            return "diverged"
        return "write"

    def _counted(
        self, item: SourceSession, ready: CheckedSession, known: _Known
    ) -> Iterator[Imported | Problem]:
        problems = list(ready.problems)
        count = sum(1 for _ in self.entries(item, problems))
        yield from problems
        outcome = "imported" if known.new else "updated"
        sid = known.session_id or _id_of(item)
        yield Imported(
            outcome, sid, item.source, item.source_id, count, tuple(problems)
        )

    def _write(
        self, item: SourceSession, ready: CheckedSession, place: Place, known: _Known
    ) -> Iterator[Imported | Problem]:
        forked = known.detached and self.as_fork and not known.leaving
        sid = ids.new_session_id() if forked else known.session_id or _id_of(item)
        run = Run(sid, item.source, item.source_id, ready.ledger)
        supersedes = known.session_id if forked else None
        opening = OpenImport(
            run,
            place,
            ready.columns,
            ready.blobs,
            item.parent_source_id,
            item.relation,
            supersedes,
        )
        self.queue(opening, 0, sum(b.size for b in ready.blobs))
        problems = list(ready.problems)
        if ready.project is not None:
            self.queue(DescribeProject(run, ready.project), 0, 0)
        for batch, _, size, records in self.batches(item, problems):
            self.queue(WriteBatch(run, batch), records, size)
            if self._records >= MAX_RECORDS or self._bytes >= MAX_BYTES:
                yield from self.commit()
        yield from problems
        self.queue(_close(item, ready, run, problems), 1, 0)
        outcome = "imported" if known.new else "updated"
        done = Imported(outcome, sid, item.source, item.source_id, 0, tuple(problems))
        self._results.append((run, done))
        if self._records >= MAX_RECORDS:
            yield from self.commit()

    def entries(
        self, item: SourceSession, problems: list[Problem]
    ) -> Iterator[tuple[Entry, int, StoredMessage | None]]:
        """Yield the messages that pass the gate, with their bytes and what they were.

        A message that does not pass is added to *problems*.
        """
        seen: set[str] = set()
        for found in checks.records(item):
            if isinstance(found, Problem):
                problems.append(found)
                continue
            try:
                kept = (
                    None if item.stored is None else checks.check_stored_message(found)
                )
                _, entry, weight, without = checks.accept_message(found, seen)
            except InvalidInputError as error:
                problems.append(checks.refused_message(item, found, error))
                continue
            if without is not None:
                problems.append(checks.refused_message(item, found, without))
            # A large message must not be held by this frame while it is written.
            del found
            yield entry, weight, kept

    def batches(
        self, item: SourceSession, problems: list[Problem]
    ) -> Iterator[tuple[tuple[Entry, ...], dict[str, StoredMessage], int, int]]:
        """Yield (messages, what they were by id, bytes, records), each fit for one transaction."""
        entries: list[Entry] = []
        stored: dict[str, StoredMessage] = {}
        size = records = 0
        for entry, weight, kept in self.entries(item, problems):
            if entries and (
                self._records + records + 1 + len(entry.parts) > MAX_RECORDS
                or self._bytes + size + weight > MAX_BYTES
            ):
                yield tuple(entries), stored, size, MAX_RECORDS
                entries, stored, size, records = [], {}, 0, 0
            entries.append(entry)
            if kept is not None:
                stored[entry.row.id] = kept
            size += weight
            records += 1 + len(entry.parts)
        if entries:
            yield tuple(entries), stored, size, records

    def queue(self, effect: Any, records: int, size: int) -> None:
        """Add an effect to the transaction that is being gathered."""
        if self._unit is None:
            self._unit = self.core.unit()
        self._unit.add(effect)
        if isinstance(effect, OpenImport | OpenRestore):
            self._unit.add_place(effect.place)
        self._records += records
        self._bytes += size

    def commit_if_full(self) -> Iterator[Imported | Problem]:
        """Commit when there is enough for a transaction."""
        if self._records >= MAX_RECORDS or self._bytes >= MAX_BYTES:
            yield from self.commit()

    def expect(self, run: Run, done: Imported) -> None:
        """Tell of *run* once the transaction that ends it is committed."""
        self._results.append((run, done))

    def commit(self) -> Iterator[Imported | Problem]:
        """Commit what was gathered; yield what became of the sessions that ended in it."""
        unit, self._unit = self._unit, None
        self._records = self._bytes = 0
        if unit is None:
            return
        self.core.commit(unit)
        ended = {
            id(e.run) for e in unit.effects if isinstance(e, CloseImport | CloseRestore)
        }
        results, self._results = self._results, []
        for run, done in results:
            if id(run) not in ended:
                self._results.append((run, done))
                continue
            outcome = done.outcome
            if run.gone:
                outcome = "deleted"
            elif outcome == "updated" and not run.changed:
                outcome = "unchanged"
            cut = tuple(Problem(run.ledger, why) for why in run.problems)
            yield from cut
            yield Imported(
                outcome, run.session_id, done.source, done.source_id, run.messages,
                done.problems + cut,
            )  # fmt: skip

    def reap(self) -> None:
        """Finish the removal of what was deleted: one of it is to come back under its id."""
        while True:
            unit, step = self.core.unit(), Reap()
            unit.add(step)
            self.core.commit(unit)
            if not step.more:
                return

    def place(self, item: SourceSession) -> Place:
        """Return where a session was held; its directories passed the gate."""
        directory = item.directory or item.worktree or os.sep
        if os.path.isdir(directory):
            return self.core.locate(directory)
        found = location.project_at(directory)
        # In one spelling, or one worktree would be two projects.
        root = location.project_at(item.worktree).root if item.worktree else found.root
        vcs, remote, root_commit = (
            encode.string(getattr(item, name), name)
            for name in ("vcs", "remote", "root_commit")
        )
        return Place(
            root,
            found.directory,
            root,
            "worktree",
            vcs,
            remote,
            root_commit,
            here=False,
        )


def new_importer(
    core: Core, undelete: bool, as_fork: bool, dry_run: bool, project_root: str | None
) -> Importer:
    """Return an importer; into a project-local database it takes that project's sessions."""
    local = core.location.kind == "local"
    return Importer(
        core, undelete, as_fork, dry_run, core.base if local else project_root
    )


def _id_of(item: SourceSession) -> str:
    return ids.imported_session_id(item.source, item.source_id, item.time_created or 0)


def _close(
    item: SourceSession, ready: CheckedSession, run: Run, problems: list[Problem]
) -> CloseImport:
    todos = None if ready.todos is None else tuple(row[:4] for row in ready.todos)
    return CloseImport(
        run, item.digest, item.size, item.mtime_ns, noted(problems), item.leaf,
        item.parent_message, ready.columns["call_id"], item.time_updated, todos, ready.diffs,
        ready.diff_blobs,
    )  # fmt: skip


def noted(problems: list[Problem]) -> list[Any]:
    """Return problems as the ledger keeps them: enough of them to say what is wrong."""
    return [
        {"source": x.source, "line": x.line, "why": x.why} for x in problems[:MAX_NOTED]
    ]
