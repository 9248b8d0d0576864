"""Writes tiny databases as OpenCode 2 does.

A session is what ``opencode session export`` prints for it, ``{"info",
"messages"}``; a message of it may state its ``seq``.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from opencode_store import PROJECT, T0, WORKTREE
from sample import connected

_TABLES = """
CREATE TABLE IF NOT EXISTS project (id text PRIMARY KEY, worktree text NOT NULL, vcs text,
  name text, time_created integer NOT NULL, time_updated integer NOT NULL,
  sandboxes text NOT NULL);
CREATE TABLE session_v2 (id text PRIMARY KEY, project_id text NOT NULL, workspace_id text,
  parent_id text, fork_session_id text, fork_boundary text, slug text NOT NULL,
  directory text NOT NULL, path text, title text, version text NOT NULL, share_url text,
  summary_additions integer, summary_deletions integer, summary_files integer,
  summary_diffs text, metadata text, cost real DEFAULT 0 NOT NULL,
  tokens_input integer DEFAULT 0 NOT NULL, tokens_output integer DEFAULT 0 NOT NULL,
  tokens_reasoning integer DEFAULT 0 NOT NULL, tokens_cache_read integer DEFAULT 0 NOT NULL,
  tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, permission text, agent text,
  model text, time_created integer NOT NULL, time_updated integer NOT NULL, time_idle integer,
  time_viewed integer, idle_outcome text, time_compacting integer, time_archived integer,
  time_suspended integer, resume_attempts integer DEFAULT 0 NOT NULL);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL,
  seq integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
  data text NOT NULL, UNIQUE (session_id, seq));
CREATE TABLE session_inbox (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL,
  payload text NOT NULL, delivery text NOT NULL, enqueued_seq integer NOT NULL,
  time_created integer NOT NULL);
CREATE TABLE instruction_entry (session_id text NOT NULL, key text NOT NULL, value text,
  removed integer DEFAULT false NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, PRIMARY KEY (session_id, key));
CREATE TABLE instruction_state (session_id text PRIMARY KEY, epoch_start integer NOT NULL,
  through_seq integer NOT NULL, initial_values text NOT NULL, current_values text NOT NULL);
CREATE TABLE instruction_blob (hash text PRIMARY KEY, value text);
"""
MODEL = {"id": "large", "providerID": "acme", "variant": "default"}


def tokens(*counts: int) -> dict[str, Any]:
    """Counts of input, output, reasoning, cache read and cache write."""
    counted: dict[str, Any] = dict(
        zip(("input", "output", "reasoning"), counts, strict=False)
    )
    return {**counted, "cache": {"read": counts[3], "write": counts[4]}}


def session2(number: int, *messages: dict[str, Any], **info: Any) -> dict[str, Any]:
    """A session of the project, created *number* seconds after `T0`."""
    created = T0 + 1000 * number
    spent = [m for m in messages if "cost" in m]
    fields = {
        "id": f"ses_{number:04d}",
        "projectID": PROJECT,
        "title": f"Session {number}",
        "cost": sum(m["cost"] for m in spent),
        "tokens": tokens(
            *(sum(m["tokens"][k] for m in spent) for k in ("input", "output")), 0, 0, 0
        ),
        "time": {"created": created, "updated": created + 500},
        "location": {"directory": WORKTREE},
    }
    return {"info": {**fields, **info}, "messages": list(messages)}


def message(kind: str, number: int, **data: Any) -> dict[str, Any]:
    """A message of type *kind*, *number* ms after `T0`."""
    time = {"created": T0 + number, **data.pop("time", {})}
    return {"id": f"msg_{number:04d}", "type": kind, "time": time, **data}


def asked(number: int, text: str, **data: Any) -> dict[str, Any]:
    """A prompt."""
    return message("user", number, text=text, **data)


def answered(number: int, *content: dict[str, Any], **data: Any) -> dict[str, Any]:
    """An answer that is finished."""
    fields = {
        "agent": "build",
        "model": MODEL,
        "content": list(content),
        "finish": "stop",
        "rawFinish": "stop",
        "cost": 0.25,
        "tokens": tokens(10, 2, 0, 0, 0),
        "time": {"streamed": T0 + number + 3, "completed": T0 + number + 5},
    }
    return message("assistant", number, **{**fields, **data})


def called(name: str, call: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A call in the content of an answer."""
    times = {"created": T0 + 1, "ran": T0 + 2, "completed": T0 + 9}
    return {"type": "tool", "id": call, "name": name, "executed": False, "state": state,
            "time": times, **more}  # fmt: skip


def resulted(arguments: Any, *content: Any, **metadata: Any) -> dict[str, Any]:
    """The state of a completed call; a string is a text."""
    pieces = [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]
    return {
        "status": "completed",
        "input": arguments,
        "content": pieces,
        "metadata": metadata,
    }


