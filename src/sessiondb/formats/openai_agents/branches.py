"""The branches of a session and the tokens of its turns, of `AdvancedSQLiteSession`.

Read off ``extensions/memory/advanced_sqlite_session.py`` of openai-agents 0.24. A
branch is made by copying rows of ``message_structure`` up to a turn, so that messages
before it are in several branches, always after the same ones. The branch that a program
was on is not stored: it opens the file on ``main``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sessiondb.formats.kit.fields import (
    count,
    fitting,
    take,
    within,
    without,
    without_none,
)
from sessiondb.formats.kit.json import OddRecordError, load_text
from sessiondb.formats.kit.sqlite import Connection, columns, records
from sessiondb.formats.kit.usage import disjoint
from sessiondb.formats.openai_agents import fields
from sessiondb.model import Tokens

#: The tables, and the columns without which they are those of another program.
STRUCTURE = "message_structure"
USAGE = "turn_usage"
_STRUCTURE = {"id", "session_id", "message_id", "branch_id", "user_turn_number"}
_USAGE = {"session_id", "branch_id", "user_turn_number", "input_tokens"}
#: The branch that a program is on when it opens a file.
MAIN = "main"

Row = dict[str, Any]
#: A branch, and the number of a turn in it.
Turn = tuple[Any, Any]


@dataclass(slots=True)
class Branches:
    """The places of the messages of one session, by their row ids.

    ``above`` has the message before each one, None for the first of its branch;
    ``usage`` the row of the turn that a message ends, ``unplaced`` those of turns
    without a message; ``ends`` the last message of each branch.
    """

    above: dict[int, int | None] = field(default_factory=dict)
    structure: dict[int, Row] = field(default_factory=dict)
    usage: dict[int, Row] = field(default_factory=dict)
    ends: dict[Any, int] = field(default_factory=dict)
    unplaced: list[Row] = field(default_factory=list)

    @property
    def leaf(self) -> int | None:
        """The message that the session continues from, None for the last one."""
        return self.ends.get(MAIN)


def has_structure(connection: Connection) -> bool:
    """Return whether the file has branches."""
    return columns(connection, STRUCTURE) >= _STRUCTURE


def has_usage(connection: Connection) -> bool:
    """Return whether the file has the tokens of turns."""
    return columns(connection, USAGE) >= _USAGE


def branches_of(connection: Connection, session: str) -> Branches:
    """Return the branches of a session; empty where the file has none."""
    found = Branches()
    turns: dict[Turn, int] = {}
    if has_structure(connection):
        for row in _rows(connection, STRUCTURE, session):
            _place(found, turns, row)
    if has_usage(connection):
        for row in _rows(connection, USAGE, session):
            _spend(found, turns, row)

    return found


def _rows(connection: Connection, table: str, session: str) -> Iterator[Row]:
    return records(
        connection, f"SELECT * FROM {table} WHERE session_id = ? ORDER BY id", session
    )


def _place(found: Branches, turns: dict[Turn, int], row: Row) -> None:
    """Add a message to its branch; where it first was is where it belongs."""
    message, branch = row["message_id"], row["branch_id"]
    if type(message) is not int:
        return

    if message not in found.above:
        found.above[message] = found.ends.get(branch)
        found.structure[message] = without_none(without(_IMPLIED, row))

    found.ends[branch] = message
    # The tokens of a turn are those of its answers.
    if row.get("message_type") not in _UNANSWERED:
        turns[branch, row["user_turn_number"]] = message


def _spend(found: Branches, turns: dict[Turn, int], row: Row) -> None:
    """Add the tokens of a turn to its last message."""
    message = turns.get((row["branch_id"], row["user_turn_number"]))
    if message is None or message in found.usage:
        found.unplaced.append(row)
    else:
        found.usage[message] = row


#: Types of messages that a model did not make.
_UNANSWERED = ("user", "function_call_output")
#: Columns of a place that are known without it.
_IMPLIED = frozenset({"id", "session_id", "message_id", "created_at"})


def tokens_of(row: Row) -> Tokens | None:
    """Return the tokens of a turn, disjoint: the SDK counts some within others."""
    known = take(dict(row), fields.USAGE)
    known["cache_read"] = _detail(row, "input_tokens_details", "cached_tokens")
    known["reasoning"] = _detail(row, "output_tokens_details", "reasoning_tokens")
    return disjoint(without_none(known))


def _detail(row: Row, column: str, key: str) -> int | None:
    """Return a count of the details, which are JSON in a text."""
    try:
        details = load_text(str(row.get(column)))
    except OddRecordError:
        return None

    found: int | None = fitting(within(details, key), count)
    return found
