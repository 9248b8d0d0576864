"""Writes tiny OpenCode stores in the formats that its versions wrote.

A session is what ``opencode export`` prints for it, ``{"info", "messages"}``,
with ``todo``, ``diff`` and ``share`` beside it where it has them.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from sample import connected

T0 = 1_700_000_000_000
PROJECT = "0123456789abcdef0123456789abcdef01234567"
WORKTREE = "/home/ann/shop"

_TABLES_12 = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text,
  time_created integer NOT NULL, time_updated integer NOT NULL, sandboxes text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text,
  slug text NOT NULL, directory text NOT NULL, title text NOT NULL, version text NOT NULL,
  share_url text, summary_additions integer, summary_deletions integer, summary_files integer,
  summary_diffs text, revert text, permission text, time_created integer NOT NULL,
  time_updated integer NOT NULL, time_compacting integer, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE todo (session_id text NOT NULL, content text NOT NULL, status text NOT NULL,
  priority text NOT NULL, position integer NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, PRIMARY KEY (session_id, position));
CREATE TABLE session_share (session_id text PRIMARY KEY, id text NOT NULL,
  secret text NOT NULL, url text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL);
CREATE INDEX message_order ON message (session_id, time_created, id);
CREATE INDEX part_order ON part (message_id, id);
CREATE INDEX part_session ON part (session_id);
"""
_COLUMNS_118 = (
    "workspace_id text",
    "path text",
    "metadata text",
    "cost real NOT NULL DEFAULT 0",
    *(
        f"tokens_{kind} integer NOT NULL DEFAULT 0"
        for kind in ("input", "output", "reasoning", "cache_read", "cache_write")
    ),
    "agent text",
    "model text",
)


def session(number: int, *messages: dict[str, Any], **info: Any) -> dict[str, Any]:
    """A session of the project, created *number* seconds after `T0`."""
    name = f"ses_{number:04d}"
    for message in messages:
        message["info"]["sessionID"] = name
        for part in message["parts"]:
            part.update(sessionID=name, messageID=message["info"]["id"])
    fields = {
        "id": name,
        "slug": f"calm-otter-{number}",
        "projectID": PROJECT,
        "directory": WORKTREE,
        "title": f"Session {number}",
        "version": "1.1.65",
        "time": {"created": T0 + 1000 * number, "updated": T0 + 1000 * number + 500},
    }
    return {"info": {**fields, **info}, "messages": list(messages)}


def user(number: int, text: str, name: str = "", **info: Any) -> dict[str, Any]:
    """A prompt, *number* ms after `T0`."""
    fields = {
        "id": name or f"msg_{number:04d}",
        "role": "user",
        "time": {"created": T0 + number},
        "agent": "build",
        "model": {"providerID": "acme", "modelID": "large"},
    }
    return _message({**fields, **info}, [{"type": "text", "text": text}])


def assistant(
    number: int, *parts: dict[str, Any], name: str = "", **info: Any
) -> dict[str, Any]:
    """An answer, *number* ms after `T0`, to the prompt before it."""
    fields = {
        "id": name or f"msg_{number:04d}",
        "role": "assistant",
        "parentID": f"msg_{number - 1:04d}",
        "mode": "build",
        "agent": "build",
        "path": {"cwd": WORKTREE, "root": WORKTREE},
        "providerID": "acme",
        "modelID": "large",
        "cost": 0.25,
        "tokens": {
            "input": 10,
            "output": 2,
            "reasoning": 0,
            "cache": {"read": 5, "write": 0},
        },
        "finish": "stop",
        "time": {"created": T0 + number, "completed": T0 + number + 5},
    }
    return _message({**fields, **info}, list(parts))


def text(content: str) -> dict[str, Any]:
    """A text part."""
    return {"type": "text", "text": content}


def tool(name: str, call: str, state: dict[str, Any]) -> dict[str, Any]:
    """A tool part."""
    return {"type": "tool", "tool": name, "callID": call, "state": state}


def done(arguments: Any, output: str, **metadata: Any) -> dict[str, Any]:
    """The state of a completed call."""
    times = {"start": T0, "end": T0 + 7}
    return {
        "status": "completed",
        "input": arguments,
        "output": output,
        "title": "",
        "metadata": metadata,
        "time": times,
    }


