"""One write transaction, as effects see it.

Effects run in order against a DBAPI connection. Work for the complete
transaction is gathered here and done once at its end: the session rows that were
touched (one UPDATE per session and unit), the rows that search must take in
(one INSERT), the blobs that may have lost their last reference (one DELETE).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import compress
from typing import TYPE_CHECKING, Any, TypeVar

from sessiondb.clock import now_ms
from sessiondb.dataclass import dataclass, field, replace
from sessiondb.effects.holders import held, of_this_process
from sessiondb.effects.session_state import MOVED, SessionState, moved_values
from sessiondb.engine.base import Connection, Cursor, Engine, Name
from sessiondb.engine.extension_tables import ExtensionTable
from sessiondb.engine.sql import (
    Statement,
    as_list,
    sparse_insert,
    update_text,
)
from sessiondb.errors import NotFoundError
from sessiondb.model import Change
from sessiondb.schema.rows import Blob, PartAddress

if TYPE_CHECKING:
    from sessiondb.effects.ownership import UsageClass
    from sessiondb.engine.feed import ChangeNumbers
    from sessiondb.engine.search_index import WaitingParts
    from sessiondb.schema.extensions import Extension

E = TypeVar("E")
_MARK = Statement("effects.transaction.MARK")
_FREE = Statement("effects.transaction.FREE")


class CallerError(Exception):
    """Carries what a caller's function raised in a transaction, to be raised as it is.

    Also a `KeyboardInterrupt` or `SystemExit`: it ends the caller's unit, and not the
    thread that happens to commit it.
    """

    def __init__(self, raised: BaseException) -> None:
        super().__init__(raised)
        self.raised = raised


_LOAD = Statement("effects.transaction.LOAD")
#: The columns of ``part`` that say whether the search index has it, and their values if
#: it has not: then it has no words beside its text, either.
INDEXING = "indexed words"
NOT_INDEXED = {"indexed": 0, "words": None}
#: Sessions whose rows are carried over: more than most programs write at a time.
_MOST_STATES = 256


@dataclass(slots=True)
class Carryover:
    """The facts that a transaction leaves, so that the next one does not read them.

    They are dropped after a commit of another process, or an interrupt.
    """

    #: What the search index knows of the parts that wait for it; None is nothing.
    waiting: WaitingParts | None = None
    #: What the feed knows of the numbers of changes; None is nothing.
    numbers: ChangeNumbers | None = None
    #: The size of the texts that this process wrote and that wait for the search index.
    waiting_bytes: int = 0
    #: The extensions whose tables are complete, and all tables with rows of sessions.
    extensions: set[Extension] = field(default_factory=set)
    extension_tables: list[ExtensionTable] | None = None
    #: The rows of sessions to which the last units appended, and nothing else.
    states: dict[str, SessionState] = field(default_factory=dict)


@dataclass(slots=True)
class Transaction:
    """The open transaction of a batch.

    `begin_unit` comes before each unit, `finish` before COMMIT.
    """

    connection: Connection
    carryover: Carryover = field(default_factory=Carryover)
    now: int = field(default_factory=now_ms)
    changes: dict[str, Change] = field(default_factory=dict)
    #: Parts whose ``words`` are to be set, and those that are to be indexed, too.
    to_prepare: list[PartAddress] = field(default_factory=list)
    to_index: list[PartAddress] = field(default_factory=list)
    loose: set[str] = field(default_factory=set)
    after_commit: list[Callable[[], None]] = field(default_factory=list)
    # -- of the unit, from `begin_unit` on
    root: str | None = field(init=False)
    retried: bool = field(init=False)
    states: dict[str, SessionState] = field(init=False)
    #: Ids of parts that a recognised message has under others: queued → stored.
    aliases: dict[str, str] = field(init=False)
    #: Ids of sessions that `open_session` found under others: queued → stored.
    opened: dict[str, str] = field(init=False)
    #: Ids of sessions that `open_session` made in this unit.
    made: set[str] = field(init=False)
    #: Answers that other sessions have, too, and that are not compared with them yet.
    copies: list[UsageClass] = field(init=False)
    #: Sessions whose row this unit wrote: one revision more for each, however often.
    _kept: set[str] = field(init=False)
    _only_appends: bool = field(init=False)

    @property
    def engine(self) -> Engine:
        """The engine of the database."""
        return self.connection.engine

    def run(self, statement: Statement, **params: Any) -> Cursor:
        """Execute a compiled statement."""
        connection = self.connection
        return connection.execute(statement.text_on(connection.engine), params)

    def one(self, statement: Statement, **params: Any) -> Any:
        """Return the first row, or None."""
        return self.run(statement, **params).fetchone()

    def value(self, statement: Statement, **params: Any) -> Any:
        """Return the first column of the first row, or None."""
        row = self.run(statement, **params).fetchone()
        return row and row[0]

    def column(self, statement: Statement, **params: Any) -> list[Any]:
        """Return the first column of all rows."""
        return [first for first, *_ in self.run(statement, **params).fetchall()]

    def insert(
        self, table: str, columns: tuple[str, ...], values: Sequence[Any]
    ) -> None:
        """Insert one row; *columns* name its values."""
        self.connection.execute(*sparse_insert(table, columns).of_row(values))

    def insert_many(
        self, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]]
    ) -> None:
        """Insert rows in their order; neighbours that state the same columns at once.

        *columns* name the values of each row: see `SparseInsert`.
        """
        insert = sparse_insert(table, columns)
        common_text, alike = "", list[Sequence[Any]]()
        for row in rows:
            text, values = insert.of_row(row)
            if text != common_text:
                if alike:
                    self.connection.executemany(common_text, alike)
                common_text, alike = text, []
            alike.append(values)
        if alike:
            self.connection.executemany(common_text, alike)

    def insert_blobs(self, session_id: str, blobs: Sequence[Blob]) -> None:
        """Store blobs of a session that are not there yet; most messages have none."""
        if blobs:
            self.engine.insert_blobs(self.connection, session_id, blobs)
            # Not only texts: the index is completed a little early.
            self.carryover.waiting_bytes += sum(blob.size for blob in blobs)

    def release(self, *hashes: str | None) -> None:
        """Record that rows gave up blobs; None is a value without one.

        Blobs that no row holds when the batch ends are removed.
        """
        self.loose.update(filter(None, hashes))

    def index_parts(self, session_id: str, seq: int, idxs: Iterable[int]) -> None:
        """Have search take in parts of a message when the batch ends."""
        self.to_index += [(session_id, seq, idx) for idx in idxs]

    def begin_unit(self, retried: bool, root: str | None) -> None:
        """Forget the session rows of the unit before."""
        self.states, self.aliases, self.opened = {}, {}, {}
        self.made, self._kept, self.copies = set(), set(), []
        self.retried, self.root = retried, root
        self._only_appends = True

    def forget_states(self, session_id: str | None) -> None:
        """Record that the rows of sessions may change otherwise than by `keep`.

        *session_id* is the session to which the effect is addressed that does so: it
        loads its row before it changes anything.
        """
        self._only_appends = False
        states = self.carryover.states
        kept = states.get(session_id) if session_id is not None else None
        states.clear()
        if kept is not None:
            states[kept.id] = kept
        self._reread_parts()

    def _reread_parts(self) -> None:
        if self.carryover.waiting is not None:
            self.carryover.waiting.reread()

    def redirected(self, effect: E) -> E:
        """Return *effect* addressed to the sessions that `open_session` found."""
        targets = {
            name: self.opened[queued]
            for name in ("session_id", "parent_id")
            if (queued := getattr(effect, name, None)) in self.opened
        }
        if not targets:
            return effect
        return replace(effect, **targets)  # type: ignore[type-var]

    def mark(self) -> tuple[int, int, int, dict[str, Change]]:
        """Return what `undo_unit` needs."""
        lengths = len(self.after_commit), len(self.to_prepare), len(self.to_index)
        return *lengths, dict(self.changes)

    def undo_unit(self, mark: tuple[int, int, int, dict[str, Change]]) -> None:
        """Forget the records of a unit whose savepoint was rolled back."""
        steps, prepared, indexed, self.changes = mark
        del (
            self.after_commit[steps:],
            self.to_prepare[prepared:],
            self.to_index[indexed:],
        )
        self.states = {}
        self._reread_parts()
        # Tables that the unit made are gone.
        self.carryover.extensions.clear()
        self.carryover.extension_tables = None

    # -- statements that may fail ----------------------------------------------------

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what the block wrote if it raises; the transaction continues."""
        connection = self.connection
        # What was written before is not of the block.
        connection.settle()
        connection.execute("SAVEPOINT block")
        try:
            yield
            connection.settle()
        except Exception:
            if connection.in_transaction:
                connection.execute("ROLLBACK TO block")
                connection.execute("RELEASE block")
            raise
        connection.execute("RELEASE block")

    def guarded(self) -> AbstractContextManager[None]:
        """Let statements run after one of the block failed.

        What the block wrote before it may stay, for the unit fails anyway. It costs
        nothing if a transaction of the engine continues by itself.
        """
        if self.engine.continues_after_error:
            return nullcontext()
        return self.savepoint()

    # -- locks, of which an engine with one writer has none --------------------------

    def lock(self, *session_ids: str, names: Collection[Name] = ()) -> bool:
        """Lock sessions that are read before they are written; see `lock_sessions`.

        What loads the row of a session, such as `session`, does it.
        """
        return self.engine.lock_sessions(self.connection, session_ids, names)

    def lock_new_session(self, session_id: str, parent_id: str | None) -> None:
        """Lock a session before its row is inserted, and its parent.

        Without a parent it may have another root than itself, which is given then.
        """
        self.engine.lock_new_session(self.connection, session_id, parent_id)

    def join_family(self, session_ids: Sequence[str], parent_id: str) -> None:
        """Let a session and all below it belong to the family of its new parent.

        Those above come first. Called before the row names the parent.
        """
        self.lock(*session_ids)
        self.engine.join_family(self.connection, session_ids, parent_id)

    def lock_name(self, *name: str | None) -> bool:
        """Lock what is looked up by a *name* and made if it is missing."""
        return self.engine.lock_name(self.connection, *name)

    def at(self, time: int | None) -> int:
        """Return the time that a caller states (Unix ms); None is now."""
        return self.now if time is None else time

    def session(self, session_id: str) -> SessionState:
        """Return the row of a session, to be changed; raises `NotFoundError`."""
        state = self.peek(session_id)
        state.touched = True
        return state

    def peek(self, session_id: str) -> SessionState:
        """Return the row of a session, perhaps unchanged; raises `NotFoundError`."""
        state = self.find(session_id)
        if state is None:
            raise NotFoundError(
                f"session {session_id} does not exist",
                hint="list the sessions that do",
            )
        return state

    def find(self, session_id: str) -> SessionState | None:
        """Return the row of a session, perhaps unchanged; None if it does not exist."""
        state = self.states.get(session_id) or self._continued(session_id)
        if state is None:
            row = self._load_state(session_id)
            if row is None:
                return None

            state = self.states[session_id] = state_of(row)
            if session_id in self._kept:
                state.revision -= 1

        return state

    def _continued(self, session_id: str) -> SessionState | None:
        """Return the row of a session as the transaction before left it, if known."""
        # Taken out: if this unit fails, the row is as it was, and the object is not.
        state = self.carryover.states.pop(session_id, None)
        if state is not None:
            self.states[session_id] = state
        return state

    def exists(self, session_id: str) -> bool:
        """Return whether a session exists and is not deleted."""
        return session_id in self.states or self._load_state(session_id) is not None

    def _load_state(self, session_id: str) -> Any:
        self.lock(session_id)
        return self.one(_LOAD, sid=session_id, now=self.now)

    def used(self, state: SessionState, time: int | None = None) -> None:
        """Record that a conversation continued here, detached from its source.

        *time* is the time that the caller states (default: now). The last use never
        goes back, except from the creation of a session that was empty until then:
        a chat that is imported with its old times is as old as it states.
        Raises `LeaseHeldError` while another process has the lease of the session.
        """
        if state.holder is not None and not of_this_process(state.holder):
            raise held(
                state.id, state.holder, (state.time_expires or self.now) - self.now
            )

        state.touched = True
        when = self.now if time is None else time
        is_empty = state.last_seq == 0
        if is_empty or when > state.time_updated:
            state.time_updated = when
        if state.time_imported is not None and state.time_detached is None:
            state.time_detached = self.now

    def take_change(self, session_id: str) -> tuple[int, str]:
        """Return the number of the next change of a session, and its cursor."""
        numbers = self.carryover.numbers
        if numbers is None:
            numbers = self.carryover.numbers = self.engine.feed.numbers()
        return numbers.take(self.connection, session_id)

    @property
    def waiting(self) -> WaitingParts:
        """What the search index knows of the parts that wait for it."""
        waiting = self.carryover.waiting
        if waiting is None:
            waiting = self.carryover.waiting = self.engine.search.waiting_parts()
        return waiting

    def flush(self) -> None:
        """Write the touched session rows, each once, with one revision more."""
        for state in self.states.values():
            if state.touched:
                self.keep(state)
        if self._only_appends:
            self._carry_states()
        self.states = {}

    def _carry_states(self) -> None:
        kept = self.carryover.states
        if len(kept) >= _MOST_STATES:
            kept.clear()
        for state in self.states.values():
            # A lease ends by itself.
            if state.holder is None:
                state.end_unit(state.id in self._kept)
                kept[state.id] = state

    def keep(self, state: SessionState) -> None:
        """Write one session row and record the change."""
        self._kept.add(state.id)
        change, cursor = self.take_change(state.id)
        revision = state.revision + 1
        moved = moved_values(state)
        pairs = zip(moved, state.stored, strict=True)
        is_changed = [value != stored for value, stored in pairs]
        names = ("revision", "change", *compress(MOVED, is_changed))
        values = (revision, change, *compress(moved, is_changed), state.id)
        self.connection.execute(update_text("session", names, "id"), values)
        state.stored = moved
        self.note_change(
            cursor, state.id, revision, state.last_seq, state.first_new_seq
        )

    def note_change(
        self,
        cursor: str,
        session_id: str,
        revision: int,
        last_seq: int,
        first_new: int,
        *,
        deleted: bool = False,
    ) -> None:
        """Record what to report after the commit."""
        # A second change of a session replaces the first, and comes last:
        # the changes of a commit are in order of their numbers.
        earlier = self.changes.pop(session_id, None)
        since = first_new - 1 if first_new else last_seq
        if earlier is not None:
            since = min(since, earlier.since_seq)

        self.changes[session_id] = Change(
            cursor, session_id, revision, last_seq, since, deleted
        )

    def finish(self) -> None:
        """Do what is done once: search, sums of usage, then blobs."""
        if self.to_prepare or self.to_index:
            self._reread_parts()
            self.engine.search.prepare(
                self.connection, as_list(self.to_prepare + self.to_index)
            )
        if self.to_index:
            marked = self.run(_MARK, parts=as_list(self.to_index)).fetchall()
            parts = as_list(marked), as_list(self.to_index)
            self.engine.search.put(self.connection, *parts)

        waiting, size = self.carryover.waiting, self.carryover.waiting_bytes
        if waiting is not None and waiting.finish(self.connection, size):
            self.engine.usage.put_waiting(self.connection)
            self.carryover.waiting_bytes = 0

        if self.loose:
            self._free_blobs(as_list(sorted(self.loose)))

    def _free_blobs(self, hashes: str) -> None:
        # Of two that give up the last references to one, the second waits, and sees
        # then what the first did; else each would leave it for the other.
        self.engine.lock_blobs(self.connection, hashes)
        self.run(_FREE, hashes=hashes)


def state_of(row: Sequence[Any]) -> SessionState:
    """Return the state of a session from a row of ``LOAD``."""
    *columns, turn_id = row
    state = SessionState(*columns)
    state.leaf_turn = (state.leaf_seq or 0, turn_id)
    state.stored = moved_values(state)
    return state
