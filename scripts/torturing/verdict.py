"""Comparison of the acknowledged facts with the contents of the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from sessiondb import Store
from sessiondb.maintenance.check import check

Line = dict[str, Any]

_SESSIONS = "SELECT id FROM session WHERE time_deleted IS NULL"
_MESSAGE = """
SELECT m.seq, (SELECT group_concat(coalesce(p.text, ''), '') FROM part p
    WHERE p.session_id = m.session_id AND p.seq = m.seq AND p.type = 'text')
FROM message m WHERE m.session_id = ? AND m.id = ?
"""
_TEXT_OF_BLOB = """
SELECT 1 FROM part p JOIN message m ON m.session_id = p.session_id AND m.seq = p.seq
WHERE m.session_id = ? AND m.id = ? AND p.type = 'text' AND p.text_blob IS NOT NULL
"""


def verdict(paths: Sequence[Path], log: list[Line]) -> Iterator[str]:
    """Yield each fact that does not hold.

    *paths* are the database and those that were in its place before: each session is in
    one of them.
    """
    yield from (line["what"] for line in log if line["kind"] == "wrong")
    with ExitStack() as stack:
        here: dict[str, sqlite3.Connection] = {}
        for path in paths:
            with Store.open(path, busy_timeout=30) as store:
                yield from (f"check: {finding}" for finding in check(store))
            connection = stack.enter_context(closing(sqlite3.connect(path)))
            found = connection.execute("PRAGMA integrity_check").fetchall()
            if found != [("ok",)]:
                yield f"integrity_check: {found[:3]}"
            for (session,) in connection.execute(_SESSIONS):
                if session in here:
                    yield f"session {session} is in two files"
                here[session] = connection
        yield from _missing(here, log)


def _missing(here: Mapping[str, sqlite3.Connection], log: list[Line]) -> Iterator[str]:
    deleting = {line["session"] for line in log if line["kind"] == "deleting"}
    for line in log:
        session = line.get("session")
        if line["kind"] == "deleted":
            if session in here:
                yield f"session {session} was deleted and still exists"
        elif session is None or session in deleting:
            continue
        elif session not in here:
            yield f"session {session} was acknowledged and is missing"
        elif line["kind"] in ("message", "flushed"):
            yield from _message(here[session], line)


def _message(connection: sqlite3.Connection, line: Line) -> Iterator[str]:
    key = (line["session"], line["id"])
    rows = connection.execute(_MESSAGE, key).fetchall()
    if len(rows) != 1:
        yield f"message {key} was acknowledged and exists {len(rows)} times"
        return
    ((seq, text),) = rows
    if line["kind"] == "message" and seq != line["seq"]:
        yield f"message {key} has seq {seq}, its handle {line['seq']}"
    # Long texts are blobs, which `check` compares with their hashes.
    in_a_blob = connection.execute(_TEXT_OF_BLOB, key).fetchone() is not None
    if not in_a_blob and not (text or "").startswith(line["text"]):
        yield f"message {key} has another text"
