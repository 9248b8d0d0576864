"""A database copied into another one, whatever engines they have.

Rows are copied and not read as sessions: what is in a column arrives in that column, so
the copy has everything, also what this release would write otherwise. Left out is what
a database has for itself (its name, its numbers of rows and changes, leases), and what
follows from other rows: the engine of the copy makes its own index and sums.

The source is read in one snapshot. Sessions go over in groups, parents first, each
group in one transaction, and those that are equal on both sides are passed over. So a
copy that was interrupted is completed by running it again, even if the source has
changed: rows that it no longer has are removed. In the end both are read again and
compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from sessiondb.arguments import checked
from sessiondb.codec import UTF8
from sessiondb.dataclass import dataclass
from sessiondb.engine.base import Connection
from sessiondb.engine.extension_tables import ExtensionTable
from sessiondb.engine.sql import (
    Statement,
    as_list,
    insert_text,
    listed,
    sparse_insert,
    upsert_text,
)
from sessiondb.errors import ConflictError, CorruptionError, InvalidInputError
from sessiondb.formats.kit.order import parents_first
from sessiondb.hints import command
from sessiondb.importing.rows.extension_rows import GROUP
from sessiondb.location.database import database_of
from sessiondb.maintenance.connecting import connected
from sessiondb.maintenance.stored_rows import (
    COLUMNS,
    KEYS,
    Row,
    blobs_in,
    digest_of,
    pages_of,
)
from sessiondb.schema.rows import Blob

if TYPE_CHECKING:
    from sessiondb.store import Store

#: Called with the number of sessions that are done, and of all.
Progress = Callable[[int, int], object]

#: Tables to which no row refers, and that have no rows of a session; a row may name a
#: session or a project.
_APART = (
    "project_directory",
    "prompt",
    "terminal",
    "tombstone",
    "import_ledger",
    "import_file",
    "key_value",
)
#: Tables with the rows of a session, in the order of their references.
_OF_SESSIONS = ("message", "part", "label", "todo", "file_diff", "merge_base")
_PROMPT_ID, _PROMPT_TEXT = map(COLUMNS["prompt"].index, ("id", "text"))
_PART_ROWS = sparse_insert("part", ("rid", *COLUMNS["part"]))
#: Sessions, and messages in them, of one transaction.
_SESSIONS, _MESSAGES = 100, 1_000
#: Blobs that are read at once; each may be large.
_BLOBS = 20
_FAMILIES = "SELECT id, parent_id, message_count FROM session ORDER BY time_created, id"
#: The entry of ``meta`` with the name of the database that is being copied.
_MARK = "copy_of"
#: That with the greatest revision of a value that was removed.
_VALUE_REVISION = "value_revision"
_FREE = Statement("effects.transaction.FREE")


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of `copy`: the sessions that it wrote, and those that were equal.

    ``rows`` is the number of rows by table, and ``digest`` the SHA-256 of all of them
    in hexadecimal; both sides have the same. ``left_out`` are the tables of programs
    that are not installed here, ``[]`` for none.
    """

    sessions: int
    equal: int
    rows: dict[str, int]
    digest: str
    left_out: list[str]


@checked
def copy(source: Store, to: Store, *, progress: Progress | None = None) -> Copied:
    """Copy everything in the database of *source* into that of *to*.

    The target is empty, or an interrupted copy of the same database, which is
    completed; `ConflictError` is raised for any other one. The source may be in use:
    what is written to it after the beginning is not copied. *progress* is called after
    each group of sessions. Raises `InvalidInputError` if both are the same database,
    `CorruptionError` for rows that cannot be read or that differ in the end, and the
    errors of both engines.
    """
    stored, copied = database_of(source), database_of(to)
    if stored == copied:
        raise InvalidInputError(f"{copied} cannot be copied into itself")
    with ExitStack() as stack:
        reading = stack.enter_context(connected(stored))
        writing = stack.enter_context(connected(copied, mode="rw"))
        reading.execute(reading.engine.begin_read)
        return _CopyRun(reading, writing).run(progress or _report_nothing)


def _report_nothing(done: int, all_sessions: int) -> None:
    """Report no progress."""


