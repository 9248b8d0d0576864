"""The transactions of an import: each holds at most 500 records or 4 MB.

Several small sessions share a transaction, a large one takes as many as it needs. The
outcome of a session is known once the transaction that ends it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from sessiondb.database.core import Core
from sessiondb.dataclass import dataclass
from sessiondb.effects.project import ProjectPlace
from sessiondb.effects.queue import Effect
from sessiondb.importing.beside.prompts import FeedPrompts, MessageBatch
from sessiondb.importing.known_files import KeepFacts
from sessiondb.importing.rows.extension_rows import ImportExtensionRows
from sessiondb.importing.rows.family import LinkFamilies
from sessiondb.importing.rows.messages import CountOnce, WriteBatch
from sessiondb.importing.rows.run import ImportEntry, Run
from sessiondb.importing.rows.session import OpenImport
from sessiondb.model import ExtensionRow, Imported, Problem

MAX_RECORDS = 500
MAX_BYTES = 4 * 1024 * 1024

Results = Iterator[Imported | Problem]
#: Makes the effect that writes some messages of a session.
Write = Callable[[Run, tuple[ImportEntry, ...]], MessageBatch]


@dataclass(slots=True)
class _NextUnit:
    """The contents of the next transaction so far."""

    effects: list[Effect] = field(default_factory=list)
    places: list[ProjectPlace] = field(default_factory=list)
    opened: list[Run] = field(default_factory=list)
    closed: list[Run] = field(default_factory=list)
    #: The expected result of each of them.
    results: list[Imported] = field(default_factory=list)
    batches: list[MessageBatch] = field(default_factory=list)
    records: int = 0
    size: int = 0


@dataclass(slots=True)
class Units:
    """Gathers the effects of an import and commits them."""

    core: Core
    #: The number of transactions.
    committed: int = 0
    _next: _NextUnit = field(default_factory=_NextUnit)

    def open(self, run: Run, place: ProjectPlace | None) -> None:
        """Begin a session."""
        self._next.effects.append(OpenImport(run, place))
        if place is not None:
            self._next.places.append(place)
        self._next.opened.append(run)
        self._next.size += sum(blob.size for blob in run.checked.blobs)

    def write(
        self, run: Run, entries: Iterable[ImportEntry], effect_of: Write
    ) -> Results:
        """Write the messages of a session; *effect_of* makes the effects."""
        batch: list[ImportEntry] = []
        for entry in entries:
            # A record larger than a transaction has one to itself.
            if self._next.records and not self._fits_unit(entry.records, entry.size):
                self._add_batch(run, batch, effect_of)
                batch = []
                yield from self.commit()

            batch.append(entry)
            self._next.records += entry.records
            self._next.size += entry.size
        self._add_batch(run, batch, effect_of)

    def write_extension_rows(self, run: Run, rows: Iterable[ExtensionRow]) -> Results:
        """Write the rows that programs added to a session."""
        batch: list[ExtensionRow] = []
        for row in rows:
            size = sum(
                len(value)
                for value in row.columns.values()
                if isinstance(value, str | bytes)
            )
            if self._next.records and not self._fits_unit(1, size):
                self._add_extension_rows(run, batch)
                batch = []
                yield from self.commit()

            batch.append(row)
            self._next.records += 1
            self._next.size += size
        self._add_extension_rows(run, batch)

    def close(self, run: Run, effect: Effect, done: Imported) -> Results:
        """End a session with *effect*; *done* is its expected result."""
        self._next.effects.append(effect)
        self._next.closed.append(run)
        self._next.results.append(done)
        self._next.records += 1
        self._next.size += sum(blob.size for blob in run.checked.diff_blobs)

        if self._next.records >= MAX_RECORDS or self._next.size >= MAX_BYTES:
            yield from self.commit()

    def keep(self, facts: KeepFacts) -> None:
        """Store facts of files with the next transaction."""
        self._next.effects.append(facts)

    def commit(self) -> Results:
        """Commit what was gathered; yield the results of sessions that end in it."""
        now, self._next = self._next, _NextUnit()
        if not now.effects:
            return

        unit = self.core.unit()
        unit.places += now.places
        unit.add(*now.effects)
        unit.add(LinkFamilies(tuple(now.opened)))
        # Last: who is counted depends on families and on every message written.
        # A session that came back has no copies.
        written = tuple(batch for batch in now.batches if isinstance(batch, WriteBatch))
        unit.add(CountOnce(written, tuple(now.closed)))
        unit.add(FeedPrompts(tuple(now.batches), tuple(now.closed)))
        self.core.commit(unit)
        self.committed += 1

        for run, done in zip(now.closed, now.results, strict=True):
            yield from _results_of(run, done)

    def _fits_unit(self, records: int, size: int) -> bool:
        total = self._next.records + records
        return total <= MAX_RECORDS and self._next.size + size <= MAX_BYTES

    def _add_extension_rows(self, run: Run, batch: list[ExtensionRow]) -> None:
        if batch:
            self._next.effects.append(ImportExtensionRows(run, tuple(batch)))

    def _add_batch(self, run: Run, batch: list[ImportEntry], effect_of: Write) -> None:
        if not batch:
            return
        effect = effect_of(run, tuple(batch))
        self._next.effects.append(effect)
        self._next.batches.append(effect)


def _results_of(run: Run, done: Imported) -> Results:
    outcome = done.outcome
    if run.gone:
        outcome = "deleted"
    elif outcome == "updated" and not run.changed:
        outcome = "unchanged"

    yield from run.left_out
    yield Imported(
        outcome,
        run.session_id,
        done.source,
        done.source_id,
        run.messages,
        done.problems + run.left_out,
    )
