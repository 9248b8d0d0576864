"""The SQLite store of OpenCode 1.2 and later: tables ``session message part``.

Message and part records are JSON text; a session's record is made from its row as
OpenCode makes it. Everything is read in one read transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from sessiondb.formats.kit.fields import (
    Shape,
    columns_of,
    nested_record,
    without_keys,
    without_none,
)
from sessiondb.formats.kit.files import file_stamp
from sessiondb.formats.kit.json import known_time
from sessiondb.formats.opencode.database import TOKENS, OpenCodeDatabase
from sessiondb.formats.opencode.ids import in_creation_order
from sessiondb.formats.opencode.keys import ROW_REST
from sessiondb.formats.opencode.raw import Head, RawPart, SessionRecord
from sessiondb.formats.opencode.sidefiles import SHARES, read_json, read_share
from sessiondb.model import Problem

#: The columns of a session's row, at the keys of its record; see `_info_of`.
_RECORD: Shape = {
    "id": "id",
    "slug": "slug",
    "projectID": "project_id",
    "workspaceID": "workspace_id",
    "directory": "directory",
    "path": "path",
    "parentID": "parent_id",
    "title": "title",
    "agent": "agent",
    "version": "version",
    "cost": "cost",
    "tokens": TOKENS,
    "model": "model",
    "metadata": "metadata",
    "revert": "revert",
    "permission": "permission",
    "time": {
        "created": "time_created",
        "updated": "time_updated",
        "compacting": "time_compacting",
        "archived": "time_archived",
    },
}
_SUMMARY = {
    "additions": "summary_additions",
    "deletions": "summary_deletions",
    "files": "summary_files",
}
#: Columns with JSON.
_JSON = ("model", "metadata", "revert", "permission", "summary_diffs")
_KNOWN = frozenset(
    [
        *columns_of(_RECORD),
        *_SUMMARY.values(),
        "summary_diffs",
        "share_url",
    ]
)


class SQLiteV1(OpenCodeDatabase):
    """One database, read once; see `raw.Records`."""

    SESSIONS = "session"
    MESSAGES = "message"
    ORDER = "time_created, id"
    COUNTED = ("message", "part", "todo")
    REQUIRED: ClassVar = {
        "session": {"id"},
        "message": {"id", "session_id", "time_created", "data"},
        "part": {"id", "message_id", "session_id", "data"},
    }

    def read_session(self, head: Head) -> SessionRecord:
        """Read one session; raises `OddRecordError`."""
        row = self.session_row(head.id)
        # The name alone: an id in a hostile database may be a path.
        file_name = Path(f"{head.id}.json").name
        storage = self.home / "storage"
        diff = storage / "session_diff" / file_name
        files = [diff, *(storage / folder / file_name for folder in SHARES)]
        record = self.new_record(row, *[file_stamp(file) for file in files])

        self.decode(row, _JSON, record.problems)
        record.info = _info_of(row)
        unknown = without_none(without_keys(_KNOWN, row))
        if unknown:
            record.info[ROW_REST] = unknown

        record.todo = self._todo(head.id)
        record.share = self._share(head.id)
        if record.share is None and row.get("share_url"):
            # The migration of 1.2 takes the files of one of the two folders alone.
            record.share, record.share_folder = read_share(
                storage, SHARES, head.id, record.problems
            )
        record.facts.append(record.share)
        record.diff = read_json(diff, list, record.problems)
        return record

    def _todo(self, session: str) -> list[Any] | None:
        if not self.has("todo", "content", "status", "priority", "position"):
            return None
        rows = self.records(
            "SELECT content, status, priority FROM todo WHERE session_id = ?"
            " ORDER BY position",
            session,
        )
        return list(rows)

    def _share(self, session: str) -> dict[str, Any] | None:
        if not self.has("session_share", "session_id", "id", "secret", "url"):
            return None
        return self.first_record(
            "SELECT id, secret, url FROM session_share WHERE session_id = ?", session
        )

    def read_parts(
        self,
        session: str,  # noqa: ARG002
        message: str,
    ) -> Iterator[RawPart]:
        """Read the parts of a message as stored, by id."""
        rows = self.rows(
            f"SELECT id, {self.raw('data')}, time_created, time_updated FROM part"
            " WHERE message_id = ? ORDER BY id",
            message,
        )
        parts = {
            str(name): RawPart(
                str(name), [self.stored(raw)], known_time(created), known_time(updated)
            )
            for name, raw, created, updated in rows
        }
        for name in in_creation_order(list(parts)):
            yield parts.pop(name)

    def starting_calls(self, session: str) -> Iterator[tuple[Any, ...]]:
        """Message id and stored form of the parts that may name a child session."""
        rows = self.rows(
            f"SELECT message_id, {self.raw('data')} FROM part"
            " WHERE session_id = ? AND instr(data, '\"sessionI')"
            " ORDER BY time_created, id",
            session,
        )
        return ((str(name), self.stored(raw)) for name, raw in rows)

    def find_orphans(self) -> Iterator[Problem]:
        """Whatever belongs to a session or message that does not exist."""
        yield from self.rows_without_owner("message", "session_id", "session")
        yield from self.rows_without_owner("part", "message_id", "message")
        yield from self.rows_without_owner("todo", "session_id", "session")
        yield from self.rows_without_owner("session_share", "session_id", "session")


def _info_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return a session's record as OpenCode makes it from a *row* with JSON decoded."""
    info = nested_record(row, _RECORD)
    # Written even if all of its times are unknown.
    info.setdefault("time", {})

    if row.get("share_url"):
        info["share"] = {"url": row["share_url"]}

    # One known number makes a summary, and the others 0.
    summary = nested_record(row, _SUMMARY)

    if summary:
        info["summary"] = {**dict.fromkeys(_SUMMARY, 0), **summary}
        if row.get("summary_diffs") is not None:
            info["summary"]["diffs"] = row["summary_diffs"]

    return info
