"""The floor: the rows of sessiondb by plain psycopg.

A program that has no library writes them so: a statement for each table, prepared, with
BEGIN and COMMIT around them. A session's counters are moved on first, which locks its
row, so that any number of processes may append to one session.
"""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import msgpack
import psycopg

from benchmarks.fixtures import FIELDS, draft
from sessiondb.engine.postgresql.ddl import names_of
from sessiondb.engine.postgresql.families import family_of_root, is_sharded
from sessiondb.engine.session_rows import HOLDERS
from sessiondb.schema.columns import TABLES

Raw = psycopg.Connection[Any]
_TOKENS = FIELDS["tokens"]
_MOVE_ON = (
    "UPDATE session SET revision = revision + 1, change = change + 1, "
    "leaf_seq = last_seq + 1, last_seq = last_seq + 1, "
    "message_count = message_count + 1, cost = coalesce(cost, 0) + {cost}, "
    "tokens_input = coalesce(tokens_input, 0) + {input}, "
    "tokens_output = coalesce(tokens_output, 0) + {output}, "
    "tokens_cache_read = coalesce(tokens_cache_read, 0) + {cache_read}, "
    "time_updated = %(now)s WHERE id = ANY(%(ids)s) RETURNING id, last_seq, family"
).format(cost=FIELDS["cost"], **_TOKENS)
_TEXTS_OF_MESSAGE = (
    "INSERT INTO part_search "
    "(place, family, chunk, session_id, seq, is_in_order, words) "
    "SELECT rid, family, 0, session_id, seq, true, "
    "to_tsvector('simple', concat_ws(' ', text, title, input)) "
    "FROM part WHERE session_id = %s AND seq = %s"
)
#: What a database has for itself, or derives.
_OWN_COLUMNS = {"rid", "change", "words", "hidden"}


def connect(url: str, level: str = "full") -> Raw:
    """Open a database; every statement is prepared when it is first used."""
    connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
    if level == "normal":
        connection.execute("SET synchronous_commit = off")
    return connection


# -- writing -------------------------------------------------------------------


def append(
    connection: Raw, session_ids: Sequence[str], number: int, *, is_found: bool = False
) -> None:
    """Append `fixtures.draft` to each of the sessions, in one transaction.

    With *is_found* the texts go into a search index, too.
    """
    now = time.time_ns() // 1_000_000
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(_MOVE_ON, {"ids": session_ids, "now": now})
        places = cursor.fetchall()
        messages: list[dict[str, Any]] = []
        parts: list[dict[str, Any]] = []
        for session_id, seq, family in places:
            of_family = {"family": family}
            messages.append(message_row(session_id, seq, now) | of_family)
            rows = part_rows(session_id, seq, now, number)
            parts += [row | of_family for row in rows]
        _insert(cursor, "message", messages)
        _insert(cursor, "part", parts)
        if is_found:
            cursor.executemany(_TEXTS_OF_MESSAGE, [place[:2] for place in places])


def message_row(session_id: str, seq: int, now: int) -> dict[str, Any]:
    """Return an answer."""
    return {
        "session_id": session_id,
        "seq": seq,
        "id": f"msg_{uuid.uuid4().hex}",
        "parent_seq": seq - 1,
        "turn_id": f"msg_{uuid.uuid4().hex}",
        "role": "assistant",
        "agent": FIELDS["agent"],
        "provider_id": FIELDS["provider"],
        "model_id": FIELDS["model"],
        "usage_key": uuid.uuid4().hex,
        "cost": FIELDS["cost"],
        "tokens_input": _TOKENS["input"],
        "tokens_output": _TOKENS["output"],
        "tokens_cache_read": _TOKENS["cache_read"],
        "finish": FIELDS["finish"],
        "time_created": now,
        "time_completed": now,
    }


def part_rows(
    session_id: str, seq: int, now: int, number: int
) -> Iterator[dict[str, Any]]:
    """Yield the two parts of the answer of that number."""
    for idx, part in enumerate(draft(number).parts):
        is_call = part.type == "tool"
        yield {
            "session_id": session_id,
            "seq": seq,
            "idx": idx,
            "id": f"prt_{uuid.uuid4().hex}",
            "type": part.type,
            "tool": part.tool,
            "call_id": part.call_id,
            "status": part.status,
            "title": part.title,
            "input": json.dumps(part.input) if is_call else None,
            "text": part.text,
            "indexed": 1,
            "time_created": now,
            "time_updated": now,
        }


