"""The branches of a session and the tokens of its turns, of `AdvancedSQLiteSession`.

Read off ``extensions/memory/advanced_sqlite_session.py`` of openai-agents 0.24. A
branch is made by copying rows of ``message_structure`` up to a turn, so that messages
before it are in several branches, always after the same ones. The branch that a program
was on is not stored: it opens the file on ``main``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.kit.fields import (
    count,
    fitting,
    take_fields,
    value_at,
    without_keys,
    without_none,
)
from sessiondb.formats.kit.json import OddRecordError, load_text
from sessiondb.formats.kit.sqlite import Connection, columns_of_table, select_records
from sessiondb.formats.kit.usage import disjoint_tokens
from sessiondb.formats.providers.responses import fields
from sessiondb.model import Tokens

#: The tables, and the columns without which they are those of another program.
STRUCTURE = "message_structure"
USAGE = "turn_usage"
_STRUCTURE = {"id", "session_id", "message_id", "branch_id", "user_turn_number"}
_USAGE = {"session_id", "branch_id", "user_turn_number", "input_tokens"}
#: The branch that a program is on when it opens a file.
MAIN = "main"

Row = dict[str, Any]


@dataclass(slots=True)
class Branches:
    """The places of the messages of one session, by their row ids."""

    #: The message before each one; None for the first of its branch.
    parents: dict[int, int | None] = field(default_factory=dict)
    #: The row of each message in ``message_structure``.
    structure: dict[int, Row] = field(default_factory=dict)
    #: The row of the turn that a message ends.
    usage: dict[int, Row] = field(default_factory=dict)
    #: The last message of each branch.
    ends: dict[Any, int] = field(default_factory=dict)
    #: The rows of turns without a message.
    unplaced_usage: list[Row] = field(default_factory=list)

    @property
    def leaf(self) -> int | None:
        """The message that the session continues from, None for the last one."""
        return self.ends.get(MAIN)


def has_structure(connection: Connection) -> bool:
    """Return whether the file has branches."""
    return columns_of_table(connection, STRUCTURE) >= _STRUCTURE


def has_usage(connection: Connection) -> bool:
    """Return whether the file has the tokens of turns."""
    return columns_of_table(connection, USAGE) >= _USAGE


def read_branches(connection: Connection, session: str) -> Branches:
    """Return the branches of a session; empty for a file without branches."""
    branches = Branches()
    # The last answer of each turn of a branch: the tokens of a turn are those of its
    # answers.
    answers: dict[tuple[Any, Any], int] = {}
    if has_structure(connection):
        for row in _rows_of(connection, STRUCTURE, session):
            message, branch = row["message_id"], row["branch_id"]
            if type(message) is not int:
                continue

            # A message of several branches belongs to the first one.
            if message not in branches.parents:
                branches.parents[message] = branches.ends.get(branch)
                branches.structure[message] = without_none(without_keys(_IMPLIED, row))
            branches.ends[branch] = message
            if row.get("message_type") not in _WITHOUT_TOKENS:
                answers[branch, row["user_turn_number"]] = message

    if has_usage(connection):
        for row in _rows_of(connection, USAGE, session):
            answer = answers.get((row["branch_id"], row["user_turn_number"]))
            if answer is None or answer in branches.usage:
                branches.unplaced_usage.append(row)
            else:
                branches.usage[answer] = row

    return branches


def _rows_of(connection: Connection, table: str, session: str) -> Iterator[Row]:
    statement = f"SELECT * FROM {table} WHERE session_id = ? ORDER BY id"
    return select_records(connection, statement, session)


#: Types of messages that a model did not make.
_WITHOUT_TOKENS = ("user", "function_call_output")
#: Columns of a place that are known without it.
_IMPLIED = frozenset({"id", "session_id", "message_id", "created_at"})


def tokens_of(row: Row) -> Tokens | None:
    """Return the tokens of a turn, disjoint: the SDK counts some within others."""
    counts = take_fields(dict(row), fields.USAGE)
    counts["cache_read"] = _detail_count(row, "input_tokens_details", "cached_tokens")
    counts["reasoning"] = _detail_count(
        row, "output_tokens_details", "reasoning_tokens"
    )
    return disjoint_tokens(without_none(counts))


def _detail_count(row: Row, column: str, key: str) -> int | None:
    """Return a count of the details, which are JSON in a text."""
    try:
        details = load_text(str(row.get(column)))
    except OddRecordError:
        return None

    number: int | None = fitting(value_at(details, key), count)
    return number
