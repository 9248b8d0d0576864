"""Arguments of the verbs that become columns: append's keywords, and file diffs.

Values from a caller are checked against `model.bounds` here, so that they are refused
when they are queued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, Final

from sessiondb import codec, ids
from sessiondb.effects import encode
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.loading import load
from sessiondb.model import FileDiff, MessageDraft, PartDraft, Todo, Tokens, bounds
from sessiondb.model.aliases import FINISH, OUTCOME, canonical
from sessiondb.model.draft import (
    MessageFields,
    MessageLike,
    PartLike,
    ending,
    result_text,
)
from sessiondb.model.reserved import own_data
from sessiondb.schema.rows import Blob, PartRow

_FIELDS = {"provider": "provider_id", "model": "model_id", "time": "time_created"}
_OF_DRAFT: tuple[str, ...] = MessageDraft.__slots__
_columns_of = attrgetter(*_OF_DRAFT)
#: Where the column of each keyword of `Unit.append` is in a draft.
_PLACES = {
    name: _OF_DRAFT.index(_FIELDS.get(name, name))
    for name in MessageFields.__annotations__
}


def with_fields(message: MessageLike, fields: MessageFields) -> MessageDraft:
    """Return a draft with the keywords of `Unit.append`; raises `InvalidInputError`."""
    draft = message if isinstance(message, MessageDraft) else object_draft(message)
    if not fields:
        return draft

    if not fields.keys() <= _PLACES.keys():
        unknown = ", ".join(sorted(fields.keys() - _PLACES.keys()))
        raise InvalidInputError(f"append has no field {unknown}")
    # As `dataclasses.replace`, which takes four times as long.
    columns = list(_columns_of(draft))
    for name, value in fields.items():
        columns[_PLACES[name]] = value
    return MessageDraft(*columns)


def object_draft(message: Any) -> MessageDraft:
    """Return the draft that an object describes; raises `InvalidInputError`."""
    # Few programs write objects: the others do not load this.
    load("sessiondb.model.json_drafts")
    from sessiondb.model.json_drafts import message_draft

    return message_draft(message)


def part_of_object(part: Any) -> PartDraft:
    """Return the part that an object describes; raises `InvalidInputError`."""
    load("sessiondb.model.json_drafts")
    from sessiondb.model.json_drafts import part_draft

    draft = part_draft(part)
    unreserved(draft.data)
    return draft


def unreserved(data: Any) -> Any:
    """Return a caller's data; raises `InvalidInputError` for a reserved key."""
    if data and isinstance(data, Mapping) and codec.EXACT in data:
        raise InvalidInputError(
            f"data must not have the key {codec.EXACT}: it is reserved",
            hint="the exact form of a text is kept by itself",
        )
    return data


def part_row(part: PartLike, blobs: list[Blob]) -> PartRow:
    """Return the row of a caller's part; raises `InvalidInputError`, `CodecError`."""
    if isinstance(part, PartDraft):
        unreserved(part.data)
    elif not isinstance(part, str):
        part = part_of_object(part)
    return encode.encode_part(part, blobs)


def is_named(part: PartLike) -> bool:
    """Return whether a caller stated the id of a part."""
    if isinstance(part, Mapping):
        return part.get("id") is not None
    return isinstance(part, PartDraft) and part.id is not None


def usage(
    cost: Any, tokens: Tokens | Mapping[str, Any] | None
) -> tuple[float | None, tuple[int | None, ...]]:
    """Return a cost in USD and the counts in column order.

    Raises `InvalidInputError`.
    """
    return bounds.usd(cost), encode.token_counts(tokens)


def end_reason(finish: Any) -> str:
    """Return how a message ended; raises `InvalidInputError`, also for None."""
    reason = canonical(finish, FINISH, "finish")
    if reason is None:
        raise InvalidInputError("finish says how the message ended")
    return reason


def filled(value: Any, name: str) -> str:
    """Return a readable string that is not empty; raises `InvalidInputError`."""
    text = encode.string(value, name)
    if not text:
        raise InvalidInputError(f"{name} must not be empty")
    return text


