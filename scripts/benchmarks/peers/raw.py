"""One table through `sqlite3`, a row for each item, WAL and FULL: the floor."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from benchmarks.peers.turns import Turn

ITEMS = 3
INSERT = "INSERT INTO item (session, body) VALUES (?, ?)"


class Peer:
    """The simplest store in SQLite that survives a power cut."""

    def __init__(self, folder: Path, session: str) -> None:
        self.session = session
        self.connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(
            "CREATE TABLE IF NOT EXISTS item "
            "(id INTEGER PRIMARY KEY, session TEXT NOT NULL, body TEXT NOT NULL)"
        )
        self.connection.execute(
            "CREATE INDEX IF NOT EXISTS item_session ON item (session, id)"
        )
        self.connection.execute("COMMIT")

    async def append(self, turn: Turn) -> None:
        """Insert the items of a turn in one transaction."""
        rows = [(self.session, json.dumps(item)) for item in items(turn)]
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(INSERT, rows)
        self.connection.execute("COMMIT")

    async def load(self) -> list[Any]:
        """Return all items."""
        rows = self.connection.execute(
            "SELECT body FROM item WHERE session = ? ORDER BY id", (self.session,)
        )
        return [json.loads(body) for (body,) in rows]

    async def last(self, turns: int) -> list[Any]:
        """Return the items of the newest turns, oldest first."""
        rows = self.connection.execute(
            "SELECT body FROM item WHERE session = ? ORDER BY id DESC LIMIT ?",
            (self.session, turns * ITEMS),
        ).fetchall()
        return [json.loads(body) for (body,) in rows[::-1]]

    async def fork(self, name: str) -> None:
        """Copy the session."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(
            "INSERT INTO item (session, body) "
            "SELECT ?, body FROM item WHERE session = ? ORDER BY id",
            (name, self.session),
        )
        self.connection.execute("COMMIT")

    async def close(self) -> None:
        """Close the file."""
        self.connection.close()


def items(turn: Turn) -> list[dict[str, Any]]:
    """Return the prompt, the answer and the call of a turn as JSON objects."""
    return [
        {"role": "user", "text": turn.prompt},
        {"role": "assistant", "text": turn.answer},
        {
            "role": "tool",
            "call_id": turn.call_id,
            "name": "read",
            "arguments": turn.arguments,
            "result": turn.result,
        },
    ]
