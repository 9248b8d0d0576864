"""The new rows of a batch, which are written together.

Nearly all results follow their calls in the same batch. So a call waits here for its
result, and both are inserted as they stay, without a query and an update for each
result. Rows that wait are not in the tables: `write` comes before anything that reads
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiondb import codec
from sessiondb.dataclass import dataclass, field
from sessiondb.effects.calls import (
    end_of_call,
    exact_text,
    fill_call,
    waits_for_result,
    without_same_text,
    without_text,
)
from sessiondb.effects.message import PartPlace, part_values
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.schema.rows import MESSAGE, PART_VALUES, Blob, PartRow


@dataclass(slots=True, eq=False)
class NewRows:
    """The messages of one session that wait to be written, and their parts."""

    tx: Transaction
    state: SessionState
    _messages: list[tuple[Any, ...]] = field(default_factory=list)
    _parts: list[PartRow] = field(default_factory=list)
    _places: list[PartPlace] = field(default_factory=list)
    _blobs: dict[str, Blob] = field(default_factory=dict)
    #: The seq of the parent of each message.
    _parents: dict[int, int | None] = field(default_factory=dict)
    #: Where in ``_parts`` the calls of each call id are, by the seq of their message.
    _calls: dict[str, dict[int, int]] = field(default_factory=dict)

    def add_message(
        self, seq: int, parent_seq: int | None, values: tuple[Any, ...]
    ) -> None:
        """Add a message by the values of `MESSAGE`; its parts come next."""
        self._messages.append(values)
        self._parents[seq] = parent_seq

    def add_part(self, row: PartRow, place: PartPlace) -> None:
        """Add a part of the message that was added last, or of a stored one."""
        if row.type == "tool" and row.call_id is not None:
            self._calls.setdefault(row.call_id, {})[place.seq] = len(self._parts)
        self._parts.append(row)
        self._places.append(place)

    def add_blobs(self, blobs: Sequence[Blob]) -> None:
        """Add large values that the rows refer to."""
        for blob in blobs:
            self._blobs[blob.hash] = blob

    def fill_call(
        self, leaf: int | None, row: PartRow, *, again: bool = False
    ) -> PartRow:
        """Fill a call from a result, as `calls.fill_call` does; return the result.

        The call is the last of its id on the path to *leaf*, here or in the table.
        """
        calls = self._calls.get(row.call_id or "", {})
        while leaf in self._parents:
            if leaf in calls:
                return self._fill_waiting_call(calls[leaf], row, again=again)
            leaf = self._parents[leaf]
        self._write_blobs()
        return fill_call(self.tx, self.state, leaf, row, again=again)

    def _fill_waiting_call(self, index: int, row: PartRow, *, again: bool) -> PartRow:
        call = self._parts[index]
        if not (again or waits_for_result(call)):
            return without_same_text(call, row)

        exact = self._exact_text(row)
        end_columns = end_of_call(self.tx, self.state.id, call, row, exact)
        self._parts[index] = call._replace(**end_columns)
        return without_text(row)

    def _exact_text(self, row: PartRow) -> str | None:
        shown = self._blobs.get(row.text_blob or "")
        text = (row.text or "").encode() if shown is None else shown.data
        is_known = shown is not None or row.text_blob is None
        if is_known and not codec.has_substitutes(text):
            return None
        # It may be in a blob, and so may the data of the call.
        self._write_blobs()
        return exact_text(self.tx, row)

    def write(self) -> None:
        """Insert all that waits."""
        if not (self._messages or self._parts):
            return
        tx = self.tx
        self._write_blobs()
        tx.insert_many("message", MESSAGE, self._messages)
        self._messages.clear()
        self._parents.clear()

        rows = [
            part_values(tx, row, place)
            for row, place in zip(self._parts, self._places, strict=True)
        ]
        tx.insert_many("part", PART_VALUES, rows)
        self._parts.clear()
        self._places.clear()
        self._calls.clear()

    def _write_blobs(self) -> None:
        self.tx.insert_blobs(self.state.id, list(self._blobs.values()))
        self._blobs.clear()
