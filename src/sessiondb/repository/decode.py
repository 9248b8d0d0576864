"""Rows to records.

Most messages and parts have values in few columns, and each column that is fetched
costs 50 ns, also if it is NULL. A row therefore has the columns that most have, and a
last one, its form, which says whether there are others: these are read by a statement
of their own, for the rows that have some.

A value in a blob comes as the name of that, which is the SHA-256 of its bytes: few rows
have one, so blobs are read by a statement of their own, too, and one that was removed,
or changed, is not taken for what was stored. The hash of bytes that are read anyway
costs 3 us a value of 6 KB, a tenth of what its message costs.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter
from typing import Any, NamedTuple

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
from sessiondb.repository.makers import Maker

Row = tuple[Any, ...]
_UNDECODABLE = (CodecError, ValueError, TypeError, RecursionError)


def _fields_of(cls: type[Any], without: Sequence[str]) -> list[str]:
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
_SESSION_PLAIN = _fields_of(Session, without=_SESSION_LAST)
_SESSION = Maker(Session, _SESSION_PLAIN, _SESSION_LAST)
#: The columns of a row of a session: ``large_*`` are those of the blob that
#: ``data_blob`` names.
SESSION_COLUMNS = (
    *_SESSION_PLAIN,
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
        return _SESSION.make(
            plain,
            None if directory is None else absolute(directory, base),
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


# -- rows at some places of a session --------------------------------------------


class StatementsAt(NamedTuple):
    """Two statements for the same rows at some seqs of a session."""

    #: For the range from ``:low`` to ``:high``, and for the list ``:seqs``.
    of_range: Statement
    of_list: Statement

    def read(self, session_id: str, seqs: Sequence[int]) -> Read[Rows]:
        """Return the rows at *seqs*, and perhaps some at seqs in between."""
        low, high = min(seqs), max(seqs)
        # A range may have other messages as well: few, or else the seqs are listed.
        if high - low < 2 * len(seqs) + 16:
            return (yield self.of_range, {"sid": session_id, "low": low, "high": high})
        return (yield self.of_list, {"sid": session_id, "seqs": as_list(seqs)})


# -- blobs -----------------------------------------------------------------------

_BLOBS = Statement("repository.decode.BLOBS")


def blobs_of(
    session_id: str, rows: Iterable[Row], columns: slice
) -> Read[dict[str, bytes]]:
    """Return what the blobs that *columns* of rows name contain, by their name.

    Most rows name none.
    """
    names = {name for row in rows for name in row[columns] if name is not None}
    if not names:
        return {}
    blobs = yield _BLOBS, {"sid": session_id, "names": as_list(sorted(names))}
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

#: The forms of a row: nothing beside its columns, the same in an inherited copy, or
#: values in further columns.
PLAIN, COPY, MORE = 0, 1, 2
_FORM_OF = itemgetter(-1)
_PLAIN_TERMS = {"inherited": f"form == {COPY}", "data": "{}"}
#: The columns of a message that most have; its form follows them in a row. Programs
#: that state a provider mostly state further counts of tokens, too: `MORE` as well.
MESSAGE_COLUMNS = (
    "seq", "id", "parent_seq", "turn_id", "role", "model_id", "usage_key", "cost",
    "tokens_input", "tokens_output", "finish", "time_created", "time_completed",
)  # fmt: skip
_MESSAGE_LAST = ("error", "data")
_AROUND_MESSAGE = ("session_id", "parts")
#: All others. A value in any of them, other than the 0 of a flag, is `MORE`.
MESSAGE_MORE = (
    *_fields_of(Message, without=(*MESSAGE_COLUMNS, *_MESSAGE_LAST, *_AROUND_MESSAGE)),
    *_MESSAGE_LAST,
    "data_blob",
)
_PLAIN_MESSAGE = Maker(
    Message, (*MESSAGE_COLUMNS, "form"), _AROUND_MESSAGE, **_PLAIN_TERMS
)
_MESSAGE_WITH_MORE = Maker(
    Message,
    (*MESSAGE_COLUMNS, "form", "seq", *MESSAGE_MORE),
    (*_AROUND_MESSAGE, *_MESSAGE_LAST),
    inherited="inherited == 1",
)
_MESSAGE_FORM = len(MESSAGE_COLUMNS)
_MORE_OF_MESSAGES = StatementsAt(
    Statement("repository.decode.MORE_OF_MESSAGES"),
    Statement("repository.decode.MORE_OF_SOME_MESSAGES"),
)


def messages_of(
    session_id: str,
    rows: Rows,
    parts: Mapping[int, tuple[Part, ...]],
    missing: list[Missing],
) -> Read[list[Message]]:
    """Return the messages of rows of `MESSAGE_COLUMNS`, with *parts* by their seq.

    If the ``data`` of one is in a blob that cannot be shown, it is empty, and added to
    *missing*. Raises `CorruptionError`.
    """
    make_plain, parts_at = _PLAIN_MESSAGE.make, parts.get
    if not _have_more(rows):
        return [make_plain(row, session_id, parts_at(row[0], ())) for row in rows]

    more_rows = yield from _rows_with_more(_MORE_OF_MESSAGES, session_id, rows)
    blobs = yield from blobs_of(session_id, more_rows, slice(-1, None))
    more = _More({row[0]: row for row in more_rows}, blobs, missing)
    return [
        _message_with_more(session_id, row, parts_at(row[0], ()), more)
        if row[_MESSAGE_FORM] == MORE
        else make_plain(row, session_id, parts_at(row[0], ()))
        for row in rows
    ]


@dataclass(slots=True)
class _More:
    """The facts that some rows have besides their columns."""

    #: The further columns, by the seq of a message, or by seq and idx of a part.
    rows: Mapping[Any, Row]
    blobs: Mapping[str, bytes]
    #: Gets what cannot be shown.
    missing: list[Missing]


def _have_more(rows: Rows) -> bool:
    """Return whether some rows have values in further columns: mostly none has."""
    return MORE in set(map(_FORM_OF, rows))


def _rows_with_more(
    statements: StatementsAt, session_id: str, rows: Rows
) -> Read[Rows]:
    """Return the further columns of the *rows* that have values in them.

    They are on the pages of the rows, so that those can be read as well.
    """
    seqs = [row[0] for row in rows if _FORM_OF(row) == MORE]
    return (yield from statements.read(session_id, seqs))


def _message_with_more(
    session_id: str, row: Row, parts: tuple[Part, ...], more: _More
) -> Message:
    further = more.rows[row[0]]
    error, packed, large_name = further[-3:]
    if large_name is not None:
        name = message_name(session_id, row[0])
        packed = readable(more.blobs, large_name, name, more.missing)
    try:
        reason = None if error is None else json.loads(error)
        data = codec.unpack(packed) if packed else {}
    except _UNDECODABLE as undecodable:
        raise damaged(message_name(session_id, row[0]), undecodable) from undecodable

    return _MESSAGE_WITH_MORE.make(row + further, session_id, parts, reason, data)


# -- parts -----------------------------------------------------------------------

#: The columns of a part that most have; its form follows them in a row.
PART_COLUMNS = (
    "seq", "idx", "id", "type", "tool", "call_id", "status", "input", "text",
    "time_created", "time_updated",
)  # fmt: skip
_PART_LAST = ("input_json", "text", "data")
#: All others, as for a message.
PART_MORE = (
    *_fields_of(Part, without=(*PART_COLUMNS, *_PART_LAST)),
    "data",
    "input_blob",
    "text_blob",
    "data_blob",
)
_PLAIN_PART = Maker(
    Part,
    (*PART_COLUMNS, "form"),
    input_json="input",
    synthetic="False",
    **_PLAIN_TERMS,
)
_PART_WITH_MORE = Maker(
    Part,
    (*PART_COLUMNS, "form", "seq", "idx", *PART_MORE),
    _PART_LAST,
    inherited="inherited == 1",
    synthetic="synthetic == 1",
)
_MORE_OF_PARTS = StatementsAt(
    Statement("repository.decode.MORE_OF_PARTS"),
    Statement("repository.decode.MORE_OF_SOME_PARTS"),
)
_INPUT, _TEXT = PART_COLUMNS.index("input"), PART_COLUMNS.index("text")
_PART_FORM = len(PART_COLUMNS)
_NO_BLOBS = [None, None, None]
_EXACT = codec.EXACT.encode()


def parts_of(session_id: str, rows: Rows, missing: list[Missing]) -> Read[list[Part]]:
    """Return the parts of rows of `PART_COLUMNS`, in their order.

    A value in a blob that cannot be shown is None, and added to *missing*. Raises
    `CorruptionError`.
    """
    make_plain = _PLAIN_PART.make
    if not _have_more(rows):
        return [make_plain(row) for row in rows]

    more_rows = yield from _rows_with_more(_MORE_OF_PARTS, session_id, rows)
    blobs = yield from blobs_of(session_id, more_rows, slice(-3, None))
    more = _More({row[:2]: row for row in more_rows}, blobs, missing)
    return [
        _part_with_more(session_id, row, more)
        if row[_PART_FORM] == MORE
        else make_plain(row)
        for row in rows
    ]


def _part_with_more(session_id: str, row: Row, more: _More) -> Part:
    further = more.rows[row[:2]]
    packed, *names = further[-4:]
    arguments, shown, large = row[_INPUT], row[_TEXT], None
    try:
        if names != _NO_BLOBS:
            name = part_name(session_id, row[0], row[1])
            values = [readable(more.blobs, blob, name, more.missing) for blob in names]
            arguments_bytes, shown_bytes, large = values
            if arguments_bytes is not None:
                arguments = arguments_bytes.decode()
            if shown_bytes is not None:
                shown = shown_bytes.decode()
        data = codec.unpack_part(packed, large)
    except _UNDECODABLE as error:
        raise damaged(part_name(session_id, row[0], row[1]), error) from error

    if (packed and _EXACT in packed) or (large and _EXACT in large):
        exact = data.pop(codec.EXACT, None)
        shown = exact if isinstance(exact, str) else shown
        data = codec.unguard(data)

    return _PART_WITH_MORE.make(row + further, arguments, shown, data)


# -- what is missing -------------------------------------------------------------

#: Not run: a read yields it in place of a statement, for something stored that is
#: missing. The driver raises `CorruptionError`, or answers ``[]`` and the read
#: continues without it.
LOST = ComposedStatement("SELECT 1 WHERE 0")


def report_missing(session_id: str, missing: Iterable[Missing]) -> Read[None]:
    """Report what is missing of a session, and why."""
    for name, reason in missing:
        yield LOST, {"session_id": session_id, "missing": name, "reason": reason}
