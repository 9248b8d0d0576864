"""The feed of changes in a file: one order of all, by the numbers of the changes."""

from __future__ import annotations

from sessiondb.dataclass import dataclass
from sessiondb.engine.base import Connection
from sessiondb.engine.feed import ChangedSession
from sessiondb.engine.sql import ComposedStatement, Read
from sessiondb.model.feed import Position, position_of
from sessiondb.schema.feed import DATABASE

#: The number of the newest change, 0 for none.
_NEWEST_NUMBER = (
    "max(coalesce((SELECT max(change) FROM session), 0), "
    "coalesce((SELECT max(change) FROM deletion), 0))"
)
_NEWEST_TEXT = f"SELECT {DATABASE}, {_NEWEST_NUMBER}"
_NEWEST = ComposedStatement(_NEWEST_TEXT)
# The indexes are named because the planner would walk all of a session's rows.
_OPEN_MESSAGE = (
    "(SELECT min(m.seq) FROM message AS m INDEXED BY ix_message_open "
    "WHERE m.session_id = s.id AND m.time_completed IS NULL)"
)
_OPEN_CALL = (
    "(SELECT min(p.seq) FROM part AS p INDEXED BY ix_part_unsettled "
    "WHERE p.session_id = s.id AND p.status IN ('pending', 'running'))"
)


def _changes(of_session: str, of_deletion: str) -> ComposedStatement:
    # SQLite merges the two along their indexes and stops at the limit.
    return ComposedStatement(
        "SELECT s.change, s.id, s.revision, s.last_seq, 0, "
        f"{_OPEN_MESSAGE}, {_OPEN_CALL} "
        "FROM session AS s WHERE s.change > :since AND s.time_deleted IS NULL "
        f"{of_session} UNION ALL "
        "SELECT d.change, d.session_id, d.revision, d.last_seq, 1, NULL, NULL "
        f"FROM deletion AS d WHERE d.change > :since {of_deletion} "
        "ORDER BY 1 LIMIT :rows"
    )


_CHANGES = _changes("", "")
_CHANGES_OF_SESSION = _changes("AND s.id = :sid", "AND d.session_id = :sid")


@dataclass(slots=True)
class SQLiteChangeNumbers:
    """SQLite's half of `engine.feed.ChangeNumbers`: one number for all sessions.

    A number of its own for each change lets a reader stop after any of them.
    """

    #: The place of the last change; None if it is not known.
    _last: Position | None = None

    def expect(self, connection: Connection) -> None:
        """Do nothing: it is asked for when it is needed."""

    def take(
        self,
        connection: Connection,
        session_id: str,  # noqa: ARG002
    ) -> tuple[int, str]:
        """Return the next number, and the cursor behind it."""
        last = self._last
        if last is None:
            database, number = connection.execute(_NEWEST_TEXT).fetchone()
            last = Position(database or "", number)
        place = self._last = Position(last.database, last.number + 1)
        return place.number, place.cursor


class SQLiteChangeFeed:
    """SQLite's half of `engine.feed.ChangeFeed`."""

    numbers = SQLiteChangeNumbers

    def newest(self) -> Read[str]:
        """Return the cursor behind the newest change."""
        return (yield from _newest_place()).cursor

    def check(self, cursor: str) -> Read[str]:
        """Return the cursor where a consumer continues; raises `InvalidInputError`."""
        return position_of(cursor, (yield from _newest_place())).cursor

    def changed_since(
        self, cursor: str, session_id: str | None, rows: int
    ) -> Read[list[ChangedSession]]:
        """Return up to *rows* changes behind *cursor*, the first of them first."""
        place = Position.of(cursor)
        params = {"since": place.number, "sid": session_id, "rows": rows}
        statement = _CHANGES if session_id is None else _CHANGES_OF_SESSION
        changes = yield statement, params
        return [
            ChangedSession(place._replace(number=number).cursor, *facts)
            for number, *facts in changes
        ]


def _newest_place() -> Read[Position]:
    ((database, number),) = yield _NEWEST, {}
    return Position(database or "", number)