class _CopyRun:
    """One copy: the snapshot that is read, and the connection that writes."""

    def __init__(self, reading: Connection, writing: Connection) -> None:
        self._reading, self._writing = reading, writing
        self._extension_tables: list[ExtensionTable] = []
        #: Blobs of rows that were removed from the copy, or replaced.
        self._loose: set[str] = set()

    def run(self, progress: Progress) -> Copied:
        self._claim()
        left_out = self._make_extension_tables()
        # Sessions refer to them.
        self._write_projects()
        done = written = 0
        groups = list(self._groups())
        every = sum(map(len, groups))
        for ids in groups:
            written += self._copy_sessions(ids)
            done += len(ids)
            progress(done, every)
        self._remove_gone("session")
        self._remove_gone("project")
        for table in _APART:
            self._replace_rows(table, self._pages_of(self._reading, table))
        for added in self._extension_tables:
            if not added.is_of_sessions:
                pages = self._pages_of(self._reading, added.name)
                self._replace_rows(added.name, pages)
        self._complete()
        rows, digest = self._compare()
        self._release()
        return Copied(written, every - written, rows, digest, left_out)

    @contextmanager
    def _transaction(self) -> Iterator[int]:
        """Write in a ``with`` block; the time of the database is its value."""
        engine = self._writing.engine
        engine.begin_write(self._writing, is_alone=True)
        try:
            yield engine.time_of(self._writing)
            self._writing.commit()
        finally:
            if self._writing.in_transaction:
                self._writing.execute("ROLLBACK")

    # -- beginning and end ---------------------------------------------------

    def _claim(self) -> None:
        """Mark the target as a copy of this source, or raise `ConflictError`."""
        name = _meta(self._reading, "database_uuid")
        with self._transaction():
            mark = _meta(self._writing, _MARK)
            if mark == name:
                return
            (is_used,) = self._writing.execute(
                "SELECT count(*) FROM (SELECT 1 AS one FROM session LIMIT 1) AS found"
            ).fetchone()
            if is_used or mark is not None:
                raise ConflictError(
                    "the target has sessions of its own"
                    if mark is None
                    else "the target is an unfinished copy of another database",
                    hint="name an empty database; "
                    f"{command('import')} adds sessions to one that is in use",
                )
            text = insert_text("meta", ("key", "value"))
            self._writing.execute(text, (_MARK, name))

    def _release(self) -> None:
        with self._transaction():
            self._writing.execute("DELETE FROM meta WHERE key = ?", (_MARK,))

    def _complete(self) -> None:
        """Write what follows from all rows, and free what only removed rows had."""
        engine = self._writing.engine
        revision = _meta(self._reading, _VALUE_REVISION)
        with self._transaction():
            if revision is not None:
                # A key of the copy never has a revision again either.
                text = upsert_text("meta", ("key", "value"), ("key",))
                self._writing.execute(text, (_VALUE_REVISION, revision))
            if self._loose:
                text = _FREE.text_on(engine)
                self._writing.execute(text, {"hashes": as_list(sorted(self._loose))})
            engine.search.put_waiting(self._writing)
            engine.usage.put_waiting(self._writing)

    # -- sessions ------------------------------------------------------------

    def _groups(self) -> Iterator[list[str]]:
        """Yield the ids of sessions that go over together, parents first."""
        rows = self._reading.execute(_FAMILIES).fetchall()
        parents = {name: parent for name, parent, _ in rows}
        messages = {name: number for name, _, number in rows}
        group: list[str] = []
        size = 0
        for name, _ in parents_first(parents, parents.get):
            if len(group) == _SESSIONS or (group and size + messages[name] > _MESSAGES):
                yield group
                group, size = [], 0
            group.append(name)
            size += messages[name]
        if group:
            yield group

    def _copy_sessions(self, ids: Sequence[str]) -> int:
        """Copy those sessions of a group that differ; return how many."""
        stored = self._rows_of(self._reading, ids)
        copied = self._rows_of(self._writing, ids)
        differing = [
            name
            for name in ids
            if any(
                stored[table].get(name) != copied[table].get(name) for table in stored
            )
        ]
        if not differing:
            return 0

        with self._transaction():
            self._remove_rows(copied, differing)
            going = {
                table: [row for name in differing for row in rows.get(name, ())]
                for table, rows in stored.items()
            }
            self._make_room_in_families(going["session"])
            self._copy_blobs(going)
            self._write_sessions(going.pop("session"))
            for table, rows in going.items():
                if table == "part":
                    self._write_parts(rows)
                elif rows:
                    text = insert_text(table, self._columns_of(table))
                    self._writing.executemany(text, rows)
        return len(differing)

    def _rows_of(
        self, connection: Connection, ids: Sequence[str]
    ) -> dict[str, dict[str, list[Row]]]:
        """Return table → session → its rows, in the order of their keys."""
        tables = {"session": "id", **dict.fromkeys(_OF_SESSIONS, "session_id")}
        tables |= {
            table.name: "session_id"
            for table in self._extension_tables
            if table.is_of_sessions
        }
        in_list = connection.engine.dialect.list_text("ids", str)
        by_table: dict[str, dict[str, list[Row]]] = {}
        for table, owner in tables.items():
            columns = self._columns_of(table)
            sql = f"SELECT {listed(columns)} FROM {table} WHERE {owner} IN {in_list}"
            if table in KEYS:
                sql += f" ORDER BY {listed(KEYS[table])}"
            rows = connection.execute(sql, {"ids": as_list(ids)}).fetchall()
            if table not in KEYS:
                # The table of a program may have no key.
                rows.sort(key=repr)
            place = columns.index(owner)
            by_session = by_table[table] = dict[str, list[Row]]()
            for row in rows:
                by_session.setdefault(row[place], []).append(row)
        return by_table

    def _remove_rows(
        self, copied: Mapping[str, Mapping[str, list[Row]]], ids: Sequence[str]
    ) -> None:
        """Remove what sessions have in the copy; their own row is updated."""
        in_list = self._writing.engine.dialect.list_text("ids", str)
        for table, rows in copied.items():
            stale = [row for name in ids for row in rows.get(name, ())]
            if not stale:
                continue
            self._loose.update(blobs_in(table, self._columns_of(table), stale))
            if table != "session":
                sql = f"DELETE FROM {table} WHERE session_id IN {in_list}"
                self._writing.execute(sql, {"ids": as_list(ids)})

    def _make_room_in_families(self, rows: Sequence[Row]) -> None:
        """Let each session that is written next be with its parent."""
        engine, columns = self._writing.engine, COLUMNS["session"]
        for row in rows:
            session = dict(zip(columns, row, strict=True))
            name, parent = session["id"], session["parent_id"]
            # A fork whose parent was deleted still has its root.
            engine.lock_new_session(self._writing, name, parent or session["root_id"])
            if parent is not None:
                # An interrupted copy may have it below another one.
                engine.join_family(self._writing, [name], parent)

    def _copy_blobs(self, going: Mapping[str, list[Row]]) -> None:
        #: Of each blob the sessions that have it: their families each get it.
        holders: dict[str, set[str]] = {}
        for table, rows in going.items():
            columns = self._columns_of(table)
            owner = columns.index("id" if table == "session" else "session_id")
            for row in rows:
                for name in blobs_in(table, columns, [row]):
                    holders.setdefault(name, set()).add(row[owner])
        in_list = self._reading.engine.dialect.list_text("hashes", str)
        sql = f"SELECT hash, size, encoding, data FROM blob WHERE hash IN {in_list}"
        names = sorted(holders)
        for start in range(0, len(names), _BLOBS):
            some = as_list(names[start : start + _BLOBS])
            read = self._reading.execute(sql, {"hashes": some})
            # A server may have one for each of several families, and only some of them
            # as a text, which search and the views read.
            blobs = [Blob(*row) for row in read]
            by_name = {blob.hash: blob for blob in blobs}
            by_name |= {blob.hash: blob for blob in blobs if blob.encoding == UTF8}
            for name, blob in by_name.items():
                for session_id in sorted(holders[name]):
                    self._writing.engine.insert_blobs(self._writing, session_id, [blob])

    def _write_sessions(self, rows: Sequence[Row]) -> None:
        columns = COLUMNS["session"]
        place = columns.index("id")
        text = upsert_text("session", (*columns, "change"), ("id",))
        numbers = self._writing.engine.feed.numbers()
        for row in rows:
            change, _ = numbers.take(self._writing, row[place])
            self._writing.execute(text, (*row, change))
        title = columns.index("title")
        titles = {row[place]: row[title] for row in rows}
        self._writing.engine.search.put_titles(self._writing, titles)

    def _write_parts(self, rows: Sequence[Row]) -> None:
        """Insert parts, and have search find them as those that are appended."""
        columns, search = COLUMNS["part"], self._writing.engine.search
        key = [columns.index(name) for name in KEYS["part"]]
        is_searched = columns.index("indexed")
        new_parts, searched = search.waiting_parts(), []
        for row in rows:
            address = row[key[0]], row[key[1]], row[key[2]]
            # What is searched is put into the index below.
            rid = new_parts.add(
                self._writing, address, None, is_searched=bool(row[is_searched])
            )
            self._writing.execute(*_PART_ROWS.of_row((rid, *row)))
            if row[is_searched]:
                searched.append(address)
        if searched:
            search.prepare(self._writing, as_list(searched))
        new_parts.finish(self._writing, 0)

    # -- other tables --------------------------------------------------------

    def _write_projects(self) -> None:
        text = upsert_text("project", COLUMNS["project"], ("id",))
        for rows in pages_of(self._reading, "project"):
            with self._transaction():
                self._writing.executemany(text, rows)

    def _remove_gone(self, table: str) -> None:
        """Remove the rows of *table* that the source does not have any more."""
        stored, copied = (
            {row[0] for row in connection.execute(f"SELECT id FROM {table}")}
            for connection in (self._reading, self._writing)
        )
        gone = sorted(copied - stored)
        for start in range(0, len(gone), _SESSIONS):
            ids = gone[start : start + _SESSIONS]
            with self._transaction():
                if table == "session":
                    self._remove_rows(self._rows_of(self._writing, ids), ids)
                in_list = self._writing.engine.dialect.list_text("ids", str)
                sql = f"DELETE FROM {table} WHERE id IN {in_list}"
                self._writing.execute(sql, {"ids": as_list(ids)})

    def _replace_rows(self, table: str, pages: Iterable[list[Row]]) -> None:
        """Replace all rows of a table to which no row refers, in one transaction."""
        text = insert_text(table, self._columns_of(table))
        with self._transaction():
            self._writing.execute(f"DELETE FROM {table}")
            for rows in pages:
                self._writing.executemany(text, rows)
                if table == "prompt":
                    prompts = {row[_PROMPT_ID]: row[_PROMPT_TEXT] for row in rows}
                    self._writing.engine.search.put_prompts(self._writing, prompts)

    # -- tables of programs --------------------------------------------------

    def _make_extension_tables(self) -> list[str]:
        """Make the tables of programs; return those whose program is not here."""
        wanted = self._reading.engine.extensions.listed(self._reading)
        with self._transaction() as now:
            for name in dict.fromkeys(table.extension for table in wanted):
                for entry in entry_points(group=GROUP, name=name):
                    extensions = self._writing.engine.extensions
                    extensions.put(self._writing, entry.load(), now)
        present = {
            table.name: set(table.columns)
            for table in self._writing.engine.extensions.listed(self._writing)
        }
        self._extension_tables = [
            table
            for table in wanted
            if present.get(table.name, set()) >= {*table.columns}
        ]
        return [table.name for table in wanted if table not in self._extension_tables]

    def _columns_of(self, table: str) -> tuple[str, ...]:
        if table in COLUMNS:
            return COLUMNS[table]
        (columns,) = [
            added.columns for added in self._extension_tables if added.name == table
        ]
        return columns

    # -- the comparison ------------------------------------------------------

    def _compare(self) -> tuple[dict[str, int], str]:
        """Return the numbers of rows and their digest, which both sides have.

        Blobs are not among them: each is named by its content, and no row can refer to
        one that is missing. Raises `CorruptionError` for the first table that differs.
        """
        tables = ["project", "session", *_OF_SESSIONS, *_APART]
        tables += [table.name for table in self._extension_tables]
        rows: dict[str, int] = {}
        digests = hashlib.sha256()
        for table in tables:
            stored, copied = (
                digest_of(self._pages_of(connection, table))
                for connection in (self._reading, self._writing)
            )
            if stored != copied:
                raise CorruptionError(
                    f"{table} has {copied.rows:,} rows in the copy that are not the "
                    f"{stored.rows:,} of the source",
                    hint="copy again while no program uses the copy",
                )
            rows[table] = stored.rows
            digests.update(stored.digest)
        return rows, digests.hexdigest()

    def _pages_of(self, connection: Connection, table: str) -> Iterator[list[Row]]:
        if table in COLUMNS:
            yield from pages_of(connection, table)
        else:
            # The table of a program may have no key.
            sql = f"SELECT {listed(self._columns_of(table))} FROM {table}"
            yield sorted(connection.execute(sql).fetchall(), key=repr)


def _meta(connection: Connection, key: str) -> str | None:
    sql = "SELECT value FROM meta WHERE key = ?"
    row: tuple[str] | None = connection.execute(sql, (key,)).fetchone()
    return row and row[0]
