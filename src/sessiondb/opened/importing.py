"""Import: what a reader yields, written in transactions of a bounded size.

The reader and the database meet only here. Sessions that did not change since
the ledger's entry are skipped without reading their messages; several small
sessions share a transaction, a large one takes as many as it needs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import select

from sessiondb import codec, ids, location
from sessiondb.effects import encode
from sessiondb.effects.delete import Reap
from sessiondb.effects.encode import Blob
from sessiondb.effects.fields import diff_row
from sessiondb.effects.ingest import Entry, OpenImport, Run
from sessiondb.effects.ingest_batch import WriteBatch
from sessiondb.effects.ingest_close import CloseImport
from sessiondb.effects.project import Place
from sessiondb.effects.project_facts import describe_project
from sessiondb.effects.restore import OpenRestore
from sessiondb.effects.restore_close import CloseRestore, LinkRestored
from sessiondb.effects.unit import Unit
from sessiondb.engine.sql import Statement, p
from sessiondb.errors import InvalidInputError, SessionDBError, abridged
from sessiondb.model import Imported, Problem, SourceMessage, SourceSession, bounds
from sessiondb.opened import returning
from sessiondb.opened.core import Core
from sessiondb.repository import Read
from sessiondb.schema import import_ledger, session, tombstone

MAX_RECORDS = 500
MAX_BYTES = 4 * 1024 * 1024

_KNOWN = Statement(
    lambda: select(
        session.c.id, session.c.time_detached, session.c.time_deleted, session.c.time_importing,
        session.c.message_count,
    ).where(session.c.source == p("source"), session.c.source_id == p("source_id"))
)  # fmt: skip
_BURIED = Statement(
    lambda: select(tombstone.c.time_deleted).where(
        tombstone.c.source == p("source"), tombstone.c.source_id == p("source_id")
    )
)
_DIGEST = Statement(
    lambda: select(import_ledger.c.digest, import_ledger.c.offset).where(
        import_ledger.c.source == p("source"), import_ledger.c.path == p("path")
    )
)


@dataclass(frozen=True, slots=True)
class _Known:
    session_id: str | None = None
    detached: bool = False
    leaving: bool = False
    buried: bool = False
    whole: bool = False
    digest: str | None = None
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
    digest, offset = noted[0] if noted else (None, None)
    if not rows:
        return _Known(buried=bool(buried), digest=digest)
    session_id, detached, deleted, importing, messages = rows[0]
    return _Known(
        session_id, detached is not None, deleted is not None, bool(buried), importing is None,
        digest, offset is None, messages,
    )  # fmt: skip


@dataclass(slots=True)
class Importer:
    """One import: feed it what readers yield, and it yields what became of each session."""

    core: Core
    restore: bool = False
    as_fork: bool = False
    dry_run: bool = False
    project_root: str | None = None
    _unit: Unit | None = None
    _records: int = 0
    _bytes: int = 0
    _restored: bool = False
    _results: list[tuple[Run, Imported]] = field(default_factory=list)

    def run(self, found: Iterable[SourceSession | Problem]) -> Iterator[Imported | Problem]:
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
                ids.valid_id(item.source_id, "a source id")
                place = self.place(item)
                if not self._takes(item, place):
                    continue
                if item.stored is None:
                    yield from self._session(item, place)
                else:
                    yield from self._stored_session(item, place)
            except InvalidInputError as error:
                yield Problem(item.path, f"session {item.source_id}: {error}")
        if self._restored:
            self.queue(LinkRestored(), 0, 0)
        yield from self.commit()

    def _takes(self, item: SourceSession, place: Place) -> bool:
        root = self.project_root
        if root is None or place.root == root:
            return True
        # Outside of a repository each directory is a project; a log names the one it was part of.
        return item.stored is not None and place.directory.startswith(root.rstrip(os.sep) + os.sep)

    def _stored_session(self, item: SourceSession, place: Place) -> Iterator[Imported | Problem]:
        from sessiondb.opened import restoring

        self._restored = not self.dry_run
        yield from restoring.restore(self, item, place)

    def _session(self, item: SourceSession, place: Place) -> Iterator[Imported | Problem]:
        ledger = f"{item.path}#{item.source_id}"
        known = self.core.read(_look_up(item, ledger))
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
            yield from self._counted(item, known)
            return
        if known.leaving:
            yield from self.commit()
            self.reap()
        yield from self._write(item, place, known, ledger)

    def _outcome(self, item: SourceSession, known: _Known) -> str:
        if (known.buried or known.leaving) and not self.restore:
            return "deleted"
        if known.new:
            return "write"
        if known.digest == item.digest and (known.detached or not known.again):
            return "unchanged"
        if known.detached and not self.as_fork:
            return "diverged"
        return "write"

    def _counted(self, item: SourceSession, known: _Known) -> Iterator[Imported | Problem]:
        count, problems = 0, []
        for entry in item.messages:
            if isinstance(entry, Problem):
                problems.append(entry)
            else:
                count += 1
        yield from problems
        outcome = "imported" if known.new else "updated"
        sid = known.session_id or _id_of(item)
        yield Imported(outcome, sid, item.source, item.source_id, count, tuple(problems))

    def _write(
        self, item: SourceSession, place: Place, known: _Known, ledger: str
    ) -> Iterator[Imported | Problem]:
        forked = known.detached and self.as_fork and not known.leaving
        sid = ids.new_session_id() if forked else known.session_id or _id_of(item)
        run = Run(sid, item.source, item.source_id, ledger)
        blobs: list[Blob] = []
        columns = columns_of(item, blobs)
        supersedes = known.session_id if forked else None
        self.queue(
            OpenImport(
                run, place, columns, tuple(blobs), item.parent_source_id, item.relation, supersedes
            ),
            0,
            sum(b.size for b in blobs),
        )
        problems: list[Problem] = []
        if item.project is not None:
            try:
                self.queue(describe_project(run, item.project), 0, 0)
            except InvalidInputError as error:
                problems.append(Problem(item.path, f"the project of {item.source_id}: {error}"))
        for batch, size, records in self.batches(item, problems):
            self.queue(WriteBatch(run, batch), records, size)
            if self._records >= MAX_RECORDS or self._bytes >= MAX_BYTES:
                yield from self.commit()
        yield from problems
        self.queue(_close(item, run, problems), 1, 0)
        outcome = "imported" if known.new else "updated"
        done = Imported(outcome, sid, item.source, item.source_id, 0, tuple(problems))
        self._results.append((run, done))
        if self._records >= MAX_RECORDS:
            yield from self.commit()

    def batches(
        self, item: SourceSession, problems: list[Problem]
    ) -> Iterator[tuple[tuple[Entry, ...], int, int]]:
        """Yield (messages, bytes, records) of a session, each fit for one transaction."""
        entries: list[Entry] = []
        seen: set[str | None] = set()
        size = records = 0
        for found in item.messages:
            if isinstance(found, Problem):
                problems.append(found)
                continue
            try:
                if found.draft.id in seen:
                    raise InvalidInputError("there are two of that id; the first one counts")
                entry, weight = _entry(found)
            except SessionDBError as error:
                name = found.draft.id
                problems.append(Problem(item.path, f"message {name} of {item.source_id}: {error}"))
                continue
            seen.add(entry.row.id)
            if entries and (
                self._records + records + 1 + len(entry.parts) > MAX_RECORDS
                or self._bytes + size + weight > MAX_BYTES
            ):
                yield tuple(entries), size, MAX_RECORDS
                entries, size, records = [], 0, 0
            entries.append(entry)
            size += weight
            records += 1 + len(entry.parts)
        if entries:
            yield tuple(entries), size, records

    def queue(self, effect: Any, records: int, size: int) -> None:
        """Add an effect to the transaction that is being gathered."""
        if self._unit is None:
            self._unit = self.core.unit()
        self._unit.effects.append(effect)
        if isinstance(effect, OpenImport | OpenRestore):
            self._unit.places.append(effect.place)
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
        ended = {id(e.run) for e in unit.effects if isinstance(e, CloseImport | CloseRestore)}
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
            unit.effects.append(step)
            self.core.commit(unit)
            if not step.more:
                return

    def place(self, item: SourceSession) -> Place:
        """Return where a session was held; raises `InvalidInputError` for no directory."""
        directory = item.directory or item.worktree or os.sep
        for path in (directory, item.worktree or ""):
            if codec.readable(path)[1]:
                raise InvalidInputError(
                    f"a directory must be valid Unicode, without NUL: {abridged(path)}"
                )
        if os.path.isdir(directory):
            return self.core.locate(directory)
        found = location.project_at(directory)
        # In one spelling, or one worktree would be two projects.
        root = location.project_at(item.worktree).root if item.worktree else found.root
        return Place(
            root, found.directory, root, "worktree", item.vcs, item.remote, item.root_commit,
            here=False,
        )  # fmt: skip


def new_importer(
    core: Core, restore: bool, as_fork: bool, dry_run: bool, project_root: str | None
) -> Importer:
    """Return an importer; into a project-local database it takes that project's sessions."""
    local = core.location.kind == "local"
    return Importer(core, restore, as_fork, dry_run, core.base if local else project_root)