def diff_row(diff: FileDiff, blobs: list[Blob]) -> tuple[Any, ...]:
    """Return the columns of a diff after session_id; contents always become blobs."""
    if not isinstance(diff, FileDiff) or not diff.path:
        raise InvalidInputError(
            f"a diff is a FileDiff with a path, not {abridged(diff)}"
        )

    blob_before, blob_after = (
        _content_blob(diff.before, blobs),
        _content_blob(diff.after, blobs),
    )
    return (
        bounds.integer(diff.seq, "seq", least=0),
        encode.string(diff.path, "path"),
        blob_before,
        blob_after,
        encode.string(diff.patch, "patch"),
        bounds.integer(diff.additions, "additions"),
        bounds.integer(diff.deletions, "deletions"),
    )


def diff_rows(
    diffs: Iterable[FileDiff], blobs: list[Blob]
) -> tuple[tuple[Any, ...], ...]:
    """Return the rows of `diff_row`; raises `InvalidInputError` for a path twice."""
    rows: dict[tuple[int, str], tuple[Any, ...]] = {}
    for diff in diffs:
        seq, path, *_ = row = diff_row(diff, blobs)
        if (seq, path) in rows:
            raise InvalidInputError("two diffs of one message name the same path")
        rows[seq, path] = row
    return tuple(rows.values())


def _content_blob(content: Any, blobs: list[Blob]) -> str | None:
    if content is None:
        return None
    if not isinstance(content, bytes):
        raise InvalidInputError(
            f"the content of a file is bytes, not {abridged(content)}"
        )

    # Of any size: a diff has no column for bytes.
    blobs.append(encode.blob_of(content, codec.BINARY))
    return blobs[-1].hash


def todo_row(item: Todo | str) -> tuple[str | None, str, str, str | None]:
    """Return (id, content, status, priority) of a todo; a string is a pending one."""
    todo = Todo(item) if isinstance(item, str) else item
    if not isinstance(todo, Todo):
        raise InvalidInputError(f"todos are Todos or strings, not {abridged(todo)}")

    return (
        encode.string(todo.id, "a todo id"),
        encode.string(todo.content, "content") or "",
        encode.string(todo.status, "status") or "pending",
        encode.string(todo.priority, "priority"),
    )


#: The value of a field that `Unit.update_session` leaves alone.
KEEP: Final = ...
_count = partial(bounds.integer, least=0)
#: How each column that `Unit.update_session` can set is checked.
_COLUMNS: Mapping[str, Callable[[Any, str], Any]] = {
    "version": encode.string,
    "agent": encode.string,
    "provider_id": encode.string,
    "model_id": encode.string,
    "summary_additions": _count,
    "summary_deletions": _count,
    "summary_files": _count,
    "summary_diffs": encode.json_column,
    "time_compacting": bounds.time_ms,
    "scope": ids.optional_id,
}


def session_columns(**columns: Any) -> dict[str, Any]:
    """Return the columns that `Unit.update_session` sets.

    Raises `InvalidInputError`.
    """
    # None is a value here: it clears a column.
    values = {name: value for name, value in columns.items() if value is not KEEP}
    if not values:
        raise InvalidInputError("update_session needs a field to set")

    for name, value in values.items():
        values[name] = _COLUMNS[name](value, name)

    if "model_id" in values:
        values["model_source"] = "derived" if values["model_id"] is None else "caller"

    return values


def call_result(
    output: Any, error: Any, outcome: Any, title: Any, data: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a `Settle` by name; raises `InvalidInputError`."""
    result = result_text(output, error)
    outcome = canonical(outcome, OUTCOME, "outcome")
    status, outcome = ending(outcome, failed=error is not None)
    blobs: list[Blob] = []
    text, text_blob, _, _ = encode.text_columns(result, {}, blobs)
    extra = dict(codec.guard(unreserved(own_data(data, "settle"))))
    if result is not None and codec.readable(result)[1]:
        extra[codec.EXACT] = result

    # Only to be refused here: the transaction packs it, laid over what is stored.
    codec.pack_data(extra)
    return {
        "status": status,
        "outcome": outcome,
        "text": text,
        "text_blob": text_blob,
        "title": encode.string(title, "title"),
        "data": extra,
        "blobs": tuple(item for item in blobs if item.hash == text_blob),
    }
