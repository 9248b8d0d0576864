"""Rows to records.

A frozen dataclass sets each field through ``object.__setattr__``, which for
rows of 20 columns costs three times the row itself. Records are therefore built
as a mutable twin of the same layout, which then becomes the frozen class
(measured: 1.0 instead of 3.6 µs).

A row begins with the columns that a record takes as they are, and ends with those that
are decoded. Its last column says whether a blob that it refers to is missing.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from sqlalchemy import Column, LargeBinary, Text, and_, func, or_, select, text
from sqlalchemy import cast as sql_cast

from sessiondb import codec
from sessiondb.engine.sql import Statement
from sessiondb.errors import CodecError, CorruptionError
from sessiondb.model import Message, Part, Session
from sessiondb.model.damage import (
    GONE,
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

    names = [*_names(cls, without=last), *last]
    members = {
        "__annotations__": dict.fromkeys(names, Any),
        "__post_init__": become,
    }
    twin: Any = type(cls.__name__, (), members)
    made: Callable[..., T] = dataclass(slots=True, eq=False, repr=False)(twin)
    return made


def _names(cls: type[Any], without: Sequence[str]) -> list[str]:
    return [f.name for f in fields(cls) if f.name not in without]


def missing_blob(*references: tuple[Column[Any], Any]) -> Any:
    """Return a column that is 1 if a value of the row is in a missing blob.

    *references* are the columns that name a blob, each with the alias it is joined as.
    """
    gone = [and_(name.is_not(None), of.c.hash.is_(None)) for name, of in references]
    return or_(*gone).label("lost")


# -- sessions --------------------------------------------------------------------

_SESSION_JSON = ("summary_diffs", "revert", "permission", "metadata")
#: Column → its empty value; that of all others is NULL.
_EMPTY = {"metadata": "{}"}
_SESSION_LAST = ("directory", *_SESSION_JSON, "data")
_make_session = maker(Session, _SESSION_LAST)
_session_blob = blob.alias("session_blob")
_PACKED = func.coalesce(session.c.data, _session_blob.c.data, type_=LargeBinary)
_SESSION_COLUMNS = (
    *(session.c[name] for name in _names(Session, without=_SESSION_LAST)),
    *(session.c[name] for name in _SESSION_LAST[:-1]),
    _PACKED.label("data"),
    missing_blob((session.c.data_blob, _session_blob)),
)
SELECT_SESSION = select(*_SESSION_COLUMNS).select_from(
    session.outerjoin(_session_blob, _session_blob.c.hash == session.c.data_blob)
)


def session_of(row: Row, base: str | None = None) -> Session:
    """Return the record of a row of `SELECT_SESSION`; raises `CorruptionError`."""
    *plain, directory, diffs, revert, permission, metadata, packed, lost = row
    if lost:
        raise damaged(session_name(plain[0]), GONE)
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
    found = []
    for row in rows:
        try:
            found.append(session_of(row, base))
        except CorruptionError as error:
            warnings.warn(f"{error}; {error.hint}", stacklevel=2)
            found.append(session_of(_without_damage(row), base))

    return found


def _without_damage(row: Row) -> Row:
    """Return a row of `SELECT_SESSION` without the values that cannot be decoded."""
    values = dict(zip((column.name for column in _SESSION_COLUMNS), row, strict=True))
    decoders: dict[str, Callable[[Any], Any]] = dict.fromkeys(_SESSION_JSON, json.loads)
    for name, decode in {**decoders, "data": codec.unpack}.items():
        try:
            decode(values[name])
        except _UNDECODABLE:
            values[name] = _EMPTY.get(name)

    return tuple({**values, "lost": 0}.values())


# -- messages --------------------------------------------------------------------

_MESSAGE_LAST = ("error", "inherited", "data", "parts")
_make_message = maker(Message, _MESSAGE_LAST)
_message_blob = blob.alias("message_blob")
_MESSAGE_COLUMNS = (
    *(message.c[name] for name in _names(Message, without=_MESSAGE_LAST)),
    message.c.error,
    message.c.inherited,
    func.coalesce(message.c.data, _message_blob.c.data, type_=LargeBinary).label(
        "data"
    ),
    missing_blob((message.c.data_blob, _message_blob)),
)
#: Rows begin with the session's id and seq.
SELECT_MESSAGE = select(*_MESSAGE_COLUMNS).select_from(
    message.outerjoin(_message_blob, _message_blob.c.hash == message.c.data_blob)
)


def message_of(row: Row, parts: tuple[Part, ...]) -> Message:
    """Return the record of a row of `SELECT_MESSAGE`; raises `CorruptionError`."""
    *plain, error, inherited, packed, _ = row
    try:
        why = None if error is None else json.loads(error)
        data = codec.unpack(packed) if packed else {}
    except _UNDECODABLE as undecodable:
        session_id, seq = plain[:2]
        raise damaged(message_name(session_id, seq), undecodable) from undecodable

    return _make_message(*plain, why, inherited == 1, data, parts)


# -- parts -----------------------------------------------------------------------

_PART_LAST = ("text", "data", "inherited")
_make_part = maker(Part, _PART_LAST)
_text_blob, _input_blob, _data_blob = map(blob.alias, ("tb", "ib", "db"))
_INPUT = func.coalesce(part.c.input, sql_cast(_input_blob.c.data, Text))
_PART_COLUMNS = (
    part.c.seq,
    *(
        _INPUT.label("input") if name == "input_json" else part.c[name]
        for name in _names(Part, without=_PART_LAST)
    ),
    func.coalesce(part.c.text, sql_cast(_text_blob.c.data, Text)).label("text"),
    part.c.data,
    _data_blob.c.data.label("large"),
    part.c.inherited,
    missing_blob(
        (part.c.text_blob, _text_blob),
        (part.c.input_blob, _input_blob),
        (part.c.data_blob, _data_blob),
    ),
)
#: Rows begin with the message's seq and the part's idx.
SELECT_PART = select(*_PART_COLUMNS).select_from(
    part.outerjoin(_text_blob, _text_blob.c.hash == part.c.text_blob)
    .outerjoin(_input_blob, _input_blob.c.hash == part.c.input_blob)
    .outerjoin(_data_blob, _data_blob.c.hash == part.c.data_blob)
)
_EXACT = codec.EXACT.encode()


def part_of(row: Row, session_id: str) -> Part:
    """Return the record of a row of `SELECT_PART`; raises `CorruptionError`."""
    seq, *plain, shown, packed, large, inherited, _ = row
    try:
        if large is not None:
            data = codec.unpack_part(packed, large)
        else:
            data = codec.unpack(packed) if packed else {}
    except _UNDECODABLE as error:
        raise damaged(part_name(session_id, seq, plain[0]), error) from error

    if (packed and _EXACT in packed) or (large and _EXACT in large):
        exact = data.pop(codec.EXACT, None)
        shown = exact if isinstance(exact, str) else shown
        data = codec.unguard(data)

    return _make_part(*plain, shown, data, inherited == 1)


def parts_by_seq(
    rows: Iterable[Row], session_id: str, lost: list[str]
) -> dict[int, list[Part]]:
    """Return the parts of many messages of a session, by the seq of their message.

    The names of those with a missing value are added to *lost*.
    """
    parts: dict[int, list[Part]] = {}
    for row in rows:
        parts.setdefault(row[0], []).append(part_of(row, session_id))
        if row[-1]:
            lost.append(part_name(session_id, row[0], row[1]))
    return parts


# -- what is missing -------------------------------------------------------------

#: Not run: a read yields it in place of a statement, for a stored value that is
#: missing. The driver raises `CorruptionError`, or answers ``[]`` and the read
#: continues without it.
LOST = Statement(lambda: text("SELECT 1 WHERE 0"))


def report_lost(session_id: str, names: Iterable[str]) -> Read[None]:
    """Report that values of these parts or messages of a session are missing."""
    for what in names:
        yield LOST, {"session_id": session_id, "what": what}
