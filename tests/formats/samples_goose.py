"""Small stores of Goose: databases of several schemas, logs, and exports."""

from __future__ import annotations

import base64
import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from sample import LARGE, PIECE, Sample, connected

Record = dict[str, Any]
T0 = 1_770_000_000
PNG = base64.b64encode(b"\x89PNG" + bytes(40)).decode()
#: Columns of ``sessions`` by the schema that added them.
SESSIONS: list[tuple[int, str]] = [
    (1, "id TEXT PRIMARY KEY"),
    (1, "description TEXT NOT NULL DEFAULT ''"),
    (1, "working_dir TEXT NOT NULL"),
    (1, "created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP"),
    (1, "updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP"),
    (1, "extension_data TEXT DEFAULT '{}'"),
    *((1, f"{name} INTEGER") for name in ("total_tokens", "input_tokens", "output_tokens")),
    *((1, f"accumulated_{name}_tokens INTEGER") for name in ("total", "input", "output")),
    (1, "schedule_id TEXT"),
    (1, "recipe_json TEXT"),
    (2, "user_recipe_values_json TEXT"),
    (4, "name TEXT NOT NULL DEFAULT ''"),
    (4, "user_set_name BOOLEAN DEFAULT FALSE"),
    (5, "session_type TEXT NOT NULL DEFAULT 'user'"),
    (6, "provider_name TEXT"),
    (6, "model_config_json TEXT"),
    (8, "goose_mode TEXT NOT NULL DEFAULT 'auto'"),
    (10, "thread_id TEXT"),
    (12, "archived_at TIMESTAMP"),
    (12, "project_id TEXT"),
    (13, "accumulated_cost REAL"),
    (14, "cache_read_tokens INTEGER"),
    (14, "cache_write_tokens INTEGER"),
    (14, "accumulated_cache_read_tokens INTEGER"),
    (14, "accumulated_cache_write_tokens INTEGER"),
    (15, "parent_session_id TEXT"),
    (17, "parent_delegation TEXT"),
]  # fmt: skip
MESSAGES: list[tuple[int, str]] = [
    (1, "id INTEGER PRIMARY KEY AUTOINCREMENT"),
    (7, "message_id TEXT"),
    (1, "session_id TEXT NOT NULL REFERENCES sessions(id)"),
    (1, "role TEXT NOT NULL"),
    (1, "content_json TEXT NOT NULL"),
    (1, "created_timestamp INTEGER NOT NULL"),
    (1, "timestamp TIMESTAMP DEFAULT '2026-02-02 02:40:00'"),
    (1, "tokens INTEGER"),
    (3, "metadata_json TEXT"),
]
THREADS = """
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT 'New Chat',
    user_set_name BOOLEAN DEFAULT FALSE, working_dir TEXT, created_at TIMESTAMP,
    updated_at TIMESTAMP, archived_at TIMESTAMP, metadata_json TEXT DEFAULT '{}');
CREATE TABLE thread_messages (id INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_id TEXT NOT NULL REFERENCES threads(id), session_id TEXT, message_id TEXT,
    role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL,
    metadata_json TEXT DEFAULT '{}');
"""
LEDGER = """
CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    created_timestamp INTEGER NOT NULL, model TEXT, input_tokens INTEGER,
    output_tokens INTEGER, total_tokens INTEGER, cache_read_tokens INTEGER,
    cache_write_tokens INTEGER, cost REAL, cost_source TEXT,
    is_compaction INTEGER DEFAULT 0);
"""


# -- records -----------------------------------------------------------------


def words(text: str, **more: Any) -> Record:
    return {"type": "text", "text": text, **more}


def call(name: str, tool: str = "shell", **arguments: Any) -> Record:
    value = {"name": tool, "arguments": arguments}
    return {
        "type": "toolRequest",
        "id": name,
        "toolCall": {"status": "success", "value": value},
    }


def result(name: str, *content: Record, **more: Any) -> Record:
    value = {"content": [*content], "isError": False, **more}
    return {
        "type": "toolResponse",
        "id": name,
        "toolResult": {"status": "success", "value": value},
    }


def failure(name: str, error: str) -> Record:
    return {
        "type": "toolResponse",
        "id": name,
        "toolResult": {"status": "error", "error": error},
    }


def said(
    name: str | None, role: str, *content: Record, at: int = 0, **metadata: Any
) -> Record:
    flags = {"userVisible": True, "agentVisible": True, **metadata}
    return {
        "id": name, "role": role, "created": T0 + at, "content": [*content],
        "metadata": flags,
    }  # fmt: skip


def asked(name: str | None, text: str, at: int = 0, **metadata: Any) -> Record:
    return said(name, "user", words(text), at=at, **metadata)


