"""Drafts to rows: every check that needs no database, and every byte that is hashed.

This runs when an effect is queued, in the caller's thread, so that nothing that
can be refused is found out under the write lock. Each scalar is checked once, where its
column is made. A value of 1 KB or more becomes a
blob; ``text`` stays readable, its exact form goes to ``data`` where it differs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sessiondb import codec, ids
from sessiondb.arguments import one_of
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import MessageDraft, PartDraft, Tokens, bounds
from sessiondb.model.aliases import FINISH, OUTCOME, ROLE, TOKEN, canonical
from sessiondb.model.draft import NO_INPUT, STATUSES
from sessiondb.schema.rows import (
    UNKNOWN_TOKENS,
    UNKNOWN_USAGE,
    Blob,
    MessageRow,
    PartRow,
)

#: Checks a time in Unix ms, which an error calls by the second argument.
CheckTime = Callable[[Any, str], int | None]
Value = TypeVar("Value", str, bytes | None)


def string(value: Any, name: str) -> str | None:
    """Return a readable string or None; else raises `InvalidInputError`."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} must be a string, not {abridged(value)}")
    return codec.readable(value)[0]


def json_column(value: Any, name: str) -> str | None:
    """Return *value* as JSON text; None is NULL. Raises `CodecError`."""
    if value is None:
        return None
    if name == "metadata" and not isinstance(value, Mapping):
        raise InvalidInputError(f"{name} must be a mapping, not {abridged(value)}")
    return codec.json_text(value, name)


def token_counts(tokens: Tokens | Mapping[str, Any] | None) -> tuple[int | None, ...]:
    """Return the five counts in column order; raises `InvalidInputError`."""
    if tokens is None:
        return UNKNOWN_TOKENS

    if isinstance(tokens, Mapping):
        tokens = Tokens(**_named_counts(tokens))

    if not isinstance(tokens, Tokens):
        raise InvalidInputError(
            f"tokens must be Tokens or a mapping, not {abridged(tokens)}"
        )

    counts = tokens.columns()
    for name, count in zip(Tokens.__slots__, counts, strict=True):
        if count is not None:
            bounds.tokens(count, f"tokens.{name}")
    return counts