def everything2() -> dict[str, Any]:
    """A session with a bit of everything that records of 2.x hold."""
    file = {
        "data": "AAEC",
        "mime": "image/png",
        "name": "a.png",
        "source": {"type": "inline"},
    }
    linked = {"type": "file", "uri": "file:///a", "mime": "text/plain"}
    moved = {
        "location": {"directory": f"{WORKTREE}/src"},
        "projectID": PROJECT,
        "subpath": "src",
    }
    return session2(
        1,
        message("system", 0, text="Be brief", description="Instructions updated: a"),
        asked(
            1,
            "Do it\0",
            files=[file],
            agents=[{"name": "explore"}],
            metadata={"a": None},
        ),
        answered(
            2,
            {
                "type": "reasoning",
                "text": "Hm",
                "state": {"f": 1},
                "time": {"created": 1},
            },
            {"type": "text", "text": ""},
            called(
                "shell",
                "call_1",
                resulted({"command": "ls"}, "a\n", "Exited with code 3"),
            ),
            called("read", "call_2", resulted({"path": "a"}, "x", linked, "y")),
            called(
                "read",
                "call_3",
                resulted({"path": "b"}, linked),
                providerState={"b": 2},
            ),
            called(
                "read",
                "call_4",
                {
                    "status": "error",
                    "input": {},
                    "error": {"type": "permission.rejected", "message": "No"},
                },
            ),
            {"type": "hologram", "depth": {"z": [1, None, True]}},
            snapshot={"start": "abc", "end": "abd", "files": ["a.py"]},
            finish="content-filter",
            retry={"attempt": 1, "at": 5, "error": {"type": "x", "message": "y"}},
        ),
        message("idle", 3, outcome="succeeded"),
        message("synthetic", 4, text="A note", description="note"),
        message("skill", 5, skill="tidy", name="tidy", text="One line."),
        message(
            "shell",
            6,
            shellID="sh_1",
            command="ls",
            status="exited",
            exit=0,
            output={"output": "a\n", "cursor": 2, "size": 2, "truncated": False},
            time={"completed": T0 + 8},
        ),
        message(
            "model-switched", 7, model=MODEL, previous={"id": "s", "providerID": "acme"}
        ),
        message("agent-switched", 8, agent="plan", previous="build"),
        message("location-switched", 9, **moved),
        message(
            "compaction",
            10,
            status="completed",
            reason="auto",
            model=MODEL,
            summary="Sum",
            recent="[User]: x",
            cost=0.5,
            tokens=tokens(1, 2, 0, 0, 0),
        ),
        message(
            "compaction",
            11,
            status="failed",
            reason="manual",
            error={"type": "compaction.failed", "message": "x"},
        ),
        answered(
            12,
            {"type": "text", "text": "Half"},
            finish="error",
            error={"type": "aborted", "message": "Step interrupted"},
        ),
        message("idle", 13, outcome="interrupted"),
        message("hologram", 14, depth=3),
        agent="plan",
        model=MODEL,
        metadata={"ticket": "№ 7"},
        permissions=[{"action": "edit", "resource": "*", "effect": "ask"}],
        outcome="interrupted",
        subpath="src",
        location={"directory": f"{WORKTREE}/src", "workspaceID": "wrk_1"},
        revert={"messageID": "msg_0002", "snapshot": "abc", "files": []},
        time={
            "created": T0,
            "updated": T0 + 1,
            "idle": T0 + 2,
            "viewed": 0,
            "archived": T0 + 3,
        },
    )


def forked2(
    original: dict[str, Any], number: int, count: int, *own: dict[str, Any], **more: Any
):
    """A fork of the first *count* messages of *original*, as OpenCode 2 marks and copies."""
    copies = json.loads(json.dumps(original["messages"][:count]))
    for seq, copy in enumerate(copies):
        copy["id"] = f"msg_{number:02d}f_{seq}"
    boundary = {"type": "through", "messageID": original["messages"][count - 1]["id"]}
    fork = {"sessionID": original["info"]["id"], "boundary": boundary}
    spent = sum(m.get("cost", 0) for m in own)
    fields = {"fork": fork, "cost": spent, "tokens": tokens(0, 0, 0, 0, 0), **more}
    return session2(number, *copies, *own, **fields)


def sqlite2_store(path: Path, *sessions: dict[str, Any]) -> Path:
    """Write a database, or add generation 2 to one; return *path*."""
    with connected(path) as db:
        db.executescript(f"BEGIN; {_TABLES}")
        db.execute(
            "INSERT OR IGNORE INTO project (id, worktree, vcs, time_created, time_updated,"
            " sandboxes) VALUES (?, ?, 'git', ?, ?, '[]')",
            (PROJECT, WORKTREE, T0, T0),
        )
        for item in sessions:
            insert(db, "session_v2", _row(item["info"]))
            for seq, record in enumerate(item["messages"]):
                insert(
                    db, "session_message", message_row(item["info"]["id"], seq, record)
                )
    db.close()
    return path


def message_row(session: str, seq: int, record: dict[str, Any]) -> dict[str, Any]:
    """The row of a message."""
    data = {
        key: value for key, value in record.items() if key not in ("id", "type", "seq")
    }
    created = record["time"]["created"]
    return {
        "id": record["id"], "session_id": session, "type": record["type"],
        "seq": record.get("seq", seq), "time_created": created, "time_updated": created,
        "data": json.dumps(data, ensure_ascii=False),
    }  # fmt: skip


def insert(db: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    """Insert a row; lists and objects become JSON."""
    values = [json.dumps(v) if type(v) in (dict, list) else v for v in row.values()]
    places = ", ".join("?" * len(row))
    db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", values)


def _row(info: dict[str, Any]) -> dict[str, Any]:
    counts = dict(info["tokens"])
    cache = counts.pop("cache")
    fork = info.get("fork", {})
    return {
        "id": info["id"],
        "project_id": info["projectID"],
        "workspace_id": info["location"].get("workspaceID"),
        "parent_id": info.get("parentID"),
        "fork_session_id": fork.get("sessionID"),
        "fork_boundary": fork.get("boundary"),
        "slug": f"calm-{info['id']}",
        "directory": info["location"]["directory"],
        "path": info.get("subpath", ""),
        "version": "2.0.15",
        "permission": info.get("permissions"),
        "idle_outcome": info.get("outcome"),
        "cost": info["cost"],
        **{
            key: info.get(key)
            for key in ("title", "metadata", "revert", "agent", "model")
        },
        **{f"tokens_{key}": value for key, value in counts.items()},
        **{f"tokens_cache_{key}": value for key, value in cache.items()},
        **{f"time_{key}": value for key, value in info["time"].items()},
    }
