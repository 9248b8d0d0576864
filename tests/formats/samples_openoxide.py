"""Small OpenOxide files: content as a text, as a list of parts, and as a map."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgpack
from sample import LARGE, PIECE, Sample, connected

T0 = 1_770_000_000_000
SCHEMA = """
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, title TEXT,
  directory TEXT, model_id TEXT, time_created INTEGER, time_updated INTEGER,
  revert_oid TEXT);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT REFERENCES session,
  role TEXT, time_created INTEGER, content BLOB);
"""
Message = tuple[str, str, Any]


def store(path: Path, schema: str = SCHEMA) -> Path:
    with closing(connected(path)) as db:
        db.executescript(f"BEGIN; {schema}; COMMIT")
    return path


def add(
    path: Path,
    session: str,
    *messages: Message,
    parent: str | None = None,
    **more: Any,
) -> Path:
    """Add a session with (id, role, content) of its messages, one each second."""
    row = {
        "id": session,
        "project_id": "p1",
        "parent_id": parent,
        "title": session.title(),
        "directory": "/home/ada/tea",
        "model_id": "large",
        "time_created": T0,
        "time_updated": T0 + 9000,
        **more,
    }
    put(path, "session", [row])
    given = enumerate(messages, 1)
    rows = ({"id": name, "session_id": session, "role": role, "time_created": T0 + 1000 * n, "content": packed(content)} for n, (name, role, content) in given)  # fmt: skip
    put(path, "message", rows)
    return path


def packed(content: Any) -> Any:
    return content if isinstance(content, bytes) else msgpack.packb(content)


def put(path: Path, table: str, rows: Iterable[dict[str, Any]]) -> None:
    with closing(connected(path)) as db, db:
        for row in rows:
            marks = ", ".join("?" * len(row))
            names = ", ".join(row)
            db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [*row.values()])  # fmt: skip


def conversation(prefix: str = "a") -> list[Message]:
    return [
        (f"{prefix}1", "user", "How long does tea take?"),
        (f"{prefix}2", "assistant", [
            {"type": "reasoning", "text": "Hm"}, {"type": "text", "text": "Look:"},
            {"type": "tool_call", "id": "c1", "name": "bash", "input": {"command": "date"}},
        ]),
        (f"{prefix}3", "tool", [{"type": "tool_result", "call_id": "c1", "output": "Monday"}]),
        (f"{prefix}4", "assistant", {"content": "Two minutes.", "model": "small", "usage": {"input": 10, "output": 4}, "cost": 0.25, "finish": "stop"}),
    ]  # fmt: skip


def three(folder: Path) -> None:
    path = add(store(folder / "openoxide.db"), "fork", *conversation("b"), ("b5", "user", "And coffee?"), parent="root")  # fmt: skip
    add(path, "root", *conversation())
    add(path, "other", ("c1", "user", [{"Text": "Hi"}]), revert_oid="ab12")


def large(folder: Path) -> None:
    path = store(folder / "openoxide.db")
    pieces = range(LARGE // PIECE + 2)
    add(path, "large", *((f"m{n}", "user", f"{n} ".ljust(PIECE, "x")) for n in pieces))


SAMPLES = {"openoxide, a database": Sample("openoxide", three, large=large)}
REAL: dict[str, str] = {}
