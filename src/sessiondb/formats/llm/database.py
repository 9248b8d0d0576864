"""Statements on ``logs.db``; columns and tables came with the versions.

The older tables have no index on what they belong to. So a table is read once, for
the numbers of its rows only (`Numbers`), and each row by its number later.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.formats.kit.sqlite import (
    ROW_NUMBER,
    Connection,
    Cursor,
    ForeignDatabase,
    columns,
    records,
)

Row = dict[str, Any]
#: Columns that a statement needs, by table.
Needed = Mapping[str, Collection[str]]
_RESPONSES = {"id", "model", "prompt", "response", "conversation_id", "datetime_utc"}
_THREADS = {
    "threads": {"id", "name", "tip_message_hash", "forked_from"},
    "turns": {"id", "thread_id", "parent_message_hash", "tip_message_hash"},
    "messages": {"hash", "parent_hash", "role"},
    "parts": {"message_hash", "position", "type"},
}
_OFFERED = {"turn_tools": {"turn_id", "tool_id"}}


class Written(NamedTuple):
    """The responses of a conversation: their rows in order, first and last time."""

    numbers: array[int]
    first: Any
    last: Any


#: A session without responses.
NOTHING = Written(array("q"), None, None)


class Turn(NamedTuple):
    """What a walk over a thread needs of a turn."""

    number: int
    id: Any
    parent: Any
    tip: Any


class Numbers:
    """Which rows of a table belong to a response, in order, by the numbers of both."""

    def __init__(self, pairs: Iterator[tuple[int, int]]) -> None:
        self._owners, self._rows = array("q"), array("q")
        for owner, row in pairs:
            self._owners.append(owner)
            self._rows.append(row)

    def of(self, owner: int) -> array[int]:
        """Return the rows that belong to *owner*."""
        first, end = (cut(self._owners, owner) for cut in (bisect_left, bisect_right))
        return self._rows[first:end]


class Logs:
    """One database file, within one read transaction."""

    def __init__(self, path: Path, *, glance: bool = False) -> None:
        self.path = path
        self.file = ForeignDatabase(path, glance=glance)
        self._tables: dict[str, frozenset[str]] = {}
        self._numbers: dict[str, Numbers] = {}

    def reading(self) -> AbstractContextManager[Connection]:
        """Hold one read transaction; raises `SourceError`."""
        return self.file.reading()

    @cached_property
    def has_responses(self) -> bool:
        """Whether the file has the older tables; only while it is read."""
        return self.has("responses", *_RESPONSES) and self.has("conversations", "id")

    @cached_property
    def has_threads(self) -> bool:
        """Whether the file has the newer tables; only while it is read."""
        return all(self.has(table, *needed) for table, needed in _THREADS.items())

    def has(self, table: str, *names: str) -> bool:
        """Return whether a *table* exists with at least these columns."""
        if table not in self._tables:
            self._tables[table] = columns(self.file.connection, table)

        return bool(self._tables[table]) and self._tables[table].issuperset(names)

    def rows(self, statement: str, *values: Any) -> Cursor:
        """Run a statement."""
        return self.file.connection.execute(statement, values)

    def records(self, statement: str, *values: Any) -> Iterator[Row]:
        """Run a statement and yield its rows by column."""
        return records(self.file.connection, statement, *values)

    def at(self, table: str, number: int) -> Row | None:
        """Return a row of a table by its number."""
        found = self.records(f"SELECT * FROM {table} WHERE {ROW_NUMBER} = ?", number)
        return next(found, None)

    def optional(self, needed: Needed, statement: str, *values: Any) -> Iterator[Row]:
        """Run a statement on tables of later releases; no rows without them."""
        if all(self.has(table, *names) for table, names in needed.items()):
            return self.records(statement, *values)

        return iter(())

    def named(self, table: str, key: str, name: Any) -> Row | None:
        """Return the row of a table whose *key* has a value; None without the table."""
        statement = f"SELECT * FROM {table} WHERE {key} = ?"
        return next(self.optional({table: {key}}, statement, name), None)

    # -- sessions ----------------------------------------------------------------

    def about(self) -> Iterator[tuple[Any, str, Any]]:
        """Yield the properties of each session: its name, the attribute, the value."""
        found: list[tuple[str, Iterable[tuple[Any, Any]]]] = []
        if self.has_responses:
            found.append(("conversation", self._rows_of("conversations")))
            found.append(("written", self.written()))
        if self.has_threads:
            found.append(("thread", self._rows_of("threads")))
            found.append(("spent", self.spent()))

        for what, items in found:
            for name, value in items:
                yield name, what, value

    def _rows_of(self, table: str) -> Iterator[tuple[Any, Row]]:
        return ((row["id"], row) for row in self.records(f"SELECT * FROM {table}"))

    # -- responses ---------------------------------------------------------------

    def written(self) -> Iterator[tuple[Any, Written]]:
        """Yield the conversations that have responses, with these.

        A response without a conversation is one of its own. One that is a turn, too,
        was written twice by releases between the generations.
        """
        # The turn counts: it has the tree, and the same numbers.
        twice = "WHERE NOT EXISTS (SELECT 1 FROM turns WHERE turns.id = responses.id)"
        rows = self.rows(
            f"SELECT coalesce(conversation_id, id), {ROW_NUMBER}, datetime_utc"
            f" FROM responses {twice if self.has_threads else ''} ORDER BY 1, id"
        )
        for name, group in groupby(rows, itemgetter(0)):
            found = list(group)
            numbers = array("q", map(itemgetter(1), found))
            times = sorted(time for _, _, time in found if isinstance(time, str))
            first, last = (times[0], times[-1]) if times else (None, None)
            yield name, Written(numbers, first, last)

    def belonging(self, table: str, response: int) -> Iterator[Row]:
        """Yield the rows of a table that belong to a response, by its number."""
        if not self.has(table, "response_id"):
            return
        if table not in self._numbers:
            rows = self.rows(
                f"SELECT responses.{ROW_NUMBER}, x.{ROW_NUMBER} FROM {table} AS x"
                " JOIN responses ON responses.id = x.response_id ORDER BY 1, 2"
            )
            self._numbers[table] = Numbers(iter(rows))

        for number in self._numbers[table].of(response):
            found = self.at(table, number)
            if found is not None:
                yield found

    def fragments(self, table: str, key: str, name: Any, *more: str) -> Iterator[Row]:
        """Yield the fragments that a row of *table* refers to, in their order."""
        chosen = "".join(f", x.{column}" for column in more)
        return self.optional(
            {table: {key, "fragment_id", "order", *more}, "fragments": {"id"}},
            f"SELECT fragments.*{chosen} FROM {table} AS x"
            f" JOIN fragments ON fragments.id = x.fragment_id WHERE x.{key} = ?"
            ' ORDER BY x."order"',
            name,
        )

    def attachments(self, table: str, key: str, name: Any) -> Iterator[Row]:
        """Yield the attachments that a row of *table* refers to, in their order."""
        return self.optional(
            {table: {key, "attachment_id", "order"}, "attachments": {"id"}},
            f"SELECT attachments.* FROM {table} AS x"
            f" JOIN attachments ON attachments.id = x.attachment_id WHERE x.{key} = ?"
            ' ORDER BY x."order"',
            name,
        )

    # -- threads -----------------------------------------------------------------

    def spent(self) -> Iterator[tuple[Any, list[Any]]]:
        """Yield the threads that have turns, with a value that changes with each."""
        rows = self.rows(
            f"SELECT thread_id, count(*), max({ROW_NUMBER}), min(datetime_utc),"
            " max(datetime_utc) FROM turns GROUP BY thread_id"
        )
        return ((name, facts) for name, *facts in rows)

    def turns(self, thread: str) -> list[Turn]:
        """Return the turns of a thread in the order in which they were written."""
        rows = self.rows(
            f"SELECT {ROW_NUMBER}, id, parent_message_hash, tip_message_hash FROM turns"
            f" WHERE thread_id = ? ORDER BY {ROW_NUMBER}",
            thread,
        )
        return [Turn(*row) for row in rows]

    def turns_at(self, tips: set[str]) -> Iterator[Turn]:
        """Yield the turns of any thread that end at one of *tips*."""
        rows = self.rows(
            f"SELECT {ROW_NUMBER}, id, parent_message_hash, tip_message_hash FROM turns"
            f" ORDER BY {ROW_NUMBER}"
        )
        for number, name, parent, tip in rows:
            if tip in tips and parent != tip:
                yield Turn(number, name, parent, tip)

    def above(self, name: str) -> tuple[Any, Any] | None:
        """Return parent and role of a message; None if it is missing."""
        found: tuple[Any, Any] | None = self.rows(
            "SELECT parent_hash, role FROM messages WHERE hash = ?", name
        ).fetchone()
        return found

    def parts(self, message: str) -> Iterator[Row]:
        """Yield the parts of a message."""
        return self.records(
            "SELECT * FROM parts WHERE message_hash = ? ORDER BY position", message
        )

    def tools(self, turn: Any) -> list[Any]:
        """Return the numbers of the tools that a turn could call."""
        rows = self.optional(
            _OFFERED,
            "SELECT tool_id FROM turn_tools WHERE turn_id = ? ORDER BY tool_id",
            turn,
        )
        return [row["tool_id"] for row in rows]

    def instances(self, turn: Any) -> Iterator[Row]:
        """Yield which configured toolbox served each call of a turn."""
        return self.optional(
            {
                "tool_instantiations": {"turn_id", "tool_call_id", "instance_id"},
                "tool_instances": {"id", "plugin", "name", "arguments"},
            },
            "SELECT x.tool_call_id, of.plugin, of.name, of.arguments"
            " FROM tool_instantiations AS x"
            " JOIN tool_instances AS of ON of.id = x.instance_id WHERE x.turn_id = ?",
            turn,
        )

    def definitions(self, responses: array[int], thread: str) -> list[Row]:
        """Return the tools that the model of a session could call, each once."""
        offered = chain.from_iterable(
            self.belonging("tool_responses", number) for number in responses
        )
        of_turns = self.optional(
            {**_OFFERED, "turns": {"id", "thread_id"}},
            "SELECT DISTINCT tool_id FROM turns JOIN turn_tools"
            " ON turn_tools.turn_id = turns.id WHERE thread_id = ?",
            thread,
        )
        used = {row["tool_id"] for row in chain(offered, of_turns)}
        found = (self.named("tools", "id", number) for number in sorted(used, key=str))
        return list(filter(None, found))
