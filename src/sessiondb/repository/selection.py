"""Which messages of a session a read returns: a path, a part of it, some by their id.

The path root → message is found by walking parent links from its end down. In a
session that only grew, every parent has a smaller seq, so a scan downwards finds the
path in order, and the tail costs the same in a session of any length; if an import put
a message between others, the complete map is read. Roles, kinds and times are compared
in SQL during the same walk, so that ``last`` counts the messages that pass, and parts
are read of these alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.effects.paths import IS_DISORDERED
from sessiondb.engine.sql import Statement, as_list
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Message, bounds
from sessiondb.model.damage import REMOVED, message_name
from sessiondb.repository import Read, Rows
from sessiondb.repository.decode import MESSAGE_COLUMNS, report_missing
from sessiondb.repository.transcript import (
    PAGE,
    live_path,
    load,
    messages_of_rows,
    pages_of,
    rows_at,
)

#: The greatest seq.
MAX_SEQ = (1 << 63) - 1
#: Further rows that are read for each part of a path that was not complete before.
_ROWS_BETWEEN = 64
_PARENT = MESSAGE_COLUMNS.index("parent_seq")
#: A link is a message, its parent, and whether it passes.
_PARENT_OF_LINK = 1

_DOWN = Statement("repository.selection.DOWN")
_LINKS_DOWN = Statement("repository.selection.LINKS_DOWN")
_PASSING = Statement("repository.selection.PASSING")
_SEQS_OF_IDS = Statement("repository.selection.SEQS_OF_IDS")


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The conditions on the messages of a read; None does not narrow.

    ``since`` is the earliest time of creation, in Unix ms.
    """

    roles: Sequence[str] | None = None
    kinds: Sequence[str] | None = None
    since: int | None = None

    def params(self) -> dict[str, Any]:
        """Return the parameters of the condition that a message passes."""
        return {
            "roles": None if self.roles is None else as_list(self.roles),
            "kinds": None if self.kinds is None else as_list(self.kinds),
            "since": self.since,
        }


@dataclass(slots=True)
class Range:
    """A part of a session: of a path, of all branches, or some messages by id."""

    #: The seq of the last message of the path; None is an empty path.
    leaf: int | None
    #: Seqs, both exclusive; None is an open end.
    after: int | None = None
    before: int | None = None
    #: All messages in order of seq, which should be so many, if that is known.
    branches: bool = False
    message_count: int | None = None
    #: These messages alone, wherever in the tree; ids that are not there have none.
    ids: Sequence[str] | None = None


@dataclass(slots=True)
class _Descent:
    """A scan from the end of a path down, which gathers its last messages.

    ``want`` is the next message of the path, None at the root and once there are
    ``last`` of them. Messages are taken only after ``below`` was passed (0: it was).
    ``parent`` is the place of the parent in a row; if the path is *narrowed*, the last
    value of a row says whether it passes.
    """

    want: int | None
    last: int
    below: int
    parent: int = _PARENT
    narrowed: bool = False
    rows: Rows = field(default_factory=list)

    def follow(self, rows: Rows) -> bool:
        """Follow the path through rows of messages in descending order of seq.

        Returns False where such rows cannot have its next message.
        """
        path, want, bound = self.rows, self.want, self.below
        last, parent, narrowed = self.last, self.parent, self.narrowed
        for row in rows:
            seq = row[0]
            if seq != want:
                continue

            want = row[parent]
            if not bound:
                if not narrowed or row[-1]:
                    path.append(row)
                    if len(path) == last:
                        want = None
                        break
            elif seq == bound:
                bound = 0

            # An import can put a parent behind its child, and the message *below* need
            # not be on the path: a scan downwards finds neither.
            if seq < bound or (want is not None and want >= seq):
                return False

        self.want, self.below = want, bound
        return True


def _rows_of_path(
    session_id: str,
    part: Range,
    last: int | None,
    *,
    links: bool = False,
    narrowing: Narrowing | None = None,
) -> Read[Rows]:
    """Return the rows of a part of a path, oldest first; of its end with *last*.

    They are those of messages, or with *links* begin with a seq, and pass *narrowing*.
    """
    scan = _Descent(part.leaf, last or MAX_SEQ, part.before or 0)
    end = part.after or 0
    statement, params = _DOWN, {"sid": session_id, "end": end}
    if links:
        statement = _LINKS_DOWN
        scan.parent, scan.narrowed = _PARENT_OF_LINK, narrowing is not None
        params |= (narrowing or Narrowing()).params()

    # Of a path out of order the messages after another one may have smaller seqs.
    if end and (yield IS_DISORDERED, {"sid": session_id}):
        return (yield from _rows_out_of_order(session_id, part, last, links, narrowing))

    # Mostly as many rows as are wanted; more for each branch that is in between.
    count = scan.last
    while scan.want is not None and scan.want > end:
        top = scan.want
        params["top"], params["rows"] = top, count
        rows = yield statement, params
        if not scan.follow(rows):
            return (
                yield from _rows_out_of_order(session_id, part, last, links, narrowing)
            )
        if scan.want == top:
            name = message_name(session_id, top)
            yield from report_missing(session_id, [(name, REMOVED)])
            break
        count = min(count + _ROWS_BETWEEN, MAX_SEQ)

    scan.rows.reverse()
    return scan.rows


