"""In which family a session is: what a connection knows, and what it looks up.

``route`` has a row for each session that was ever made. It also keeps ids unique, for
a key of ``session`` is one of a family. A family hardly ever changes: only if a parent
is imported after its child, or an id is used again in another family. Who changes one
writes alone, and raises the number that every transaction reads as it begins. So what
is known under one number is true in each transaction that reads the same number.

Nobody waits for that number alone. One that writes reads it with its time, before the
first statement that names a family, and what is not known of the sessions that it locks
is asked for with the lock. A read states families as they are known, or as if a session
were a root, and looks them up beside: if one is not what was stated, the statement runs
again, on the same snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.engine.postgresql.families import family_of_root
from sessiondb.engine.sql import as_list

if TYPE_CHECKING:
    from sessiondb.engine.base import Connection, Cursor
    from sessiondb.engine.postgresql.connection import PostgreSQLConnection
    from sessiondb.engine.postgresql.numbered import Numbered

#: What a database needs besides the tables of the schema.
TABLE = (
    'CREATE TABLE route (session_id TEXT COLLATE "C" NOT NULL, '
    "family BIGINT NOT NULL, CONSTRAINT pk_route PRIMARY KEY (session_id))"
)
#: The entry of ``meta`` with the number of changed families.
CHANGES = "changed_families"
NUMBER_OF_CHANGES = f"(SELECT value FROM meta WHERE key = '{CHANGES}')"
_NUMBER = f"SELECT {NUMBER_OF_CHANGES}"
#: The family of a session that does not exist, and that of rows without a session.
_NOWHERE, _WITHOUT_SESSION = -1, 0
#: Sessions that a connection remembers.
_MOST_SESSIONS = 10_000
_FIND_SOME = (
    "SELECT session_id, family FROM route "
    f"WHERE session_id IN {DIALECT.list_text('ids', str)}"
)
_MAKE = (
    "INSERT INTO route (session_id, family) VALUES (?, ?) "
    "ON CONFLICT (session_id) DO NOTHING RETURNING session_id"
)
_IS_STORED = "SELECT 1 FROM session WHERE id = ? AND family = ?"
_CHANGE = "UPDATE route SET family = ? WHERE session_id = ?"
_COUNT_CHANGE = (
    "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) "
    f"WHERE key = '{CHANGES}'"
)


#: What other tables have of a session: the server cannot refer from them to a family.
_FORGET = (
    "UPDATE prompt SET session_id = NULL WHERE session_id = ?",
    "DELETE FROM terminal WHERE session_id = ?",
)


def forget_session(connection: Connection, session_id: str) -> None:
    """Remove a session that goes from the rows that are of no family."""
    for statement in _FORGET:
        connection.execute(statement, (session_id,))


class Routes:
    """The families of sessions as a connection knows them.

    `begin` comes with each transaction; out of one nothing is remembered.
    """

    def __init__(self, connection: PostgreSQLConnection) -> None:
        self._connection = connection
        #: The number of changed families under which `_known` is true.
        self.changes: str | None = None
        self._known: dict[str, int] = {}
        #: Those of the open transaction, from the first that it made. They end with it,
        #: or with a savepoint.
        self._own: dict[str, int] = {}
        self._has_made = False
        #: Whether the open transaction is a read, and whether it is known to have the
        #: number; the result with the number while it was not read.
        self._reads = self._is_current = False
        self._asked: Cursor | None = None
        #: Sessions that do not exist for the open read, and a family for each.
        self._absent: dict[str, int] = {}
        #: Results that nobody read yet: of look-ups, and of the routes that were made,
        #: with their families.
        self._expected: list[Cursor] = []
        self._making: dict[str, tuple[Cursor, int]] = {}

    def begin(self, *, reads: bool) -> None:
        """Begin a transaction, which has not read yet how many families changed."""
        if len(self._known) > _MOST_SESSIONS:
            self._known.clear()
        self._reads, self._is_current, self._asked = reads, False, None
        self.roll_back()
        self._has_made = False

    def learn(self, changes: str | None) -> None:
        """Take the number of changed families in the open transaction."""
        if changes is None or changes != self.changes:
            self._known.clear()
            self.changes = changes
        self._is_current = True

    def commit(self) -> None:
        """Keep what the transaction made: it is committed."""
        self._known |= self._own
        self._own.clear()

    def roll_back(self) -> None:
        """Forget what the transaction made, perhaps only since a savepoint."""
        self._own.clear()
        self._absent.clear()
        self._expected.clear()
        self._making.clear()

    def check(self) -> None:
        """Read how many families changed, if the transaction has not; it may wait."""
        if not self._is_current and not self._reads:
            # One that writes has it from its beginning.
            self._connection.time()
        if not self._is_current:
            ((changes,),) = self._ask().fetchall()
            self.learn(changes)

    def _ask(self) -> Cursor:
        if self._asked is None:
            self._asked = self._connection.execute(_NUMBER)
        return self._asked

    def families(self, statement: Numbered, parameters: Any) -> tuple[list[Any], bool]:
        """Return the families of the sessions that a statement is about.

        Those of a list are an array. False if they are a guess, and the result is to be
        `checked`.
        """
        if not statement.sessions and not statement.lists:
            return [], True
        if not self._connection.in_transaction:
            self.learn(None)
        elif self._reads:
            unknown = self._unknown(set(_sessions(statement, parameters)))
            if unknown or not self._is_current:
                return self._guess(statement, parameters, unknown), False
        return self._look_up(statement, parameters), True

    def checked(
        self, cursor: Cursor, is_right: Callable[[], bool], again: Callable[[], Cursor]
    ) -> Cursor:
        """Return the result of a read, that runs *again* if the guess was not right."""
        return _CheckedCursor(cursor, is_right, again)

    def are(self, families: list[Any], statement: Numbered, parameters: Any) -> bool:
        """Return whether *families* are those of the sessions of a statement."""
        actual = self._look_up(statement, parameters)
        for each in self._unknown(_sessions(statement, parameters)):
            # Of one that does not exist nothing is found, in whatever family.
            self._absent[each] = family_of_root(each)
            actual = _values(statement, parameters, self._family)
        return families == actual

    def _look_up(self, statement: Numbered, parameters: Any) -> list[Any]:
        self.check()
        self.find(list(_sessions(statement, parameters)))
        return _values(statement, parameters, self._family)

    def _family(self, session_id: str) -> int:
        for families in (self._own, self._known, self._absent):
            family = families.get(session_id)
            if family is not None:
                return family
        return _NOWHERE

    def _guess(
        self, statement: Numbered, parameters: Any, unknown: Collection[str]
    ) -> list[Any]:
        if not self._is_current:
            self._ask()
        self.expect(unknown)
        roots = {each: family_of_root(each) for each in unknown}
        return _values(
            statement, parameters, lambda each: roots.get(each) or self._family(each)
        )

    def family(self, session_id: str | None) -> int:
        """Return the family of a session; of one that does not exist none is."""
        if session_id is None:
            return _WITHOUT_SESSION
        self.find((session_id,))
        return self._family(session_id)

    def families_of(self, keys: Collection[str]) -> list[int]:
        """Return the families of those of some keys that are known sessions, in order.

        A session that was written is known.
        """
        self.check()
        self.find([each for each in keys if each in self._making])
        return sorted({self._family(each) for each in keys} - {_NOWHERE})

    def find(self, session_ids: Collection[str]) -> None:
        """Look up what is not known of some sessions, at once."""
        for each in self._making.keys() & session_ids:
            self._end_making(each)
        unknown = self._unknown(session_ids)
        if unknown and self._expected:
            self._take_expected()
            unknown = self._unknown(unknown)
        if unknown:
            self._keep(self._run(unknown))

    def expect(self, session_ids: Iterable[str]) -> None:
        """Ask for what is not known of sessions that were locked, without a wait."""
        unknown = self._unknown(session_ids)
        if unknown:
            self._expected.append(self._run(unknown))

    def _unknown(self, session_ids: Iterable[str]) -> list[str]:
        every = self._own, self._known, self._absent
        return [
            each
            for each in session_ids
            if not any(each in families for families in every)
        ]

    def _run(self, session_ids: list[str]) -> Cursor:
        return self._connection.execute(_FIND_SOME, {"ids": as_list(session_ids)})

    def _take_expected(self) -> None:
        expected, self._expected = self._expected, []
        self.check()
        for cursor in expected:
            self._keep(cursor)

    def _keep(self, cursor: Cursor) -> None:
        # It may be of this transaction, made before a savepoint.
        families = self._own if self._has_made else self._known
        families |= cursor.fetchall()

    def make(self, session_id: str, parent_id: str | None) -> None:
        """Give a session that is inserted next the family of its parent, or its own.

        It is locked. Whether it had one is read when it is first asked for.
        """
        self.check()
        family = _NOWHERE if parent_id is None else self.family(parent_id)
        if family == _NOWHERE:
            family = family_of_root(parent_id or session_id)
        inserted = self._connection.execute(_MAKE, (session_id, family))
        self._has_made = True
        self._making[session_id] = inserted, family

    def _end_making(self, session_id: str) -> None:
        inserted, family = self._making.pop(session_id)
        if inserted.fetchone() is not None:
            self._own[session_id] = family
            return

        earlier = self.family(session_id)
        if earlier == family:
            return
        stored = self._connection.execute(_IS_STORED, (session_id, earlier)).fetchone()
        # A session that exists is refused by its key.
        if stored is None:
            self.change([session_id], family)

    def change(self, session_ids: Iterable[str], family: int) -> None:
        """Give sessions another family, while no other transaction writes."""
        self._connection.lock_out_others()
        self._has_made = True
        for session_id in session_ids:
            self._connection.execute(_CHANGE, (family, session_id))
            self._known.pop(session_id, None)
            self._own[session_id] = family
        self._connection.execute(_COUNT_CHANGE)


def _listed(value: str) -> Iterator[str]:
    """Yield the sessions of a list; addresses begin with the session."""
    for each in json.loads(value):
        yield each if isinstance(each, str) else each[0]


def _sessions(statement: Numbered, parameters: Any) -> Iterator[str]:
    """Yield the sessions that a statement is about."""
    for key in statement.sessions:
        if parameters[key] is not None:
            yield parameters[key]
    for key in statement.lists:
        yield from _listed(parameters[key])


def _values(
    statement: Numbered, parameters: Any, family_of: Callable[[str], int]
) -> list[Any]:
    """Return the further values of a statement: families, those of a list an array."""
    values: list[Any] = []
    for key in statement.sessions:
        session_id = parameters[key]
        is_none = session_id is None
        values.append(_WITHOUT_SESSION if is_none else family_of(session_id))
    for key in statement.lists:
        ids = _listed(parameters[key])
        numbers = sorted({family_of(each) for each in ids})
        values.append(f"{{{','.join(map(str, numbers))}}}")
    return values


class _CheckedCursor:
    """The result of a read that states families without knowing that they are right."""

    __slots__ = ("_again", "_cursor", "_is_right")

    def __init__(
        self, cursor: Cursor, is_right: Callable[[], bool], again: Callable[[], Cursor]
    ) -> None:
        self._cursor, self._is_right = cursor, is_right
        self._again: Callable[[], Cursor] | None = again

    @property
    def description(self) -> Any:
        """The names of the columns."""
        return self._result().description

    @property
    def rowcount(self) -> int:
        """The number of rows."""
        return self._result().rowcount

    def fetchone(self) -> Any:
        """Return the next row; None after the last."""
        return self._result().fetchone()

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        return self._result().fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._result())

    def _result(self) -> Cursor:
        repeat, self._again = self._again, None
        if repeat is not None and not self._is_right():
            self._cursor = repeat()
        return self._cursor
