"""What enters the search index: in the transaction that writes it, and all of it again.

Nothing waits: a writer names the parts that it wrote, and their entries are made from
the stored texts before it commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from sessiondb.dataclass import dataclass, field
from sessiondb.engine.base import Connection
from sessiondb.engine.postgresql.connection import BEGIN_READ
from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.engine.postgresql.search_entries import (
    IndexEntry,
    entries_of,
    words_of_text,
)
from sessiondb.engine.postgresql.search_statements import texts_of_part
from sessiondb.engine.search_index import SearchedTexts
from sessiondb.engine.search_words import words_beside, words_of_json
from sessiondb.engine.sql import Rows, as_list
from sessiondb.schema.rows import PartAddress

#: The parts of the index: see `damaged`.
NAMES = ("part_search", "session_search", "prompt_search")
_PARTS, _TITLES, _PROMPTS = NAMES
#: Parts whose texts are in memory at once.
_AT_ONCE = 100
#: Characters of the words of entries that are inserted at once.
_MOST_CHARACTERS = 1_000_000


def _stored(of_families: str = "") -> str:
    return (
        "SELECT p.rid, p.family, p.session_id, p.seq, "
        f"{texts_of_part(of_families)}, "
        "p.indexed, (SELECT max(f.chunk) FROM part_search AS f "
        f"WHERE f.family = p.family AND f.place = p.rid{of_families}) FROM part AS p"
    )


#: Stated for each table: a plan that compares families alone could touch all of them.
_OF_FAMILIES = " AND family = ANY (CAST(:families_of_parts AS BIGINT[]))"
#: Place, family, session, seq and texts of the parts of a list of addresses, whether
#: they are to be found, and the last chunk of their entries, NULL without any.
_OF_ADDRESSES = (
    "SELECT stored.* FROM json_array_elements(CAST(:parts AS JSON)) AS address "
    f"CROSS JOIN LATERAL ({_stored(_OF_FAMILIES)} "
    f"WHERE p.session_id = address ->> 0{_OF_FAMILIES} "
    "AND p.seq = CAST(address ->> 1 AS BIGINT) "
    "AND p.idx = CAST(address ->> 2 AS BIGINT) OFFSET 0) AS stored"
)
#: The same of the next parts after ``:place``, oldest first.
_NEXT = f"{_stored()} WHERE p.rid > :place ORDER BY p.rid LIMIT {_AT_ONCE}"
_REMOVE = f"DELETE FROM part_search WHERE place IN {DIALECT.list_text('places', int)}"
_TAKE_OUT = (
    "DELETE FROM part_search WHERE family = :family_of_sid AND place IN "
    "(SELECT rid FROM part WHERE family = :family_of_sid "
    "AND session_id = :sid AND seq = :seq)"
)
#: Given entries: a JSON array of what they are of, and an array of their words, which
#: is parsed once. A value of JSON is parsed again for each member that is taken.
_GIVEN = (
    "ROWS FROM (json_array_elements(CAST(:parts AS JSON)), "
    "unnest(CAST(:words AS tsvector[]))) AS entry (part, words)"
)
_EXPECTED = (
    "SELECT CAST(part ->> 0 AS BIGINT), CAST(part ->> 1 AS BIGINT), part ->> 2, "
    "CAST(part ->> 3 AS BIGINT), CAST(part ->> 4 AS INTEGER), "
    f"CAST(part ->> 5 AS BOOLEAN), words FROM {_GIVEN}"
)
_COLUMNS = "place, family, session_id, seq, chunk, is_in_order, words"
_INSERT = f"INSERT INTO part_search ({_COLUMNS}) {_EXPECTED}"
#: The same of parts by their addresses.
_INSERT_NEW = (
    f"INSERT INTO part_search ({_COLUMNS}) "
    "SELECT stored.rid, stored.family, part ->> 0, CAST(part ->> 1 AS BIGINT), "
    "CAST(part ->> 3 AS INTEGER), CAST(part ->> 4 AS BOOLEAN), words "
    f"FROM {_GIVEN} CROSS JOIN LATERAL (SELECT rid, family FROM part AS p "
    f"WHERE p.session_id = part ->> 0{_OF_FAMILIES} "
    "AND p.seq = CAST(part ->> 1 AS BIGINT) "
    "AND p.idx = CAST(part ->> 2 AS BIGINT) OFFSET 0) AS stored"
)
#: Whether they differ from those after ``:place`` up to ``:last``.
_ENTRIES = f"SELECT {_COLUMNS} FROM part_search WHERE place > :place AND place <= :last"
_DIFFER = (
    f"SELECT EXISTS (({_EXPECTED}) EXCEPT ({_ENTRIES})) "
    f"OR EXISTS (({_ENTRIES}) EXCEPT ({_EXPECTED}))"
)
_SET_WORDS = "UPDATE part SET words = ? WHERE rid = ? AND family = ?"
_LAST_PLACE = (1 << 63) - 1
#: The entries of a JSON array of ids and words. Each row is looked up: a server takes a
#: list for 100 rows, and might read all there are.
_LISTED = "FROM json_array_elements(CAST(:entries AS JSON)) AS value CROSS JOIN LATERAL"
_PUT_TITLES = (
    "INSERT INTO session_search (place, family, own_id, words) "
    f"SELECT s.rid, s.family, s.source_id, CAST(value ->> 1 AS tsvector) {_LISTED} "
    "(SELECT rid, family, source_id FROM session WHERE id = value ->> 0 "
    "AND family = ANY (CAST(:families_of_entries AS BIGINT[])) OFFSET 0) AS s "
    "ON CONFLICT (place, family) "
    "DO UPDATE SET own_id = excluded.own_id, words = excluded.words"
)
_PUT_PROMPTS = (
    "INSERT INTO prompt_search (place, words) "
    f"SELECT p.rid, CAST(value ->> 1 AS tsvector) {_LISTED} "
    "(SELECT rid FROM prompt WHERE id = value ->> 0 OFFSET 0) AS p "
    "ON CONFLICT (place) DO UPDATE SET words = excluded.words"
)


#: What an entry is of, an address or a place with its part, and the entry.
_Entry: TypeAlias = tuple[Sequence[Any], IndexEntry]


class _PlainTexts(NamedTuple):
    """What has one text, by which it is found, and an entry that is found by its id."""

    name: str
    put: str
    #: Row number, id and text of the next after ``:place``, in this order.
    next: str
    #: Whether the entries after ``:place`` up to ``:last`` are not those of
    #: ``:entries``.
    differ: str


def _plain_texts(
    name: str,
    put: str,
    table: str,
    text: str,
    *,
    own_id: str,
    own_id_of_row: str,
    of_family: str = "",
) -> _PlainTexts:
    entries = (
        f"SELECT r.id, {own_id}, f.words FROM {name} AS f JOIN {table} AS r "
        f"ON r.rid = f.place{of_family} WHERE f.place > :place AND f.place <= :last"
    )
    expected = (
        f"SELECT r.id, {own_id_of_row}, "
        "CAST(value ->> 1 AS tsvector) "
        "FROM json_array_elements(CAST(:entries AS JSON)) AS value "
        f"JOIN {table} AS r ON r.id = value ->> 0"
    )
    return _PlainTexts(
        name,
        put,
        f"SELECT rid, id, {text} FROM {table} WHERE rid > :place "
        f"ORDER BY rid LIMIT {_AT_ONCE}",
        f"SELECT EXISTS (({expected}) EXCEPT ({entries})) "
        f"OR EXISTS (({entries}) EXCEPT ({expected}))",
    )


_PLAIN_TEXTS = (
    _plain_texts(
        _TITLES,
        _PUT_TITLES,
        "session",
        "title",
        # A session may lose its own id, and no other gets another one. An entry that
        # still has it does no harm: what it yields is compared.
        own_id="CASE WHEN r.source_id IS NOT NULL THEN f.own_id END",
        own_id_of_row="r.source_id",
        of_family=" AND r.family = f.family",
    ),
    _plain_texts(
        _PROMPTS, _PUT_PROMPTS, "prompt", "text", own_id="0", own_id_of_row="0"
    ),
)


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
    """Return the columns `texts_of_part` as texts."""
    words, text, large_text, arguments, large_arguments, title = row
    if large_text is not None:
        text = large_text.decode(errors="replace")
    if large_arguments is not None:
        arguments = large_arguments.decode(errors="replace")
    return Texts(words, text or "", words_of_json(arguments) or "", title or "")


def prepare(connection: Connection, parts: str) -> None:
    """Keep the words beside parts, a list of addresses: see `search_words`."""
    changed = []
    rows = connection.execute(_OF_ADDRESSES, {"parts": parts}).fetchall()
    for place, family, _, _, *row, _, _ in rows:
        texts = read_texts(row)
        words = words_beside(texts.columns)
        if words != texts.words:
            changed.append((words, place, family))
    if changed:
        connection.executemany(_SET_WORDS, changed)


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
        waiting: list[_Entry] = []
        characters = 0
        for part, (words, *texts) in self._texts.items():
            for entry in entries_of(texts, words):
                waiting.append((part, entry))
                characters += len(entry.words)
            if len(waiting) >= _AT_ONCE or characters > _MOST_CHARACTERS:
                connection.execute(_INSERT_NEW, _params_of(waiting))
                waiting, characters = [], 0
        if waiting:
            connection.execute(_INSERT_NEW, _params_of(waiting))
        self._texts.clear()
        return False


def take_out(connection: Connection, session_id: str, seq: int) -> None:
    """Remove the entries of a message."""
    connection.execute(_TAKE_OUT, {"sid": session_id, "seq": seq})


def put_titles(connection: Connection, titles: Mapping[str, str]) -> None:
    """Write the entries of sessions, by their ids, with these titles."""
    _put_texts(connection, _PUT_TITLES, titles.items())


def put_prompts(connection: Connection, prompts: Mapping[str, str]) -> None:
    """Write the entries of prompts, by their ids, with these texts."""
    _put_texts(connection, _PUT_PROMPTS, prompts.items())


def _put_texts(
    connection: Connection, put: str, texts: Iterable[tuple[str, str]]
) -> None:
    entries = _text_entries(texts)
    if entries:
        connection.execute(put, {"entries": json.dumps(entries)})


def _text_entries(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str | None]]:
    return [(name, words_of_text(text)) for name, text in texts]


def damaged(connection: Connection) -> Iterator[str]:
    """Yield the parts of the index whose entries are not those of the stored texts."""
    # Several statements see one state: else what others commit in between is a defect.
    connection.execute(BEGIN_READ)
    try:
        if _parts_differ(connection):
            yield _PARTS
        for texts in _PLAIN_TEXTS:
            if _texts_differ(connection, texts):
                yield texts.name
    finally:
        connection.execute("ROLLBACK")


def _parts_differ(connection: Connection) -> bool:
    place = 0
    for rows in _pages(connection, _NEXT):
        last = rows[-1][0]
        if _differ(connection, _DIFFER, place, last, _params_of(_entries_of(rows))):
            return True
        place = last
    return _differ(connection, _DIFFER, place, _LAST_PLACE, _params_of([]))


def _texts_differ(connection: Connection, texts: _PlainTexts) -> bool:
    place = 0
    for rows in _pages(connection, texts.next):
        last = rows[-1][0]
        entries = json.dumps(_text_entries([row[1:] for row in rows]))
        if _differ(connection, texts.differ, place, last, {"entries": entries}):
            return True
        place = last
    # An entry refers to a row: there is none after the last.
    return False


def rebuild(connection: Connection, names: Iterable[str] = NAMES) -> None:
    """Make all entries of the parts *names* of the index again."""
    wanted = set(names)
    if _PARTS in wanted:
        connection.execute("DELETE FROM part_search")
        for rows in _pages(connection, _NEXT):
            _insert(connection, rows)
    for texts in _PLAIN_TEXTS:
        if texts.name in wanted:
            connection.execute(f"DELETE FROM {texts.name}")
            for rows in _pages(connection, texts.next):
                _put_texts(connection, texts.put, [row[1:] for row in rows])


def _insert(connection: Connection, rows: Rows) -> None:
    """Add the entries of parts, rows of `_stored`."""
    entries = _entries_of(rows)
    if entries:
        connection.execute(_INSERT, _params_of(entries))


def _pages(connection: Connection, following: str) -> Iterator[Rows]:
    """Yield the rows of *following*, oldest first, some at a time."""
    place = 0
    while rows := connection.execute(following, {"place": place}).fetchall():
        yield rows
        place = rows[-1][0]


def _entries_of(rows: Rows) -> list[_Entry]:
    """Return the entries of parts, rows of `_stored`."""
    entries: list[_Entry] = []
    for *place, row, is_found in [(*row[:4], row[4:-2], row[-2]) for row in rows]:
        if is_found:
            texts = read_texts(row)
            entries += [
                (place, entry) for entry in entries_of(texts.columns, texts.words)
            ]
    return entries


def _params_of(entries: Sequence[_Entry]) -> dict[str, str]:
    """Return the parameters of `_GIVEN`."""
    parts = [(*part, entry.chunk, entry.is_in_order) for part, entry in entries]
    # There is neither a quotation mark nor a backslash in them.
    words = ",".join([f'"{entry.words}"' for _, entry in entries])
    return {"parts": as_list(parts), "words": f"{{{words}}}"}


def _differ(
    connection: Connection,
    differ: str,
    place: int,
    last: int,
    entries: Mapping[str, str],
) -> bool:
    """Return whether the entries after *place* up to *last* are not *entries*."""
    params = {"place": place, "last": last, **entries}
    ((is_different,),) = connection.execute(differ, params).fetchall()
    return bool(is_different)
