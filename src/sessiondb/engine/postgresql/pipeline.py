"""The statements of a connection on their way: sent together, answered in turn.

libpq's pipeline mode sends a statement without an answer to the one before. So nothing
is sent until a result is read or `settle` is called; then all that is queued is one
message, and one wait for all of its answers. A statement that fails ends its message:
those behind it are not run.

The server answers in the order of the statements, and that order alone says whose a
result is. So what is queued and what was sent change together, and `_is_whole` is False
while they do: an interrupt in between, on whatever line, leaves a connection that
nobody may use any more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
from psycopg import errors, generators, pq
from psycopg.adapt import PyFormat, Transformer

if TYPE_CHECKING:
    from psycopg.abc import Buffer, PQGen
    from psycopg.pq.abc import PGresult
    from psycopg.rows import TupleRow

#: Executions after which a statement is prepared.
_PREPARE_AFTER = 5
#: Statements that a session keeps prepared: all that one kind of work runs, and more.
_MOST_PREPARED = 256
#: Statements, and bytes of their values, that are queued before they are waited for.
_MOST_QUEUED, _MOST_BYTES = 2_000, 4_000_000
#: Bytes that are queued before a part of a short message is sent, so that the server
#: begins soon. Of a long one they are this share of what was queued before.
_MOST_UNSENT, _SHARE_UNSENT = 1_000, 16
_FAILED, _NOT_RUN = pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED
_BINARY = pq.Format.BINARY
#: A statement and the types of its parameters.
_Key: TypeAlias = tuple[bytes, tuple[int, ...]]
#: Values as they are sent, their types and formats.
_Dumped: TypeAlias = (
    "tuple[Sequence[Buffer | None], tuple[int, ...], Sequence[pq.Format] | None]"
)
_NO_VALUES: _Dumped = ((), (), None)


class PostgreSQLCursor:
    """The result of one statement, or of one that ran for many rows.

    It is awaited when it is first read, which raises the error of the statement, or
    that of an earlier one for which it was not run.
    """

    __slots__ = ("_awaited", "_changed", "_error", "_next", "_pipeline", "_result")

    def __init__(self, pipeline: Pipeline, awaited: int = 1) -> None:
        self._pipeline, self._awaited = pipeline, awaited
        self._result: PGresult | None = None
        self._error: psycopg.Error | None = None
        self._changed = self._next = 0

    def receive(self, result: PGresult) -> None:
        """Take the next result."""
        self._awaited -= 1
        self._result = result
        self._changed += result.command_tuples or 0

    def fail(self, error: psycopg.Error) -> None:
        """Take the reason why there is no result."""
        self._awaited -= 1
        self._error = self._error or error

    @property
    def description(self) -> list[tuple[str]] | None:
        """A tuple for each column, with its name; None if there are no columns."""
        result = self._awaited_result()
        if not result.nfields:
            return None
        names = [result.fname(number) or b"" for number in range(result.nfields)]
        return [(name.decode(),) for name in names]

    @property
    def rowcount(self) -> int:
        """The number of rows that it changed or returned."""
        self._awaited_result()
        return self._changed

    @property
    def command_status(self) -> bytes:
        """The name of the command that was done: a COMMIT may be a ``ROLLBACK``."""
        return self._awaited_result().command_status or b""

    def fetchone(self) -> TupleRow | None:
        """Return the next row; None after the last."""
        result = self._awaited_result()
        if self._next >= result.ntuples:
            return None
        self._next += 1
        (row,) = self._pipeline.rows(result, self._next - 1, self._next)
        return row

    def fetchall(self) -> list[TupleRow]:
        """Return the remaining rows."""
        result = self._awaited_result()
        first, self._next = self._next, result.ntuples
        return self._pipeline.rows(result, first, result.ntuples)

    def __iter__(self) -> Iterator[TupleRow]:
        while (row := self.fetchone()) is not None:
            yield row

    def _awaited_result(self) -> PGresult:
        if self._awaited:
            self._pipeline.wait()
        if self._error is not None:
            self._pipeline.forget(self._error)
            raise self._error
        if self._result is None:
            raise psycopg.OperationalError("the connection was closed before it ran")
        return self._result


class _Preparation:
    """That of a statement under a name, which only exists if it succeeds."""

    __slots__ = ("_key", "_names")

    def __init__(self, names: OrderedDict[_Key, bytes], key: _Key) -> None:
        self._names, self._key = names, key

    def receive(self, result: PGresult) -> None:
        """The name can be used from now on."""

    def fail(self, error: psycopg.Error) -> None:  # noqa: ARG002
        """Forget the name."""
        self._names.pop(self._key, None)


#: Who takes the results of one message, in their order.
_Receiver: TypeAlias = PostgreSQLCursor | _Preparation


class Pipeline:
    """The statements of one connection. All functions raise `psycopg.Error`."""

    def __init__(self, driver: psycopg.Connection[TupleRow], *, prepares: bool) -> None:
        self._driver, self._pgconn = driver, driver.pgconn
        self._values = Transformer(driver)
        self._shown: PGresult | None = None
        #: Whose results are still to come, in order; None is the end of a message.
        self._queued: list[_Receiver | None] = []
        self._bytes = self._unsent = 0
        #: The formats in which values are sent, by their number: the driver chooses.
        self._shapes: list[list[PyFormat]] = []
        #: How many of these nobody waits for.
        self._dropped = 0
        #: The first error that was not raised yet.
        self._error: psycopg.Error | None = None
        self._is_whole = True
        self._prepares = prepares
        self._times: OrderedDict[_Key, int] = OrderedDict()
        self._names: OrderedDict[_Key, bytes] = OrderedDict()
        self._next_name = 0
        self._pgconn.enter_pipeline_mode()

    @property
    def is_whole(self) -> bool:
        """Whether no interrupt tore it, and the connection was not lost in a wait."""
        return self._is_whole

    @property
    def is_usable(self) -> bool:
        """Whether it is whole, and the connection is not known to be lost."""
        pgconn = self._pgconn
        if not self._is_whole or pgconn.status != pq.ConnStatus.OK:
            return False
        try:
            # Neither call waits. If the server has ended the connection since the last
            # statement, the first reads its last message, and the second the end.
            pgconn.consume_input()
            pgconn.consume_input()
        except psycopg.Error:
            return False
        return pgconn.status == pq.ConnStatus.OK

    @property
    def is_settled(self) -> bool:
        """Whether no result is still to come."""
        return not self._queued

    @property
    def is_full(self) -> bool:
        """Whether so much is queued that it should be waited for."""
        return len(self._queued) > _MOST_QUEUED or self._bytes > _MOST_BYTES

    # -- sending -------------------------------------------------------------

    def run(self, sql: bytes, values: Sequence[Any] = ()) -> PostgreSQLCursor:
        """Queue a statement.

        Raises the error of an earlier one if it is known, and `UnicodeEncodeError` or
        `OverflowError` for a value that cannot be stored.
        """
        self._raise_known()
        dumped = self._dump(values)
        cursor = PostgreSQLCursor(self)
        self._queue(cursor, sql, dumped)
        return cursor

    def run_many(
        self, sql: bytes, rows: Sequence[Sequence[Any]], *, waits: bool
    ) -> PostgreSQLCursor:
        """Queue a statement once for each row of values; raises what `run` does.

        With *waits* not all at once, if they are many: together they are a transaction
        otherwise, if none is open.
        """
        self._raise_known()
        # All of them, before the first is sent.
        dumped = [self._dump(values) for values in rows]
        cursor = PostgreSQLCursor(self, len(dumped))
        for values in dumped:
            self._queue(cursor, sql, values)
            if waits and self.is_full:
                self.wait()
        return cursor

    def run_unprepared(self, sql: bytes) -> PostgreSQLCursor:
        """Queue a statement of transactions, which is never prepared."""
        cursor = PostgreSQLCursor(self)
        self._begin_change()
        self._pgconn.send_query_params(sql, None)
        self._queued.append(cursor)
        self._is_whole = True
        return cursor

    def _dump(self, values: Sequence[Any]) -> _Dumped:
        if not values:
            return _NO_VALUES
        shapes = self._shapes
        while len(shapes) <= len(values):
            shapes.append([PyFormat.AUTO] * len(shapes))
        dumped = self._values.dump_sequence(values, shapes[len(values)])
        return dumped, self._values.types or (), self._values.formats

    def _queue(self, cursor: PostgreSQLCursor, sql: bytes, dumped: _Dumped) -> None:
        values, types, formats = dumped
        self._begin_change()
        name = self._prepared(sql, types) if self._prepares else None
        if name is None:
            self._pgconn.send_query_params(sql, values, types, formats, _BINARY)
        else:
            self._pgconn.send_query_prepared(name, values, formats, _BINARY)
        self._queued.append(cursor)
        size = sum([len(value) for value in values if value is not None])
        self._bytes += size
        self._unsent += size + len(sql)
        if self._unsent > max(_MOST_UNSENT, self._bytes // _SHARE_UNSENT):
            # What the socket takes: the server works on it while more is queued.
            self._pgconn.flush()
            self._unsent = 0
        self._is_whole = True

    def _begin_change(self) -> None:
        if not self._is_whole:
            raise psycopg.OperationalError("the connection was lost or interrupted")
        self._is_whole = False

    def _prepared(self, sql: bytes, types: tuple[int, ...]) -> bytes | None:
        """Return the name under which a statement is prepared, now or before."""
        key = sql, types
        name = self._names.get(key)
        if name is not None:
            self._names.move_to_end(key)
            return name
        times = self._times.pop(key, 0) + 1
        if times <= _PREPARE_AFTER:
            self._times[key] = times
            if len(self._times) > _MOST_PREPARED:
                self._times.popitem(last=False)
            return None
        if len(self._names) >= _MOST_PREPARED:
            _, oldest = self._names.popitem(last=False)
            self._pgconn.send_query_params(b"DEALLOCATE " + oldest, None)
            self._queued.append(PostgreSQLCursor(self))
        self._next_name += 1
        name = self._names[key] = b"sdb%d" % self._next_name
        self._pgconn.send_prepare(name, sql, types)
        self._queued.append(_Preparation(self._names, key))
        return name

    # -- waiting -------------------------------------------------------------

    def settle(self) -> None:
        """Wait until every statement has run; raise the first error among them."""
        self.wait()
        self._raise_known()

    def drop(self) -> None:
        """Wait until all statements have run, and forget whether one failed.

        For a statement that undoes them: in the same message it would not run, either.
        """
        self.wait()
        self._error = None

    def send(self) -> None:
        """End the message and send it, without waiting for an answer."""
        self._end_message()
        self._begin_change()
        is_sent = self._pgconn.flush() == 0
        self._is_whole = True
        if is_sent:
            self._dropped = len(self._queued)
        else:
            self.wait()

    def wait(self) -> None:
        """Wait for all results; raises an error only if the connection is lost."""
        if not self._queued:
            return
        if self._queued[-1] is not None:
            self._end_message()
        results: list[list[PGresult]] = []
        self._begin_change()
        try:
            self._driver.wait(_receive(self._pgconn, len(self._queued), results))
        except psycopg.Error as error:
            self._give_out(results, error)
            # What the server said of the end came before it.
            reason, self._error = self._error or error, None
            raise reason from None
        except BaseException:
            # Whatever comes now would be the answer to something else.
            self._driver.close()
            raise
        self._give_out(results, None)
        self._is_whole = True

    def forget(self, error: psycopg.Error) -> None:
        """Record that an error was raised."""
        if error is self._error:
            self._error = None

    def rows(self, result: PGresult, first: int, end: int) -> list[TupleRow]:
        """Return some rows of a result."""
        if result is not self._shown:
            self._values.set_pgresult(result)
            self._shown = result
        rows = self._values.load_rows(first, end, tuple)
        if end == result.ntuples:
            # It may be large.
            self._values.set_pgresult(None)
            self._shown = None
        return rows

    def _end_message(self) -> None:
        self._begin_change()
        self._pgconn.pipeline_sync()
        self._queued.append(None)
        self._is_whole = True

    def _give_out(
        self, results: list[list[PGresult]], lost: psycopg.Error | None
    ) -> None:
        """Give each its result, and those that got none the reason."""
        queued, self._queued = self._queued, []
        dropped, self._dropped = self._dropped, 0
        self._bytes = self._unsent = 0
        failed: psycopg.Error | None = None
        for number, receiver in enumerate(queued):
            if receiver is None:
                # A message that failed ends here.
                failed = None
                continue
            if number >= len(results):
                receiver.fail(failed or lost or _no_answer())
                continue
            result = results[number][0]
            if result.status == _FAILED:
                failed = errors.error_from_result(result)
                if number >= dropped:
                    self._error = self._error or failed
            if result.status in (_FAILED, _NOT_RUN):
                receiver.fail(failed or _no_answer())
            else:
                receiver.receive(result)

    def _raise_known(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


def _receive(
    pgconn: pq.abc.PGconn, count: int, results: list[list[PGresult]]
) -> PQGen[None]:
    """Send what is queued, and receive *count* answers."""
    yield from generators.send(pgconn)
    for _ in range(count):
        answer = yield from generators.fetch_many(pgconn)
        if not answer:
            raise _no_answer()
        results.append(answer)


def _no_answer() -> psycopg.Error:
    return psycopg.OperationalError("the server did not answer")
