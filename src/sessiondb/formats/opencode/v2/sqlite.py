"""The SQLite store of OpenCode 2: ``session_v2`` and one row per message, ordered by ``seq``.

It may share a file with the tables of generation 1, which then are stale: what
is in both is read here. A fork is marked, and keeps the seqs of what it copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from sessiondb.formats.kit.fields import amount, clean_text, integer, structure, time
from sessiondb.formats.kit.json import (
    OddRecordError,
    Raw,
    known_time,
    load,
    load_object,
    usable_id,
)
from sessiondb.formats.opencode.database import Database
from sessiondb.formats.opencode.keys import INBOX, INSTRUCTIONS, PENDING, ROW_REST
from sessiondb.formats.opencode.raw import Head, Opened, RawPart, SessionRecord
from sessiondb.formats.opencode.v1.forks import Fork
from sessiondb.model import Problem, Tokens

_JSON = ("model", "metadata", "revert", "permission", "summary_diffs", "fork_boundary")
#: Columns that a session's record has, and those that have a field beside it.
_TOKENS = {name: f"tokens_{name}" for name in ("input", "output", "reasoning")}
_CACHE = {name: f"tokens_cache_{name}" for name in ("read", "write")}
_TIMES = ("created", "updated", "idle", "viewed", "archived")
_PLAIN = {
    "id": "id",
    "parentID": "parent_id",
    "projectID": "project_id",
    "agent": "agent",
}
_PLAIN |= {"title": "title", "metadata": "metadata", "permissions": "permission"}
_PLAIN |= {"revert": "revert", "outcome": "idle_outcome", "cost": "cost"}
#: The cost of a message by its place in the record, and the column of the session's sum.
_SPENT = {
    "cost": "cost",
    **{f"tokens.{name}": column for name, column in _TOKENS.items()},
}
_SPENT |= {f"tokens.cache.{name}": column for name, column in _CACHE.items()}
_BESIDE: Mapping[str, Callable[[Any], bool]] = {
    "version": clean_text,
    "share_url": clean_text,
    "summary_additions": integer,
    "summary_deletions": integer,
    "summary_files": integer,
    "summary_diffs": structure,
    "time_compacting": time,
}
_KNOWN = {*_PLAIN.values(), *_TOKENS.values(), *_CACHE.values(), "model", "directory"}
_KNOWN |= {
    "workspace_id",
    "fork_session_id",
    "fork_boundary",
    *(f"time_{name}" for name in _TIMES),
}
#: An instruction of this many characters and more stays behind its hash: OpenCode's own texts.
_LONG = 1024


class Row(NamedTuple):
    """A message as stored."""

    id: str
    type: str
    time_created: int | None
    raw: Raw


class SQLiteV2(Database):
    """The sessions of generation 2 in a database, read once; see `records.Records`."""

    SESSIONS = "session_v2"
    COUNTED = ("session_message",)
    REQUIRED: ClassVar = {
        "session_v2": {"id", "time_created"},
        "session_message": {"id", "session_id", "type", "seq", "time_created", "data"},
    }

    def session(self, head: Head) -> SessionRecord:
        """Read one session; raises `OddRecordError`."""
        row = self.row(head.id)
        size, modified = self.stat
        record = SessionRecord(
            info={},
            facts=[dict(row), self.changes_of(head.id)],
            path=self.path,
            size=size,
            mtime_ns=modified,
        )
        self.put_project(record, row)
        self.decode(row, _JSON, record.problems)
        record.info = info_of(row)
        record.columns = {
            name: row[name] for name, fits in _BESIDE.items() if fits(row.get(name))
        }
        known = _KNOWN | record.columns.keys()
        other = {k: v for k, v in row.items() if k not in known and v is not None}
        beside = {
            INBOX: list(self._waiting("session_inbox", "enqueued_seq", head.id)),
            PENDING: list(self._waiting("session_pending", "admitted_seq", head.id)),
            INSTRUCTIONS: self._instructions(head.id),
            ROW_REST: other,
        }
        record.info.update((key, value) for key, value in beside.items() if value)
        record.facts.append(
            [record.info.get(key) for key in (INBOX, PENDING, INSTRUCTIONS)]
        )
        return record

    def _waiting(
        self, table: str, order: str, session: str
    ) -> Iterator[dict[str, Any]]:
        if {"session_id", order} <= self.columns(table):
            yield from self.records(
                f"SELECT * FROM {table} WHERE session_id = ? ORDER BY {order}", session
            )

    def _instructions(self, session: str) -> dict[str, Any]:
        """The session's instructions: its epoch by hashes, short values and its own entries."""
        found: dict[str, Any] = {}
        for table in ("instruction_state", "instruction_entry"):
            if "session_id" in self.columns(table):
                rows = list(
                    self.records(f"SELECT * FROM {table} WHERE session_id = ?", session)
                )
                found.update({table: rows} if rows else {})
        if found and {"hash", "value"} <= self.columns("instruction_blob"):
            told = str(found.get("instruction_state"))
            values = self.rows(
                "SELECT hash, value FROM instruction_blob"
                " WHERE instr(?, hash) AND length(value) < ? ORDER BY hash",
                told.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
                _LONG,
            )
            found["instruction_blob"] = dict(values)
        return found

    def first_times(self) -> dict[str, int]:
        """When the first message of each session was created."""
        rows = self.rows(
            "SELECT session_id, min(time_created) FROM session_message GROUP BY session_id"
        )
        return {name: made for name, made in rows if type(made) is int}

    def messages(self, session: str) -> list[Opened]:
        """Name the messages of a session in order."""
        rows = self.rows(
            "SELECT time_created, id FROM session_message WHERE session_id = ? ORDER BY seq",
            session,
        )
        return [
            Opened(made if type(made) is int else 0, str(name)) for made, name in rows
        ]

    def each(self, session: str) -> Iterator[Row]:
        """Read the messages of a session in order."""
        rows = self.rows(
            f"SELECT id, type, time_created, {self.raw('data')} FROM session_message"
            " WHERE session_id = ? ORDER BY seq",
            session,
        )
        for name, kind, created, raw in rows:
            yield Row(str(name), str(kind), known_time(created), self.stored(raw))

    def message(self, session: str, message: str) -> Raw:
        """Read one message as stored."""
        rows = self.rows(
            f"SELECT {self.raw('data')} FROM session_message WHERE id = ? AND session_id = ?",
            message,
            session,
        )
        return next((self.stored(raw) for (raw,) in rows), None)

    def parts(self, session: str, message: str) -> list[RawPart]:  # noqa: ARG002 - as of 1.x
        """A message has no parts of its own: they are in its record."""
        return []

    def calls(self, session: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Message id and call of those that may name a child session."""
        rows = self.rows(
            f"SELECT id, {self.raw('data')} FROM session_message"
            " WHERE session_id = ? AND type = 'assistant' AND instr(data, '\"sessionI')"
            " ORDER BY seq",
            session,
        )
        for name, raw in rows:
            yield from ((str(name), call) for call in calls_in(self.stored(raw)))

    def marks(self) -> Iterator[tuple[str, str, Any]]:
        """Session, original and boundary of each fork that is marked."""
        if {"fork_session_id", "fork_boundary"} <= self.columns("session_v2"):
            rows = self.rows(
                f"SELECT id, fork_session_id, {self.raw('fork_boundary')} FROM session_v2"
                " WHERE fork_session_id IS NOT NULL"
            )
            for name, original, raw in rows:
                if usable_id(name) and usable_id(original) and name != original:
                    yield name, original, _boundary(self.stored(raw))

    def copies(
        self, session: str, original: str, boundary: Any
    ) -> list[tuple[str, str]]:
        """Name the messages that a fork copied, and what they are in its original, in order.

        Where the original lost its boundary, copies are known by ids that end with their seq.
        """
        last, last_seq = self._limit(original, boundary)
        rows = self.rows(
            "SELECT c.id, o.id FROM session_message c JOIN session_message o"
            " ON o.session_id = ? AND o.seq = c.seq AND o.time_created = c.time_created"
            " WHERE c.session_id = ? AND CASE WHEN ? THEN c.seq <= ?"
            " ELSE substr(c.id, -length(c.seq) - 1) = '_' || c.seq END ORDER BY c.seq",
            original,
            session,
            last,
            last_seq,
        )
        return [(str(copy), str(source)) for copy, source in rows]

    def _limit(self, original: str, boundary: Any) -> tuple[bool, int]:
        if type(boundary) is dict and type(boundary.get("messageID")) is str:
            for (seq,) in self.rows(
                "SELECT seq FROM session_message WHERE session_id = ? AND id = ?",
                original,
                boundary["messageID"],
            ):
                if type(seq) is int:
                    return True, seq - (boundary.get("type") == "before")
        return False, 0

    def unexplained(self, session: str, fork: Fork | None) -> tuple[float, Tokens]:
        """A session's cost besides its messages: the title, summaries that were lost.

        The sums of a fork that is marked leave out its copies, those of 1.x count them.
        """
        row = next(self.records("SELECT * FROM session_v2 WHERE id = ?", session), {})
        copies = fork.copies if fork and row.get("fork_session_id") else {}
        sums = ", ".join(f"total(json_extract(data, '$.{name}'))" for name in _SPENT)
        (found,) = self.file.connection.execute(
            f"SELECT {sums} FROM session_message WHERE session_id = :session"
            " AND type IN ('assistant', 'compaction') AND json_valid(data) AND seq > coalesce("
            "(SELECT seq FROM session_message WHERE session_id = :session AND id = :copy), -1)",
            {"session": session, "copy": next(reversed(copies), None)},
        )
        stated = [row.get(name) for name in _SPENT.values()]
        cost, *counts = (
            a - b if amount(a) and amount(b) else 0
            for a, b in zip(stated, found, strict=True)
        )
        return cost, Tokens(*map(int, counts))

    def project(self, session: str) -> str:
        """Return the id of a session's project."""
        rows = self.rows("SELECT project_id FROM session_v2 WHERE id = ?", session)
        return next((str(name) for (name,) in rows), "")

    def orphans(self) -> Iterator[Problem]:
        """Messages without their session."""
        yield from self.lost("session_message", "session_id", "session_v2")


def calls_in(raw: Raw) -> Iterator[dict[str, Any]]:
    """Yield the calls in the record of an answer, named as in 1.x; nothing for an odd one."""
    try:
        content = load_object(raw).get("content")
    except OddRecordError:
        return  # reported when its message is read
    for item in content if type(content) is list else ():
        if type(item) is dict and item.get("type") == "tool":
            yield {"callID": item.get("id"), "state": item.get("state")}


def info_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a session's record as OpenCode makes it from a *row*, whose JSON is decoded."""
    info = {name: row[key] for name, key in _PLAIN.items() if row.get(key) is not None}
    info["tokens"] = {name: row.get(key) for name, key in _TOKENS.items()}
    info["tokens"]["cache"] = {name: row.get(key) for name, key in _CACHE.items()}
    model = row.get("model")
    if type(model) is dict:
        info["model"] = {"variant": "default", **model}
    elif model is not None:
        info["model"] = model
    if row.get("fork_session_id") and row.get("fork_boundary"):
        info["fork"] = {
            "sessionID": row["fork_session_id"],
            "boundary": row["fork_boundary"],
        }
    info["location"] = {"directory": row.get("directory")}
    if row.get("workspace_id"):
        info["location"]["workspaceID"] = row["workspace_id"]
    if row.get("path"):
        info["subpath"] = row["path"]
    times = {name: row.get(f"time_{name}") for name in _TIMES}
    info["time"] = {name: when for name, when in times.items() if when is not None}
    if not info["time"].get("archived"):
        info["time"].pop("archived", None)
    return info


def _boundary(raw: Raw) -> Any:
    try:
        return load(raw)
    except OddRecordError:
        return None
