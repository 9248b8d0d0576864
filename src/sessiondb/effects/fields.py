"""Arguments of the verbs that become columns: append's keywords, and file diffs.

Values from a caller are checked against `model.bounds` here, so that they are refused
when they are queued.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sessiondb import codec
from sessiondb.effects import encode
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import FileDiff, MessageDraft, PartDraft, Tokens, bounds
from sessiondb.schema.rows import Blob

_FIELDS = {"provider": "provider_id", "model": "model_id", "time": "time_created"}
_ALLOWED = {
    "turn_id",
    "agent",
    "cost",
    "tokens",
    "finish",
    "error",
    "response_id",
    *_FIELDS,
}


def with_fields(draft: MessageDraft, fields: Mapping[str, Any]) -> MessageDraft:
    """Return *draft* with the keyword fields of `Unit.append`; raises `InvalidInputError`."""
    if not isinstance(draft, MessageDraft):
        raise InvalidInputError(
            f"a message is made by user(), assistant(), …, not {abridged(draft)}"
        )
    unknown = fields.keys() - _ALLOWED
    if unknown:
        raise InvalidInputError(f"append has no field {', '.join(sorted(unknown))}")
    named = {_FIELDS.get(name, name): value for name, value in fields.items()}
    return within_bounds(replace(draft, **named) if named else draft)


def within_bounds(draft: MessageDraft) -> MessageDraft:
    """Return *draft* with its times in Unix ms; raises `InvalidInputError` out of bounds."""
    bounds.usd(draft.cost)
    if draft.time_created is draft.time_completed is None:
        return draft
    dated: MessageDraft = _dated(
        draft, time_created="time", time_completed="time_completed"
    )
    return dated


def part_within_bounds(draft: PartDraft | str) -> PartDraft | str:
    """Return a part with its times in Unix ms; raises `InvalidInputError` out of bounds."""
    if not isinstance(draft, PartDraft):
        return draft
    unreserved(draft.data)
    if not encode.states_times(draft):
        return draft
    dated: PartDraft = _dated(draft, **{name: name for name in encode.PART_TIMES})
    return dated


def _dated(draft: Any, **named: str) -> Any:
    times = {
        field: bounds.time_ms(value, what)
        for field, what in named.items()
        if (value := getattr(draft, field)) is not None
    }
    return replace(draft, **times) if times else draft


def unreserved(data: Any) -> Any:
    """Return a caller's data; raises `InvalidInputError` if it has a key that is ours."""
    if data and isinstance(data, Mapping) and codec.EXACT in data:
        raise InvalidInputError(
            f"data must not have the key {codec.EXACT}: it is reserved",
            hint="the exact form of a text is kept by itself",
        )
    return data


def usage(
    cost: Any, tokens: Tokens | Mapping[str, Any] | None
) -> tuple[float | None, tuple[int | None, ...]]:
    """Return a cost in USD and the five counts in column order; raises `InvalidInputError`."""
    return bounds.usd(cost), encode.token_counts(tokens)


def diff_row(diff: FileDiff, blobs: list[Blob]) -> tuple[Any, ...]:
    """Return the file_diff columns after session_id; contents become blobs whatever their size."""
    if not isinstance(diff, FileDiff) or not diff.path:
        raise InvalidInputError(
            f"a diff is a FileDiff with a path, not {abridged(diff)}"
        )
    hashes: list[str | None] = []
    for content in (diff.before, diff.after):
        if content is None:
            hashes.append(None)
            continue
        if not isinstance(content, bytes):
            raise InvalidInputError(
                f"the content of a file is bytes, not {abridged(content)}"
            )
        name = codec.digest(content)
        blobs.append(Blob(name, len(content), codec.BINARY, content))
        hashes.append(name)
    path, patch = encode.string(diff.path, "path"), encode.string(diff.patch, "patch")
    counts = (
        bounds.integer(diff.additions, "additions"),
        bounds.integer(diff.deletions, "deletions"),
    )
    return (bounds.integer(diff.seq, "seq", least=0), path, *hashes, patch, *counts)


#: The value of a field that `Unit.update_session` leaves alone.
KEEP: Any = ...
_NAMES = ("version", "agent", "provider_id", "model_id")
_COUNTS = ("summary_additions", "summary_deletions", "summary_files")


def session_columns(**given: Any) -> dict[str, Any]:
    """Return the session columns that `Unit.update_session` sets; raises `InvalidInputError`."""
    values = {name: value for name, value in given.items() if value is not KEEP}
    if not values:
        raise InvalidInputError("update_session needs a field to set")
    for name, value in values.items():
        if name in _NAMES:
            values[name] = encode.string(value, name)
        elif name in _COUNTS:
            values[name] = bounds.integer(value, name, least=0)
        elif name == "summary_diffs":
            values[name] = encode.json_column(value, name)
        else:
            values[name] = bounds.time_ms(value, name)
    if "model_id" in values:
        values["model_source"] = "derived" if values["model_id"] is None else "caller"
    return values
