"""Messages of one session: places, the complete path, rows to messages, one message.

Most reads take a part of a path: see `selection`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from sessiondb import codec
from sessiondb.engine.sql import Statement
from sessiondb.errors import InvalidInputError, NotFoundError, abridged
from sessiondb.hints import command
from sessiondb.model import Message, Part
from sessiondb.model.damage import (
    CIRCLE,
    GAP,
    REMOVED,
    Missing,
    damaged,
    message_name,
    session_name,
)
from sessiondb.model.paths import break_of, path_to
from sessiondb.repository import Read, Rows
from sessiondb.repository.decode import (
    MESSAGE_COLUMNS,
    StatementsAt,
    messages_of,
    parts_of,
    report_missing,
    why_unreadable,
)
from sessiondb.repository.results import show_results

#: Messages, and about how many bytes, are read by one pair of statements while walking.
PAGE = 200
PAGE_BYTES = 4 * 1024 * 1024
#: Follows the last row; its seq is that of no message.
_NO_ROW = (None,)

_LINKS = Statement("repository.transcript.LINKS")
_MESSAGES = StatementsAt(
    Statement("repository.transcript.MESSAGES"),
    Statement("repository.transcript.SOME_MESSAGES"),
)
_PARTS = StatementsAt(
    Statement("repository.transcript.PARTS"),
    Statement("repository.transcript.SOME_PARTS"),
)
_SEQ_OF_ID = Statement("repository.transcript.SEQ_OF_ID")
_SEQ_OF_LABEL = Statement("repository.transcript.SEQ_OF_LABEL")
_PLACE_OF_ID = Statement("repository.transcript.PLACE_OF_ID")
_SEQ_IS = Statement("repository.transcript.SEQ_IS")
_PARENT = MESSAGE_COLUMNS.index("parent_seq")
_LEAF_OF = Statement("repository.transcript.LEAF_OF")
_WEIGHTS = Statement("repository.transcript.WEIGHTS")
_BLOB = Statement("repository.transcript.BLOB")
_BLOB_OF = Statement("repository.transcript.BLOB_OF")


def seq_of(session_id: str, key: str | int) -> Read[int]:
    """Return the seq of a message by exactly its id, or its seq.

    Raises `NotFoundError`.
    """
    statement = _SEQ_IS if isinstance(key, int) else _SEQ_OF_ID
    rows = yield statement, {"sid": session_id, "key": key}
    if not rows:
        raise _no_message(session_id, key)
    return int(rows[0][0])


def seq_named(session_id: str, name: str) -> Read[int]:
    """Return the seq of a message by its id, else by a label.

    Raises `NotFoundError`.
    """
    for statement in (_SEQ_OF_ID, _SEQ_OF_LABEL):
        rows = yield statement, {"sid": session_id, "key": name}
        if rows:
            return int(rows[0][0])

    raise _no_message(session_id, name)


def place_of(message_id: str, source: str | None) -> Read[tuple[str, int] | None]:
    """Return session and seq of the original message with an id, None without one.

    With *source* only those of its sessions are compared.
    """
    rows = yield _PLACE_OF_ID, {"key": message_id, "source": source}
    return (rows[0][0], rows[0][1]) if rows else None


def _no_message(session_id: str, key: str | int) -> NotFoundError:
    hint = f"{command('show', session_id)} shows its messages"
    return NotFoundError(
        f"session {session_id} has no message {abridged(key)}", hint=hint
    )


def leaf_of(session_id: str) -> Read[int | None]:
    """Return the leaf of a session; raises `NotFoundError`."""
    rows = yield _LEAF_OF, {"sid": session_id}
    if not rows:
        raise NotFoundError(f"session {session_id} does not exist")

    leaf: int | None = rows[0][0]
    return leaf


def live_path(
    session_id: str,
    *,
    branches: bool = False,
    leaf: Any = ...,
    count: int | None = None,
) -> Read[list[int]]:
    """Return the seqs from the root to the leaf, or all seqs with *branches*.

    A path that leads to a message that is not there is reported as missing, and begins
    after it; so is any such parent with *branches*, and a number of messages that is
    below *count*.
    """
    if leaf is ...:
        leaf = yield from leaf_of(session_id)

    rows = yield _LINKS, {"sid": session_id}
    parents: dict[int, int | None] = dict(rows)
    if branches:
        yield from report_missing(
            session_id, missing_messages(session_id, parents, count)
        )
        return list(parents)

    path = path_to(parents, leaf)
    end = break_of(parents, path, leaf)
    if end is not None:
        reason = CIRCLE if end in parents else REMOVED
        yield from report_missing(session_id, [(message_name(session_id, end), reason)])
    return path


def missing_messages(
    session_id: str, parent_of: dict[int, int | None], count: int | None
) -> list[Missing]:
    """Return what is missing among all messages of a session: parents, and a number.

    *parent_of* has the parent of each message, *count* is the number there should be.
    """
    parents = {parent for parent in parent_of.values() if parent is not None}
    gone = sorted(parents - parent_of.keys())
    missing = [(message_name(session_id, seq), REMOVED) for seq in gone]
    # The last messages of branches are the parents of none.
    further = (count or 0) - len(parent_of) - len(gone)
    if further > 0:
        reason = f"it had {count} messages, {further} more are not in the file"
        missing.append((session_name(session_id), reason))
    return missing


def load(
    session_id: str,
    path: Sequence[int],
    *,
    resolve: bool = True,
    live: Sequence[int] | None = None,
    leaf: Any = ...,
) -> Read[list[Message]]:
    """Return the messages at *path*, in its order, with their parts.

    With *resolve* a call is shown with its last result on the path *live*, else on that
    to *leaf* (default: that of the session), and a result whose text is stored with its
    call with that text.
    """
    rows = yield from rows_at(session_id, path)
    return (
        yield from messages_of_rows(
            session_id, rows, resolve=resolve, live=live, leaf=leaf
        )
    )


def rows_at(session_id: str, path: Sequence[int]) -> Read[Rows]:
    """Return the rows of the messages at *path*, in its order."""
    if not path:
        return []
    rows = yield from _MESSAGES.read(session_id, path)
    row_at = {row[0]: row for row in rows}
    return [row_at[seq] for seq in path if seq in row_at]


def messages_of_rows(
    session_id: str,
    rows: Rows,
    *,
    resolve: bool = True,
    live: Sequence[int] | None = None,
    leaf: Any = ...,
    is_path: bool = False,
) -> Read[list[Message]]:
    """Return the messages of some *rows*, in their order; see `load`.

    The rows may be those of the complete path themselves.
    """
    if not rows:
        return []

    seqs = [row[0] for row in rows]
    if is_path:
        live = seqs
    part_rows = yield from _PARTS.read(session_id, seqs)
    if len(seqs) <= max(seqs) - min(seqs):
        wanted = set(seqs)
        part_rows = [row for row in part_rows if row[0] in wanted]

    missing: list[Missing] = []
    parts = yield from parts_of(session_id, part_rows, missing)
    if resolve:
        path = partial(_path_or_live, session_id, live, leaf)
        parents = {row[0]: row[_PARENT] for row in rows}
        yield from show_results(session_id, parents, part_rows, parts, path)

    by_seq = _group_parts(session_id, part_rows, parts, missing)
    messages = yield from messages_of(session_id, rows, by_seq, missing)
    yield from report_missing(session_id, missing)
    return messages


def _group_parts(
    session_id: str, rows: Rows, parts: Sequence[Part], missing: list[Missing]
) -> dict[int, tuple[Part, ...]]:
    """Return *parts* by the seq of their message; *rows* are theirs, in order.

    A message of which a part is not there is added to *missing*: parts are numbered
    without gaps, and none is ever removed alone.
    """
    by_seq: dict[int, tuple[Part, ...]] = {}
    if not rows:
        return by_seq

    in_order = tuple(parts)
    start, seq = 0, rows[0][0]
    for end, row in enumerate([*rows, _NO_ROW]):
        if row[0] == seq:
            continue
        by_seq[seq] = in_order[start:end]
        if rows[end - 1][1] != end - start - 1:
            missing.append((message_name(session_id, seq), GAP))
        start, seq = end, row[0]
    return by_seq


def _path_or_live(
    session_id: str, path: Sequence[int] | None, leaf: Any
) -> Read[Sequence[int]]:
    return path if path is not None else (yield from live_path(session_id, leaf=leaf))


def one_message(session_id: str, seq: int) -> Read[Message]:
    """Return one message by its seq, also one off the live path."""
    messages = yield from load(session_id, [seq])
    return messages[0]


def blob_bytes(name: str, session_id: str | None = None) -> Read[bytes]:
    """Return a blob by its SHA-256; raises `NotFoundError` and `CorruptionError`.

    With *session_id* only one that this session refers to.
    """
    if re.fullmatch("[0-9a-f]{64}", name) is None:
        raise InvalidInputError(
            f"hash must be 64 hexadecimal digits, not {abridged(name)}"
        )

    statement, owner = _BLOB, ""
    if session_id is not None:
        statement, owner = _BLOB_OF, f" in session {session_id}"
    rows = yield statement, {"hash": name, "sid": session_id}
    if not rows:
        raise NotFoundError(f"no blob {name}{owner}")

    content = codec.content_of_blob(*rows[0])
    if why_unreadable(content, name):
        raise damaged(f"blob {name}", "its content is not the one that was stored")
    return content


def pages_of(
    session_id: str, path: Sequence[int], size: int = PAGE
) -> Read[list[list[int]]]:
    """Return the seqs of *path* in pages of *size* messages and bounded bytes."""
    weights: dict[int, int] = dict((yield _WEIGHTS, {"sid": session_id}))
    paths: list[list[int]] = []
    filled = PAGE_BYTES + 1  # the first message begins a page
    for seq in path:
        weight = weights.get(seq, 0)
        filled += weight
        if filled > PAGE_BYTES or len(paths[-1]) == size:
            paths.append([])
            filled = weight

        paths[-1].append(seq)

    return paths


class Identity(NamedTuple):
    """The key by which a message is recognised in another session."""

    id: str
    time_created: int
    usage_key: str | None
    kind: str | None

    def is_copy(self, other: Identity, *, kin: bool) -> bool:
        """Return whether both are the same message; ids count only among *kin*.

        Programs number their messages alike, so that a copy has its time, too.
        """
        if self.usage_key is not None and self.usage_key == other.usage_key:
            return True
        return kin and self[:2] == other[:2]


_IDENTITIES = Statement("repository.transcript.IDENTITIES")


def identities(session_id: str) -> Read[dict[int, Identity]]:
    """Return the identity of every message of a session, by seq."""
    rows = yield _IDENTITIES, {"sid": session_id}
    return {row[0]: Identity(*row[1:]) for row in rows}
