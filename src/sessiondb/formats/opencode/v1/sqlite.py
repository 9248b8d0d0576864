"""The SQLite store of OpenCode 1.2 and later: one file, tables ``session message part``.

Columns came and went with the versions, so what is there is selected. Message
and part records are JSON text; a session's record is made from its row as
OpenCode makes it. Everything is read in one read transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from sessiondb.formats.kit.files import stamp
from sessiondb.formats.kit.json import known_time
from sessiondb.formats.opencode.database import Database
from sessiondb.formats.opencode.keys import ROW_REST
from sessiondb.formats.opencode.raw import (
    Head,
    Opened,
    RawPart,
    SessionRecord,
    unwrapped,
)
from sessiondb.formats.opencode.sidefiles import read_json
from sessiondb.model import Problem

#: Columns of a session row that its record names in another way.
_PLAIN = {
    "id": "id",
    "slug": "slug",
    "project_id": "projectID",
    "workspace_id": "workspaceID",
    "directory": "directory",
    "path": "path",
    "parent_id": "parentID",
    "title": "title",
    "agent": "agent",
    "version": "version",
}
_JSON = ("model", "metadata", "revert", "permission", "summary_diffs")
_SUMMARY = {"additions": "summary_additions", "deletions": "summary_deletions"}
_SUMMARY["files"] = "summary_files"
_TOKENS = ("tokens_input", "tokens_output", "tokens_reasoning")
_CACHE = ("tokens_cache_read", "tokens_cache_write")
_TIMES = ("time_created", "time_updated", "time_compacting", "time_archived")
_KNOWN = {
    *_PLAIN,
    *_JSON,
    *_SUMMARY.values(),
    *_TOKENS,
    *_CACHE,
    *_TIMES,
    "cost",
    "share_url",
}


class SQLiteV1(Database):
    """One database, read once; see `records.Records`."""

    SESSIONS = "session"
    COUNTED = ("message", "part", "todo")
    REQUIRED: ClassVar = {
        "session": {"id"},
        "message": {"id", "session_id", "time_created", "data"},
        "part": {"id", "message_id", "session_id", "data"},
    }

    def session(self, head: Head) -> SessionRecord:
        """Read one session; raises `OddRecordError`."""
        row = self.row(head.id)
        size, modified = self.stat
        # The name alone: an id in a hostile database may be a path to somewhere else.
        diff = self.home / "storage" / "session_diff" / Path(f"{head.id}.json").name
        record = SessionRecord(
            info={},
            facts=[dict(row), self.changes_of(head.id), stamp(diff)],
            path=self.path,
            size=size,
            mtime_ns=modified,
        )
        self.put_project(record, row)
        self._fill(record, row)
        record.todo = self._todo(head.id)
        record.share = self._share(head.id)
        record.facts.append(record.share)
        record.diff = read_json(diff, list, record.problems)
        return record

    def _fill(self, record: SessionRecord, row: dict[str, Any]) -> None:
        self.decode(row, _JSON, record.problems)
        record.info = info_of(row)
        other = {k: v for k, v in row.items() if k not in _KNOWN and v is not None}
        if other:
            record.info[ROW_REST] = other

    def _todo(self, session: str) -> list[Any] | None:
        if not {"content", "status", "priority", "position"} <= self.columns("todo"):
            return None
        rows = self.records(
            "SELECT content, status, priority FROM todo WHERE session_id = ? ORDER BY position",
            session,
        )
        return list(rows)

    def _share(self, session: str) -> dict[str, Any] | None:
        if not {"session_id", "id", "secret", "url"} <= self.columns("session_share"):
            return None
        return next(
            self.records(
                "SELECT id, secret, url FROM session_share WHERE session_id = ?",
                session,
            ),
            None,
        )

    def first_times(self) -> dict[str, int]:
        """When the first message of each session was created; the index answers it."""
        rows = self.rows(
            "SELECT session_id, min(time_created) FROM message GROUP BY session_id"
        )
        return {name: time for name, time in rows if type(time) is int}

    def messages(self, session: str) -> list[Opened]:
        """Name the messages of a session in order."""
        rows = self.rows(
            "SELECT time_created, id FROM message WHERE session_id = ? ORDER BY time_created, id",
            session,
        )
        return [
            Opened(time if type(time) is int else 0, str(name)) for time, name in rows
        ]

    def message(self, session: str, message: str) -> bytes | None:
        """Read one message as stored."""
        rows = self.rows(
            f"SELECT {self.raw('data')} FROM message WHERE id = ? AND session_id = ?",
            message,
            session,
        )
        return next((self.stored(raw) for (raw,) in rows), None)

    def parts(self, session: str, message: str) -> Iterator[RawPart]:  # noqa: ARG002 - the tree's key
        """Read the parts of a message as stored, by id."""
        rows = self.rows(
            f"SELECT id, {self.raw('data')}, time_created, time_updated FROM part"
            " WHERE message_id = ? ORDER BY id",
            message,
        )
        found = {
            str(name): RawPart(str(name), self.stored(raw), *map(known_time, times))
            for name, raw, *times in rows
        }
        for name in unwrapped(list(found)):
            yield found.pop(name)

    def calls(self, session: str) -> Iterator[tuple[Any, ...]]:
        """Message id and stored form of the parts that may name a child session."""
        rows = self.rows(
            f"SELECT message_id, {self.raw('data')} FROM part"
            " WHERE session_id = ? AND instr(data, '\"sessionI') ORDER BY time_created, id",
            session,
        )
        return ((str(name), self.stored(raw)) for name, raw in rows)

    def orphans(self) -> Iterator[Problem]:
        """Messages without their session, parts without their message."""
        yield from self.lost("message", "session_id", "session")
        yield from self.lost("part", "message_id", "message")


def info_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return a session's record as OpenCode makes it from a *row*, whose JSON is decoded."""
    info = {
        name: row[column]
        for column, name in _PLAIN.items()
        if row.get(column) is not None
    }
    counts = {name: row.get(column) for name, column in _SUMMARY.items()}
    if any(number is not None for number in counts.values()):
        info["summary"] = {name: number or 0 for name, number in counts.items()}
        if row.get("summary_diffs") is not None:
            info["summary"]["diffs"] = row["summary_diffs"]
    if row.get("cost") is not None:
        info["cost"] = row["cost"]
    if row.get("tokens_input") is not None:
        info["tokens"] = {
            name.removeprefix("tokens_"): row.get(name) for name in _TOKENS
        }
        info["tokens"]["cache"] = {
            name.rpartition("_")[2]: row.get(name) for name in _CACHE
        }
    if row.get("share_url"):
        info["share"] = {"url": row["share_url"]}
    for column in ("model", "metadata", "revert", "permission"):
        if row.get(column) is not None:
            info[column] = row[column]
    times = {name.removeprefix("time_"): row.get(name) for name in _TIMES}
    info["time"] = {name: time for name, time in times.items() if time is not None}
    return info