def failed(error: str, **metadata: Any) -> dict[str, Any]:
    """The state of a failed call."""
    times = {"start": T0, "end": T0 + 7}
    return {
        "status": "error",
        "input": {},
        "error": error,
        "metadata": metadata,
        "time": times,
    }


def everything() -> dict[str, Any]:
    """A session with a bit of everything that 1.x records hold."""
    return session(
        1,
        user(0, "Do it", summary={"title": "It", "diffs": []}, tools={"task": False}),
        assistant(
            1,
            {"type": "step-start", "snapshot": "abc"},
            {
                "type": "reasoning",
                "text": "Hm",
                "time": {"start": 1, "end": 2},
                "metadata": {"a": 1},
            },
            {"type": "text", "text": "", "time": {"start": 3}, "synthetic": True},
            tool("bash", "call_1", done({"command": "ls"}, "a\0b", exit=0)),
            tool("list", "call_2", done([1, 12345678901234567890123], "x")),
            tool("edit", "call_3", failed("No such file")),
            tool("read", "call_4", {"status": "pending", "input": {}, "raw": "{"}),
            tool(
                "read",
                "call_5",
                {"status": "running", "input": None, "time": {"start": 4}},
            ),
            {"type": "patch", "hash": "abc", "files": ["a.py"]},
            {"type": "file", "mime": "image/png", "url": "data:,", "filename": "a.png"},
            {"type": "hologram", "depth": {"z": [1, None, True]}},
            {
                "type": "step-finish",
                "reason": "stop",
                "cost": 0,
                "tokens": {"input": 0},
            },
        ),
        user(2, "And?", system="Be brief", format={"type": "text"}),
        assistant(
            3,
            text("Half"),
            error={"name": "MessageAbortedError", "data": {"message": "x"}},
        ),
        assistant(4, text("Told"), summary=True, finish="content-filter"),
        permission=[{"permission": "edit", "pattern": "*", "action": "ask"}],
        revert={"messageID": "msg_0002", "snapshot": "abc"},
        summary={"additions": 1, "deletions": 2, "files": 3},
        share={"url": "https://opncd.ai/s/1"},
        time={
            "created": T0,
            "updated": T0 + 1,
            "compacting": T0 + 2,
            "archived": T0 + 3,
        },
    )