def _id_of(item: SourceSession) -> str:
    return ids.imported_session_id(item.source, item.source_id, item.time_created or 0)


def _entry(found: SourceMessage) -> tuple[Entry, int]:
    blobs: list[Blob] = []
    if found.draft.id is None:
        raise InvalidInputError("a record needs an id, or it could not be found again")
    row = encode.encode_message(found.draft, blobs)
    made = row.time_created or 0
    parts = tuple(
        encode.encode_part(
            part if part.id else replace(part, id=ids.imported_part_id(row.id, idx, made)), blobs
        )
        for idx, part in enumerate(found.draft.parts)
    )
    weight = sum(blob.size for blob in blobs)
    weight += sum(len(part.text or "") + len(part.data or b"") + 200 for part in parts)
    usage_id = found.usage_id or row.response_id or row.id
    return Entry(row, parts, tuple(blobs), found.parent, usage_id, found.labels), weight


def columns_of(item: SourceSession, blobs: list[Blob]) -> dict[str, Any]:
    """Return the columns of a session's row, checked; raises `InvalidInputError`."""
    packed = codec.pack_data(item.data)
    data_blob = encode.spill(packed, codec.MSGPACK, blobs)
    created = bounds.integer(item.time_created, "time_created") or 0
    updated = bounds.integer(item.time_updated, "time_updated")
    title = encode.string(item.title, "title") or ""
    return {
        "call_id": encode.string(item.call_id, "call_id"),
        "title": title,
        "title_source": item.title_source if title else "derived",
        "version": encode.string(item.version, "version"),
        "agent": encode.string(item.agent, "agent"),
        "provider_id": encode.string(item.provider_id, "provider"),
        "model_id": encode.string(item.model_id, "model"),
        "summary_additions": bounds.integer(item.summary_additions, "summary_additions"),
        "summary_deletions": bounds.integer(item.summary_deletions, "summary_deletions"),
        "summary_files": bounds.integer(item.summary_files, "summary_files"),
        "summary_diffs": encode.json_column(item.summary_diffs, "summary_diffs"),
        "share_url": encode.string(item.share_url, "share_url"),
        "revert": encode.json_column(item.revert, "revert"),
        "permission": encode.json_column(item.permission, "permission"),
        "metadata": encode.json_column(item.metadata or {}, "metadata") or "{}",
        "time_created": created,
        "time_updated": created if updated is None else updated,
        "time_compacting": bounds.integer(item.time_compacting, "time_compacting"),
        "time_archived": bounds.integer(item.time_archived, "time_archived"),
        "data": None if data_blob else packed,
        "data_blob": data_blob,
    }


def _close(item: SourceSession, run: Run, problems: list[Problem]) -> CloseImport:
    blobs: list[Blob] = []
    diffs = None if item.diffs is None else tuple(diff_row(diff, blobs) for diff in item.diffs)
    todos = None
    if item.todos is not None:
        todos = tuple((t.id, t.content, t.status, t.priority) for t in item.todos)
    noted = [{"source": x.source, "line": x.line, "why": x.why} for x in problems]
    return CloseImport(
        run, item.digest, item.size, item.mtime_ns, json.loads(json.dumps(noted)), item.leaf,
        item.parent_message, item.call_id, bounds.integer(item.time_updated, "time_updated"), todos,
        diffs, tuple(blobs),
    )  # fmt: skip
