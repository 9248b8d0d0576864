"""The sums of usage in SQLite, and how the writer updates them: see `usage_cells`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessiondb.engine.base import Connection
from sessiondb.engine.sqlite.usage_cells import (
    MARK_OF_USAGE,
    MODEL,
    SETTLED,
    hour_of,
    model_of,
    model_rid,
    project_rid,
)
from sessiondb.loading import load
from sessiondb.schema.sums import count_sum
from sessiondb.schema.terms import TOKENS
from sessiondb.schema.usage import has_usage, prompt_length

if TYPE_CHECKING:
    from sessiondb.engine.usage_sums import Totals, UsageQuestion

_LAST_MESSAGE = "coalesce((SELECT max(rid) FROM message), 0)"
#: A session that is being removed is not summed up again for each step of that.
_TO_SUM_UP = (
    "SELECT w.rid FROM usage_waiting AS w CROSS JOIN session AS s ON s.rid = w.rid "
    "WHERE s.time_deleted IS NULL"
)
_PLACES = (
    f"SELECT {_LAST_MESSAGE}, {MARK_OF_USAGE}, EXISTS ({_TO_SUM_UP}), "
    "coalesce((SELECT max(rid) FROM usage_hour), 0)"
)
_SUMMED = ("messages", "cost", *TOKENS, "longest_prompt")
_COLUMNS = ("session_rid", "hour", "model_rid", "hidden", "project_rid", *_SUMMED)
#: A message as a cell of its own.
_MESSAGE = ", ".join(
    [
        "s.rid AS session_rid",
        f"{hour_of('m')} AS hour",
        *(f"{value} AS {name}" for name, value in model_of("m", "s").items()),
        "1 AS messages",
        *(f"m.{name}" for name in ("cost", *TOKENS)),
        f"CAST({prompt_length('m')} AS INTEGER) AS longest_prompt",
    ]
)
#: A cell with the columns of a message.
_CELL = (
    f"SELECT c.session_rid, c.hour, {', '.join(f'u.{name}' for name in MODEL)}, "
    f"{', '.join(f'c.{name}' for name in _SUMMED)} "
    "FROM usage_hour AS c JOIN usage_model AS u ON u.rid = c.model_rid"
)
#: The columns of its model in a row ``m`` of such a query.
_NAMED = {name: f"m.{name}" for name in MODEL}
_SUMS = ", ".join(
    [
        "CAST(total(messages) AS INTEGER) AS messages",
        "sum(cost) AS cost",
        *(f"{count_sum(name)} AS {name}" for name in TOKENS),
        "max(longest_prompt) AS longest_prompt",
    ]
)


def cells_of(messages: str) -> str:
    """Return the query for the cells of *messages*: of rows of `messages_as_cells`.

    A cell has the columns of `MODEL` in place of the number of their row.
    """
    # In order of hours, as what is written day by day: totals by day sort it sooner.
    key = f"hour, session_rid, {', '.join(MODEL)}"
    return f"SELECT {key}, {_SUMS} FROM ({messages}) GROUP BY {key}, cost IS NULL"


def messages_as_cells(rows: str) -> str:
    """Return the query for the messages ``m`` of sessions ``s`` that *rows* has."""
    return f"SELECT {_MESSAGE} FROM {rows} AND {has_usage('m')}"


def _insert_cells(messages: str, more: str = "") -> tuple[str, str]:
    """Return the statements that insert the models of *messages*, and their cells.

    *more* continues the query for the messages, with such that have their models.
    """
    models = (
        f"INSERT INTO usage_model ({', '.join(MODEL)}) "
        f"SELECT DISTINCT {', '.join(f'm.{name}' for name in MODEL)} "
        f"FROM ({messages}) AS m WHERE {model_rid(_NAMED)} IS NULL"
    )
    cells = (
        f"INSERT INTO usage_hour ({', '.join(_COLUMNS)}) "
        f"SELECT m.session_rid, m.hour, {model_rid(_NAMED)}, s.hidden, "
        f"{project_rid('s')}, {', '.join(f'm.{name}' for name in _SUMMED)} "
        f"FROM ({cells_of(messages + more)}) AS m "
        "CROSS JOIN session AS s ON s.rid = m.session_rid"
    )
    return models, cells


_ABOVE = (
    "message AS m CROSS JOIN session AS s ON s.id = m.session_id WHERE m.rid > :mark"
)
_OF_WAITING = (
    f"({_TO_SUM_UP}) AS w CROSS JOIN session AS s ON s.rid = w.rid "
    "CROSS JOIN message AS m ON m.session_id = s.id WHERE m.rid <= :mark"
)
_SUM_UP_WAITING = (
    f"DELETE FROM usage_hour WHERE session_rid IN ({_TO_SUM_UP})",
    *_insert_cells(messages_as_cells(_OF_WAITING)),
    f"DELETE FROM usage_waiting WHERE rid IN ({_TO_SUM_UP})",
)
#: The cells of the hours with new messages are written again.
_ADD_NEW = (
    *_insert_cells(
        messages_as_cells(_ABOVE),
        f" UNION ALL {_CELL} WHERE c.rid <= :last_cell "
        "AND (c.session_rid, c.hour) IN "
        f"(SELECT s.rid, {hour_of('m')} FROM {_ABOVE} AND {has_usage('m')})",
    ),
    "DELETE FROM usage_hour WHERE rid <= :last_cell AND (session_rid, hour) IN "
    "(SELECT session_rid, hour FROM usage_hour WHERE rid > :last_cell)",
)
_SET_MARK = (
    "INSERT INTO meta (key, value) VALUES ('usage_to', :last) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


_IS_CHECKED = f"s.time_deleted IS NULL AND {SETTLED.format('c')}"
_COVERED = (
    "session AS s CROSS JOIN message AS m ON m.session_id = s.id "
    "WHERE s.time_deleted IS NULL AND s.rid NOT IN (SELECT rid FROM usage_waiting) "
    f"AND m.rid <= {MARK_OF_USAGE}"
)
#: Sums of floats made in another order differ in their last digits.
_DIFFERS = " OR ".join(
    [
        "c.rid IS NULL",
        *(f"c.{name} IS NOT m.{name}" for name in _SUMMED if name != "cost"),
        "NOT coalesce(abs(c.cost - m.cost) <= 1e-6 * (1 + abs(m.cost)), 1)",
    ]
)
_STORED = "usage_hour AS c JOIN session AS s ON s.rid = c.session_rid"
#: The sessions with a cell that is missing or differs; with one too many; with one that
#: has another state of the session.
_WRONG_SESSIONS = (
    f"WITH derived AS MATERIALIZED ({cells_of(messages_as_cells(_COVERED))}) "
    "SELECT m.session_rid FROM derived AS m LEFT JOIN usage_hour AS c "
    "ON c.session_rid = m.session_rid AND c.hour = m.hour "
    f"AND c.model_rid = {model_rid(_NAMED)} "
    "AND (c.cost IS NULL) = (m.cost IS NULL) "
    f"WHERE {_DIFFERS} UNION "
    "SELECT session_rid FROM (SELECT session_rid, 1 AS cells FROM derived "
    f"UNION ALL SELECT c.session_rid, -1 FROM {_STORED} WHERE {_IS_CHECKED}) "
    "GROUP BY session_rid HAVING sum(cells) <> 0 UNION "
    f"SELECT c.session_rid FROM {_STORED} WHERE {_IS_CHECKED} "
    f"AND (c.hidden <> s.hidden OR c.project_rid <> {project_rid('s')})"
)
#: What a shell left without its session or its model.
_REMOVE_ORPHANS = (
    "DELETE FROM usage_hour WHERE session_rid NOT IN (SELECT rid FROM session) "
    "OR model_rid NOT IN (SELECT rid FROM usage_model)",
    "DELETE FROM usage_waiting WHERE rid NOT IN (SELECT rid FROM session)",
)
_REMOVE_MODELS = (
    "DELETE FROM usage_model WHERE rid NOT IN (SELECT model_rid FROM usage_hour)"
)


class SQLiteUsageSums:
    """The cells of a file, as `engine.usage_sums.UsageSums` describes it.

    The database itself, by triggers, follows every change and delete of a message that
    a cell covers.
    """

    def totals(self, question: UsageQuestion) -> Totals:
        """Return the sums of each group; see `usage_totals`."""
        # Not at the top: few processes ask for sums.
        load("sessiondb.engine.sqlite.usage_totals")
        from sessiondb.engine.sqlite.usage_totals import totals

        return totals(question)

    def is_behind(self, connection: Connection) -> bool:
        """Return whether messages or sessions wait."""
        last, mark, is_waiting, _ = connection.execute(_PLACES).fetchone()
        return last != mark or bool(is_waiting)

    def put_waiting(self, connection: Connection) -> None:
        """Bring the cells up to date."""
        last, mark, is_waiting, last_cell = connection.execute(_PLACES).fetchone()
        if is_waiting:
            for statement in _SUM_UP_WAITING:
                connection.execute(statement, {"mark": mark})
            *_, last_cell = connection.execute(_PLACES).fetchone()
        if last != mark:
            places = {"mark": mark, "last_cell": last_cell}
            for statement in _ADD_NEW:
                connection.execute(statement, places)
            connection.execute(_SET_MARK, {"last": str(last)})

    def count_wrong(self, connection: Connection) -> int:
        """Return how many sessions have a wrong cell, or lack one."""
        sql = f"SELECT count(*) FROM ({_WRONG_SESSIONS})"
        number: int = connection.execute(sql).fetchone()[0]
        return number

    def repair(self, connection: Connection) -> None:
        """Remove what belongs to nothing, and sum up sessions again that are wrong."""
        for statement in _REMOVE_ORPHANS:
            connection.execute(statement)
        wrong = connection.execute(_WRONG_SESSIONS).fetchall()
        connection.executemany("INSERT INTO usage_waiting (rid) VALUES (?)", wrong)
        self.put_waiting(connection)
        connection.execute(_REMOVE_MODELS)
