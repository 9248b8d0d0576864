"""Effects on tool calls: start, settle, and results that are records of their own.

A call goes pending → running → completed or error, and may be settled in any later
unit, also after its message was finished. The text of a result is stored once: the
first result on the live path fills the call's part, and the record's own text is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sessiondb import codec
from sessiondb.dataclass import dataclass
from sessiondb.effects.encode import data_columns, same_json
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import (
    NOT_INDEXED,
    Transaction,
)
from sessiondb.engine.sql import Statement
from sessiondb.errors import ConflictError, NotFoundError
from sessiondb.model.draft import ending
from sessiondb.model.handles import PartKey
from sessiondb.schema.rows import Blob, PartAddress, PartRow


class StoredCall(NamedTuple):
    """A call as it is stored."""

    session_id: str
    seq: int
    idx: int
    status: str | None
    outcome: str | None
    text: str | None
    text_blob: str | None
    input: str | None
    input_blob: str | None
    title: str | None
    data: bytes | None
    data_blob: str | None
    inherited: int
    time_started: int | None
    words: str | None

    @property
    def address(self) -> PartAddress:
        """What names it."""
        return self.session_id, self.seq, self.idx

    @property
    def settled(self) -> bool:
        """True once its result is known."""
        return self.status in ("completed", "error")


_BY_ID = Statement("effects.calls.BY_ID")
_UNSETTLED_BY_ID = Statement("effects.calls.UNSETTLED_BY_ID")
_BY_CALL_ID = Statement("effects.calls.BY_CALL_ID")
_START = Statement("effects.calls.START")
_TIME_COMPLETED = Statement("effects.calls.TIME_COMPLETED")
_SETTLE = Statement("effects.calls.SETTLE")
_BLOB = Statement("effects.calls.BLOB")


def index_if_finished(tx: Transaction, part: PartAddress) -> None:
    """Have search take in a part again, unless its message is open.

    Of a finished message it has the open calls as well.
    """
    session_id, seq, _ = part
    if tx.value(_TIME_COMPLETED, sid=session_id, at=seq) is not None:
        tx.to_index.append(part)


def search_columns(
    tx: Transaction,
    call: StoredCall,
    text: str | None,
    text_blob: str | None,
    title: str | None,
) -> dict[str, Any]:
    """Return the columns for the search index of a call that gets a result."""
    if call.inherited:
        return NOT_INDEXED
    is_at_hand = text_blob is None and call.input_blob is None
    if not is_at_hand or tx.engine.search.has_passed(tx.connection, call.address):
        tx.to_index.append(call.address)
        return NOT_INDEXED
    if not (text or call.input or title):
        return NOT_INDEXED
    words = tx.engine.search.words_of_part(text, call.input, title)
    if words is not None and words == call.words:
        # A trigger takes a change of text that leaves the words for one by a shell,
        # and removes them: they are of the old text.
        tx.to_index.append(call.address)
        return NOT_INDEXED
    # Most results come while their call waits: both enter the index together.
    tx.carryover.waiting_bytes += len(text or "")
    return {"indexed": 1, "words": words}


def data_of(
    tx: Transaction, data: bytes | None, data_blob: str | None
) -> dict[str, Any]:
    """Return the decoded data of a stored part; nothing is ``{}``."""
    large = None
    if data_blob:
        large = codec.content_of_blob(*tx.one(_BLOB, hash=data_blob))
    return codec.unpack_part(data, large)


def add_data(
    tx: Transaction,
    session_id: str,
    data: bytes | None,
    data_blob: str | None,
    more: Mapping[str, Any],
) -> tuple[bytes | None, str | None]:
    """Return a stored row's data with *more* laid over it; a new blob is stored."""
    if not more:
        return data, data_blob

    blobs: list[Blob] = []
    columns = data_columns({**data_of(tx, data, data_blob), **more}, blobs)
    tx.insert_blobs(session_id, blobs)
    return columns


