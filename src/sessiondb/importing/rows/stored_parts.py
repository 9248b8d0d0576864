"""The comparison of an import with a stored message, and the facts of it that stay.

A source may say again what is here in another form: the result of a call in a record of
its own, the keys of an object in another order, an output in a file that its program
has cleaned up. None of that is a change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from sessiondb import codec
from sessiondb.effects.calls import add_data, data_of, filled_call
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement
from sessiondb.importing.rows.messages import is_bare
from sessiondb.importing.rows.run import CurrentMessage, ImportEntry, Placed, Writing
from sessiondb.importing.rows.sums import SessionTotal
from sessiondb.schema.rows import UNKNOWN_TOKENS, MessageRow, PartRow
from sessiondb.schema.terms import TOKENS

#: Messages between the usage of an answer and the answer, at most.
_NEAR = 8
_ANSWER = Statement("importing.rows.stored_parts.ANSWER")
#: The columns that say what a part is.
part_identity = attrgetter("id", "type", "call_id")


def gave_text(current: CurrentMessage, call_id: str | None) -> bool:
    """Return whether a result gave its text to its call before: then it does again."""
    result = ("tool-result", call_id)
    return any(
        is_bare(row) for row in current.parts if (row.type, row.call_id) == result
    )


def dated_part(item: PartRow, placed: Placed) -> PartRow:
    """Return a part with the times that it is stored with."""
    created, updated = item.time_created, item.time_updated
    created = placed.row.time_created if created is None else created
    updated = created if updated is None else updated
    return item._replace(time_created=created, time_updated=updated)


def is_same_data(a: bytes | None, b: bytes | None) -> bool:
    """Return whether two packed objects are equal; their keys have no order."""
    if a == b:
        return True
    if a is None or b is None:
        return False
    return _in_order(codec.unpack(a)) == _in_order(codec.unpack(b))


def with_blobs_of(
    tx: Transaction, current: CurrentMessage, entry: ImportEntry
) -> ImportEntry:
    """Return a message that names the large data that is stored, if that is equal."""
    blob_by_hash = {blob.hash: blob for blob in entry.blobs}

    def same(stored: str | None, name: str | None) -> str | None:
        if stored is None or name is None or stored == name:
            return name
        old = data_of(tx, None, stored)
        new = codec.unpack(codec.content_of_blob(*blob_by_hash[name][1:]))
        return stored if _in_order(old) == _in_order(new) else name

    blobs_by_part = {part_identity(item): item.data_blob for item in current.parts}
    parts = tuple(
        item._replace(
            data_blob=same(blobs_by_part.get(part_identity(item)), item.data_blob)
        )
        for item in entry.parts
    )
    row = entry.row
    row = row._replace(data_blob=same(current.columns["data_blob"], row.data_blob))
    return entry._replace(row=row, parts=parts)


def _is_same_input(a: str | None, b: str | None) -> bool:
    """Return whether two JSON texts are equal; their keys have no order."""
    if a == b:
        return True
    if a is None or b is None:
        return False
    return _in_order(json.loads(a)) == _in_order(json.loads(b))


def _in_order(value: Any) -> str:
    """Return a text of a value in which 1, 1.0 and true differ, unlike in Python."""
    return json.dumps(value, sort_keys=True, default=repr)


def as_stored(writing: Writing, old: PartRow | None, item: PartRow) -> PartRow:
    """Return a part as it is stored if it did not change."""
    if old is None:
        return item

    if is_same_data(old.data, item.data):
        item = item._replace(data=old.data)
    if _is_same_input(old.input, item.input):
        item = item._replace(input=old.input)
    # The source has the result of this call in a record of its own: the call keeps it.
    if item.type == "tool" and old.settled and not item.settled:
        return _with_result(writing, old, item)
    if item.type == "tool-result" and is_bare(old):
        shared = filled_call(writing.tx, writing.state.id, item)
        return item._replace(text=None, text_blob=None) if shared else item
    return item


def has_answer(writing: Writing, event: MessageRow, seq: int) -> bool:
    """Return whether the session has the answer whose usage an *event* states.

    A program may write the usage of an answer before the answer. If its log was cut
    between the two after both had been imported, the answer is still here, and counts.
    """
    if event.response_id is None:
        return False
    near = {"first": seq - _NEAR, "last": seq + _NEAR}
    answer = writing.tx.one(
        _ANSWER, sid=writing.state.id, response=event.response_id, **near
    )
    return answer is not None


def with_stored_usage(
    tx: Transaction, current: CurrentMessage, entry: ImportEntry
) -> MessageRow:
    """Return a message with the cost and the total that are here, if it has none now.

    A program may remove the record that stated a cost, or the original of a fork, whose
    part in a total is not known without it. The rest of a total is computed here.
    """
    row, stored = entry.row, current.columns
    counts = tuple(stored[name] for name in TOKENS)
    if row.cost is not None or (row.role, *row.tokens) != (stored["role"], *counts):
        return row

    row = row._replace(cost=stored["cost"])
    if row.kind == "usage" and row.tokens == UNKNOWN_TOKENS:
        data = {blob.hash: blob.data for blob in entry.blobs}.get(row.data_blob or "")
        new = codec.unpack_part(row.data, data)
        old = data_of(tx, stored["data"], stored["data_blob"])
        if _is_better_known(SessionTotal.of(old), SessionTotal.of(new)):
            names = ("model_id", "data", "data_blob")
            row = row._replace(**{name: stored[name] for name in names})
    return row


def _is_better_known(total: SessionTotal | None, other: SessionTotal | None) -> bool:
    """Return whether a total of an event is the one to keep.

    It has more of the session, or of the same less that the original of a fork has.
    """
    if total is None or other is None:
        return total is not None
    return (total.since, total.cost) <= (other.since, other.cost)


def files_gone(
    tx: Transaction, stored: Iterable[PartRow], parts: Iterable[PartRow]
) -> Iterator[PartRow]:
    """Yield the stored files that a program kept beside its log and does not have now.

    A program cleans up such a folder, and an export has the log alone. Its record still
    names the output, of which this database may have the only copy.
    """
    present = {part_identity(part) for part in parts}
    for row in stored:
        if row.type != "file" or part_identity(row) in present:
            continue
        if {"added", "content"} <= data_of(tx, row.data, row.data_blob).keys():
            yield row


def _with_result(writing: Writing, old: PartRow, item: PartRow) -> PartRow:
    """Return a call with the result that another record of the source gave it."""
    names = "status outcome text text_blob time_updated time_ended".split()
    result = {name: getattr(old, name) for name in names}

    tx = writing.tx
    exact = data_of(tx, old.data, old.data_blob).get(codec.EXACT)
    if exact is not None and item.data_blob is None:
        exact_text = {codec.EXACT: exact}
        columns = add_data(tx, writing.state.id, item.data, None, exact_text)
        result["data"], result["data_blob"] = columns
    return item._replace(**result)
