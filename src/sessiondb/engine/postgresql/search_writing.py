"""What enters the search index: in the transaction that writes it, and all of it again.

Nothing waits: a writer names the parts that it wrote, and their entries are made from
the stored texts before it commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sessiondb.dataclass import dataclass, field
from sessiondb.engine.base import Connection
from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.engine.postgresql.search_entries import entries_of
from sessiondb.engine.postgresql.search_statements import TEXTS_OF_PART
from sessiondb.engine.search_index import SearchedTexts
from sessiondb.engine.search_words import words_beside, words_of_json
from sessiondb.engine.sql import Rows, as_list
from sessiondb.schema.rows import PartAddress

#: The name of the only part of the index: see `damaged`.
NAME = "part_search"
#: Parts whose texts are in memory at once.
_AT_ONCE = 100
_STORED = (
    f"SELECT p.rid, p.session_id, {TEXTS_OF_PART}, p.indexed, "
    "(SELECT max(f.chunk) FROM part_search AS f WHERE f.place = p.rid) FROM part AS p"
)
#: Place, session and texts of the parts of a list of addresses, whether they are to be
#: found, and the last chunk of their entries, NULL without any.
_OF_ADDRESSES = (
    "SELECT stored.* FROM json_array_elements(CAST(:parts AS JSON)) AS address "
    f"CROSS JOIN LATERAL ({_STORED} WHERE p.session_id = address ->> 0 "
    "AND p.seq = CAST(address ->> 1 AS BIGINT) "
    "AND p.idx = CAST(address ->> 2 AS BIGINT) OFFSET 0) AS stored"
)
#: The same of the next parts after ``:place``, oldest first.
_NEXT = f"{_STORED} WHERE p.rid > :place ORDER BY p.rid LIMIT {_AT_ONCE}"
_REMOVE = f"DELETE FROM part_search WHERE place IN {DIALECT.list_text('places', int)}"
_TAKE_OUT = (
    "DELETE FROM part_search WHERE place IN "
    "(SELECT rid FROM part WHERE session_id = ? AND seq = ?)"
)
#: The entries of a JSON array.
_EXPECTED = (
    "SELECT CAST(value ->> 0 AS BIGINT), value ->> 1, CAST(value ->> 2 AS INTEGER), "
    "CAST(value ->> 3 AS INTEGER) <> 0, CAST(value ->> 4 AS tsvector) "
    "FROM json_array_elements(CAST(:entries AS JSON)) AS value"
)
_INSERT = (
    "INSERT INTO part_search (place, session_id, chunk, is_in_order, words) "
    f"{_EXPECTED}"
)
#: The entry of a part by its address.
_INSERT_NEW = (
    "INSERT INTO part_search (session_id, place, chunk, is_in_order, words) "
    "SELECT session_id, rid, ?, CAST(? AS INTEGER) <> 0, CAST(? AS tsvector) "
    "FROM part WHERE session_id = ? AND seq = ? AND idx = ?"
)
#: Whether they differ from those after ``:place`` up to ``:last``.
_ENTRIES = (
    "SELECT place, session_id, chunk, is_in_order, words FROM part_search "
    "WHERE place > :place AND place <= :last"
)
_DIFFER = (
    f"SELECT EXISTS (({_EXPECTED}) EXCEPT ({_ENTRIES})) "
    f"OR EXISTS (({_ENTRIES}) EXCEPT ({_EXPECTED}))"
)
_LAST_PLACE = (1 << 63) - 1


class Texts(NamedTuple):
    """What the index has of a part: its texts, and the words beside them."""

    words: str | None
    text: str
    input: str
    title: str

    @property
    def columns(self) -> tuple[str, str, str]:
        """The texts that people see."""
        return self[1:]


def read_texts(row: Sequence[Any]) -> Texts:
    """Return the columns `TEXTS_OF_PART` as texts."""
    words, text, large_text, arguments, large_arguments, title = row
    if large_text is not None:
        text = large_text.decode(errors="replace")
    if large_arguments is not None:
        arguments = large_arguments.decode(errors="replace")
    return Texts(words, text or "", words_of_json(arguments) or "", title or "")


def prepare(connection: Connection, parts: str) -> None:
    """Keep the words beside parts, a list of addresses: see `search_words`."""
    changed = []
    for place, _, *row, _, _ in connection.execute(_OF_ADDRESSES, {"parts": parts}):
        texts = read_texts(row)
        words = words_beside(texts.columns)
        if words != texts.words:
            changed.append((words, place))
    if changed:
        connection.executemany("UPDATE part SET words = ? WHERE rid = ?", changed)


def put(
    connection: Connection,
    parts: str,  # noqa: ARG001  they are among those that changed
    changed: str,
) -> None:
    """Bring the entries of parts that changed up to date."""
    _update_entries(connection, changed)


def _update_entries(connection: Connection, parts: str) -> None:
    """Write the entries of parts, a list of addresses, as the rows are now."""
    addresses = json.loads(parts)
    for start in range(0, len(addresses), _AT_ONCE):
        some = json.dumps(addresses[start : start + _AT_ONCE])
        rows = connection.execute(_OF_ADDRESSES, {"parts": some}).fetchall()
        # A list may name a part twice.
        stored = list({row[0]: row for row in rows}.values())
        old = [row[0] for row in stored if row[-1] is not None]
        if old:
            connection.execute(_REMOVE, {"places": as_list(old)})
        _insert(connection, stored)


@dataclass(slots=True)
class NewParts:
    """PostgreSQL's half of `engine.search_index.WaitingParts`: none of them waits.

    Their entries are made of the texts as they were written, so that nothing is read
    before the COMMIT.
    """

    _texts: dict[PartAddress, Texts] = field(default_factory=dict)
    #: Those whose rows have to be read.
    _unread: list[PartAddress] = field(default_factory=list)

    def add(
        self,
        connection: Connection,  # noqa: ARG002  the server gives out numbers
        part: PartAddress,
        texts: SearchedTexts | None,
        *,
        is_searched: bool,
    ) -> None:
        """Remember a part that is to be found."""
        if not is_searched:
            return
        if texts is None:
            self._unread.append(part)
        else:
            words, text, arguments, title = texts
            self._texts[part] = read_texts((words, text, None, arguments, None, title))

    def reread(self) -> None:
        """Forget the texts of parts that may have changed, or were undone."""
        self._unread += self._texts
        self._texts.clear()

    def forget(self) -> None:
        """Do nothing: what was inserted otherwise is not found, or is `put`."""

    def finish(self, connection: Connection, size: int) -> bool:  # noqa: ARG002
        """Index all new parts; False, as there is nothing else to bring up to date."""
        if self._unread:
            # Those of units that were undone do not exist.
            _update_entries(connection, as_list(self._unread))
            self._unread = []
        for part, (words, *texts) in self._texts.items():
            for entry in entries_of(texts, words):
                chunk, is_in_order, vector = entry
                values = (chunk, int(is_in_order), vector, *part)
                connection.execute(_INSERT_NEW, values)
        self._texts.clear()
        return False


def take_out(connection: Connection, session_id: str, seq: int) -> None:
    """Remove the entries of a message."""
    connection.execute(_TAKE_OUT, (session_id, seq))


def damaged(connection: Connection) -> Iterator[str]:
    """Yield the name of the index if its entries are not those of the stored texts."""
    place = 0
    for rows in _all_parts(connection):
        last = rows[-1][0]
        if _differ(connection, place, last, _entries_of(rows)):
            yield NAME
            return
        place = last
    if _differ(connection, place, _LAST_PLACE, []):
        yield NAME


def rebuild(connection: Connection, names: Iterable[str] = (NAME,)) -> None:
    """Make all entries again, if *names* has that of the index."""
    if NAME not in names:
        return
    connection.execute("DELETE FROM part_search")
    for rows in _all_parts(connection):
        _insert(connection, rows)


def _insert(connection: Connection, rows: Rows) -> None:
    """Add the entries of parts, rows of `_STORED`."""
    entries = _entries_of(rows)
    if entries:
        connection.execute(_INSERT, {"entries": json.dumps(entries)})


def _all_parts(connection: Connection) -> Iterator[Rows]:
    """Yield the rows of all parts, oldest first, some at a time."""
    place = 0
    while rows := connection.execute(_NEXT, {"place": place}).fetchall():
        yield rows
        place = rows[-1][0]


def _entries_of(rows: Rows) -> list[tuple[Any, ...]]:
    """Return the entries of parts, rows of `_STORED`."""
    entries = []
    for place, session_id, *row, is_found, _ in rows:
        if is_found:
            texts = read_texts(row)
            for chunk, is_in_order, words in entries_of(texts.columns, texts.words):
                entries.append((place, session_id, chunk, int(is_in_order), words))
    return entries


def _differ(
    connection: Connection, place: int, last: int, entries: list[tuple[Any, ...]]
) -> bool:
    """Return whether the entries after *place* up to *last* are not *entries*."""
    params = {"place": place, "last": last, "entries": json.dumps(entries)}
    ((is_different,),) = connection.execute(_DIFFER, params).fetchall()
    return bool(is_different)
