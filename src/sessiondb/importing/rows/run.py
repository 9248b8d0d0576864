"""One session during its import: its values, places of its records, and its rules.

An import makes or finds the row of a session (`session`), writes its messages in
batches (`messages`) and closes it (`close`); only then is it listed. The steps may be
in different transactions, so all of them share a `Run`. The rules that differ between a
foreign source and a log of sessiondb's are the methods of a `Policy`: `derived` and
`recorded`. The steps know neither of the two.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, NamedTuple, Protocol

from sessiondb.dataclass import dataclass
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.importing.rows.new_rows import NewRows
from sessiondb.model import Problem, Prompt, SourceSession, StoredMessage
from sessiondb.schema.rows import Blob, MessageRow, PartRow, message_columns

#: (seq, turn_id) of a record; (None, None) is the place before the first one.
Position = tuple[int | None, str | None]


class ProjectFacts(NamedTuple):
    """The facts that a source states of a project; every value can be stored."""

    name: str | None
    permission: str | None
    sandboxes: tuple[str, ...]
    time_created: int | None
    time_initialized: int | None
    record: str | None


@dataclass(frozen=True, slots=True)
class CheckedSession:
    """A session that passed the gate: all values of its row and lists can be stored."""

    #: The session as the reader yielded it.
    item: SourceSession
    #: The path of its entry in the ledger.
    ledger: str
    #: The columns of its row that the source gives.
    columns: dict[str, Any]
    blobs: tuple[Blob, ...]
    #: The packed form of its ``data``, also if a blob holds it.
    data: bytes | None
    #: Rows from ``id`` on; None: the source has no such list.
    todos: tuple[tuple[Any, ...], ...] | None
    #: Rows from ``seq`` on; None: the source has no such list.
    diffs: tuple[tuple[Any, ...], ...] | None
    diff_blobs: tuple[Blob, ...]
    prompts: tuple[Prompt, ...]
    project: ProjectFacts | None
    #: The values that were refused and left out.
    problems: tuple[Problem, ...]


class ImportEntry(NamedTuple):
    """One encoded message of a source."""

    row: MessageRow
    parts: tuple[PartRow, ...]
    blobs: tuple[Blob, ...]
    #: The id of the message that it follows, None for none; ... is the one before it.
    parent: Any
    #: The id that its copies share.
    usage_id: str
    labels: tuple[str, ...]
    #: Labels that the source took from it.
    unlabelled: tuple[str, ...]
    #: Another id of the message.
    alias: str | None
    #: Whether its source may still add to it.
    open: bool
    #: Its place in the database that a log is of; None for another program's message.
    stored: StoredMessage | None
    #: Bytes, for the size of a transaction.
    size: int
    #: The text that the user typed; None for anything but a prompt.
    prompt: str | None = None
    #: Whether its copies have other times.
    timeless: bool = False

    @property
    def records(self) -> int:
        """The number of rows that it is: of the message and its parts."""
        return 1 + len(self.parts)


class Placed(NamedTuple):
    """A message at its place."""

    row: MessageRow
    parts: tuple[PartRow, ...]
    seq: int
    parent_seq: int | None
    turn_id: str | None
    usage_key: str | None
    inherited: int
    #: Whether search indexes all of it.
    complete: bool

    @property
    def usage_name(self) -> str:
        """The name in its usage key."""
        return self.row.usage_name or self.row.response_id or self.row.id

    def values(self, session_id: str) -> tuple[Any, ...]:
        """Return the values of `MESSAGE`."""
        values = self.row.values(
            session_id=session_id,
            seq=self.seq,
            parent_seq=self.parent_seq,
            turn_id=self.turn_id,
            usage_key=self.usage_key,
            inherited=self.inherited,
            time_created=self.row.time_created,
            time_completed=self.row.time_completed,
        )
        return message_columns(values)


class CurrentMessage(NamedTuple):
    """A message as it is stored: its columns by name, and its parts."""

    columns: dict[str, Any]
    parts: tuple[PartRow, ...]

    @property
    def usage_name(self) -> str:
        """The name in its usage key."""
        stored = self.columns
        return str(stored["usage_name"] or stored["response_id"] or stored["id"])


class Policy(Protocol):
    """The rules of one kind of source, and what they keep in mind during a run."""

    @property
    def states_cuts(self) -> bool:
        """Whether a session itself says where in its parent it begins."""

    @property
    def states_prompts(self) -> bool:
        """Whether the prompts of a session are those of its messages."""

    @property
    def states_family(self) -> bool:
        """Whether a session belongs below the parent that its source names now."""

    @property
    def children_know_id(self) -> bool:
        """Whether children may wait for this session under its id here."""

    def find(self, tx: Transaction, run: Run) -> str | None:
        """Lift the tombstone of a session, and return its id if it exists."""

    def new_row(
        self, tx: Transaction, run: Run, project_id: str | None
    ) -> dict[str, Any]:
        """Return the columns of a new row that its source does not give as they are."""

    def update_row(self, tx: Transaction, run: Run) -> None:
        """Merge the columns of an existing session."""

    def find_parent(self, tx: Transaction, run: Run) -> str | None:
        """Return the id of the parent that a session names, if it exists."""

    def may_hold_copies(self, tx: Transaction, state: SessionState) -> bool:
        """Return whether messages without a usage key may be copies of others."""

    def place(
        self, writing: Writing, entry: ImportEntry, current: CurrentMessage | None
    ) -> Placed:
        """Return a message with its place; *current* is its stored state."""

    def revise(
        self, writing: Writing, placed: Placed, current: CurrentMessage
    ) -> Placed | None:
        """Return what replaces a stored message; None leaves it as it is."""

    def result(
        self,
        writing: Writing,
        placed: Placed,
        item: PartRow,
        current: CurrentMessage | None,
    ) -> PartRow:
        """Return a result as it is stored: without a text that its call has."""

    def close(self, tx: Transaction, run: Run) -> None:
        """Merge leaf, time, labels, lists and prompts of a session, and list it."""


@dataclass(slots=True)
class Run:
    """The import of one session, over as many transactions as it takes."""

    session_id: str
    checked: CheckedSession
    policy: Policy
    #: Whether this run made the row of the session.
    created: bool = True
    #: Whether it is without the parent that it could have.
    unlinked: bool = False
    #: Whether no record of it needs to be looked up.
    fresh: bool = True
    changed: bool = False
    #: The number of messages that were read.
    messages: int = 0
    #: The place of the record that was written or found last.
    last: Position = (None, None)
    #: The places of all records of this run by id; that of None is before the first.
    places: dict[str | None, Position] = field(
        default_factory=lambda: {None: (None, None)}
    )
    #: The session's last_seq as this run left it: another process may import the same.
    tail: int = 0
    #: The last prompt, and the first one.
    typed: str | None = None
    first_typed: str | None = None
    #: The texts of all that are in the prompt history, by id.
    prompts: dict[str, str] = field(default_factory=dict)
    #: Whether the session was deleted since.
    gone: bool = False
    #: Its children that begin after a later message than before.
    moved_children: set[str] = field(default_factory=set)
    #: Links of its family that were left out.
    problems: list[str] = field(default_factory=list)
    #: Why rows that programs added were left out, each once.
    rows_left_out: dict[str, None] = field(default_factory=dict)

    @property
    def name(self) -> dict[str, str]:
        """The name of the session at its source, as parameters of a statement."""
        item = self.checked.item
        names = ("source", "source_id", "namespace")
        return {name: getattr(item, name) for name in names}

    @property
    def left_out(self) -> tuple[Problem, ...]:
        """The links and rows that were left out, as problems of its source."""
        reasons = (*self.problems, *self.rows_left_out)
        return tuple(Problem(self.checked.ledger, reason) for reason in reasons)

    def is_gone(self, tx: Transaction) -> bool:
        """Return whether the session was deleted while it was imported."""
        self.gone = self.gone or not tx.exists(self.session_id)
        return self.gone


class Writing(NamedTuple):
    """The transaction, run and session that messages are written in."""

    tx: Transaction
    run: Run
    state: SessionState
    #: The rows that wait to be inserted.
    new_rows: NewRows