def _named_counts(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return counts by their column; raises `InvalidInputError`."""
    by_column: dict[str, Any] = {}
    for spelling, count in counts.items():
        if spelling not in TOKEN:
            raise InvalidInputError(
                f"tokens are {', '.join(Tokens.__slots__)}, not {abridged(spelling)}",
                hint="no count contains another: input is without the cache, "
                "output without reasoning",
            )
        name = TOKEN[spelling]
        if name in by_column:
            raise InvalidInputError(f"tokens state {name} twice")
        by_column[name] = count
    return by_column


def spill(
    value: Value, encoding: str, blobs: list[Blob]
) -> tuple[Value | None, str | None]:
    """Return (value, None); of a value that *blobs* takes in, (None, its hash)."""
    data = value.encode() if isinstance(value, str) else value
    if data is None or len(data) < codec.BLOB_BYTES:
        return value, None

    blobs.append(blob_of(data, encoding))
    return None, blobs[-1].hash


def blob_of(content: bytes, encoding: str) -> Blob:
    """Return the row of ``blob`` for a content of any size."""
    return Blob(
        codec.digest(content), len(content), *codec.compress_content(content, encoding)
    )


def text_columns(
    text: str | None, data: Mapping[str, Any], blobs: list[Blob]
) -> tuple[str | None, str | None, bytes | None, str | None]:
    """Return (text, text_blob, data, data_blob) of a text and the data beside it."""
    # A dictionary nearly always: to check against an abstract class is slow.
    if type(data) is not dict and not isinstance(data, Mapping):
        raise InvalidInputError(f"data must be a mapping, not {abridged(data)}")

    if data:
        data = codec.guard(data)
    if text is not None:
        if not isinstance(text, str):
            raise InvalidInputError(f"text must be a string, not {abridged(text)}")
        # SQLite cannot show NUL or lone surrogates: the exact form goes to data.
        shown, changed = codec.readable(text)
        if changed:
            data = {**data, codec.EXACT: text}
        text = shown

    packed, data_blob = data_columns(data, blobs) if data else (None, None)
    # A character has four bytes at most: short texts are not encoded to be measured.
    if text is None or len(text) * 4 < codec.BLOB_BYTES:
        return text, None, packed, data_blob

    return *spill(text, codec.UTF8, blobs), packed, data_blob


def data_columns(
    data: Mapping[str, Any], blobs: list[Blob]
) -> tuple[bytes | None, str | None]:
    """Return (data, data_blob) of a part's data.

    The content of a file is a blob by itself, beside the rest. Where that is as
    large as a blob, too, one blob holds everything.
    """
    rest_of_data, content = codec.split_content(data)
    packed = codec.pack_data(rest_of_data)
    if content is not None:
        if packed is not None and len(packed) < codec.BLOB_BYTES:
            _, name = spill(content, codec.BINARY, blobs)
            return packed, name
        packed = codec.pack_data(data)

    return spill(packed, codec.MSGPACK, blobs)


def input_columns(value: Any, blobs: list[Blob]) -> tuple[str | None, str | None]:
    """Return (input, input_blob) of a call's arguments."""
    if value is NO_INPUT:
        return None, None
    return spill(codec.json_text(value, "input"), codec.UTF8, blobs)


def encode_part(
    draft: PartDraft | str,
    blobs: list[Blob],
    check_time: CheckTime = bounds.time_ms,
    default_id: str | None = None,
) -> PartRow:
    """Check one part and return its row; blobs are added to *blobs*.

    A part without an id gets *default_id*, or else a new one. Raises
    `InvalidInputError` or `CodecError`.
    """
    if isinstance(draft, str):
        draft = PartDraft("text", draft)
    if not isinstance(draft, PartDraft):
        raise InvalidInputError(
            f"a part is a string or made by text(), tool(), …, not {abridged(draft)}"
        )

    text, text_blob, data, data_blob = text_columns(draft.text, draft.data, blobs)
    input_text, input_blob = input_columns(draft.input, blobs)
    status, outcome = draft.status, draft.outcome
    if status is not None:
        one_of(status, STATUSES, "status")
    if outcome is not None:
        outcome = canonical(outcome, OUTCOME, "outcome")
    if draft.type == "tool":
        if not draft.tool:
            raise InvalidInputError("a tool part needs the name of its tool")
        # A call without a result waits for one.
        status = status or "pending"

    if not isinstance(draft.synthetic, bool):
        raise InvalidInputError(
            f"synthetic must be True or False, not {abridged(draft.synthetic)}"
        )

    part_id = draft.id
    if part_id is not None:
        ids.valid_id(part_id, "id (of a part)")
    else:
        part_id = default_id or ids.new_part_id()

    # In the order of the columns: keywords take three times as long.
    return PartRow(
        part_id,
        ids.valid_id(draft.type, "the type of a part"),
        string(draft.tool, "tool"),
        string(draft.call_id, "a call id"),
        status,
        outcome,
        string(draft.title, "title"),
        input_text,
        text,
        text_blob,
        input_blob,
        data,
        data_blob,
        check_time(draft.time_created, "time_created"),
        check_time(draft.time_updated, "time_updated"),
        check_time(draft.time_started, "time_started"),
        check_time(draft.time_ended, "time_ended"),
        int(draft.synthetic),
    )


def encode_message(
    draft: MessageDraft, blobs: list[Blob], check_time: CheckTime = bounds.time_ms
) -> MessageRow:
    """Check one message and return its row, without its parts.

    A program's times may be small numbers, those of a caller of a verb may not.

    Raises `InvalidInputError` and `CodecError`.
    """
    if not isinstance(draft, MessageDraft):
        raise InvalidInputError(
            f"a message is made by user(), assistant(), …, not {abridged(draft)}"
        )

    role = canonical(draft.role, ROLE, "role")
    if role is None or (role == "event" and not draft.kind):
        raise InvalidInputError("a message needs a role, and an event a kind")

    packed = codec.pack_data(draft.data)
    data, data_blob = spill(packed, codec.MSGPACK, blobs) if packed else (None, None)
    message_id = draft.id
    if message_id is None:
        message_id = ids.new_message_id()
    else:
        ids.valid_id(message_id, "id (of a message)")

    turn_id = draft.turn_id
    if turn_id is not None:
        ids.valid_id(turn_id, "turn_id")
    cost, finish = draft.cost, draft.finish
    if cost is not None:
        cost = bounds.usd(cost)
    if finish is not None:
        finish = canonical(finish, FINISH, "finish")

    usage_name = None  # that of an import alone
    return MessageRow(
        message_id,
        role,
        token_counts(draft.tokens),
        turn_id,
        string(draft.kind, "kind"),
        string(draft.agent, "agent"),
        string(draft.provider_id, "provider"),
        string(draft.model_id, "model"),
        string(draft.response_id, "response_id"),
        usage_name,
        cost,
        finish,
        json_column(draft.error, "error"),
        check_time(draft.time_created, "time"),
        check_time(draft.time_completed, "time_completed"),
        data,
        data_blob,
    )


def usage_key(
    source: str,
    usage_id: str,
    model_id: str | None,
    time_created: int,
    usage: tuple[float | None, ...],
) -> str | None:
    """Return the key under which a message's cost is counted once; None without usage.

    *usage* are the cost and the token counts, in the order of `USAGE`.
    """
    if usage == UNKNOWN_USAGE:
        return None
    _, *tokens = usage
    return codec.usage_key(source, usage_id, model_id, time_created, tokens)


def same_json(a: str | None, b: str | None) -> bool:
    """Return whether two JSON texts hold the same value."""
    if a == b:
        return True
    if a is None or b is None:
        return False
    return bool(json.loads(a) == json.loads(b))