def _insert(
    cursor: psycopg.Cursor[Any], table: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows that all have the columns of the first; several in one message."""
    names = rows[0].keys()
    sql = (
        f"INSERT INTO {table} ({', '.join(names)}) "
        f"VALUES ({', '.join(f'%({name})s' for name in names)})"
    )
    if len(rows) == 1:
        cursor.execute(sql, rows[0])
    else:
        cursor.executemany(sql, rows)


class Filling:
    """Adds rows by COPY, those of sessions with their families."""

    def __init__(self, connection: Raw) -> None:
        self._connection = connection
        self._families: dict[str, int] = {}
        #: Blobs are those of the session before them.
        self._last = 0

    def __call__(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows that all have the columns of the first; sessions come first."""
        _copy_in(self._connection, table, map(self._in_family, repeat(table), rows))
        if table == "session":
            routes = [
                {"session_id": name, "family": family}
                for name, family in self._families.items()
            ]
            _copy_in(self._connection, "route", routes)

    def _in_family(self, table: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
        if not is_sharded(table):
            return row
        if table == "session":
            self._last = self._families[row["id"]] = family_of_root(row["root_id"])
        elif "session_id" in row:
            self._last = self._families[row["session_id"]]
        return {**row, "family": self._last}


def _copy_in(connection: Raw, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    columns = [name for name in first if name not in _OWN_COLUMNS]
    sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(sql) as copy:
        for row in chain([first], rows):
            copy.write_row([row[name] for name in columns])


# -- whole databases -----------------------------------------------------------


def insert_file(connection: Raw, path: Path) -> None:
    """Insert the rows of the file at *path*, in one transaction."""
    with connection.transaction(), connection.cursor() as cursor:
        for table, columns, rows in _rows_of_file(path):
            marks = ", ".join(["%s"] * len(columns))
            cursor.executemany(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows
            )


def copy_file(connection: Raw, path: Path) -> None:
    """Add the rows of the file at *path* by COPY, in one transaction."""
    with connection.transaction(), connection.cursor() as cursor:
        for table, columns, rows in _rows_of_file(path):
            sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
            with cursor.copy(sql) as copy:
                for row in rows:
                    copy.write_row(row)


def _rows_of_file(path: Path) -> Iterator[tuple[str, list[str], Iterable[Any]]]:
    """Yield each table with its columns and rows, in the order of their references."""
    with closing(sqlite3.connect(path)) as file:
        sessions = file.execute("SELECT id, root_id FROM session")
        families = {name: family_of_root(root_id) for name, root_id in sessions}
        yield "route", ["session_id", "family"], families.items()
        of_blobs: defaultdict[str, set[int]] = defaultdict(set)
        for table, column, owner in HOLDERS:
            for name, session_id in file.execute(
                f"SELECT {column}, {owner} FROM {table}"
            ):
                of_blobs[name].add(families[session_id])
        for table, every_column in TABLES.items():
            if table == "meta" or table not in names_of("TABLE"):
                continue
            columns = [name for name in every_column if name not in _OWN_COLUMNS]
            quoted = [f'"{name}"' for name in columns]
            rows = file.execute(f"SELECT {', '.join(quoted)} FROM {table}")
            if not is_sharded(table):
                yield table, quoted, rows
                continue
            of_rows = of_blobs if table == "blob" else families
            key = {"blob": "hash", "session": "id"}.get(table, "session_id")
            place = columns.index(key)
            yield (
                table,
                ["family", *quoted],
                (
                    (family, *row)
                    for row in rows
                    for family in _each(of_rows[row[place]])
                ),
            )


def _each(families: int | set[int]) -> Iterable[int]:
    return families if isinstance(families, set) else [families]


# -- reading -------------------------------------------------------------------


def read(connection: Raw, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a query that is prepared."""
    return connection.execute(sql, values, binary=True).fetchall()


def read_messages(
    connection: Raw, session_id: str, first_seq: int = 0
) -> list[tuple[Any, ...]]:
    """Return the parts of the messages from *first_seq* on.

    Also read are the messages and large values, and unpacked what is packed.
    """
    place = session_id, first_seq
    _read_unpacked(
        connection,
        "SELECT * FROM message WHERE session_id = %s AND seq >= %s ORDER BY seq",
        *place,
    )
    read(
        connection,
        "SELECT hash, data FROM blob WHERE hash IN ("
        "SELECT unnest(ARRAY[text_blob, input_blob, data_blob]) FROM part "
        "WHERE session_id = %s AND seq >= %s)",
        *place,
    )
    return _read_unpacked(
        connection,
        "SELECT * FROM part WHERE session_id = %s AND seq >= %s ORDER BY seq, idx",
        *place,
    )


def _read_unpacked(connection: Raw, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    cursor = connection.execute(sql, values, binary=True)
    data = [column.name for column in cursor.description or ()].index("data")
    rows = cursor.fetchall()
    for row in rows:
        if row[data]:
            msgpack.unpackb(row[data])
    return rows
