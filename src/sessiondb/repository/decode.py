"""Rows to records.

A frozen dataclass sets each field through ``object.__setattr__``, which for
rows of 20 columns costs three times the row itself. Records are therefore built
as a mutable twin of the same layout, which then becomes the frozen class
(measured: 1.0 instead of 3.6 µs).

A row begins with the columns that a record takes as they are, and ends with those that
are decoded. A value in a blob comes as the name of that, which is the SHA-256 of its
bytes: few rows have one, so blobs are read by a statement of their own, and one that
was removed, or changed, is not taken for what was stored. The hash of bytes
that are read anyway costs 3 us a value of 6 KB, a tenth of what its message costs.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar

from sessiondb import codec
from sessiondb.dataclass import dataclass
from sessiondb.engine.sql import ComposedStatement, Statement, as_list
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
from sessiondb.repository import Read, Rows

T = TypeVar("T")
Row = tuple[Any, ...]
#: The end of a row of a part that has no value beside its columns; a message has three.
_NOTHING_BESIDE = (None, None, None, None)
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
    # The slots of a dataclass are its fields in their order.
    return [name for name in cls.__slots__ if name not in without]


def why_unreadable(data: bytes | None, name: str) -> str | None:
    """Return why the blob *name* cannot be shown; None if *data* is what was stored.

    *data* is None if there is no such blob.
    """
    if data is None:
        return GONE
    return None if sha256(data).hexdigest() == name else ALTERED


# -- sessions --------------------------------------------------------------------

_SESSION_JSON = ("summary_diffs", "revert", "permission", "metadata")
#: Column → its empty value; that of all others is NULL.
_EMPTY = {"metadata": "{}"}
_SESSION_LAST = ("directory", *_SESSION_JSON, "data")
_NO_DATA = {"data": None, "data_blob": None}
_make_session = maker(Session, _SESSION_LAST)
#: The columns of a row of a session: ``large_*`` are those of the blob that
#: ``data_blob`` names.
SESSION_COLUMNS = (
    *_field_names(Session, without=_SESSION_LAST),
    *_SESSION_LAST,
    "large_size",
    "large_encoding",
    "large_data",
    "data_blob",
)


def session_of(row: Row, base: str | None = None) -> Session:
    """Return the record of a row of `SESSION_COLUMNS`; raises `CorruptionError`."""
    (
        *plain, directory, diffs, revert, permission, metadata, packed,
        size, encoding, large, name,
    ) = row  # fmt: skip
    if name is not None:
        packed = large and codec.content_of_blob(size, encoding, large)
        if reason := why_unreadable(packed, name):
            raise damaged(session_name(plain[0]), reason)
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
    """Return a row of `SESSION_COLUMNS` without the values that cannot be decoded."""
    values = dict(zip(SESSION_COLUMNS, row, strict=True))
    for name in _SESSION_JSON:
        try:
            json.loads(values[name])
        except _UNDECODABLE:
            values[name] = _EMPTY.get(name)

    try:
        session_of(tuple(values.values()))
    except CorruptionError:
        values |= _NO_DATA
    return tuple(values.values())


# -- blobs -----------------------------------------------------------------------

_BLOBS = Statement("repository.decode.BLOBS")


def blobs_of(rows: Iterable[Row], columns: slice) -> Read[dict[str, bytes]]:
    """Return what the blobs that *columns* of rows name contain, by their name.

    Most rows name none.
    """
    names = {name for row in rows for name in row[columns] if name is not None}
    if not names:
        return {}
    blobs = yield _BLOBS, {"names": as_list(sorted(names))}
    return {name: codec.content_of_blob(*stored) for name, *stored in blobs}


def readable(
    blobs: Mapping[str, bytes], name: str | None, owner: str, missing: list[Missing]
) -> bytes | None:
    """Return the bytes of a blob; one that cannot be shown is added to *missing*."""
    if name is None:
        return None
    data = blobs.get(name)
    why_missing = why_unreadable(data, name)
    if why_missing is not None:
        missing.append((owner, why_missing))
        return None
    return data


# -- messages --------------------------------------------------------------------

_MESSAGE_LAST = ("inherited", "error", "data", "parts")
_make_message = maker(Message, _MESSAGE_LAST)
#: The columns of a row of a message.
MESSAGE_COLUMNS = (
    *_field_names(Message, without=_MESSAGE_LAST),
    "inherited",
    "error",
    "data",
    "data_blob",
)


def messages_by_seq(
    rows: Rows, parts: Mapping[int, list[Part]], missing: list[Missing]
) -> Read[dict[int, Message]]:
    """Return the records of rows of `MESSAGE_COLUMNS`, by their seq.

    If the ``data`` of one is in a blob that cannot be shown, it is empty, and added to
    *missing*. Raises `CorruptionError`.
    """
    blobs = yield from blobs_of(rows, slice(-1, None))
    messages: dict[int, Message] = {}
    for row in rows:
        seq = row[1]
        of_message = tuple(parts.get(seq, ()))
        if row[-3:] == _NOTHING_BESIDE[1:]:
            messages[seq] = _make_message(*row[:-4], row[-4] == 1, None, {}, of_message)
        else:
            name = message_name(row[0], seq)
            messages[seq] = _message_with_data(row, name, of_message, blobs, missing)
    return messages


def _message_with_data(
    row: Row,
    name: str,
    parts: tuple[Part, ...],
    blobs: Mapping[str, bytes],
    missing: list[Missing],
) -> Message:
    *plain, inherited, error, packed, large_name = row
    if large_name is not None:
        packed = readable(blobs, large_name, name, missing)
    try:
        reason = None if error is None else json.loads(error)
        data = codec.unpack(packed) if packed else {}
    except _UNDECODABLE as undecodable:
        raise damaged(name, undecodable) from undecodable

    return _make_message(*plain, inherited == 1, reason, data, parts)


# -- parts -----------------------------------------------------------------------

_PART_LAST = ("input_json", "text", "inherited", "synthetic", "data")
_make_part = maker(Part, _PART_LAST)
#: The columns of a row of a part, from the seq of its message to the names of blobs.
PART_COLUMNS = (
    "seq", *_field_names(Part, without=_PART_LAST), "input", "text", "inherited",
    "synthetic", "data", "input_blob", "text_blob", "data_blob",
)  # fmt: skip
_EXACT = codec.EXACT.encode()


def parts_by_seq(
    rows: Rows, session_id: str, missing: list[Missing]
) -> Read[dict[int, list[Part]]]:
    """Return the records of rows of `PART_COLUMNS`, by the seq of their message.

    A value in a blob that cannot be shown is None, and added to *missing*. Raises
    `CorruptionError`.
    """
    blobs = yield from blobs_of(rows, slice(-3, None))
    parts: dict[int, list[Part]] = {}
    last_seq, items = None, []
    for row in rows:
        seq = row[0]
        if seq != last_seq:
            last_seq, items = seq, parts.setdefault(seq, [])
        if row[-4:] == _NOTHING_BESIDE:
            items.append(_make_part(*row[1:-6], row[-6] == 1, row[-5] == 1, {}))
        else:
            name = part_name(session_id, seq, row[1])
            items.append(_part_with_data(row, name, blobs, missing))
    return parts


def _part_with_data(
    row: Row, name: str, blobs: Mapping[str, bytes], missing: list[Missing]
) -> Part:
    (
        _, *plain, arguments, shown, inherited, synthetic, packed,
        arguments_name, shown_name, large_name,
    ) = row  # fmt: skip
    arguments_bytes = readable(blobs, arguments_name, name, missing)
    shown_bytes = readable(blobs, shown_name, name, missing)
    large = readable(blobs, large_name, name, missing)
    try:
        if arguments_bytes is not None:
            arguments = arguments_bytes.decode()
        if shown_bytes is not None:
            shown = shown_bytes.decode()
        data = codec.unpack_part(packed, large)
    except _UNDECODABLE as error:
        raise damaged(name, error) from error

    if (packed and _EXACT in packed) or (large and _EXACT in large):
        exact = data.pop(codec.EXACT, None)
        shown = exact if isinstance(exact, str) else shown
        data = codec.unguard(data)

    return _make_part(*plain, arguments, shown, inherited == 1, synthetic == 1, data)


# -- what is missing -------------------------------------------------------------

#: Not run: a read yields it in place of a statement, for something stored that is
#: missing. The driver raises `CorruptionError`, or answers ``[]`` and the read
#: continues without it.
LOST = ComposedStatement("SELECT 1 WHERE 0")


def report_missing(session_id: str, missing: Iterable[Missing]) -> Read[None]:
    """Report what is missing of a session, and why."""
    for name, reason in missing:
        yield LOST, {"session_id": session_id, "missing": name, "reason": reason}
