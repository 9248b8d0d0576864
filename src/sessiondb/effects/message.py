"""Effects that write the conversation: append, add_part, finish.

An append reads one session row and its parent's turn, writes a message, its
parts and the session row. Whether the message exists already is queried only
if a caller gave the id or the unit is being retried.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sessiondb import codec
from sessiondb.dataclass import dataclass
from sessiondb.effects import ownership
from sessiondb.effects.calls import fill_call, filled_call
from sessiondb.effects.encode import same_json, usage_key
from sessiondb.effects.ownership import UsageKey
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.base import Name
from sessiondb.engine.search_index import SearchedTexts
from sessiondb.engine.sql import SparseInsert, Statement
from sessiondb.errors import ConflictError, NotFoundError
from sessiondb.model.handles import LEAF, MessageHandle
from sessiondb.model.purposes import is_prompt
from sessiondb.schema.rows import (
    MESSAGE_VALUES,
    PART_VALUES,
    UNKNOWN_USAGE,
    Blob,
    MessageRow,
    PartRow,
)

TITLE_LENGTH = 80

# For the two tables that every turn writes: `Transaction.insert` looks its table up by
# all of its columns.
_MESSAGE_ROWS = SparseInsert("message", MESSAGE_VALUES)
_PART_ROWS = SparseInsert("part", PART_VALUES)

_BY_ID = Statement("effects.message.BY_ID")
_SEQ_OF = Statement("effects.message.SEQ_OF")
_SEQ_IS = Statement("effects.message.SEQ_IS")
TURN = Statement("effects.message.TURN")


class StoredPart(NamedTuple):
    """A part as `same_part` compares it."""

    id: str
    type: str
    tool: str | None
    call_id: str | None
    status: str | None
    input: str | None
    input_blob: str | None
    text: str | None
    text_blob: str | None
    outcome: str | None
    data: bytes | None
    data_blob: str | None
    time_updated: int


_PARTS = Statement("effects.message.PARTS")
_TITLE = Statement("effects.message.TITLE")


def seq_of(tx: Transaction, session_id: str, key: str | int) -> int:
    """Return the seq of a message by id or seq; raises `NotFoundError`."""
    if isinstance(key, int):
        row = tx.one(_SEQ_IS, sid=session_id, at=key)
    else:
        row = tx.one(_SEQ_OF, sid=session_id, mid=key)

    if row is None:
        raise NotFoundError(f"message {key} is not in session {session_id}")

    return int(row[0])


def check_expected(
    tx: Transaction, state: SessionState, leaf: Any, revision: int | None
) -> None:
    """Raise `ConflictError` if a session has another leaf or revision.

    *leaf* is a seq, an id or None for no message, and ... for any; so is a *revision*
    of None.
    """
    expected_seq = leaf
    if isinstance(leaf, str):
        # One that was removed is not the leaf, either.
        expected_seq = tx.value(_SEQ_OF, sid=state.id, mid=leaf) or 0
    if expected_seq not in (..., state.leaf_seq):
        raise ConflictError(
            f"the leaf of session {state.id} is {state.leaf_seq}, expected {leaf}",
            hint="read what was added, then try again",
        )
    if revision not in (None, state.revision):
        raise ConflictError(
            f"session {state.id} is at revision {state.revision}, expected {revision}",
            hint="read what changed, then try again",
        )


class PartPlace(NamedTuple):
    """The place of a new part, and what it has from its message."""

    session_id: str
    seq: int
    idx: int
    #: Whether search indexes it also if it is a call without a result.
    complete: bool
    inherited: int = 0
    #: The time of a part that states none, in Unix ms; None is now.
    message_time: int | None = None


def insert_part(tx: Transaction, row: PartRow, place: PartPlace) -> None:
    """Insert one part; it is indexed if it is complete or settled, and owned."""
    tx.connection.execute(*_PART_ROWS.of_row(part_values(tx, row, place)))


def part_values(tx: Transaction, row: PartRow, place: PartPlace) -> tuple[Any, ...]:
    """Return the values of `PART_VALUES` for a new part at its *place*."""
    address = place.session_id, place.seq, place.idx
    is_final = place.complete or row.settled
    is_searched = is_final and not place.inherited and row.searchable
    words = texts = None
    if is_searched:
        if row.text_blob is None and row.input_blob is None:
            words = tx.engine.search.words_of_part(row.text, row.input, row.title)
            texts = SearchedTexts(words, row.text, row.input, row.title)
            tx.carryover.waiting_bytes += len(row.text or "") + len(row.input or "")
        else:
            tx.to_prepare.append(address)
    created = row.time_created
    if created is None:
        created = place.message_time
    if created is None:
        created = tx.now

    updated = row.time_updated
    if updated is None:
        updated = created

    return row.values(
        rid=tx.waiting.add(tx.connection, address, texts, is_searched=is_searched),
        session_id=place.session_id,
        seq=place.seq,
        idx=place.idx,
        inherited=place.inherited,
        indexed=int(is_searched),
        words=words,
        time_created=created,
        time_updated=updated,
    )


def _came_later(parts: list[StoredPart], completed: int | None) -> bool:
    """Return whether *parts* were added to a message after it was *completed*."""
    return completed is not None and all(
        item.time_updated > completed for item in parts
    )


def parts_of(tx: Transaction, session_id: str, seq: int) -> list[StoredPart]:
    """Return the parts of a message in their order; [] for a message without any."""
    return [StoredPart._make(row) for row in tx.run(_PARTS, sid=session_id, at=seq)]


def same_part(
    tx: Transaction, session_id: str, stored: StoredPart, row: PartRow, is_open: bool
) -> bool:
    """Return whether a stored part is what *row* would write, or became of it since.

    A call continues, the text of a part of an open message grows, and the text of
    a result may be stored with its call.
    """
    if (stored.type, stored.tool, stored.call_id) != (row.type, row.tool, row.call_id):
        return False

    # For the rest of the unit, the part that was queued is the stored one.
    tx.aliases[row.id] = stored.id
    # A call that was open when it was written may have run since.
    has_moved_on = not row.settled and row.status is not None
    if has_moved_on and stored.status != row.status:
        return True

    # A stream fills a part that began empty.
    is_growing = is_open and row.status is None and not row.text and not row.text_blob
    if is_growing:
        return _same_call(stored, row, is_open)

    return (
        _same_text(tx, session_id, stored, row)
        and _same_call(stored, row, is_open)
        and _same_data(stored, row)
    )


def _same_text(
    tx: Transaction, session_id: str, stored: StoredPart, row: PartRow
) -> bool:
    if (stored.text, stored.text_blob) == (row.text, row.text_blob):
        return True

    is_empty = stored.text is None and stored.text_blob is None
    return (
        is_empty and stored.type == "tool-result" and filled_call(tx, session_id, row)
    )


def _same_call(stored: StoredPart, row: PartRow, is_open: bool) -> bool:
    if (stored.status, stored.outcome) != (row.status, row.outcome):
        return False
    if is_open and not (row.input or row.input_blob):
        return True
    return stored.input_blob == row.input_blob and same_json(stored.input, row.input)


def _same_data(stored: StoredPart, row: PartRow) -> bool:
    if stored.data_blob != row.data_blob:
        return False
    return stored.data == row.data or codec.unpack(stored.data) == codec.unpack(
        row.data
    )


@dataclass(frozen=True, slots=True, eq=False)
class Append:
    """Write a message after another one, and make it the leaf."""

    verb = "append"
    session_id: str
    row: MessageRow
    parts: tuple[PartRow, ...]
    blobs: tuple[Blob, ...]
    handle: MessageHandle
    own_id: bool
    after: Any = LEAF
    open: bool = False
    expect_leaf: Any = ...
    expect_revision: int | None = None

    @property
    def names(self) -> tuple[Name, ...]:
        """That of an answer which other sessions may have, too."""
        usage = self.row.cost, *self.row.tokens
        if usage == UNKNOWN_USAGE or not self._may_have_copies:
            return ()
        return (ownership.name_of_answer(self.row.response_id or self.row.id),)

    @property
    def _may_have_copies(self) -> bool:
        # Under an id that was made for it, no other session can have it yet.
        return self.own_id or self.row.response_id is not None

    def apply(self, tx: Transaction) -> None:
        """Apply it, or recognise it; raises `ConflictError` and `NotFoundError`."""
        state = tx.peek(self.session_id)
        if (self.own_id or tx.retried) and self._is_there(tx, state):
            return

        check_expected(tx, state, self.expect_leaf, self.expect_revision)
        parent = self._parent_seq(tx, state)
        seq = state.last_seq + 1
        turn_id = self.row.turn_id or self._turn_of_parent(tx, state, parent)
        tx.insert_blobs(state.id, self.blobs)
        key = self._write_rows(tx, state, seq, parent, turn_id)

        tx.used(state, self.row.time_created)
        state.leaf_seq = state.last_seq = seq
        state.leaf_turn = (seq, turn_id)
        state.first_new_seq = state.first_new_seq or seq
        state.message_count += 1
        if is_prompt(self.row.role, self.row.kind, self.parts):
            state.prompt_count += 1
        state.count(self.row.cost, self.row.tokens)
        if self.row.role == "assistant":
            state.answered(self.row.provider_id, self.row.model_id)

        self._name_session(tx, state)
        # Last: it writes the session row, with all that is counted above.
        if key is not None and (self._may_have_copies or tx.retried):
            usage = UsageKey(key, self.row.response_id or self.row.id)
            count_once(tx, state, seq, self.row.id, usage)

        tx.after_commit.append(lambda: setattr(self.handle, "seq", seq))

    def _write_rows(
        self,
        tx: Transaction,
        state: SessionState,
        seq: int,
        parent: int | None,
        turn: str | None,
    ) -> str | None:
        row = self.row
        created = tx.now if row.time_created is None else row.time_created
        completed = row.time_completed
        if completed is None and not self.open:
            completed = created

        name = row.response_id or row.id
        key = usage_key(
            state.source, name, row.model_id, created, (row.cost, *row.tokens)
        )
        values = row.values(
            session_id=state.id,
            seq=seq,
            parent_seq=parent,
            turn_id=turn,
            usage_key=key,
            inherited=0,
            time_created=created,
            time_completed=completed,
        )
        tx.connection.execute(*_MESSAGE_ROWS.of_row(values))
        for idx, part_row in enumerate(self.parts):
            item = part_row
            # The text of a result is stored once, with its call.
            if part_row.type == "tool-result":
                item = fill_call(tx, state, parent, part_row)
            place = PartPlace(
                state.id,
                seq,
                idx,
                complete=not self.open,
                message_time=created,
            )
            insert_part(tx, item, place)

        return key

    def _is_there(self, tx: Transaction, state: SessionState) -> bool:
        row_here = tx.one(_BY_ID, sid=state.id, mid=self.row.id)
        if row_here is None:
            return False

        seq, *stored = row_here
        if not self._is_same(tx, state.id, seq, stored):
            raise ConflictError(
                f"message {self.row.id} is in {state.id} with other content"
            )
        if state.leaf_before is not None:
            # The set_leaf before this was done then, too: what came after it stays.
            (state.leaf_seq,) = state.leaf_before

        part_ids = dict(tx.aliases)
        tx.after_commit.append(lambda: self._update_handles(seq, part_ids))
        return True

    def _update_handles(self, seq: int, part_ids: dict[str, str]) -> None:
        self.handle.seq = seq
        for item in self.handle.parts:
            item.id = part_ids.get(item.id, item.id)

    def _is_same(
        self, tx: Transaction, session_id: str, seq: int, stored: list[Any]
    ) -> bool:
        """Return whether the message at *seq* is what this writes, or became of it."""
        role, kind, turn_id, completed = stored
        if (role, kind) != (self.row.role, self.row.kind):
            return False
        if self.row.turn_id not in (None, turn_id):
            return False

        parts = parts_of(tx, session_id, seq)
        if len(parts) < len(self.parts):
            return False
        # An open message may have got more parts, and may be finished by now.
        later = parts[len(self.parts) :]
        if not self.open and not _came_later(later, completed):
            return False

        pairs = zip(parts, self.parts, strict=False)
        return all(
            same_part(tx, session_id, part_here, stated_part, self.open)
            for part_here, stated_part in pairs
        )

    def _parent_seq(self, tx: Transaction, state: SessionState) -> int | None:
        if self.after is LEAF:
            return state.leaf_seq
        if self.after is None:
            return None
        return seq_of(tx, state.id, self.after)

    def _turn_of_parent(
        self, tx: Transaction, state: SessionState, parent: int | None
    ) -> str | None:
        # A prompt opens a turn; what follows belongs to that of its parent.
        if self.row.role == "user":
            return self.row.id
        if parent is None:
            return None
        written, turn_id = state.leaf_turn
        if parent == written:
            return turn_id

        row = tx.one(TURN, sid=state.id, at=parent)
        return row[0] if row else None

    def _name_session(self, tx: Transaction, state: SessionState) -> None:
        """Derive the title of a session from its first prompt."""
        has_title = state.title or state.title_source != "derived"
        if has_title or self.row.role != "user":
            return

        for row in self.parts:
            if row.type == "text" and (title := shortened(self._words_of_part(row))):
                write_title(tx, state, title)
                return

    def _words_of_part(self, row: PartRow) -> str:
        words = row.text or ""
        if row.text_blob:
            data = next(item.data for item in self.blobs if item.hash == row.text_blob)
            # A character has four bytes at most.
            words = data[: TITLE_LENGTH * 16].decode(errors="ignore")

        return words


def write_title(tx: Transaction, state: SessionState, title: str) -> None:
    """Give a session another title, by which it is found."""
    state.title = title
    tx.run(_TITLE, sid=state.id, title=title)
    tx.engine.search.put_titles(tx.connection, {state.id: title})


def shortened(text: str) -> str:
    """Return the title that a prompt gives to its session; empty if it has no text."""
    words = " ".join(text[: TITLE_LENGTH * 4].split())
    if len(words) <= TITLE_LENGTH:
        return words
    return f"{words[: TITLE_LENGTH - 1]}…"


_TWIN = Statement("effects.message.TWIN")


def count_once(
    tx: Transaction, state: SessionState, seq: int, id: str, usage: UsageKey
) -> None:
    """Count an answer once: another session may have it already.

    `count_copies` completes that, for all answers that a unit appends in a row.
    """
    key, name = usage
    tx.lock_name(*ownership.name_of_answer(name))
    if tx.one(_TWIN, key=key, name=name, sid=state.id, at=seq) is not None:
        tx.forget_states(None)
        tx.copies.append(ownership.UsageClass(state.root_id, seq, id, -1, key, name))


def count_copies(tx: Transaction) -> None:
    """Give each answer that was written as a copy one owner, and count again."""
    if not tx.copies:
        return
    copies, tx.copies = tx.copies, []
    # All copies have to be in the rows before they are compared.
    for state in tx.states.values():
        if state.touched:
            tx.keep(state)
    tx.states = {}
    ownership.recount(tx, ownership.assign_owner(tx, copies))
