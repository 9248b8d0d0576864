"""Reads, run in this thread: the statements of one see one snapshot.

A read is a generator that yields statements and receives rows (see `repository`). Its
connection belongs to it alone until it ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sessiondb.engine.base import Connection, Engine
from sessiondb.errors import CorruptionError, InvalidInputError, SessionDBError
from sessiondb.model import Message
from sessiondb.model.damage import damaged
from sessiondb.repository import ENGINE_IN_USE, TIME, Read, transcript
from sessiondb.repository.decode import LOST

if TYPE_CHECKING:
    from sessiondb.database.damage import PastDamage

T = TypeVar("T")
#: Reader connections that are kept for the next read of some thread.
MAX_IDLE = 4


class Past(Protocol):
    """How a read continues past damage: see `database.damage.PastDamage`."""

    def helps(self, error: Exception) -> bool:
        """Return whether `connection` answers a statement that ended with *error*."""

    def connection(self) -> Connection:
        """Return a connection to the rows that can be read."""

    def leaves_out(self, session_id: str, missing: str, reason: str) -> bool:
        """Return whether the read continues without what is missing."""


def answered(connection: Connection, query: Read[T], past: Past | None = None) -> T:
    """Run a read in the transaction that *connection* is in; raises `Engine.Error`.

    With *past*, the statement that encounters a damaged page and all after it are
    answered by the copy, and values that are missing are left out. Raises
    `CorruptionError` for those that a read cannot leave out.
    """
    rows: Any = None
    source, engine = connection, connection.engine
    while True:
        try:
            statement, params = query.send(rows)
        except StopIteration as done:
            value: T = done.value
            return value

        if statement is ENGINE_IN_USE:
            rows = engine
            continue
        if statement is TIME:
            rows = engine.time_of(connection)
            continue
        if statement is LOST:
            # A read of a damaged file may continue without what is missing in it.
            missing, reason = params["missing"], params["reason"]
            session_id = params["session_id"]
            if past is None or not past.leaves_out(session_id, missing, reason):
                raise damaged(missing, reason)
            rows = []
            continue

        try:
            rows = source.execute(statement.text_on(engine), params).fetchall()
        except engine.Error as error:
            if past is None or source is not connection or not past.helps(error):
                raise

            # For the rest of the read, too: its statements must agree on what there is.
            source = past.connection()
            rows = source.execute(statement.text_on(engine), params).fetchall()


def read_message(connection: Connection, session_id: str, seq: int) -> Message:
    """Return a message as the transaction of *connection* sees it."""
    return answered(connection, transcript.one_message(session_id, seq))


def answered_in_unit(connection: Connection, query: Read[T]) -> T:
    """Run a read in the transaction of a unit; raises the errors of a read."""
    try:
        return answered(connection, query)
    except connection.engine.Error as error:
        raise connection.engine.translate(error) from error


def read_on(connection: Connection, query: Read[T], past: Past | None = None) -> T:
    """Run a read in one snapshot and return its value.

    Raises the errors of `Engine.translate`.
    """
    engine = connection.engine
    try:
        connection.execute(engine.begin_read)
        return answered(connection, query, past)
    except engine.Error as error:
        raise engine.translate(error) from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise InvalidInputError(
            f"not a value that can be stored here: {error}"
        ) from error
    finally:
        # Not COMMIT, which fails once more on a damaged file.
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class IdleReaders:
    """The reader connections of one store, lent to one read at a time.

    *check* is called before each read, *check_in_place* after one that failed;
    *connect* makes a connection if none is idle.
    """

    def __init__(
        self,
        check: Callable[[], None],
        check_in_place: Callable[[], None],
        connect: Callable[[], Connection],
    ) -> None:
        self._check, self._connect = check, connect
        self._check_in_place = check_in_place
        self._idle: deque[Connection] = deque()
        #: Lets reads continue past damage; if None, they raise.
        self.past: PastDamage | None = None
        self.closed = False

    def checkout(self) -> Connection:
        """Return a reader for the caller alone; hand it to `give_back`."""
        self._check()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connect()
            if connection.engine.is_usable(connection):
                return connection
            # A server may have been restarted since.
            connection.close()

    def give_back(self, connection: Connection) -> None:
        """Keep a reader for the next caller."""
        if len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

        # After, not before: a thread that closes the store now would not see it.
        if self.closed:
            self.pause()

    def read(self, query: Read[T]) -> T:
        """Run a read in one snapshot and return its value."""
        connection = self.checkout()
        try:
            return read_on(connection, query, self.past)
        except SessionDBError:
            # Another database in its place fails in many ways; it is one error.
            self._check_in_place()
            raise
        finally:
            self.give_back(connection)

    def pause(self) -> None:
        """Close the idle readers; the next read opens one."""
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:  # another thread was faster
                return


def is_corrupt(engine: Engine, error: Exception) -> bool:
    """Return whether an error of the driver says that the database is damaged."""
    return isinstance(engine.translate(error), CorruptionError)