def answered(
    name: str | None, *blocks: Record | str, at: int = 0, **metadata: Any
) -> Record:
    content = (words(block) if isinstance(block, str) else block for block in blocks)
    return said(name, "assistant", *content, at=at, **metadata)


UNSEEN = {"agentVisible": False}
TOLD = {"userVisible": False}
GONE = {"userVisible": False, "agentVisible": False}


# -- stores --------------------------------------------------------------------


def database(
    path: Path, *sessions: Record, version: int = 17, more: str = ""
) -> sqlite3.Connection:
    """Write a database; a session is its row, with its ``messages`` and ``ledger``."""
    db = connected(path)
    for table, names in (("sessions", SESSIONS), ("messages", MESSAGES)):
        columns = [column for since, column in names if since <= version]
        db.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    db.execute("CREATE TABLE schema_version (version INTEGER PRIMARY KEY)")
    db.execute("INSERT INTO schema_version VALUES (?)", (version,))
    scripts = [THREADS if version >= 10 else "", LEDGER if version >= 15 else "", more]
    db.executescript(f"BEGIN; {'; '.join(scripts)}")
    for session in sessions:
        add(db, session)
    db.commit()
    return db


def add(db: sqlite3.Connection, session: Record) -> None:
    row = {
        "working_dir": "/home/ada/tea", "created_at": "2026-02-02 02:40:00",
        "updated_at": "2026-02-02 02:41:00", **session,
    }  # fmt: skip
    messages, ledger = row.pop("messages", []), row.pop("ledger", [])
    insert(db, "sessions", row)
    for message in messages:
        insert(db, "messages", {**row_of(message), "session_id": row["id"]})
    for entry in ledger:
        values = {"created_timestamp": T0, **entry, "session_id": row["id"]}
        insert(db, "usage_ledger", values)


