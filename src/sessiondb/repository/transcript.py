"""Messages of one session: the live path, its tail, its pages, one message.

The path root → leaf is found by walking parent links from the leaf down. In a
session that only grew, every parent has a smaller seq, so a scan downwards from
the leaf meets the path in order and the tail costs the same in a session of any
length; where an import put a message between others the whole map is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import func, select, text

from sessiondb.effects.tree import path_to
from sessiondb.engine.sql import Statement, p
from sessiondb.errors import InvalidInputError, NotFoundError
from sessiondb.model import Message, Part
from sessiondb.repository import Read
from sessiondb.repository.decode import (
    SELECT_MESSAGE,
    SELECT_PART,
    message_of,
    part_of,
    parts_by_seq,
)
from sessiondb.schema import blob, label, message, part

#: Messages read by one pair of statements while walking.
PAGE = 200

_of_session = message.c.session_id == p("sid")
_LINKS = Statement(
    lambda: select(message.c.seq, message.c.parent_seq).where(_of_session).order_by(message.c.seq)
)
_DOWN = Statement(
    lambda: (
        select(message.c.seq, message.c.parent_seq)
        .where(_of_session, message.c.seq <= p("top"))
        .order_by(message.c.seq.desc())
        .limit(p("rows"))
    )
)
_MESSAGES = Statement(
    lambda: SELECT_MESSAGE.where(_of_session, message.c.seq.between(p("low"), p("high"))).order_by(
        message.c.seq
    )
)
_PARTS = Statement(
    lambda: SELECT_PART.where(
        part.c.session_id == p("sid"), part.c.seq.between(p("low"), p("high"))
    ).order_by(part.c.seq, part.c.idx)
)
_seqs = func.json_each(p("seqs")).table_valued("value")
_SOME_MESSAGES = Statement(
    lambda: SELECT_MESSAGE.where(_of_session, message.c.seq.in_(select(_seqs.c.value)))
)
_SOME_PARTS = Statement(
    lambda: SELECT_PART.where(
        part.c.session_id == p("sid"), part.c.seq.in_(select(_seqs.c.value))
    ).order_by(part.c.seq, part.c.idx)
)
_SEQ_OF_ID = Statement(lambda: select(message.c.seq).where(_of_session, message.c.id == p("mid")))
_SEQ_OF_LABEL = Statement(
    lambda: select(label.c.seq).where(label.c.session_id == p("sid"), label.c.label == p("mid"))
)
_SEQ_IS = Statement(lambda: select(message.c.seq).where(_of_session, message.c.seq == p("at")))
_LEAF_OF = Statement(
    lambda: text("SELECT leaf_seq FROM session WHERE id = :sid AND time_deleted IS NULL")
)
_CALLS = Statement(
    lambda: SELECT_PART.where(
        part.c.session_id == p("sid"),
        part.c.type == text("'tool'"),
        part.c.call_id.in_(select(func.json_each(p("calls")).table_valued("value").c.value)),
    ).order_by(part.c.seq, part.c.idx)
)
_BLOB = Statement(lambda: select(blob.c.data).where(blob.c.hash == p("hash")))


def seq_of(session_id: str, key: str | int) -> Read[int]:
    """Return the seq of a message by id, label or seq; raises `NotFoundError`."""
    if isinstance(key, int):
        rows = yield _SEQ_IS, {"sid": session_id, "at": key}
    else:
        rows = yield _SEQ_OF_ID, {"sid": session_id, "mid": key}
        if not rows:
            rows = yield _SEQ_OF_LABEL, {"sid": session_id, "mid": key}
        if not rows and key.isdigit():
            rows = yield _SEQ_IS, {"sid": session_id, "at": int(key)}
    if not rows:
        raise NotFoundError(f"session {session_id} has no message {key}")
    return int(rows[0][0])


def leaf_of(session_id: str) -> Read[int | None]:
    """Return the leaf of a session; raises `NotFoundError`."""
    rows = yield _LEAF_OF, {"sid": session_id}
    if not rows:
        raise NotFoundError(f"session {session_id} does not exist")
    leaf: int | None = rows[0][0]
    return leaf


def live_path(session_id: str, *, branches: bool = False, leaf: Any = ...) -> Read[list[int]]:
    """Return the seqs from the root to the leaf, or all seqs with *branches*."""
    if leaf is ...:
        leaf = yield from leaf_of(session_id)
    rows = yield _LINKS, {"sid": session_id}
    if branches:
        return [seq for seq, _ in rows]
    return path_to(dict(rows), leaf)


def tail_path(session_id: str, last: int, below: int | None = None) -> Read[list[int]]:
    """Return the last *last* seqs of the live path (those below seq *below*)."""
    leaf = yield from leaf_of(session_id)
    path: list[int] = []
    want = leaf
    while want is not None and len(path) < last:
        rows = yield _DOWN, {"sid": session_id, "top": want, "rows": last + 16}
        before = want
        for seq, parent in rows:
            if seq != want:
                continue
            if below is None or seq < below:
                path.append(seq)
            if parent is not None and parent >= seq:
                return _cut((yield from live_path(session_id, leaf=leaf)), last, below)
            want = parent
            if want is None or len(path) == last:
                break
        if want == before:
            break
    return path[::-1]


def _cut(path: Sequence[int], last: int, below: int | None) -> list[int]:
    if below is not None and below in path:
        path = path[: path.index(below)]
    return list(path[-last:])


def load(session_id: str, path: Sequence[int], *, resolve: bool = True) -> Read[list[Message]]:
    """Return the messages at *path*, in its order, with their parts."""
    if not path:
        return []
    low, high = min(path), max(path)
    if high - low < 2 * len(path) + 16:
        bounds: dict[str, Any] = {"sid": session_id, "low": low, "high": high}
        rows, part_rows = (yield _MESSAGES, bounds), (yield _PARTS, bounds)
    else:
        some = {"sid": session_id, "seqs": json.dumps(list(path))}
        rows, part_rows = (yield _SOME_MESSAGES, some), (yield _SOME_PARTS, some)
    wanted = set(path)
    if len(rows) != len(wanted):
        part_rows = [row for row in part_rows if row[0] in wanted]
    parts = parts_by_seq(part_rows)
    found = {
        row[1]: message_of(row, tuple(parts.get(row[1], ()))) for row in rows if row[1] in wanted
    }
    messages = [found[seq] for seq in path if seq in found]
    if resolve and any(item.type == "tool-result" for items in parts.values() for item in items):
        messages = yield from _resolve(session_id, messages)
    return messages


def _resolve(session_id: str, messages: list[Message]) -> Read[list[Message]]:
    """Show each call with the last result on the path, and each result that stands there."""
    results = {
        item.call_id: item.text
        for entry in messages
        for item in entry.parts
        if item.type == "tool-result" and item.text is not None and item.call_id
    }
    bare = {
        item.call_id
        for entry in messages
        for item in entry.parts
        if item.type == "tool-result" and item.text is None and item.call_id
    }
    calls: dict[str | None, str | None] = {}
    if bare:
        rows = yield _CALLS, {"sid": session_id, "calls": json.dumps(sorted(bare))}
        calls = {call.call_id: call.text for call in map(part_of, rows)}

    def shown(item: Part) -> Part:
        if item.type == "tool" and item.call_id in results:
            return replace(item, text=results[item.call_id])
        if item.type == "tool-result" and item.text is None and item.call_id in calls:
            return replace(item, text=calls[item.call_id])
        return item

    return [replace(entry, parts=tuple(map(shown, entry.parts))) for entry in messages]


def _slice(path: list[int], after: int | None, before: int | None) -> list[int]:
    place = {seq: index for index, seq in enumerate(path)}
    first = 0 if after is None else place.get(after, -1) + 1
    if after is not None and after not in place:
        first = sum(1 for seq in path if seq <= after)
    end = len(path) if before is None else place.get(before, -1)
    if before is not None and before not in place:
        end = sum(1 for seq in path if seq < before)
    return path[first:end]


def messages(
    session_id: str,
    *,
    last: int | None = None,
    after: str | int | None = None,
    before: str | int | None = None,
    limit: int | None = None,
    branches: bool = False,
) -> Read[list[Message]]:
    """Return messages oldest first: the live path, or all branches in order of seq.

    *last* takes from the end, *limit* from the beginning; *after* and *before*
    (ids, labels or seqs) are exclusive. Empty is ``[]``.
    """
    for name, value in (("last", last), ("limit", limit)):
        if value is not None and (type(value) is not int or value < 1):
            raise InvalidInputError(f"{name} is 1 or more, not {value!r}")
    low = None if after is None else (yield from seq_of(session_id, after))
    high = None if before is None else (yield from seq_of(session_id, before))
    if last is not None and after is None and limit is None and not branches:
        path = yield from tail_path(session_id, last, high)
    else:
        path = _slice((yield from live_path(session_id, branches=branches)), low, high)
        path = path[:limit] if limit is not None else path
        path = path[-last:] if last is not None else path
    return (yield from load(session_id, path))


def one_message(session_id: str, key: str | int) -> Read[Message]:
    """Return one message by id, label or seq, also one off the live path."""
    seq = yield from seq_of(session_id, key)
    found = yield from load(session_id, [seq])
    return found[0]


def blob_bytes(name: str) -> Read[bytes]:
    """Return a blob by its SHA-256; raises `NotFoundError`."""
    rows = yield _BLOB, {"hash": name}
    if not rows:
        raise NotFoundError(f"no blob {name}")
    return bytes(rows[0][0])


def pages(path: Sequence[int], size: int = PAGE) -> Iterable[Sequence[int]]:
    """Return *path* in pieces of *size*."""
    return (path[start : start + size] for start in range(0, len(path), size))


_COMMON = Statement(
    lambda: (
        select(message.c.seq, message.c.id, message.c.usage_key)
        .where(_of_session)
        .order_by(message.c.seq)
    )
)


def identities(session_id: str) -> Read[dict[int, tuple[str, str | None]]]:
    """Return seq → (id, usage_key) of every message of a session."""
    rows = yield _COMMON, {"sid": session_id}
    return {row[0]: (row[1], row[2]) for row in rows}
