"""The messages of an import: matched by id, inserted or replaced in place.

A message that vanished from its source stays, off the live path. Whether a message is
a copy that is counted elsewhere is decided once at the end of each transaction, for all
sessions in it: to decide it per session would read every copy again for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import NamedTuple

from sessiondb.dataclass import dataclass
from sessiondb.effects import ownership
from sessiondb.effects.message import PartPlace
from sessiondb.effects.ownership import UsageClass
from sessiondb.effects.session import put_label
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, as_list
from sessiondb.importing.beside.prompts import PromptsOfBatch
from sessiondb.importing.rows.new_rows import NewRows
from sessiondb.importing.rows.run import (
    CurrentMessage,
    ImportEntry,
    Placed,
    Position,
    Run,
    Writing,
)
from sessiondb.importing.rows.sums import complete_sums
from sessiondb.schema.rows import MESSAGE, PartRow

_MATCH = Statement("importing.rows.messages.MATCH")
_PARTS = Statement("importing.rows.messages.PARTS")
#: Columns that an import never changes in a stored message.
_FIXED = ("session_id", "seq", "id", "inherited")
REPLACED = [name for name in MESSAGE if name not in _FIXED]
_REPLACE = Statement("importing.rows.messages.REPLACE")
_RELINK = Statement("importing.rows.messages.RELINK")
_DROP_PARTS = Statement("importing.rows.messages.DROP_PARTS")
_SEQ = Statement("importing.rows.messages.SEQ")
_UNLABEL = Statement("importing.rows.messages.UNLABEL")
_LABELLED = Statement("importing.rows.messages.LABELLED")
_BEGINNINGS = Statement("importing.rows.messages.BEGINNINGS")
_SHARED_KEYS = Statement("importing.rows.messages.SHARED_KEYS")
_OF_PARENT = Statement("importing.rows.messages.OF_PARENT")
_IDS_ELSEWHERE = Statement("importing.rows.messages.IDS_ELSEWHERE")


def seq_by_id(tx: Transaction, session_id: str, message_id: str | None) -> int | None:
    """Return the seq of a message; None if the session does not have it."""
    if message_id is None:
        return None
    seq: int | None = tx.value(_SEQ, sid=session_id, mid=message_id)
    return seq


def is_bare(row: PartRow) -> bool:
    """Return whether a part has no text of its own."""
    return row.text is None and row.text_blob is None


class _Neighbours(NamedTuple):
    """Stored messages that the new ones of a fork may be copies of."""

    #: (seq, id, time) of those of its parent at the same places, by usage key.
    of_parent: dict[str, tuple[int, str, int]]
    #: The ids of new messages that other sessions have.
    ids: set[str]

    def repeats_parent(self, placed: Placed) -> bool:
        """Return whether the parent has a message, and no other one is a copy of it.

        A copy agrees in its usage key, or in its place, which needs an equal id.
        """
        place = self.of_parent.get(placed.usage_key or "")
        if place is None:
            return False
        row = placed.row
        is_same_place = place == (placed.seq, row.id, row.time_created)
        return is_same_place or row.id not in self.ids


@dataclass(slots=True, eq=False)
class WriteBatch:
    """Write some messages of an import.

    ``copies`` are the written messages whose other copies must be settled, ``new``
    those that may have copies, by usage key; ``repeats`` says whether others are those
    that a fork has from its parent. ``typed`` are the prompts among them.
    """

    verb = "import"
    run: Run
    entries: tuple[ImportEntry, ...]
    copies: set[UsageClass] = field(default_factory=set)
    new: dict[str, UsageClass] = field(default_factory=dict)
    repeats: bool = False
    typed: PromptsOfBatch = field(init=False)
    _begun: tuple[int, Position, int, str | None] | None = None
    _neighbours: _Neighbours = field(init=False)

    def apply(self, tx: Transaction) -> None:
        """Write them; changed records are updated in place."""
        run = self.run
        self.copies, self.new, self.typed = set(), {}, PromptsOfBatch(run)
        self.repeats = False
        if run.is_gone(tx):
            return

        self._begin_batch()
        state = tx.peek(run.session_id)
        # Another process that imports the same may have written its records since.
        run.fresh = run.fresh and run.tail == state.last_seq
        self._neighbours = _Neighbours({}, set())
        if run.policy.may_hold_copies(tx, state):
            names = [entry.row.id for entry in self.entries]
            self._neighbours = _neighbours_of(tx, state, names)

        writing = Writing(tx, run, state, NewRows(tx, state))
        for entry in self.entries:
            self._write_entry(writing, entry)
        writing.new_rows.write()
        run.tail = state.last_seq

    def _begin_batch(self) -> None:
        """Record where the run is; a batch that is retried begins there again."""
        run = self.run
        if self._begun is None:
            self._begun = (run.messages, run.last, run.tail, run.typed)
            return

        run.messages, run.last, run.tail, run.typed = self._begun
        # No message of an attempt that was rolled back has a place. One that found its
        # parent there, although that comes later, could become its own ancestor.
        for entry in self.entries:
            run.places.pop(entry.row.id, None)

    def _write_entry(self, writing: Writing, entry: ImportEntry) -> None:
        tx, run, state, new_rows = writing
        # Most imports are of new sessions: nothing is looked up for them.
        current = None if run.fresh else _stored_message(tx, state.id, entry.row.id)
        if current is None:
            placed = run.policy.place(writing, entry, None)
            self._insert_message(writing, entry, placed)
        else:
            new_rows.write()
            placed = run.policy.place(writing, entry, current)
            self._update_message(writing, entry, placed, current)
            self._remove_labels(writing, placed.seq, entry.unlabelled)

        if entry.labels:
            new_rows.write()
        for name in entry.labels:
            self._add_label(tx, state.id, placed.seq, name)
        run.last = run.places[placed.row.id] = (placed.seq, placed.turn_id)
        run.messages += 1
        self.typed.add(entry, placed.seq, placed.row.time_created or 0)

    def _insert_message(
        self, writing: Writing, entry: ImportEntry, placed: Placed
    ) -> None:
        state, new_rows = writing.state, writing.new_rows
        row, key = placed.row, placed.usage_key
        # A copy of a message above is never the one that is counted, and no other one
        # is because of it. To compare it with all its copies would read each message
        # of a chain of forks once for each fork, at each of them.
        repeats = self._neighbours.repeats_parent(placed)
        if repeats:
            placed = placed._replace(inherited=1)
        new_rows.add_blobs(entry.blobs)
        new_rows.add_message(placed.seq, placed.parent_seq, placed.values(state.id))
        state.last_seq = placed.seq
        self._note_change(writing, placed.seq)
        self._insert_parts(writing, placed, None)
        if repeats:
            self.repeats = True
        else:
            self._remember_usage(
                state, placed, row.time_created, key, placed.usage_name
            )

    def _update_message(
        self,
        writing: Writing,
        entry: ImportEntry,
        placed: Placed,
        current: CurrentMessage,
    ) -> None:
        tx, run, state, new_rows = writing
        revised = run.policy.revise(writing, placed, current)
        if revised is None:
            return

        run.changed = True
        old = current.columns
        new = dict(zip(MESSAGE, revised.values(state.id), strict=True))
        place = {"parent_seq": revised.parent_seq, "turn_id": revised.turn_id}
        # Only its place: its parts and their entries in search stay as they are.
        if revised.parts == current.parts and new == {**old, **place}:
            tx.run(_RELINK, sid=state.id, at=revised.seq, **place)
            return

        tx.loose.update(_blobs_of(current))
        tx.insert_blobs(state.id, entry.blobs)
        # One that equals what is stored is not referred to.
        tx.loose.update(blob.hash for blob in entry.blobs)
        values = {name: new[name] for name in REPLACED}
        tx.run(_REPLACE, sid=state.id, at=revised.seq, **values)
        tx.run(_DROP_PARTS, sid=state.id, at=revised.seq)
        tx.waiting.forget()

        self._note_change(writing, revised.seq)
        self._insert_parts(writing, revised, current)
        new_rows.write()
        if old["usage_key"] != revised.usage_key:
            self.typed.rename(entry, revised.row.time_created or 0)
        # Those that were copies of it may need another owner now.
        self._remember_usage(
            state, revised, old["time_created"], old["usage_key"], current.usage_name
        )
        self._remember_usage(
            state,
            revised,
            revised.row.time_created,
            revised.usage_key,
            revised.usage_name,
        )

    def _note_change(self, writing: Writing, seq: int) -> None:
        writing.state.touched = writing.run.changed = True
        writing.state.changed_at(seq)

    def _insert_parts(
        self, writing: Writing, placed: Placed, current: CurrentMessage | None
    ) -> None:
        state, new_rows = writing.state, writing.new_rows
        at_message = placed.complete, placed.inherited, placed.row.time_created
        for idx, item in enumerate(placed.parts):
            row = item
            if item.type == "tool-result":
                row = writing.run.policy.result(writing, placed, item, current)
            place = PartPlace(state.id, placed.seq, idx, *at_message)
            new_rows.add_part(row, place)

    def _add_label(self, tx: Transaction, session_id: str, seq: int, name: str) -> None:
        """Take over a label of the source; a name that exists here stays as it is."""
        if tx.value(_LABELLED, sid=session_id, name=name) is None:
            put_label(tx, session_id, seq, name)
            self.run.changed = True

    def _remove_labels(self, writing: Writing, seq: int, names: Iterable[str]) -> None:
        """Remove labels that the source took back."""
        for name in names:
            done = writing.tx.run(_UNLABEL, sid=writing.state.id, name=name, at=seq)
            if done.rowcount > 0:
                self.run.changed = True

    def _remember_usage(
        self,
        state: SessionState,
        placed: Placed,
        time: int | None,
        key: str | None,
        name: str,
    ) -> None:
        """Remember a message whose copies, if there are any, must be settled."""
        place = (state.root_id, placed.seq, placed.row.id, time or 0)
        usage = UsageClass(*place, key, name)
        suspect = placed.inherited or placed.row.id in self._neighbours.ids
        # Without a key only a fork's message can be a copy.
        if suspect or (key and not self.run.fresh):
            self.copies.add(usage)
        elif key:
            self.new[key] = usage


@dataclass(frozen=True, slots=True, eq=False)
class CountOnce:
    """Settle which copy of each written message is counted, and make the counters.

    The last effect of a transaction: *batches* and *closed* are those of all sessions
    in it, so a message that many of them copied is settled once.
    """

    verb = "import"
    batches: tuple[WriteBatch, ...]
    closed: tuple[Run, ...]

    def apply(self, tx: Transaction) -> None:
        """Write it."""
        copies: set[UsageClass] = set()
        new: dict[str, UsageClass] = {}
        for batch in self.batches:
            copies |= batch.copies
            new |= batch.new

        written = (*copies, *new.values())
        tx.lock(
            names={
                ownership.name_of_answer(usage.usage_name)
                for usage in written
                if usage.usage_key is not None
            }
        )
        if new:
            # Nearly all messages have no copy: one statement finds those that do.
            names = [usage.usage_name for usage in new.values()]
            lists = {"keys": as_list(new), "names": as_list(names)}
            shared = tx.run(_SHARED_KEYS, **lists).fetchall()
            copies.update(new[key] for (key,) in shared)

        closed = {run.session_id for run in self.closed if _is_counted(run)}
        # Where a fork begins is known when it is closed, or its parent is. The
        # messages that it had before are copies, also if the original has another
        # usage, and so another key, by now.
        begun = closed.union(*(run.moved_children for run in self.closed))
        if begun:
            rows = tx.run(_BEGINNINGS, names=as_list(begun)).fetchall()
            copies.update(UsageClass(*row) for row in rows)

        touched = ownership.assign_owner(tx, copies)
        for run in self.closed:
            if _is_counted(run):
                source_id = run.checked.item.source_id
                touched |= complete_sums(tx, run.session_id, source_id)
        touched |= closed | set(self._visible_sessions(tx))
        ownership.recount(tx, touched)

    def _visible_sessions(self, tx: Transaction) -> Iterable[str]:
        """Yield written sessions that are listed while their import continues."""
        for batch in self.batches:
            written = batch.copies or batch.new or batch.repeats
            if written and tx.peek(batch.run.session_id).time_importing is None:
                yield batch.run.session_id


def _is_counted(run: Run) -> bool:
    return run.changed and not run.gone


def _neighbours_of(
    tx: Transaction, state: SessionState, names: Sequence[str]
) -> _Neighbours:
    """Return the messages that some new ones of a fork may be copies of."""
    of_parent: dict[str, tuple[int, str, int]] = {}
    if state.parent_id is not None:
        first = state.last_seq + 1
        places = {"least": first, "most": first + len(names)}
        for key, *place in tx.run(_OF_PARENT, sid=state.parent_id, **places).fetchall():
            of_parent[key] = tuple(place)
    ids = tx.column(_IDS_ELSEWHERE, sid=state.id, names=as_list(names))
    return _Neighbours(of_parent, set(ids))


def _stored_message(
    tx: Transaction, session_id: str, message_id: str
) -> CurrentMessage | None:
    row = tx.one(_MATCH, sid=session_id, mid=message_id)
    if row is None:
        return None
    columns = dict(zip(MESSAGE, row, strict=True))
    parts = tx.run(_PARTS, sid=session_id, at=columns["seq"]).fetchall()
    return CurrentMessage(columns, tuple(PartRow.of(row) for row in parts))


def _blobs_of(current: CurrentMessage) -> list[str]:
    hashes = [current.columns["data_blob"]]
    for row in current.parts:
        hashes += (row.text_blob, row.input_blob, row.data_blob)
    return [name for name in hashes if name]