def find_call(tx: Transaction, session_id: str, key: PartKey) -> StoredCall:
    """Return the open call with that id, else the last with that ``call_id``.

    What is neither is the settled call with that id. An exact *key* is an id alone: it
    is unique, and a program may use one as the ``call_id`` of another call. Raises
    `NotFoundError`.
    """
    # A recognised message may have its parts under other ids than were queued.
    part_id = tx.aliases.get(key.name, key.name)
    row = tx.one(_UNSETTLED_BY_ID, sid=session_id, pid=part_id)
    if row is None and not key.exact:
        row = tx.one(_BY_CALL_ID, sid=session_id, pid=key.name)
    if row is None:
        # One that is settled again, by its id: rare, and not worth the two pages that
        # an index of its own would cost each turn. This walks the session.
        row = tx.one(_BY_ID, sid=session_id, pid=part_id)
    if row is None:
        raise NotFoundError(f"tool call {key.name} is not in session {session_id}")

    return StoredCall._make(row)


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Record the final arguments of a call, and whether it runs or waits."""

    verb = "start"
    session_id: str
    part: PartKey
    input: str | None
    input_blob: str | None
    blobs: tuple[Blob, ...]
    keep_input: bool = False
    status: str = "running"
    time: int | None = None

    def apply(self, tx: Transaction) -> None:
        """Apply it; a call that was started with the same input stays.

        Raises `ConflictError` and `NotFoundError`.
        """
        state = tx.peek(self.session_id)
        call = find_call(tx, state.id, self.part)
        is_same = self.keep_input or (
            call.input_blob == self.input_blob and same_json(call.input, self.input)
        )
        # A unit that is committed again finds its call started, or further.
        if call.status != "pending":
            if is_same or self.status == "pending":
                return
            raise ConflictError(
                f"call {self.part.name} is {call.status}, with another input"
            )

        tx.insert_blobs(state.id, self.blobs)
        tx.release(None if is_same else call.input_blob)
        holder = call if self.keep_input else self
        when = tx.at(self.time)
        tx.run(
            _START,
            sid=state.id,
            at=call.seq,
            idx=call.idx,
            status=self.status,
            input=holder.input,
            input_blob=holder.input_blob,
            **NOT_INDEXED,
            time_updated=when,
            time_started=when if self.status == "running" else None,
        )
        index_if_finished(tx, call.address)
        state.changed_at(call.seq)
        tx.used(state, self.time)


@dataclass(frozen=True, slots=True, eq=False)
class Settle:
    """Write the result of a call."""

    verb = "settle"
    session_id: str
    part: PartKey
    status: str
    outcome: str | None
    text: str | None
    text_blob: str | None
    title: str | None
    data: Mapping[str, Any]
    blobs: tuple[Blob, ...]
    if_open: bool = False
    time: int | None = None

    def apply(self, tx: Transaction) -> None:
        """Apply it; a call settled with the same result stays.

        Raises `ConflictError` and `NotFoundError`.
        """
        state = tx.peek(self.session_id)
        call = find_call(tx, state.id, self.part)
        if call.settled:
            ending = (call.status, call.outcome, call.text, call.text_blob)
            is_same = ending == (self.status, self.outcome, self.text, self.text_blob)
            # The end of a stream settles only what nothing else settled.
            if self.if_open or is_same:
                return
            raise ConflictError(
                f"call {self.part.name} is settled, with another result"
            )

        # Keywords are laid over the data of the call.
        packed, data_blob = add_data(tx, state.id, call.data, call.data_blob, self.data)
        tx.insert_blobs(state.id, self.blobs)
        tx.release(call.text_blob, call.data_blob)
        when = tx.at(self.time)
        title = call.title if self.title is None else self.title
        tx.run(
            _SETTLE,
            sid=state.id,
            at=call.seq,
            idx=call.idx,
            status=self.status,
            outcome=self.outcome,
            title=title,
            text=self.text,
            text_blob=self.text_blob,
            data=packed,
            data_blob=data_blob,
            **search_columns(tx, call, self.text, self.text_blob, title),
            time_updated=when,
            time_started=call.time_started,
            time_ended=when,
        )

        state.changed_at(call.seq)
        tx.used(state, self.time)


_CALL_AT = Statement("effects.calls.CALL_AT")
_ANY_CALL = Statement("effects.calls.ANY_CALL")
_NEAREST = Statement("effects.calls.NEAREST")
_FILL = Statement("effects.calls.FILL")
_FILLED = Statement("effects.calls.FILLED")


def fill_call(
    tx: Transaction,
    state: SessionState,
    leaf: int | None,
    row: PartRow,
    inherited: int = 0,
    *,
    again: bool = False,
) -> PartRow:
    """Fill a call from a result that is a record of its own, and return the record.

    The text of a call's first result is stored once, with the call, and the record is
    returned without it. Any other result keeps its text, unless it is the same. *again*
    means that it is the first one, and changed.
    """
    call = nearest_call(tx, state.id, leaf, row.call_id)
    if call is None:
        return row
    if not (again or waits_for_result(call)):
        return without_same_text(call, row)

    tx.waiting.reread()
    end_columns = end_of_call(tx, state.id, call, row, exact_text(tx, row))
    if inherited:
        indexing: dict[str, Any] = NOT_INDEXED
    else:
        indexing = search_columns(tx, call, row.text, row.text_blob, call.title)
    place = {"sid": state.id, "at": call.seq, "idx": call.idx}
    tx.run(_FILL, **place, **end_columns, **indexing)
    state.changed_at(call.seq)
    return without_text(row)


def waits_for_result(call: StoredCall | PartRow) -> bool:
    """Return whether no result has ended a call."""
    return call.status in ("pending", "running")


def without_text(row: PartRow) -> PartRow:
    """Return a result whose text its call has."""
    return row._replace(text=None, text_blob=None)


def without_same_text(call: StoredCall | PartRow, row: PartRow) -> PartRow:
    """Return another result of a call: its own text stays, unless it is the same."""
    is_same = (call.text, call.text_blob) == (row.text, row.text_blob)
    return without_text(row) if is_same else row


def exact_text(tx: Transaction, row: PartRow) -> str | None:
    """Return the exact form of the text of a result, if it differs from the text."""
    if row.text_blob is None and not codec.has_substitutes((row.text or "").encode()):
        return None
    exact: str | None = data_of(tx, row.data, row.data_blob).get(codec.EXACT)
    return exact


def end_of_call(
    tx: Transaction,
    session_id: str,
    call: StoredCall | PartRow,
    row: PartRow,
    exact: str | None,
) -> dict[str, Any]:
    """Return the columns of a call that its first result on the path changes.

    *exact* is the exact form of its text, if that differs.
    """
    tx.release(call.text_blob)
    status, outcome = ending(row.outcome, failed=row.status == "error")
    more = {} if exact is None else {codec.EXACT: exact}
    data, data_blob = add_data(tx, session_id, call.data, call.data_blob, more)
    return {
        "status": status,
        "outcome": outcome,
        "text": row.text,
        "text_blob": row.text_blob,
        "data": data,
        "data_blob": data_blob,
        "time_updated": tx.now,
        "time_ended": row.time_ended or row.time_created or tx.now,
    }


def nearest_call(
    tx: Transaction, session_id: str, leaf: int | None, call_id: str | None
) -> StoredCall | None:
    """Return the last call of that name on the path to *leaf*.

    Its cost grows with the distance to that call, not with the calls of that name.
    """
    if leaf is None or call_id is None:
        return None
    # Most results come right after their call.
    call = tx.one(_CALL_AT, sid=session_id, call=call_id, at=leaf)
    if call is not None:
        return StoredCall._make(call)
    # The path of a result without any call is not walked to its beginning.
    if tx.one(_ANY_CALL, sid=session_id, call=call_id) is None:
        return None

    place = tx.one(_NEAREST, sid=session_id, call=call_id, leaf=leaf, least=0)
    if place is None:
        return None
    return StoredCall._make(tx.one(_CALL_AT, sid=session_id, call=call_id, at=place[0]))


def filled_call(tx: Transaction, session_id: str, row: PartRow) -> bool:
    """Return whether a result's text is stored with its call."""
    key = {"sid": session_id, "call": row.call_id}
    filled = tx.one(_FILLED, **key, shown=row.text, shown_blob=row.text_blob)
    return filled is not None