def insert(db: sqlite3.Connection, table: str, row: Record) -> None:
    have = {name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")}
    stored_columns = {
        name: _column(value) for name, value in row.items() if name in have
    }
    places = ", ".join("?" * len(stored_columns))
    statement = f"INSERT INTO {table} ({', '.join(stored_columns)}) VALUES ({places})"
    db.execute(statement, [*stored_columns.values()])


def row_of(message: Record) -> Record:
    return {
        "message_id": message["id"], "role": message["role"],
        "content_json": message["content"], "created_timestamp": message["created"],
        "metadata_json": message.get("metadata"),
    }  # fmt: skip


def _column(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value


def everything() -> list[Record]:
    """Messages of every kind, with a compaction."""
    return [
        asked("m1", "How long does tea take?", **UNSEEN),
        answered("m2", {"type": "thinking", "thinking": "Hm", "signature": "s"}, "Look:", call("c1", command="date"), at=1, **UNSEEN),
        said("m3", "user", result("c1", words("Monday", annotations={"priority": 0.0}), {"type": "image", "data": PNG, "mimeType": "image/png"}), at=1, **UNSEEN),
        asked("m4", "Summary: tea", 2, **TOLD),
        answered("m5", "Go on as if nothing happened", at=2, **TOLD),
        asked("m6", "And coffee?", 3),
        answered("m7", "Note", at=3, **UNSEEN),
        answered("m8", call("c2", "write", path="a"), call("c3", "todo__write", content="x"), at=4, inference={"provider": "fake", "requestedModel": "large", "resolvedModel": "larger"}),
        said("m9", "user", failure("c2", "-32603: -32603: no such file"), result("c3", words("Updated")), at=4),
        answered("m10", {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Low on credits"}, at=5, **UNSEEN),
        answered("m11", "Four minutes.", at=5),
    ]  # fmt: skip


def sessions() -> list[Record]:
    model = {"model_name": "large", "context_limit": 200000}
    return [
        {
            "id": "20260202_1", "name": "Tea", "description": "", "user_set_name": 1,
            "extension_data": {"todo.v0": {"content": "- [ ] tea"}},
            "total_tokens": 30, "input_tokens": 20, "output_tokens": 10,
            "accumulated_total_tokens": 300, "accumulated_input_tokens": 200,
            "accumulated_output_tokens": 100, "accumulated_cost": 0.25,
            "accumulated_cache_read_tokens": 50, "accumulated_cache_write_tokens": 10,
            "provider_name": "fake", "model_config_json": model,
            "archived_at": "2026-02-02 02:42:00", "recipe_json": {"title": "Tea"},
            "messages": everything(),
        },
        {
            "id": "20260202_2", "name": "Look", "session_type": "sub_agent",
            "parent_session_id": "20260202_1",
            "messages": [asked("s1", "Look for tea"), answered("s2", "Found", at=1)],
        },
        {
            "id": "20260202_3", "description": "Another one",
            "messages": [asked("m1", "Another one"), answered(None, "Yes", at=1)],
        },
    ]  # fmt: skip


def _version(version: int) -> Any:
    def write(folder: Path) -> None:
        db = database(
            folder / "goose" / "sessions" / "all.db", *sessions(), version=version
        )
        db.close()

    return write


def threads(folder: Path) -> None:
    """Schema 10, with a session whose messages are in a thread alone."""
    rows = sessions()
    rows[2] |= {"thread_id": "t1", "messages": []}
    db = database(folder / "goose" / "sessions" / "all.db", *rows, version=10)
    insert(db, "threads", {"id": "t1", "name": "Another one", "working_dir": "/home"})
    for name, session in (("a", "20260202_3"), ("b", None)):
        row = {**row_of(asked(name, f"Tea {name}?")), "thread_id": "t1"}
        insert(db, "thread_messages", {**row, "session_id": session})
    db.commit()
    db.close()


def log(path: Path, *lines: Record) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def metadata(**more: Any) -> Record:
    return {
        "working_dir": "/home/ada/tea", "description": "Tea", "message_count": 2,
        "total_tokens": 30, "input_tokens": 20, "output_tokens": 10,
        "accumulated_total_tokens": 300, "accumulated_input_tokens": 200,
        "accumulated_output_tokens": 100, **more,
    }  # fmt: skip


def bare(message: Record) -> Record:
    """A message as the logs had it: without an id, and without flags."""
    return {key: message[key] for key in ("role", "created", "content")}


def logs(folder: Path) -> None:
    sessions = folder / "goose" / "sessions"
    log(sessions / "20250402_101112.jsonl", metadata(), *map(bare, everything()))
    log(sessions / "20250402_101113.jsonl", bare(asked(None, "No metadata")))
    old = [
        {"text": "Hm"},
        {"id": "c1", "tool_name": "shell", "arguments": {"command": "ls"}},
    ]
    answer = {"role": "assistant", "created": T0, "content": old}
    back = {"id": "c1", "tool_result": [{"type": "text", "text": "a.py"}]}
    results = {"role": "user", "created": T0 + 1, "content": [back]}
    log(sessions / "tea.jsonl", metadata(), answer, results)


def exported(session: Record) -> Record:
    """A session as ``goose session export`` of 1.34 writes it."""
    row = {"name": "", "description": "", **session}
    messages = row["messages"]
    return {
        "id": row["id"], "working_dir": "/home/ada/tea",
        "name": row["name"] or row["description"],
        "user_set_name": bool(row.get("user_set_name")),
        "session_type": row.get("session_type", "user"),
        "created_at": "2026-02-02T02:40:00Z", "updated_at": "2026-02-02T02:41:00Z",
        "extension_data": row.get("extension_data", {}),
        **{name: row.get(name) for name in (
            "total_tokens", "input_tokens", "output_tokens", "accumulated_total_tokens",
            "accumulated_input_tokens", "accumulated_output_tokens", "accumulated_cost",
            "schedule_id")},
        "recipe": row.get("recipe_json"), "user_recipe_values": None,
        "conversation": messages, "message_count": len(messages),
        "provider_name": row.get("provider_name"),
        "model_config": row.get("model_config_json"), "goose_mode": "auto",
        "archived_at": "2026-02-02T02:42:00Z" if "archived_at" in row else None,
        "project_id": None,
    }  # fmt: skip


def exports(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for session in sessions():
        text = json.dumps(exported(session), indent=2, ensure_ascii=False)
        path = folder / f"{session['id']}.json"
        path.write_text(text, encoding="utf-8", newline="\n")


def _pieces() -> Any:
    numbers = range(1, LARGE // PIECE + 2)
    return (asked(f"m{n}", f"{n} ".ljust(PIECE, "x"), n) for n in numbers)


def large(folder: Path) -> None:
    path = folder / "goose" / "sessions" / "all.db"
    with contextlib.closing(database(path, {"id": "20260202_1"})) as db:
        for message in _pieces():
            insert(db, "messages", {**row_of(message), "session_id": "20260202_1"})
        db.commit()


def large_log(folder: Path) -> None:
    path = log(folder / "goose" / "sessions" / "20250402_101112.jsonl", metadata())
    with path.open("a", encoding="utf-8") as file:
        for message in _pieces():
            file.write(f"{json.dumps(bare(message))}\n")


SAMPLES = {
    "goose, schema 1": Sample("goose", _version(1)),
    "goose, schema 10": Sample("goose", threads),
    "goose, schema 13": Sample("goose", _version(13)),
    "goose, schema 17": Sample("goose", _version(17), large=large),
    "goose, logs": Sample("goose", logs, large=large_log),
    "goose, exports": Sample("goose", exports),
}
REAL = {"goose-1.34.0": "goose"}
