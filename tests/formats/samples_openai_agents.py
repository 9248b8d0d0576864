"""Small files of the OpenAI Agents SDK: of `SQLiteSession` and of the advanced one."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sample import LARGE, PIECE, Sample, connected

Item = dict[str, Any]
WHEN = "2026-11-20 16:23:50"
PNG = base64.b64encode(b"\x89PNG" + bytes(40)).decode()

# As the SDK writes them, but for the names of the tables.
SCHEMA = """
CREATE TABLE "{sessions}" (session_id TEXT PRIMARY KEY, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE "{messages}" (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
  message_data TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  FOREIGN KEY (session_id) REFERENCES "{sessions}" (session_id) ON DELETE CASCADE);
CREATE INDEX "idx_{messages}_session_id" ON "{messages}" (session_id, id);
"""
ADVANCED = """
CREATE TABLE message_structure (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
  message_id INTEGER NOT NULL, branch_id TEXT NOT NULL DEFAULT 'main', message_type TEXT NOT NULL,
  sequence_number INTEGER NOT NULL, user_turn_number INTEGER, branch_turn_number INTEGER, tool_name TEXT,
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE turn_usage (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
  branch_id TEXT NOT NULL DEFAULT 'main', user_turn_number INTEGER NOT NULL, requests INTEGER DEFAULT 0,
  input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, total_tokens INTEGER DEFAULT 0,
  input_tokens_details JSON, output_tokens_details JSON, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  UNIQUE(session_id, branch_id, user_turn_number));
"""


def prompt(text: str) -> Item:
    return {"content": text, "role": "user"}


def answer(text: str, number: int = 1) -> Item:
    content = [{"annotations": [], "text": text, "type": "output_text"}]
    return {
        "id": f"msg_{number}",
        "content": content,
        "role": "assistant",
        "status": "completed",
        "type": "message",
    }


def thought(*texts: str) -> Item:
    summary = [{"text": text, "type": "summary_text"} for text in texts]
    return {
        "id": "rs_1",
        "summary": summary,
        "type": "reasoning",
        "encrypted_content": "gAAA",
    }


def call(name: str, tool: str = "bash", arguments: str = '{"command":"ls"}') -> Item:
    return {
        "arguments": arguments,
        "call_id": name,
        "name": tool,
        "type": "function_call",
        "id": "fc_1",
    }


def result(name: str, output: Any) -> Item:
    return {"call_id": name, "output": output, "type": "function_call_output"}


def connect(path: Path) -> Any:
    return contextlib.closing(connected(path))


def write(
    path: Path,
    sessions: dict[str, Iterable[Item]],
    tables: tuple[str, str] = ("agent_sessions", "agent_messages"),
) -> Path:
    """Write sessions as `SQLiteSession` does."""
    with connect(path) as db:
        tables_ = SCHEMA.format(sessions=tables[0], messages=tables[1])
        db.executescript(f"BEGIN; {tables_}")
        for name, items in sessions.items():
            db.execute(
                f'INSERT INTO "{tables[0]}" VALUES (?, ?, ?)', (name, WHEN, WHEN)
            )
            rows = ((name, json.dumps(item), WHEN) for item in items)
            db.executemany(
                f'INSERT INTO "{tables[1]}" (session_id, message_data, created_at)'
                " VALUES (?, ?, ?)",
                rows,
            )
        db.commit()
    return path


def place(db: Any, session: str, branch: str, *rows: tuple[int, str, int]) -> None:
    """Add messages (row, type, turn) to a branch, as `AdvancedSQLiteSession` does."""
    for message, kind, turn in rows:
        db.execute(
            "INSERT INTO message_structure (session_id, message_id, branch_id,"
            " message_type, sequence_number, user_turn_number, branch_turn_number,"
            " created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (session, message, branch, kind, message, turn, turn, WHEN),
        )


def spend(db: Any, session: str, branch: str, turn: int, *counts: Any) -> None:
    """Add the tokens of a turn: input, output, cached input, reasoning."""
    given, made, cached, reasoning = counts
    db.execute(
        "INSERT INTO turn_usage (session_id, branch_id, user_turn_number, requests,"
        " input_tokens, output_tokens, total_tokens, input_tokens_details,"
        " output_tokens_details, created_at) VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?)",
        (
            session, branch, turn, given, made, given + made,
            json.dumps({"cached_tokens": cached}), json.dumps({"reasoning_tokens": reasoning}), WHEN,
        ),
    )  # fmt: skip


def first() -> list[Item]:
    picture = {
        "type": "input_image",
        "detail": "auto",
        "image_url": f"data:image/png;base64,{PNG}",
    }
    return [
        prompt("How long does tea take?"),
        thought("Hm", "Well"),
        call("c1"),
        result("c1", "a.py\n"),
        answer("Two minutes."),
        {"role": "user", "content": [{"type": "input_text", "text": "And this?"}, picture]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "tea"}},
        {"type": "mcp_call", "id": "mcp_1", "name": "look", "server_label": "tea", "arguments": "{}", "output": "green", "status": "completed"},
        {"role": "assistant", "type": "message", "id": "msg_2", "content": [{"type": "refusal", "refusal": "No"}]},
        {"role": "developer", "content": "Be brief"},
        {"type": "never_seen", "id": "x", "value": 1},
    ]  # fmt: skip


def plain(folder: Path) -> None:
    others = {"s2": [prompt("Another one"), answer("Yes")], "s3": [prompt("And?")]}
    write(folder / "agents.db", {"s1": first(), **others})


def advanced(folder: Path) -> None:
    """A session with two branches, and tokens of three turns."""
    items = [
        prompt("One"), answer("1"), prompt("Two"), answer("2"),
        prompt("Or two?"), answer("3"),
    ]  # fmt: skip
    others = {"s2": [prompt("Another one")], "s3": [prompt("And?")]}
    path = write(folder / "advanced.db", {"s1": items, **others})
    with connect(path) as db:
        db.executescript(ADVANCED)
        asked, answered = "user", "assistant"
        shared = [(1, asked, 1), (2, answered, 1)]
        place(db, "s1", "main", *shared, (3, asked, 2), (4, answered, 2))
        place(db, "s1", "other", *shared, (5, asked, 2), (6, answered, 2))
        spend(db, "s1", "main", 1, 100, 20, 60, 5)
        spend(db, "s1", "main", 2, 30, 10, 0, 0)
        spend(db, "s1", "other", 2, 40, 10, 0, 0)
        db.commit()


def several_tables(folder: Path) -> None:
    path = write(folder / "app.db", {"s1": first()}, ("chats", "items"))
    write(path, {"s1": [prompt("Hello")], "s2": [prompt("Another one")]})


def large(folder: Path) -> None:
    pieces = range(LARGE // PIECE + 2)
    write(
        folder / "agents.db",
        {"s1": (prompt(f"{n} ".ljust(PIECE, "x")) for n in pieces)},
    )


SAMPLES = {
    "openai-agents, a file": Sample("openai-agents", plain, large=large),
    "openai-agents, branches": Sample("openai-agents", advanced),
    "openai-agents, tables of any name": Sample("openai-agents", several_tables),
}
REAL = {"openai-agents-0.24.0": "openai-agents"}