def _rows_out_of_order(
    session_id: str,
    part: Range,
    last: int | None,
    links: bool,
    narrowing: Narrowing | None,
) -> Read[Rows]:
    """Return what `_rows_of_path` does where a parent may have a greater seq."""
    path = yield from live_path(session_id, leaf=part.leaf)
    chosen = _slice_path(path, part.after, part.before)
    chosen = yield from _passing(session_id, chosen, narrowing)
    if last is not None:
        chosen = chosen[-last:]
    if links:
        return [(seq,) for seq in chosen]
    return (yield from rows_at(session_id, chosen))


def _passing(
    session_id: str, seqs: list[int], narrowing: Narrowing | None
) -> Read[list[int]]:
    """Return those of *seqs* that pass, in their order."""
    if narrowing is None or not seqs:
        return seqs
    params = {"sid": session_id, "seqs": as_list(seqs), **narrowing.params()}
    rows = yield _PASSING, params
    passing = {seq for (seq,) in rows}
    return [seq for seq in seqs if seq in passing]


def _slice_path(path: list[int], after: int | None, before: int | None) -> list[int]:
    """Return the seqs of *path* between two messages, which need not be on it."""
    first, end = 0, len(path)
    if after is not None:
        first = _index_on_path(path, after) + (after in path)
    if before is not None:
        end = _index_on_path(path, before)

    return path[first:end]


def _index_on_path(path: list[int], seq: int) -> int:
    """Return the index of *seq* in *path*, or how many of the path are before it."""
    if seq in path:
        return path.index(seq)
    return sum(map(seq.__gt__, path))


def _seqs_of_range(
    session_id: str,
    part: Range,
    last: int | None = None,
    narrowing: Narrowing | None = None,
) -> Read[list[int]]:
    """Return the seqs of a part of a session that pass, in its order."""
    if part.ids is not None:
        rows = yield _SEQS_OF_IDS, {"sid": session_id, "ids": as_list(part.ids)}
        chosen = sorted(seq for (seq,) in rows)
    elif part.branches:
        every = yield from live_path(
            session_id, branches=True, count=part.message_count
        )
        chosen = _slice_path(every, part.after, part.before)
    else:
        rows = yield from _rows_of_path(
            session_id, part, last, links=True, narrowing=narrowing
        )
        return [row[0] for row in rows]

    passing = yield from _passing(session_id, chosen, narrowing)
    return passing if last is None else passing[-last:]


def messages(
    session_id: str,
    part: Range,
    narrowing: Narrowing | None = None,
    *,
    last: int | None = None,
    limit: int | None = None,
    newest: bool = False,
    resolve: bool = True,
) -> Read[list[Message]]:
    """Return messages oldest first: in the order of a path, else of seqs.

    *last* takes from the end, *limit* from the beginning of what passes; with *newest*
    that order is reversed, and *limit* takes from its beginning. Without *resolve*
    results are only where they are stored. Empty is ``[]``.
    """
    if last is not None:
        bounds.integer(last, "last", least=1)
    if limit is not None:
        bounds.integer(limit, "limit", least=1)
    if newest and limit is not None:
        if last is not None:
            raise InvalidInputError("newest first, last is limit: pass one of them")
        last, limit = limit, None

    is_by_seq = part.branches or part.ids is not None
    if is_by_seq or limit is not None or narrowing is not None:
        # The first ones of a path are known only once all of it is.
        most = last if limit is None else None
        seqs = yield from _seqs_of_range(session_id, part, most, narrowing)
        if limit is not None:
            seqs = seqs[:limit] if last is None else seqs[:limit][-last:]
        loaded = yield from load(session_id, seqs, resolve=resolve, leaf=part.leaf)
    else:
        rows = yield from _rows_of_path(session_id, part, last)
        is_path = last is None and part.after is None and part.before is None
        loaded = yield from messages_of_rows(
            session_id, rows, resolve=resolve, is_path=is_path, leaf=part.leaf
        )

    if newest:
        loaded.reverse()
    return loaded


def pages(
    session_id: str,
    part: Range,
    narrowing: Narrowing | None = None,
    *,
    newest: bool = False,
    size: int = PAGE,
) -> Read[list[list[int]]]:
    """Return the seqs of a part of a session in pages of *size* messages at most."""
    if size < 1:
        raise InvalidInputError(f"a page has 1 message or more, not {abridged(size)}")

    seqs = yield from _seqs_of_range(session_id, part, narrowing=narrowing)
    return (yield from pages_of(session_id, seqs[::-1] if newest else seqs, size))
