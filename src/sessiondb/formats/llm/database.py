"""Statements on ``logs.db``; columns and tables came with the versions.

The older tables have no index on the response that a row belongs to. So a table is read
once, for the numbers of its rows only (`RowNumbers`), and each row by its number later.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.formats.kit.sqlite import (
    ROW_NUMBER,
    Connection,
    Cursor,
    ForeignDatabase,
    columns_of_table,
    select_records,
)

Row = dict[str, Any]
#: Columns that a statement needs, by table.
Needed = Mapping[str, Collection[str]]
_CONVERSATIONS = {
    "conversations": {"id"},
    "responses": {
        "id",
        "model",
        "prompt",
        "response",
        "conversation_id",
        "datetime_utc",
    },
}
_THREADS = {
    "threads": {"id", "name", "tip_message_hash", "forked_from"},
    "turns": {"id", "thread_id", "parent_message_hash", "tip_message_hash"},
    "messages": {"hash", "parent_hash", "role"},
    "parts": {"message_hash", "position", "type"},
}
_TURN_TOOLS = {"turn_tools": {"turn_id", "tool_id"}}


class ResponseRows(NamedTuple):
    """The responses of a conversation."""

    #: The numbers of their rows, in order.
    numbers: array[int]
    #: The times of the first and the last one, as llm writes them.
    first_time: Any
    last_time: Any


#: A session without responses.
NO_RESPONSES = ResponseRows(array("q"), None, None)


class TurnRow(NamedTuple):
    """The columns of a turn that a walk over its thread needs."""

    #: The number of its row.
    number: int
    id: Any
    #: The last message before it; None at the beginning of a thread.
    parent: Any
    #: Its last message.
    tip: Any


class RowNumbers:
    """The rows of a table that belong to a response, in order, by numbers of both."""

    def __init__(self, pairs: Iterator[tuple[int, int]]) -> None:
        self._owners, self._rows = array("q"), array("q")
        for owner, row in pairs:
            self._owners.append(owner)
            self._rows.append(row)

    def rows_of(self, owner: int) -> array[int]:
        """Return the rows that belong to *owner*."""
        first = bisect_left(self._owners, owner)
        end = bisect_right(self._owners, owner)
        return self._rows[first:end]


class LlmLogs:
    """One database file, within one read transaction."""

    def __init__(self, path: Path, *, glance: bool = False) -> None:
        self.path = path
        self.file = ForeignDatabase(path, glance=glance)
        #: The columns of tables.
        self._columns: dict[str, frozenset[str]] = {}
        #: The rows of tables, by their responses.
        self._row_numbers: dict[str, RowNumbers] = {}

    def reading(self) -> AbstractContextManager[Connection]:
        """Hold one read transaction; raises `SourceError`."""
        return self.file.reading()

    @cached_property
    def has_responses(self) -> bool:
        """Whether the file has the older tables; only while it is read."""
        return self._has_all(_CONVERSATIONS)

    @cached_property
    def has_threads(self) -> bool:
        """Whether the file has the newer tables; only while it is read."""
        return self._has_all(_THREADS)

    def _has_all(self, needed: Needed) -> bool:
        return all(self._has_columns(table, names) for table, names in needed.items())

    def _has_columns(self, table: str, names: Collection[str]) -> bool:
        """Return whether a *table* exists with at least these columns."""
        if table not in self._columns:
            self._columns[table] = columns_of_table(self.file.connection, table)

        return bool(self._columns[table]) and self._columns[table].issuperset(names)

    def run_statement(self, statement: str, *values: Any) -> Cursor:
        """Run a statement."""
        return self.file.connection.execute(statement, values)

    def select_records(self, statement: str, *values: Any) -> Iterator[Row]:
        """Run a statement and yield its rows by column."""
        return select_records(self.file.connection, statement, *values)

    def row_at(self, table: str, number: int) -> Row | None:
        """Return a row of a table by its number."""
        statement = f"SELECT * FROM {table} WHERE {ROW_NUMBER} = ?"
        return next(self.select_records(statement, number), None)

    def optional_records(
        self, needed: Needed, statement: str, *values: Any
    ) -> Iterator[Row]:
        """Run a statement on tables of later releases; no rows without them."""
        return (
            self.select_records(statement, *values)
            if self._has_all(needed)
            else iter(())
        )

    def row_with(self, table: str, key: str, value: Any) -> Row | None:
        """Return the row of a table whose *key* has a value; None without the table."""
        statement = f"SELECT * FROM {table} WHERE {key} = ?"
        return next(self.optional_records({table: {key}}, statement, value), None)

    # -- sessions ----------------------------------------------------------------

    def conversation_rows(self) -> Iterator[Row]:
        """Yield the rows of the conversations of the older generation."""
        return self.select_records("SELECT * FROM conversations")

    def thread_rows(self) -> Iterator[Row]:
        """Yield the rows of the threads of the newer generation."""
        return self.select_records("SELECT * FROM threads")

    # -- responses ---------------------------------------------------------------

    def responses_by_conversation(self) -> Iterator[tuple[Any, ResponseRows]]:
        """Yield the conversations that have responses, with these.

        A response without a conversation is one of its own. One that is a turn, too,
        was written twice by releases between the generations.
        """
        condition = ""
        if self.has_threads:
            # The turn counts: it has the tree, and the same numbers.
            turn = "SELECT 1 FROM turns WHERE turns.id = responses.id"
            condition = f"WHERE NOT EXISTS ({turn})"
        rows = self.run_statement(
            f"SELECT coalesce(conversation_id, id), {ROW_NUMBER}, datetime_utc"
            f" FROM responses {condition} ORDER BY 1, id"
        )
        for name, group in groupby(rows, key=lambda row: row[0]):
            numbers: array[int] = array("q")
            times: list[str] = []
            for _, number, time in group:
                numbers.append(number)
                if isinstance(time, str):
                    times.append(time)
            first_time, last_time = min(times, default=None), max(times, default=None)
            yield name, ResponseRows(numbers, first_time, last_time)

    def rows_of_response(self, table: str, response: int) -> Iterator[Row]:
        """Yield the rows of a table that belong to a response, by its number."""
        if not self._has_columns(table, {"response_id"}):
            return
        if table not in self._row_numbers:
            pairs = self.run_statement(
                f"SELECT responses.{ROW_NUMBER}, x.{ROW_NUMBER} FROM {table} AS x"
                " JOIN responses ON responses.id = x.response_id ORDER BY 1, 2"
            )
            self._row_numbers[table] = RowNumbers(pairs)

        for number in self._row_numbers[table].rows_of(response):
            row = self.row_at(table, number)
            if row is not None:
                yield row

    def fragment_rows(
        self, table: str, key: str, owner: Any, *more: str
    ) -> Iterator[Row]:
        """Yield the fragments that a row of *table* refers to, in their order.

        They have the columns *more* of that table, too.
        """
        chosen = "".join(f", x.{column}" for column in more)
        return self.optional_records(
            {table: {key, "fragment_id", "order", *more}, "fragments": {"id"}},
            f"SELECT fragments.*{chosen} FROM {table} AS x"
            f" JOIN fragments ON fragments.id = x.fragment_id WHERE x.{key} = ?"
            ' ORDER BY x."order"',
            owner,
        )

    def attachment_rows(self, table: str, key: str, owner: Any) -> Iterator[Row]:
        """Yield the attachments that a row of *table* refers to, in their order."""
        return self.optional_records(
            {table: {key, "attachment_id", "order"}, "attachments": {"id"}},
            f"SELECT attachments.* FROM {table} AS x"
            f" JOIN attachments ON attachments.id = x.attachment_id WHERE x.{key} = ?"
            ' ORDER BY x."order"',
            owner,
        )

    # -- threads -----------------------------------------------------------------

    def turn_facts(self) -> Iterator[tuple[Any, list[Any]]]:
        """Yield the threads that have turns, with values that change with each.

        They are the number of turns, that of the last row, the first and last time.
        """
        rows = self.run_statement(
            f"SELECT thread_id, count(*), max({ROW_NUMBER}), min(datetime_utc),"
            " max(datetime_utc) FROM turns GROUP BY thread_id"
        )
        return ((name, facts) for name, *facts in rows)

    def turn_rows(self, thread: str) -> list[TurnRow]:
        """Return the turns of a thread in the order in which they were written."""
        rows = self.run_statement(
            f"SELECT {ROW_NUMBER}, id, parent_message_hash, tip_message_hash FROM turns"
            f" WHERE thread_id = ? ORDER BY {ROW_NUMBER}",
            thread,
        )
        return [TurnRow(*row) for row in rows]

    def turns_ending_at(self, tips: set[str]) -> Iterator[TurnRow]:
        """Yield the turns of any thread that end at one of *tips*."""
        rows = self.run_statement(
            f"SELECT {ROW_NUMBER}, id, parent_message_hash, tip_message_hash FROM turns"
            f" ORDER BY {ROW_NUMBER}"
        )
        for row in rows:
            turn = TurnRow(*row)
            if turn.tip in tips and turn.parent != turn.tip:
                yield turn

    def parent_and_role(self, message: str) -> tuple[Any, Any] | None:
        """Return parent and role of a message; None if it is missing."""
        row: tuple[Any, Any] | None = self.run_statement(
            "SELECT parent_hash, role FROM messages WHERE hash = ?", message
        ).fetchone()
        return row

    def part_rows(self, message: str) -> Iterator[Row]:
        """Yield the parts of a message."""
        return self.select_records(
            "SELECT * FROM parts WHERE message_hash = ? ORDER BY position", message
        )

    def tools_of_turn(self, turn: Any) -> list[Any]:
        """Return the numbers of the tools that a turn could call."""
        rows = self.optional_records(
            _TURN_TOOLS,
            "SELECT tool_id FROM turn_tools WHERE turn_id = ? ORDER BY tool_id",
            turn,
        )
        return [row["tool_id"] for row in rows]

    def tool_instances(self, turn: Any) -> Iterator[Row]:
        """Yield the configured toolbox of each call of a turn."""
        return self.optional_records(
            {
                "tool_instantiations": {"turn_id", "tool_call_id", "instance_id"},
                "tool_instances": {"id", "plugin", "name", "arguments"},
            },
            "SELECT x.tool_call_id, of.plugin, of.name, of.arguments"
            " FROM tool_instantiations AS x"
            " JOIN tool_instances AS of ON of.id = x.instance_id WHERE x.turn_id = ?",
            turn,
        )

    def tool_definitions(self, responses: array[int], thread: str) -> list[Row]:
        """Return the tools that the model of a session could call, each once."""
        numbers: set[Any] = set()
        for response in responses:
            for row in self.rows_of_response("tool_responses", response):
                numbers.add(row["tool_id"])
        of_turns = self.optional_records(
            {**_TURN_TOOLS, "turns": {"id", "thread_id"}},
            "SELECT DISTINCT tool_id FROM turns JOIN turn_tools"
            " ON turn_tools.turn_id = turns.id WHERE thread_id = ?",
            thread,
        )
        numbers.update(row["tool_id"] for row in of_turns)

        tools = [
            self.row_with("tools", "id", number) for number in sorted(numbers, key=str)
        ]
        return [tool for tool in tools if tool is not None]
