"""Rows to records.

A frozen dataclass sets each field through ``object.__setattr__``, which for
rows of 20 columns costs three times the row itself. Records are therefore built
as a mutable twin of the same layout, which then becomes the frozen class
(measured: 1.0 instead of 3.6 µs).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

from sqlalchemy import LargeBinary, Text, func, select
from sqlalchemy import cast as sql_cast

from sessiondb import codec
from sessiondb.errors import CodecError, CorruptionError
from sessiondb.hints import command
from sessiondb.model import Message, Part, Session
from sessiondb.places import absolute
from sessiondb.schema import blob, message, part, session

T = TypeVar("T")


def maker(cls: type[T]) -> Callable[..., T]:
    """Return a fast positional constructor of a frozen, slotted dataclass."""
    names = [f.name for f in fields(cast(Any, cls))]
    twin: Any = dataclass(slots=True, eq=False, repr=False)(
        type(cls.__name__, (), {"__annotations__": dict.fromkeys(names, Any)})
    )

    def make(*values: Any) -> T:
        record = twin(*values)
        record.__class__ = cls
        return cast(T, record)

    return make


_make_part, _make_message, _make_session = maker(Part), maker(Message), maker(Session)

_SESSION_FIELDS = [f.name for f in fields(Session) if f.name != "data"]
_session_blob = blob.alias("session_blob")
SESSION_COLUMNS = (
    *(session.c[name] for name in _SESSION_FIELDS),
    func.coalesce(session.c.data, _session_blob.c.data, type_=LargeBinary).label(
        "data"
    ),
)
SESSION_FROM = session.outerjoin(
    _session_blob, _session_blob.c.hash == session.c.data_blob
)
_JSON_FIELDS = [
    (_SESSION_FIELDS.index(n))
    for n in ("summary_diffs", "revert", "permission", "metadata")
]
_DIRECTORY, _METADATA = (
    _SESSION_FIELDS.index("directory"),
    _SESSION_FIELDS.index("metadata"),
)
_UNDECODABLE = (CodecError, ValueError, TypeError, RecursionError)


def damaged(what: str, error: Exception) -> CorruptionError:
    """Return the error of a stored value that cannot be decoded."""
    return CorruptionError(
        f"{what} is damaged: {error}",
        hint=f"{command('check')} lists what is damaged; a backup may have it intact",
    )


def session_of(row: tuple[Any, ...], base: str | None = None) -> Session:
    """Return the record of a row of `SESSION_COLUMNS`; raises `CorruptionError`."""
    values = list(row)
    try:
        for index in _JSON_FIELDS:
            if values[index] is not None:
                values[index] = (
                    {} if values[index] == "{}" else json.loads(values[index])
                )
        values[-1] = codec.unpack(values[-1])
    except _UNDECODABLE as error:
        raise damaged(f"session {row[0]}", error) from error
    values[_DIRECTORY] = absolute(values[_DIRECTORY], base)
    return _make_session(*values)


def listed(rows: Iterable[tuple[Any, ...]], base: str | None) -> list[Session]:
    """Return the records of many rows.

    One that is damaged does not hide the others: it is listed without the columns that
    cannot be decoded, and a warning names it.
    """
    found = []
    for row in rows:
        try:
            found.append(session_of(row, base))
        except CorruptionError as error:
            warnings.warn(f"{error}; {error.hint}", stacklevel=2)
            found.append(session_of(_without_damage(row), base))
    return found


def _without_damage(row: tuple[Any, ...]) -> tuple[Any, ...]:
    values = list(row)
    for index in (*_JSON_FIELDS, len(values) - 1):
        decode: Callable[[Any], Any] = (
            json.loads if index in _JSON_FIELDS else codec.unpack
        )
        try:
            if values[index] is not None:
                decode(values[index])
        except _UNDECODABLE:
            values[index] = "{}" if index == _METADATA else None
    return tuple(values)


_message_blob = blob.alias("message_blob")
_MESSAGE_FIELDS = [f.name for f in fields(Message) if f.name not in ("data", "parts")]
MESSAGE_COLUMNS = (
    *(message.c[name] for name in _MESSAGE_FIELDS),
    message.c.data,
    _message_blob.c.data.label("large"),
)
MESSAGE_FROM = message.outerjoin(
    _message_blob, _message_blob.c.hash == message.c.data_blob
)
_ERROR = _MESSAGE_FIELDS.index("error")
_INHERITED = _MESSAGE_FIELDS.index("inherited")


def message_of(row: tuple[Any, ...], parts: tuple[Part, ...]) -> Message:
    """Return the record of a row of `MESSAGE_COLUMNS`; raises `CorruptionError`."""
    *values, packed, large = row
    packed = packed or large
    try:
        if values[_ERROR] is not None:
            values[_ERROR] = json.loads(values[_ERROR])
        data = codec.unpack(packed) if packed else {}
    except _UNDECODABLE as error:
        session_id, seq, *_ = row
        raise damaged(f"message {seq} of session {session_id}", error) from error
    values[_INHERITED] = values[_INHERITED] == 1
    return _make_message(*values, data, parts)


_text_blob, _input_blob, _data_blob = (
    blob.alias("tb"),
    blob.alias("ib"),
    blob.alias("db"),
)
#: The columns of a part whose value may be in a blob instead.
_SPILLED = {
    "text": func.coalesce(part.c.text, sql_cast(_text_blob.c.data, Text)).label("text"),
    "input_json": func.coalesce(part.c.input, sql_cast(_input_blob.c.data, Text)).label(
        "input"
    ),
}
_PART_FIELDS = [f.name for f in fields(Part)]
PART_COLUMNS = (
    part.c.seq,
    *(_SPILLED[n] if n in _SPILLED else part.c[n] for n in _PART_FIELDS),
    _data_blob.c.data.label("large"),
)
PART_FROM = (
    part.outerjoin(_text_blob, _text_blob.c.hash == part.c.text_blob)
    .outerjoin(_input_blob, _input_blob.c.hash == part.c.input_blob)
    .outerjoin(_data_blob, _data_blob.c.hash == part.c.data_blob)
)


_EXACT = codec.EXACT.encode()
_TEXT, _DATA = _PART_FIELDS.index("text"), _PART_FIELDS.index("data")
_PART_INHERITED, _IDX = _PART_FIELDS.index("inherited"), _PART_FIELDS.index("idx")


def part_of(row: tuple[Any, ...], session_id: str) -> Part:
    """Return the record of a row of `PART_COLUMNS`; raises `CorruptionError`."""
    seq, *values, large = row
    packed = values[_DATA]
    try:
        if large is not None:
            data = codec.unpack_part(packed, large)
        else:
            data = codec.unpack(packed) if packed else {}
    except _UNDECODABLE as error:
        what = f"part {values[_IDX]} of message {seq} of session {session_id}"
        raise damaged(what, error) from error
    if (packed and _EXACT in packed) or (large and _EXACT in large):
        exact = data.pop(codec.EXACT, None)
        if isinstance(exact, str):
            values[_TEXT] = exact
        data = codec.unguard(data)
    values[_DATA] = data
    values[_PART_INHERITED] = values[_PART_INHERITED] == 1
    return _make_part(*values)


def parts_by_seq(
    rows: Iterable[tuple[Any, ...]], session_id: str
) -> dict[int, list[Part]]:
    """Return the parts of many messages of a session, by the seq of their message."""
    parts: dict[int, list[Part]] = {}
    for row in rows:
        parts.setdefault(row[0], []).append(part_of(row, session_id))
    return parts


SELECT_SESSION = select(*SESSION_COLUMNS).select_from(SESSION_FROM)
SELECT_MESSAGE = select(*MESSAGE_COLUMNS).select_from(MESSAGE_FROM)
SELECT_PART = select(*PART_COLUMNS).select_from(PART_FROM)
