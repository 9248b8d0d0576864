"""The effect that replaces a message in place: the same id, seq, parent and times.

Its content is that of the draft: role, kind, parts and data. A further field stays if
the draft does not state it, since what a message cost does not depend on its words.
Nothing of the former content stays, as with a removal.
"""

from __future__ import annotations

from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.effects import ownership
from sessiondb.effects.calls import fill_call
from sessiondb.effects.encode import usage_key
from sessiondb.effects.message import PartPlace, insert_part, seq_of
from sessiondb.effects.removal import (
    forget_prompts,
    name_again,
    named_by,
    release_parts,
)
from sessiondb.effects.results import fill_open_calls, give_back_texts, reopen_calls
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement
from sessiondb.errors import InvalidInputError
from sessiondb.model.handles import MessageHandle
from sessiondb.model.purposes import is_prompt
from sessiondb.schema.rows import Blob, MessageRow, PartRow
from sessiondb.schema.terms import USAGE

#: Columns that stay unless they are stated, beside those of `USAGE`.
KEPT = "turn_id agent provider_id model_id response_id finish error".split()
#: The columns that a replacement writes.
REPLACED = ("role", "kind", *KEPT, *USAGE, "usage_key", "data", "data_blob")
#: Those of the stored message that it reads.
STORED = (
    "id", "parent_seq", *KEPT, *USAGE, "usage_key", "usage_name", "inherited",
    "time_created", "time_completed", "data_blob",
)  # fmt: skip
#: The columns of the stored message by their names.
StoredColumns = dict[str, Any]
_STORED = Statement("effects.replacing.STORED")
_WAS_PROMPT = Statement("effects.open_message.WAS_PROMPT")
_REPLACE = Statement("effects.replacing.REPLACE")
_DROP_PARTS = Statement("effects.replacing.DROP_PARTS")


@dataclass(frozen=True, slots=True, eq=False)
class Replace:
    """Replace the content of a message."""

    verb = "replace"
    session_id: str
    message: str | int
    row: MessageRow
    parts: tuple[PartRow, ...]
    blobs: tuple[Blob, ...]
    handle: MessageHandle
    own_id: bool

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError` and `InvalidInputError`."""
        state = tx.peek(self.session_id)
        seq = seq_of(tx, state.id, self.message)
        row = tx.one(_STORED, sid=state.id, at=seq)
        stored: StoredColumns = dict(zip(STORED, row, strict=True))
        if self.own_id and self.row.id != stored["id"]:
            raise InvalidInputError(
                f"message {stored['id']} keeps its id; the draft states {self.row.id}"
            )

        namesake = named_by(tx, state)
        was_prompt = tx.value(_WAS_PROMPT, sid=state.id, at=seq)
        tx.insert_blobs(state.id, self.blobs)
        forget_prompts(tx, state, {seq})
        give_back_texts(tx, state, {seq})
        call_ids = reopen_calls(tx, state, {seq})
        release_parts(tx, state.id, {seq})
        tx.run(_DROP_PARTS, sid=state.id, at=seq)
        self._write_parts(tx, state, seq, stored)
        # Last: its new usage may make it a copy, and its parts with it.
        self._write_columns(tx, state, seq, stored)
        own_ids = [row.call_id for row in self.parts if row.type == "tool"]
        fill_open_calls(tx, state, call_ids.union(filter(None, own_ids)))

        state.changed_at(seq)
        state.prompt_count += is_prompt(self.row.role, self.row.kind, self.parts)
        state.prompt_count -= was_prompt
        if namesake == seq:
            name_again(tx, state)
        tx.used(state)
        tx.after_commit.append(lambda: self._update_handles(seq, stored["id"]))

    def _write_columns(
        self, tx: Transaction, state: SessionState, seq: int, stored: StoredColumns
    ) -> None:
        row = self.row
        columns = {name: _stated(row, stored, name) for name in KEPT}
        old_usage = _usage_of(stored)
        pairs = zip((row.cost, *row.tokens), old_usage, strict=True)
        usage = tuple([old if new is None else new for new, old in pairs])
        name = stored["usage_name"] or columns["response_id"] or stored["id"]
        key = stored["usage_key"]
        # That of an import is made by its own rules, and does not depend on the cost.
        facts = (columns["model_id"], columns["response_id"], usage[1:])
        stored_facts = (stored["model_id"], stored["response_id"], old_usage[1:])
        if key is None or facts != stored_facts:
            key = usage_key(
                state.source, name, columns["model_id"], stored["time_created"], usage
            )

        tx.release(stored["data_blob"])
        tx.run(
            _REPLACE,
            sid=state.id,
            at=seq,
            role=row.role,
            kind=row.kind,
            **columns,
            **dict(zip(USAGE, usage, strict=True)),
            usage_key=key,
            data=row.data,
            data_blob=row.data_blob,
        )
        if (key, usage) != (stored["usage_key"], old_usage):
            place = (state.root_id, seq, stored["id"], stored["time_created"])
            new = ownership.UsageClass(*place, key, name)
            _count_again(tx, state, stored, usage, new)
        if stored["model_id"] is not None or columns["model_id"] is not None:
            ownership.derive_model(tx, state.id)

    def _write_parts(
        self, tx: Transaction, state: SessionState, seq: int, stored: StoredColumns
    ) -> None:
        for idx, new_row in enumerate(self.parts):
            row = new_row
            if row.time_updated is None:
                # Of two states of a message, a merge of logs takes the later.
                row = row._replace(time_updated=tx.now)
            if row.type == "tool-result":
                row = fill_call(tx, state, stored["parent_seq"], row)
            place = PartPlace(
                state.id,
                seq,
                idx,
                complete=stored["time_completed"] is not None,
                inherited=stored["inherited"],
                message_time=stored["time_created"],
            )
            insert_part(tx, row, place)

    def _update_handles(self, seq: int, message_id: str) -> None:
        self.handle.seq, self.handle.id = seq, message_id
        for item in self.handle.parts:
            item.message_id = message_id


def _usage_of(stored: StoredColumns) -> tuple[Any, ...]:
    return tuple([stored[name] for name in USAGE])


def _stated(row: MessageRow, stored: StoredColumns, name: str) -> Any:
    value = getattr(row, name)
    return stored[name] if value is None else value


def _count_again(
    tx: Transaction,
    state: SessionState,
    stored: StoredColumns,
    usage: tuple[Any, ...],
    new: ownership.UsageClass,
) -> None:
    """Count the new *usage*, and decide again which of the copies is counted.

    *new* is the class of the message from now on.
    """
    if not stored["inherited"]:
        for sign, (cost, *tokens) in ((-1, _usage_of(stored)), (1, usage)):
            state.count(cost, tokens, sign)
    elif usage[0] is not None:
        inherited = (state.cost_inherited or 0.0) - (stored["cost"] or 0.0)
        state.cost_inherited = inherited + usage[0]

    name = stored["usage_name"] or stored["response_id"] or stored["id"]
    old = new._replace(usage_key=stored["usage_key"], usage_name=name)
    tx.lock_name(*ownership.name_of_answer(new.usage_name))
    ownership.recount(tx, ownership.assign_owner(tx, [old, new]))
