"""The SQLite store of OpenCode 2: ``session_v2`` and a row per message, by ``seq``.

It may share a file with the tables of generation 1, which then are stale: a session in
both is read here. A fork is marked, and keeps the seqs of what it copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from sessiondb.formats.kit.fields import (
    Fits,
    Shape,
    amount,
    as_object,
    clean_name,
    clean_text,
    columns_of,
    integer,
    is_object,
    nested_record,
    objects_in,
    structure,
    time,
    without_empty,
    without_keys,
    without_none,
)
from sessiondb.formats.kit.json import (
    OddRecordError,
    Raw,
    known_time,
    load_object,
    load_value,
    usable_id,
)
from sessiondb.formats.opencode.database import TOKENS, OpenCodeDatabase
from sessiondb.formats.opencode.forks import Fork
from sessiondb.formats.opencode.keys import INBOX, INSTRUCTIONS, PENDING, ROW_REST
from sessiondb.formats.opencode.raw import Head, RawPart, SessionRecord
from sessiondb.formats.opencode.v2.instructions import Epoch, Instruction
from sessiondb.model import Problem, Tokens

#: The columns of a session's row, at the keys of its record; see `_info_of`.
_RECORD: Shape = {
    "id": "id",
    "parentID": "parent_id",
    "projectID": "project_id",
    "agent": "agent",
    "model": "model",
    "title": "title",
    "metadata": "metadata",
    "permissions": "permission",
    "revert": "revert",
    "outcome": "idle_outcome",
    "cost": "cost",
    "tokens": TOKENS,
}
_TIMES: Shape = {
    "created": "time_created",
    "updated": "time_updated",
    "idle": "time_idle",
    "viewed": "time_viewed",
    "archived": "time_archived",
}
#: Columns with JSON.
_JSON = ("model", "metadata", "revert", "permission", "summary_diffs", "fork_boundary")
#: Columns that the record does not have, but a session here.
_BESIDE: Mapping[str, Fits] = {
    "version": clean_text,
    "share_url": clean_text,
    "summary_additions": integer,
    "summary_deletions": integer,
    "summary_files": integer,
    "summary_diffs": structure,
    "time_compacting": time,
}
#: The cost of a message by its place in the record, and the column of the sum.
_SPENT = {
    "cost": "cost",
    "tokens.input": "tokens_input",
    "tokens.output": "tokens_output",
    "tokens.reasoning": "tokens_reasoning",
    "tokens.cache.read": "tokens_cache_read",
    "tokens.cache.write": "tokens_cache_write",
}
#: The columns of `Unexplained.total`.
SPENT_COLUMNS = tuple(_SPENT.values())
#: Columns that the record has, directly or in another form.
_KNOWN = frozenset(
    {
        *columns_of(_RECORD),
        *columns_of(_TIMES),
        "directory",
        "workspace_id",
        "fork_session_id",
        "fork_boundary",
    }
)
#: Tables of messages that wait to be sent, and the column of their order.
_WAITING = {
    INBOX: ("session_inbox", "enqueued_seq"),
    PENDING: ("session_pending", "admitted_seq"),
}
#: An instruction of this many characters is one of OpenCode's own: its hash is kept.
_LONG = 1024


class Unexplained(NamedTuple):
    """The cost of a session besides its messages."""

    #: In USD.
    cost: float
    tokens: Tokens
    #: The cost of the session with its messages, by column.
    total: dict[str, Any]
    #: The last message that it copied, if the total leaves out the copies.
    after: str | None


class MessageRow(NamedTuple):
    """A message as stored."""

    id: str
    type: str
    #: In Unix ms; None is unknown.
    time_created: int | None
    raw: Raw


class SQLiteV2(OpenCodeDatabase):
    """The sessions of generation 2 in a database, read once; see `raw.Records`."""

    SESSIONS = "session_v2"
    MESSAGES = "session_message"
    ORDER = "seq"
    COUNTED = ("session_message",)
    REQUIRED: ClassVar = {
        "session_v2": {"id", "time_created"},
        "session_message": {"id", "session_id", "type", "seq", "time_created", "data"},
    }

    # -- sessions -------------------------------------------------------------

    def read_session(self, head: Head) -> SessionRecord:
        """Read one session; raises `OddRecordError`."""
        row = self.session_row(head.id)
        record = self.new_record(row)
        self.decode(row, _JSON, record.problems)
        record.info = _info_of(row)

        record.columns = {
            name: row[name] for name, fits in _BESIDE.items() if fits(row.get(name))
        }
        beside: dict[str, Any] = {
            key: self._rows_in(table, head.id, order=order)
            for key, (table, order) in _WAITING.items()
        }
        beside[INSTRUCTIONS] = self._instructions(head.id)
        record.facts.append([value or None for value in beside.values()])

        beside[ROW_REST] = without_none(
            without_keys(_KNOWN | record.columns.keys(), row)
        )
        record.info.update(without_empty(beside))
        return record

    def _rows_in(
        self, table: str, session: str, *, order: str = ""
    ) -> list[dict[str, Any]]:
        """Return the rows of a session in *table*; none without such a table."""
        if not self.has(table, "session_id"):
            return []
        statement = f"SELECT * FROM {table} WHERE session_id = ?"
        if order:
            if not self.has(table, order):
                return []
            statement += f" ORDER BY {order}"
        return list(self.records(statement, session))

    def _instructions(self, session: str) -> dict[str, Any]:
        """The instructions of a session: hashes, short values and its own entries."""
        tables = ("instruction_state", "instruction_entry")
        instructions: dict[str, Any] = without_empty(
            {table: self._rows_in(table, session) for table in tables}
        )
        if instructions and self.has("instruction_blob", "hash", "value"):
            hashes = str(instructions.get("instruction_state"))
            values = self.rows(
                "SELECT hash, value FROM instruction_blob"
                " WHERE instr(?, hash) AND length(value) < ? ORDER BY hash",
                hashes.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
                _LONG,
            )
            instructions["instruction_blob"] = dict(values)

        return instructions

    def read_epoch(self, session: str) -> Epoch | None:
        """Return the instructions that the last epoch of a session begins with."""
        states = self._rows_in("instruction_state", session)
        if not states:
            return None
        start = states[0].get("epoch_start")
        try:
            hashes = load_object(self.stored(states[0].get("initial_values")))
        except OddRecordError:
            return None  # kept with the session
        if not integer(start):
            return None

        count = self.first_value(
            "SELECT count(*) FROM session_message WHERE session_id = ? AND seq <= ?",
            session,
            start,
        )
        instructions = [
            self._instruction(key, digest)
            for key, digest in hashes.items()
            if clean_name(key) and clean_name(digest)
        ]
        return Epoch(count, instructions)

    def _instruction(self, key: str, digest: str) -> Instruction:
        raw = None
        if self.has("instruction_blob", "hash", "value"):
            raw = self.first_value(
                f"SELECT {self.raw('value')} FROM instruction_blob WHERE hash = ?",
                digest,
            )
        try:
            return Instruction(key, digest, load_value(self.stored(raw)), None)
        except OddRecordError as error:
            return Instruction(key, digest, None, f"it {error}")

    def project_of(self, session: str) -> str:
        """Return the id of a session's project."""
        statement = "SELECT project_id FROM session_v2 WHERE id = ?"
        name = self.first_value(statement, session)
        return "" if name is None else str(name)

    # -- messages -------------------------------------------------------------

    def message_rows(self, session: str) -> Iterator[MessageRow]:
        """Read the messages of a session in order."""
        rows = self.rows(
            f"SELECT id, type, time_created, {self.raw('data')} FROM session_message"
            " WHERE session_id = ? ORDER BY seq",
            session,
        )
        for name, kind, created, raw in rows:
            yield MessageRow(
                str(name), str(kind), known_time(created), self.stored(raw)
            )

    def read_parts(self, session: str, message: str) -> list[RawPart]:  # noqa: ARG002
        """A message has no parts of its own: they are in its record."""
        return []

    def starting_calls(self, session: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Message id and call of those that may name a child session."""
        rows = self.rows(
            f"SELECT id, {self.raw('data')} FROM session_message"
            " WHERE session_id = ? AND type = 'assistant' AND instr(data, '\"sessionI')"
            " ORDER BY seq",
            session,
        )
        for name, raw in rows:
            for call in _calls_in(self.stored(raw)):
                yield str(name), call

    def unexplained_usage(self, session: str, fork: Fork | None) -> Unexplained:
        """Return the cost of a session besides its messages: titles, lost summaries.

        The total of a fork that is marked leaves out its copies. That of any other copy
        has them: of a fork of 1.x, and of an export imported under new ids.
        """
        statement = "SELECT * FROM session_v2 WHERE id = ?"
        row = self.first_record(statement, session) or {}
        last_copy = None
        if fork is not None and fork.copies and row.get("fork_session_id"):
            last_copy = list(fork.copies)[-1]

        total = {}
        differences = []
        sums = self._sums_of_messages(session, last_copy)
        for column, messages in zip(SPENT_COLUMNS, sums, strict=True):
            session_sum = row.get(column)
            difference: Any = 0
            if amount(session_sum) and amount(messages):
                difference = session_sum - messages
            differences.append(difference)
            total[column] = difference + messages

        cost, *counts = differences
        tokens = Tokens(*[int(count) for count in counts])
        return Unexplained(cost, tokens, total, last_copy)

    def _sums_of_messages(self, session: str, after: str | None) -> list[float]:
        """Return the sums of the messages of a session, as far as they state them.

        Only of those after its message *after*, if that is one of its messages.
        """
        sums = ", ".join(f"total(json_extract(data, '$.{name}'))" for name in _SPENT)
        (row,) = self.file.connection.execute(
            f"SELECT {sums} FROM session_message WHERE session_id = :session"
            " AND type IN ('assistant', 'compaction') AND json_valid(data)"
            " AND seq > coalesce((SELECT seq FROM session_message"
            "   WHERE session_id = :session AND id = :copy), -1)",
            {"session": session, "copy": after},
        )
        return list(row)

    # -- forks ----------------------------------------------------------------

    def fork_marks(self) -> Iterator[tuple[str, str, Any]]:
        """Session, original and boundary of each fork that is marked."""
        if not self.has("session_v2", "fork_session_id", "fork_boundary"):
            return
        rows = self.rows(
            f"SELECT id, fork_session_id, {self.raw('fork_boundary')} FROM session_v2"
            " WHERE fork_session_id IS NOT NULL AND fork_session_id IS NOT id"
        )
        for name, original, raw in rows:
            if not usable_id(name) or not usable_id(original):
                continue
            try:
                boundary = load_value(self.stored(raw))
            except OddRecordError:
                boundary = None
            yield name, original, boundary

    def copied_messages(
        self, session: str, original: str, boundary: Any
    ) -> list[tuple[str, str]]:
        """Name the messages that a fork copied, and their originals, in order.

        If the original lost its boundary, copies have ids that end with their seq.
        """
        last = self._last_copied(original, boundary)
        rows = self.rows(
            "SELECT c.id, o.id FROM session_message c JOIN session_message o"
            " ON o.session_id = ? AND o.seq = c.seq AND o.time_created = c.time_created"
            " WHERE c.session_id = ? AND CASE WHEN ? THEN c.seq <= ?"
            " ELSE substr(c.id, -length(c.seq) - 1) = '_' || c.seq END ORDER BY c.seq",
            original,
            session,
            last is not None,
            last,
        )
        return [(str(copy), str(source)) for copy, source in rows]

    def _last_copied(self, original: str, boundary: Any) -> int | None:
        """Return the last seq that a fork copied, None if the boundary is unknown."""
        limit = as_object(boundary)
        name = limit.get("messageID")
        if type(name) is not str:
            return None

        rows = self.rows(
            "SELECT seq FROM session_message WHERE session_id = ? AND id = ?",
            original,
            name,
        )
        for (seq,) in rows:
            if type(seq) is int:
                return seq - 1 if limit.get("type") == "before" else seq
        return None

    def find_orphans(self) -> Iterator[Problem]:
        """Messages without their session."""
        yield from self.rows_without_owner(
            "session_message", "session_id", "session_v2"
        )


def _calls_in(raw: Raw) -> list[dict[str, Any]]:
    """Return the calls in the record of an answer, named as in 1.x.

    None in an odd one.
    """
    try:
        content = load_object(raw).get("content")
    except OddRecordError:
        return []  # reported when its message is read

    return [
        {"callID": item.get("id"), "state": item.get("state")}
        for item in objects_in(content)
        if item.get("type") == "tool"
    ]


def _info_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a session's record as OpenCode makes it from a *row* with JSON decoded."""
    info = nested_record(row, _RECORD)
    if is_object(row.get("model")):
        info["model"] = {"variant": "default", **row["model"]}

    original, boundary = row.get("fork_session_id"), row.get("fork_boundary")
    if original and boundary:
        info["fork"] = {"sessionID": original, "boundary": boundary}

    workspace = without_empty({"workspaceID": row.get("workspace_id")})
    info["location"] = {"directory": row.get("directory"), **workspace}
    info.update(without_empty({"subpath": row.get("path")}))

    info["time"] = nested_record(row, _TIMES)
    if not row.get("time_archived"):
        info["time"].pop("archived", None)
    return info
