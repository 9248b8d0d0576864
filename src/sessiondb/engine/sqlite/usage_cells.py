"""Sums of usage: what a session used in each hour, beside its messages.

`usage_hour` has one row, a *cell*, for what the counted messages of a session by one
agent and model used in one hour, those with a cost apart from those without. Of an hour
of UTC the days of nearly every time zone can be made; a total reads a cell or two for a
session, however many messages it has, and nothing else: what lists leave out, and the
project, are in the cell as well.

Cells cover the messages up to a *mark*, ``usage_to`` in ``meta``: the writer sums up
those above it together, now and then. The sessions in `usage_waiting` lost or changed
a message below the mark. So the usage of a database is, at every moment, the sum of

* the cells of the sessions that do not wait,
* the messages above the mark, and
* those below it of the sessions that wait.
"""

from __future__ import annotations

from collections.abc import Mapping

HOUR_MS = 3_600_000
#: The largest ``rid`` of ``message`` that the cells cover.
MARK_OF_USAGE = (
    "coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'usage_to'), 0)"
)
#: True for a cell, or a row with a ``session_rid``, of a session that does not wait.
SETTLED = "{0}.session_rid NOT IN (SELECT rid FROM usage_waiting)"
#: The columns of ``usage_model``: what produced a message. A message may name another
#: agent than its session.
MODEL = ("source", "agent", "provider_id", "model_id")


def hour_of(message: str) -> str:
    """Return the hour of a message, in hours since 1970."""
    return f"{message}.time_created / {HOUR_MS}"


def model_of(message: str, session: str) -> dict[str, str]:
    """Return the columns of ``usage_model`` for a message of a session."""
    return {
        "source": f"{session}.source",
        "agent": f"coalesce({message}.agent, {session}.agent)",
        "provider_id": f"{message}.provider_id",
        "model_id": f"{message}.model_id",
    }


def model_rid(columns: Mapping[str, str]) -> str:
    """Return the row of ``usage_model`` with these columns, NULL if there is none."""
    same = " AND ".join(f"u.{name} IS {value}" for name, value in columns.items())
    return f"(SELECT u.rid FROM usage_model AS u WHERE {same})"


def project_rid(session: str) -> str:
    """Return the row of the project of a session; 0 if it is missing."""
    return f"coalesce((SELECT rid FROM project WHERE id = {session}.project_id), 0)"


def is_in_cell(message: str, session: str, cell: str) -> str:
    """Return the condition that a cell of a session has a message of it."""
    rid = model_rid(model_of(message, session))
    return (
        f"{cell}.session_rid = {session}.rid AND {cell}.hour = {hour_of(message)} "
        f"AND {cell}.model_rid = {rid} "
        f"AND ({cell}.cost IS NULL) = ({message}.cost IS NULL)"
    )
