"""Rows to records.

A frozen dataclass sets each field through ``object.__setattr__``, which for
rows of 20 columns costs three times the row itself. Records are therefore built
as a mutable twin of the same layout, which then becomes the frozen class
(measured: 1.0 instead of 3.6 µs).

A row begins with the columns that a record takes as they are, and ends with those that
are decoded. A value in a blob comes as its bytes and its name, which is their SHA-256:
a blob that was removed, or changed, is not taken for what was stored. The hash of bytes
that are read anyway costs 3 us a value of 6 KB, a tenth of what its message costs.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, TypeVar

from sqlalchemy import select, text

from sessiondb import codec
from sessiondb.engine.sql import Statement
from sessiondb.errors import CodecError, CorruptionError
from sessiondb.model import Message, Part, Session
from sessiondb.model.damage import (
    ALTERED,
    GONE,
    Missing,
    damaged,
    message_name,
    part_name,
    session_name,
)
from sessiondb.places import absolute
from sessiondb.repository import Read
from sessiondb.schema import blob, message, part, session

T = TypeVar("T")
Row = tuple[Any, ...]
_UNDECODABLE = (CodecError, ValueError, TypeError, RecursionError)


def maker(cls: type[T], last: Sequence[str] = ()) -> Callable[..., T]:
    """Return a fast positional constructor of a frozen, slotted dataclass.

    It takes the fields in their order, except for *last*, which come at the end. Slots
    are sorted by name, so that the layout is the same.
    """

    def become(record: Any) -> None:
        record.__class__ = cls

    names = [*_field_names(cls, without=last), *last]
    members = {
        "__annotations__": dict.fromkeys(names, Any),
        "__post_init__": become,
    }
    twin: Any = type(cls.__name__, (), members)
    built: Callable[..., T] = dataclass(slots=True, eq=False, repr=False)(twin)
    return built


def _field_names(cls: type[Any], without: Sequence[str]) -> list[str]:
    return [f.name for f in fields(cls) if f.name not in without]


def stored_bytes(data: bytes | None, name: str) -> bytes | None:
    """Return *data* if it is what was stored as the blob *name*, else None."""
    if data is None or sha256(data).hexdigest() != name:
        return None
    return data


def why_unreadable(data: bytes | None, name: str) -> str | None:
    """Return why the blob *name* cannot be shown; None if *data* is what was stored.

    *data* is None if there is no such blob.
    """
    if data is None:
        return GONE
    return ALTERED if stored_bytes(data, name) is None else None


# -- sessions --------------------------------------------------------------------

_SESSION_JSON = ("summary_diffs", "revert", "permission", "metadata")
#: Column → its empty value; that of all others is NULL.
_EMPTY = {"metadata": "{}"}
_SESSION_LAST = ("directory", *_SESSION_JSON, "data")
_NO_DATA = {"data": None, "large": None, "data_blob": None}
_make_session = maker(Session, _SESSION_LAST)
_session_blob = blob.alias("session_blob")
_SESSION_COLUMNS = (
    *(session.c[name] for name in _field_names(Session, without=_SESSION_LAST)),
    *(session.c[name] for name in _SESSION_LAST[:-1]),
    session.c.data,
    _session_blob.c.data.label("large"),
    session.c.data_blob,
)
SELECT_SESSION = select(*_SESSION_COLUMNS).select_from(
    session.outerjoin(_session_blob, _session_blob.c.hash == session.c.data_blob)
)


def session_of(row: Row, base: str | None = None) -> Session:
    """Return the record of a row of `SELECT_SESSION`; raises `CorruptionError`."""
    *plain, directory, diffs, revert, permission, metadata, packed, large, name = row
    if name is not None:
        if reason := why_unreadable(large, name):
            raise damaged(session_name(plain[0]), reason)
        packed = large
    try:
        return _make_session(
            *plain,
            absolute(directory, base),
            diffs and json.loads(diffs),
            revert and json.loads(revert),
            permission and json.loads(permission),
            {} if metadata == "{}" else json.loads(metadata),
            codec.unpack(packed),
        )
    except _UNDECODABLE as error:
        raise damaged(session_name(plain[0]), error) from error


def listed(rows: Iterable[Row], base: str | None) -> list[Session]:
    """Return the records of many rows.

    One that is damaged does not hide the others: it is listed without the columns that
    cannot be decoded, and a warning names it.
    """
    sessions = []
    for row in rows:
        try:
            sessions.append(session_of(row, base))
        except CorruptionError as error:
            warnings.warn(f"{error}; {error.hint}", stacklevel=2)
            sessions.append(session_of(_without_damage(row), base))

    return sessions


def _without_damage(row: Row) -> Row:
    """Return a row of `SELECT_SESSION` without the values that cannot be decoded."""
    values = dict(zip((column.name for column in _SESSION_COLUMNS), row, strict=True))
    for name in _SESSION_JSON:
        try:
            json.loads(values[name])
        except _UNDECODABLE:
            values[name] = _EMPTY.get(name)

    large, blob_name = values["large"], values["data_blob"]
    is_damaged = bool(blob_name and why_unreadable(large, blob_name))
    try:
        codec.unpack(values["data"] if blob_name is None else large)
    except _UNDECODABLE:
        is_damaged = True
    if is_damaged:
        values |= _NO_DATA
    return tuple(values.values())


# -- messages --------------------------------------------------------------------

_MESSAGE_LAST = ("error", "inherited", "data", "parts")
_make_message = maker(Message, _MESSAGE_LAST)
_message_blob = blob.alias("message_blob")
_MESSAGE_COLUMNS = (
    *(message.c[name] for name in _field_names(Message, without=_MESSAGE_LAST)),
    message.c.error,
    message.c.inherited,
    message.c.data,
    _message_blob.c.data.label("large"),
    message.c.data_blob,
)
#: Rows begin with the session's id and seq.
SELECT_MESSAGE = select(*_MESSAGE_COLUMNS).select_from(
    message.outerjoin(_message_blob, _message_blob.c.hash == message.c.data_blob)
)


def message_of(row: Row, parts: tuple[Part, ...], missing: list[Missing]) -> Message:
    """Return the record of a row of `SELECT_MESSAGE`; raises `CorruptionError`.

    If its ``data`` is in a blob that cannot be shown, it is empty, and added to
    *missing*.
    """
    *plain, error, inherited, packed, large, name = row
    session_id, seq = plain[:2]
    if name is not None:
        why_missing = why_unreadable(large, name)
        packed = None if why_missing else large
        if why_missing:
            missing.append((message_name(session_id, seq), why_missing))

    try:
        reason = None if error is None else json.loads(error)
        data = codec.unpack(packed) if packed else {}
    except _UNDECODABLE as undecodable:
        raise damaged(message_name(session_id, seq), undecodable) from undecodable

    return _make_message(*plain, reason, inherited == 1, data, parts)


# -- parts -----------------------------------------------------------------------

_PART_LAST = ("input_json", "text", "data", "inherited", "synthetic")
_make_part = maker(Part, _PART_LAST)
_text_blob, _input_blob, _data_blob = map(blob.alias, ("tb", "ib", "db"))
_PART_COLUMNS = (
    part.c.seq,
    *(part.c[name] for name in _field_names(Part, without=_PART_LAST)),
    part.c.input,
    _input_blob.c.data.label("input_bytes"),
    part.c.input_blob,
    part.c.text,
    _text_blob.c.data.label("text_bytes"),
    part.c.text_blob,
    part.c.data,
    _data_blob.c.data.label("large"),
    part.c.data_blob,
    part.c.inherited,
    part.c.synthetic,
)
#: Rows begin with the message's seq and the part's idx.
SELECT_PART = select(*_PART_COLUMNS).select_from(
    part.outerjoin(_text_blob, _text_blob.c.hash == part.c.text_blob)
    .outerjoin(_input_blob, _input_blob.c.hash == part.c.input_blob)
    .outerjoin(_data_blob, _data_blob.c.hash == part.c.data_blob)
)
_EXACT = codec.EXACT.encode()


def part_of(row: Row, session_id: str, missing: list[Missing]) -> Part:
    """Return the record of a row of `SELECT_PART`; raises `CorruptionError`.

    A value in a blob that cannot be shown is None, and added to *missing*.
    """
    (
        seq, *plain, arguments, arguments_bytes, arguments_name,
        shown, shown_bytes, shown_name, packed, large, large_name, inherited, synthetic,
    ) = row  # fmt: skip
    try:
        if arguments_name is not None:
            arguments_bytes = stored_bytes(arguments_bytes, arguments_name)
            arguments = arguments_bytes and arguments_bytes.decode()
        if shown_name is not None:
            shown_bytes = stored_bytes(shown_bytes, shown_name)
            shown = shown_bytes and shown_bytes.decode()
        if large_name is not None:
            large = stored_bytes(large, large_name)

        if large is not None:
            data = codec.unpack_part(packed, large)
        else:
            data = codec.unpack(packed) if packed else {}
    except _UNDECODABLE as error:
        raise damaged(part_name(session_id, seq, plain[0]), error) from error

    if (
        (arguments_name and arguments_bytes is None)
        or (shown_name and shown_bytes is None)
        or (large_name and large is None)
    ):
        missing += _missing_values(row, part_name(session_id, seq, plain[0]))
    if (packed and _EXACT in packed) or (large and _EXACT in large):
        exact = data.pop(codec.EXACT, None)
        shown = exact if isinstance(exact, str) else shown
        data = codec.unguard(data)

    return _make_part(*plain, arguments, shown, data, inherited == 1, synthetic == 1)


def _missing_values(row: Row, noun: str) -> list[Missing]:
    """Return why values of a row of `SELECT_PART`, the part *noun*, cannot be shown."""
    values = dict(zip((column.name for column in _PART_COLUMNS), row, strict=True))
    reasons = [
        why_unreadable(values[content], values[name])
        for content, name in (
            ("input_bytes", "input_blob"),
            ("text_bytes", "text_blob"),
            ("large", "data_blob"),
        )
        if values[name] is not None
    ]
    return [(noun, why) for why in reasons if why is not None]


def parts_by_seq(
    rows: Iterable[Row], session_id: str, missing: list[Missing]
) -> dict[int, list[Part]]:
    """Return the parts of many messages of a session, by the seq of their message.

    What cannot be shown of them is added to *missing*.
    """
    parts: dict[int, list[Part]] = {}
    for row in rows:
        parts.setdefault(row[0], []).append(part_of(row, session_id, missing))
    return parts


# -- what is missing -------------------------------------------------------------

#: Not run: a read yields it in place of a statement, for something stored that is
#: missing. The driver raises `CorruptionError`, or answers ``[]`` and the read
#: continues without it.
LOST = Statement(lambda: text("SELECT 1 WHERE 0"))


def report_missing(session_id: str, missing: Iterable[Missing]) -> Read[None]:
    """Report what is missing of a session, and why."""
    for name, why in missing:
        yield LOST, {"session_id": session_id, "missing": name, "reason": why}
