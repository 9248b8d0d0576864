"""The rows of the tables: which columns each has, in which order, stated once.

A tuple of columns is derived from its table; what an INSERT states and what a SELECT
returns is therefore never aligned by hand, and no row is sliced by number. `MessageRow`
and `PartRow` are what a caller determines of a message and a part; their place is known
to a transaction only. A test compares them with their tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from sessiondb.schema.columns import TABLES
from sessiondb.schema.terms import TOKENS, USAGE


def columns(table: str, *, without: Sequence[str] = ("rid",)) -> tuple[str, ...]:
    """Return the names of a table's columns in their order, except *without*."""
    return tuple(name for name in TABLES[table] if name not in without)


BLOB = columns("blob")
DELETION = columns("deletion")
DIRECTORY = columns("project_directory")
FILE_DIFF = columns("file_diff")
IMPORT_FILE = columns("import_file")
LABEL = columns("label")
LEASE = columns("lease")
LEDGER = columns("import_ledger")
MERGE_BASE = columns("merge_base")
MESSAGE = columns("message")
PART = columns("part")
PROMPT = columns("prompt")
TERMINAL = columns("terminal")
TODO = columns("todo")
TOMBSTONE = columns("tombstone")

#: Every column of a session.
SESSION_ROW = columns("session")

#: Counted by transactions, or stated only later in the life of a session.
_LATER = (
    "rid", "leaf_seq", "last_seq", "revision", "change", "message_count",
    "prompt_count", "hidden", *USAGE,
    "cost_inherited", "time_detached", "time_deleted",
)  # fmt: skip
#: The columns of a session that are stated when it is made.
SESSION = columns("session", without=_LATER)

#: The columns of a part that search reads.
SEARCHED = ("text", "text_blob", "input", "input_blob", "title")
_OPEN_STATUSES = (None, "pending", "running")
UNKNOWN_TOKENS = (None,) * len(TOKENS)
UNKNOWN_USAGE = (None,) * len(USAGE)


#: What names a part: its session, the seq of its message, and its ``idx`` in that.
PartAddress = tuple[str, int, int]


class Blob(NamedTuple):
    """A row of the blob table."""

    #: Hash and size of the content.
    hash: str
    size: int
    encoding: str
    #: The content, compressed if the encoding says so.
    data: bytes


class PartRow(NamedTuple):
    """A part without its place, which only the transaction knows."""

    id: str
    type: str
    tool: str | None = None
    call_id: str | None = None
    status: str | None = None
    outcome: str | None = None
    title: str | None = None
    input: str | None = None
    text: str | None = None
    text_blob: str | None = None
    input_blob: str | None = None
    data: bytes | None = None
    data_blob: str | None = None
    time_created: int | None = None
    time_updated: int | None = None
    time_started: int | None = None
    time_ended: int | None = None
    synthetic: int = 0

    @property
    def searchable(self) -> bool:
        """True when there is something in it that search should find."""
        return any(_searched(self))

    @property
    def settled(self) -> bool:
        """True for a call whose result is known; its message may still be open."""
        return self.status not in _OPEN_STATUSES

    @classmethod
    def of(cls, stored: Sequence[Any]) -> PartRow:
        """Return a stored row of the columns `PART` without its place."""
        return cls._make(_part_content(stored))

    def values(
        self,
        *,
        rid: int | None,
        session_id: str,
        seq: int,
        idx: int,
        inherited: int,
        indexed: int,
        words: str | None,
        time_created: int,
        time_updated: int,
    ) -> tuple[Any, ...]:
        """Return the values of `PART_VALUES` at a place."""
        return (
            rid, session_id, seq, idx, inherited, indexed, words, time_created,
            time_updated, *self,
        )  # fmt: skip


class MessageRow(NamedTuple):
    """A message without its place, which only the transaction knows."""

    id: str
    role: str
    tokens: tuple[int | None, ...]
    turn_id: str | None = None
    kind: str | None = None
    agent: str | None = None
    provider_id: str | None = None
    model_id: str | None = None
    response_id: str | None = None
    usage_name: str | None = None
    cost: float | None = None
    finish: str | None = None
    error: str | None = None
    time_created: int | None = None
    time_completed: int | None = None
    data: bytes | None = None
    data_blob: str | None = None

    def values(
        self,
        *,
        session_id: str,
        seq: int,
        parent_seq: int | None,
        turn_id: str | None,
        usage_key: str | None,
        inherited: int,
        time_created: int | None,
        time_completed: int | None,
    ) -> tuple[Any, ...]:
        """Return the values of `MESSAGE_VALUES` for a message at a place."""
        return (
            session_id, seq, parent_seq, turn_id, usage_key, inherited, time_created,
            time_completed, *self, *self.tokens,
        )  # fmt: skip


def _arrange_columns(
    names: Sequence[str], wanted: Sequence[str]
) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return the function that picks *wanted* out of *names*, the first of a name.

    It runs in C: `_replace` would cost an append 2 µs more for each row.
    """
    return itemgetter(*map(list(names).index, wanted))


# The columns of a place come first: of a name that comes twice the first value counts.
PART_VALUES = (
    "rid", "session_id", "seq", "idx", "inherited", "indexed", "words",
    "time_created", "time_updated", *PartRow._fields,
)  # fmt: skip
MESSAGE_VALUES = (
    "session_id", "seq", "parent_seq", "turn_id", "usage_key", "inherited",
    "time_created", "time_completed", *MessageRow._fields, *TOKENS,
)  # fmt: skip
_searched = _arrange_columns(PartRow._fields, SEARCHED)
_part_content = _arrange_columns(PART, PartRow._fields)
#: The values of `MESSAGE` among those of `MESSAGE_VALUES`.
message_columns = _arrange_columns(MESSAGE_VALUES, MESSAGE)
