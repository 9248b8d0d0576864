"""The feed of changes on a server, in the order in which transactions began to write.

Writers run side by side, and the one that began first may commit last. A single counter
that all of them raise would make them take turns. So the number of a change is that of
its transaction, which the server gives out, and a number within it; and the feed ends
at the *horizon*: before the oldest transaction that still writes. All that will be
committed later has a place behind it. The price is that a long transaction, of any
database of the server, holds the feed back.
"""

from __future__ import annotations

from sessiondb.dataclass import dataclass
from sessiondb.engine.base import Connection, Cursor
from sessiondb.engine.feed import ChangedSession
from sessiondb.engine.sql import ComposedStatement, Read
from sessiondb.model.feed import Position, position_of
from sessiondb.schema.feed import DATABASE

#: Changes of one transaction.
_CHANGES = 1 << 20


def _first_change_of(transaction: str) -> str:
    return f"(CAST(CAST({transaction} AS TEXT) AS BIGINT) * {_CHANGES})"


#: The first number that no committed transaction can still take.
_HORIZON = _first_change_of("pg_snapshot_xmin(pg_current_snapshot())")
#: A number that no transaction has taken.
_END = _first_change_of("pg_snapshot_xmax(pg_current_snapshot())")
_OWN = f"SELECT {DATABASE}, {_first_change_of('pg_current_xact_id()')}, {_HORIZON}"
_PLACES = ComposedStatement(f"SELECT {DATABASE}, {_HORIZON}, {_END}")
_OPEN_MESSAGE = (
    "(SELECT min(m.seq) FROM message AS m "
    "WHERE m.session_id = s.id AND m.time_completed IS NULL)"
)
_OPEN_CALL = (
    "(SELECT min(p.seq) FROM part AS p "
    "WHERE p.session_id = s.id AND p.status IN ('pending', 'running'))"
)


def _changes(of_session: str, of_deletion: str) -> ComposedStatement:
    # Each is limited, so that it ends along its index.
    return ComposedStatement(
        "SELECT * FROM ("
        "(SELECT s.change, s.id, s.revision, s.last_seq, 0, "
        f"{_OPEN_MESSAGE}, {_OPEN_CALL} "
        f"FROM session AS s WHERE s.change > :since AND s.change < {_HORIZON} "
        f"AND s.time_deleted IS NULL {of_session} ORDER BY s.change LIMIT :rows) "
        "UNION ALL "
        "(SELECT d.change, d.session_id, d.revision, d.last_seq, 1, NULL, NULL "
        f"FROM deletion AS d WHERE d.change > :since AND d.change < {_HORIZON} "
        f"{of_deletion} ORDER BY d.change LIMIT :rows)"
        ") AS changes ORDER BY 1 LIMIT :rows"
    )


_ALL_CHANGES = _changes("", "")
_CHANGES_OF_SESSION = _changes("AND s.id = :sid", "AND d.session_id = :sid")


@dataclass(slots=True)
class PostgreSQLChangeNumbers:
    """PostgreSQL's half of `engine.feed.ChangeNumbers`, for one transaction."""

    _last: Position | None = None
    #: Where a consumer that was told of this transaction continues.
    _cursor: str | None = None
    #: The result of `_OWN`, if it was asked for.
    _expected: Cursor | None = None

    def expect(self, connection: Connection) -> None:
        """Ask for the number of the transaction."""
        self._expected = connection.execute(_OWN)

    def take(
        self,
        connection: Connection,
        session_id: str,  # noqa: ARG002
    ) -> tuple[int, str]:
        """Return the next number, and a cursor behind all that is committed."""
        last = self._last
        if last is None:
            own = self._expected or connection.execute(_OWN)
            database, first, horizon = own.fetchone()
            last = Position(database or "", first)
            if horizon < first:
                # An older transaction may still commit: what began since is repeated.
                self._cursor = last._replace(number=horizon - 1).cursor
        place = self._last = last._replace(number=last.number + 1)
        return place.number, self._cursor or place.cursor


class PostgreSQLChangeFeed:
    """PostgreSQL's half of `engine.feed.ChangeFeed`."""

    numbers = PostgreSQLChangeNumbers

    def newest(self) -> Read[str]:
        """Return the cursor at the horizon."""
        ((database, horizon, _),) = yield _PLACES, {}
        return Position(database or "", horizon - 1).cursor

    def check(self, cursor: str) -> Read[str]:
        """Return the cursor where a consumer continues; raises `InvalidInputError`."""
        ((database, _, end),) = yield _PLACES, {}
        return position_of(cursor, Position(database or "", end)).cursor

    def changed_since(
        self, cursor: str, session_id: str | None, rows: int
    ) -> Read[list[ChangedSession]]:
        """Return up to *rows* changes behind *cursor*, the first of them first."""
        place = Position.of(cursor)
        params = {"since": place.number, "rows": rows}
        if session_id is None:
            changes = yield _ALL_CHANGES, params
        else:
            changes = yield _CHANGES_OF_SESSION, {**params, "sid": session_id}
        return [
            ChangedSession(place._replace(number=number).cursor, *facts)
            for number, *facts in changes
        ]