def _message(info: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    for number, part in enumerate(parts):
        part.setdefault("id", f"prt_{info['id'][4:]}{number:04d}")
    return {"info": info, "parts": parts}


def forked(
    original: dict[str, Any], number: int, count: int, *own: dict[str, Any], **info: Any
):
    """A session that copies the first *count* messages of *original*, as OpenCode forks."""
    copies = json.loads(json.dumps(original["messages"][:count]))
    names = {m["info"]["id"]: f"msg_{number:02d}f{i:04d}" for i, m in enumerate(copies)}
    for message in copies:
        message["info"]["id"] = names[message["info"]["id"]]
        if message["info"].get("parentID") in names:
            message["info"]["parentID"] = names[message["info"]["parentID"]]
        for index, part in enumerate(message["parts"]):
            part["id"] = f"prt_{message['info']['id'][4:]}{index:04d}"
    title = info.pop("title", f"{original['info']['title']} (fork #1)")
    return session(number, *copies, *own, title=title, **info)


def sqlite_store(path: Path, *sessions: dict[str, Any], version: str = "1.18") -> Path:
    """Write a database as version 1.2 or 1.18 does; return *path*."""
    with connected(path) as db:
        # One transaction, in place of one for each table and column.
        db.executescript(f"BEGIN; {_TABLES_12}")
        if version == "1.18":
            for column in _COLUMNS_118:
                db.execute(f"ALTER TABLE session ADD COLUMN {column}")
        db.execute(
            "INSERT INTO project VALUES (?, ?, 'git', NULL, ?, ?, '[]')",
            (PROJECT, WORKTREE, T0, T0),
        )
        for item in sessions:
            add_session(db, item, version=version)
    db.close()
    return path


def add_session(
    db: sqlite3.Connection, item: dict[str, Any], *, version: str = "1.18"
) -> None:
    """Write one more session into such a database."""
    _insert(db, "session", _row(item["info"], version))
    add_messages(db, item)


def add_messages(db: sqlite3.Connection, item: dict[str, Any]) -> None:
    """Write the parts of a session that are not in its row."""
    name = item["info"]["id"]
    times = {"time_created": T0, "time_updated": T0}
    for message in item["messages"]:
        info = message["info"]
        row = {
            "id": info["id"],
            "session_id": name,
            "data": _data(info, "id", "sessionID"),
        }
        created = info.get("time", {}).get("created", T0)
        _insert(
            db, "message", {**row, "time_created": created, "time_updated": created}
        )
        for part in message["parts"]:
            row = {"id": part["id"], "message_id": info["id"], "session_id": name}
            row["data"] = _data(part, "id", "sessionID", "messageID")
            _insert(db, "part", {**row, **times})
    for position, todo in enumerate(item.get("todo", ())):
        _insert(db, "todo", {"session_id": name, "position": position, **todo, **times})
    if "share" in item:
        _insert(db, "session_share", {"session_id": name, **item["share"], **times})


def _row(info: dict[str, Any], version: str) -> dict[str, Any]:
    row = {
        "id": info["id"],
        "project_id": info["projectID"],
        "parent_id": info.get("parentID"),
        "share_url": info.get("share", {}).get("url"),
        **{key: info[key] for key in ("slug", "directory", "title", "version")},
        **{f"time_{key}": value for key, value in info["time"].items()},
        **{f"summary_{key}": value for key, value in info.get("summary", {}).items()},
        **{key: info.get(key) for key in ("revert", "permission")},
    }
    if version == "1.18":
        tokens = dict(info.get("tokens", {}))
        row |= {
            f"tokens_cache_{key}": value
            for key, value in tokens.pop("cache", {}).items()
        }
        row |= {f"tokens_{key}": value for key, value in tokens.items()}
        row |= {key: info.get(key) for key in ("path", "agent", "model", "metadata")}
        row["cost"] = info.get("cost", 0)
    return {k: json.dumps(v) if type(v) in (dict, list) else v for k, v in row.items()}


def _insert(db: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    names, places = ", ".join(row), ", ".join("?" * len(row))
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(row.values()))


def _data(record: dict[str, Any], *without: str) -> str:
    rest = {key: value for key, value in record.items() if key not in without}
    return json.dumps(rest, ensure_ascii=False, separators=(",", ":"))


def tree_store(data: Path, *sessions: dict[str, Any]) -> Path:
    """Write the tree of version 1.1 below a data directory; return its root."""
    root = data / "storage"
    project = {
        "id": PROJECT,
        "worktree": WORKTREE,
        "vcs": "git",
        "time": {"created": T0},
    }
    _write(root / "project" / f"{PROJECT}.json", project)
    for item in sessions:
        name = item["info"]["id"]
        _write(
            root / "session" / item["info"]["projectID"] / f"{name}.json", item["info"]
        )
        for message in item["messages"]:
            _write(
                root / "message" / name / f"{message['info']['id']}.json",
                message["info"],
            )
            for part in message["parts"]:
                _write(
                    root / "part" / message["info"]["id"] / f"{part['id']}.json", part
                )
        for kind, folder in (
            ("todo",) * 2,
            ("diff", "session_diff"),
            ("share", "session_share"),
        ):
            if kind in item:
                _write(root / folder / f"{name}.json", item[kind])
    return root


def old_tree_store(data: Path, *sessions: dict[str, Any]) -> Path:
    """Write the tree of version 0.5 below a data directory; return its root."""
    root = data / "project" / "home-ann-shop" / "storage" / "session"
    for item in sessions:
        name = item["info"]["id"]
        known = {
            k: v
            for k, v in item["info"].items()
            if k not in ("slug", "projectID", "directory")
        }
        _write(root / "info" / f"{name}.json", known)
        for message in item["messages"]:
            gone = () if message["info"]["role"] == "user" else ("agent", "parentID")
            info = {k: v for k, v in message["info"].items() if k not in gone}
            _write(root / "message" / name / f"{info['id']}.json", info)
            for part in message["parts"]:
                _write(root / "part" / name / info["id"] / f"{part['id']}.json", part)
    return root


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
