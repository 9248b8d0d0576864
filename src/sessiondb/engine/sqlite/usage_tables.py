"""The triggers that keep the sums of usage exact: see `schema.usage`.

A message that is deleted or changed makes its session wait: subtracting would leave
the rounding of floats, and could not know whether a sum is 0 or unknown. A message that
states its usage for the first time, as an answer does that was open when the mark
passed it, is added to its cell: a long session is not summed up again for it.
"""

from __future__ import annotations

from sessiondb.schema.terms import USAGE
from sessiondb.schema.usage import (
    MARK_OF_USAGE,
    MODEL,
    has_usage,
    hour_of,
    is_in_cell,
    model_rid,
    project_rid,
    prompt_length,
)

_FOLLOWED = ("rid", "session_id", *MODEL, *USAGE, "inherited", "time_created")
_CHANGES = " OR ".join(f"new.{name} IS NOT old.{name}" for name in _FOLLOWED)
_MOVES = "new.rid <> old.rid OR new.session_id <> old.session_id"
_IS_COVERED = f"old.rid <= {MARK_OF_USAGE}"
_SESSION = "(SELECT rid FROM session WHERE id = new.session_id)"
_WAITS = f"{_SESSION} IN (SELECT rid FROM usage_waiting)"
#: Whether an update only adds the usage of a message, in a session that does not wait.
_ADDS = (
    f"NOT ({has_usage('old')}) AND {has_usage('new')} AND NOT ({_MOVES}) "
    f"AND {_IS_COVERED} AND NOT ({_WAITS})"
)


def _let_wait(message: str) -> str:
    """Return the statement by which the session of a message waits, if it exists."""
    return (
        "INSERT INTO usage_waiting (rid) SELECT rid FROM session "
        f"WHERE id = {message}.session_id AND {has_usage(message)} "
        "AND rid NOT IN (SELECT rid FROM usage_waiting);"
    )


def _added(name: str) -> str:
    if name == "cost":
        return f"{name} = {name} + new.{name}"
    # Floats do not overflow: see `schema.sums`.
    total = f"CAST(coalesce({name}, 0) + 1.0 * new.{name} AS INTEGER)"
    return f"{name} = CASE WHEN new.{name} IS NULL THEN {name} ELSE {total} END"


_NEW_MODEL = (
    f"INSERT INTO usage_model ({', '.join(MODEL)}) "
    f"SELECT {', '.join(f'new.{name}' for name in MODEL)} "
    f"WHERE {model_rid('new')} IS NULL;"
)
_CELL = f"session_rid = {_SESSION} AND {is_in_cell('new', 'usage_hour')}"
_EMPTY_CELL = (
    "INSERT INTO usage_hour (session_rid, hour, model_rid, hidden, project_rid, "
    f"messages, cost, longest_prompt) SELECT s.rid, {hour_of('new')}, "
    f"{model_rid('new')}, s.hidden, {project_rid('s')}, 0, "
    "CASE WHEN new.cost IS NOT NULL THEN 0.0 END, 0 FROM session AS s "
    "WHERE s.id = new.session_id "
    f"AND NOT EXISTS (SELECT 1 FROM usage_hour WHERE {_CELL});"
)
_ADD = (
    f"UPDATE usage_hour SET messages = messages + 1, "
    f"{', '.join(map(_added, USAGE))}, longest_prompt = "
    f"max(longest_prompt, CAST({prompt_length('new')} AS INTEGER)) WHERE {_CELL};"
)
#: A number of a message that was deleted is given again, if it was the largest one.
_LOWER_MARK = (
    "UPDATE meta SET value = coalesce((SELECT max(rid) FROM message), 0) "
    "WHERE key = 'usage_to' "
    "AND CAST(value AS INTEGER) > coalesce((SELECT max(rid) FROM message), 0);"
)
_UPDATE = f"UPDATE OF {', '.join(_FOLLOWED)} ON message"

TRIGGERS = (
    f"CREATE TRIGGER usage_delete AFTER DELETE ON message WHEN {_IS_COVERED} "
    f"BEGIN {_let_wait('old')} {_LOWER_MARK} END",
    f"CREATE TRIGGER usage_add AFTER {_UPDATE} WHEN {_ADDS} "
    f"BEGIN {_NEW_MODEL} {_EMPTY_CELL} {_ADD} END",
    f"CREATE TRIGGER usage_change AFTER {_UPDATE} "
    f"WHEN ({_CHANGES}) AND ({has_usage('old')} OR {_MOVES}) "
    f"AND ({_IS_COVERED} OR new.rid <= {MARK_OF_USAGE}) "
    f"BEGIN {_let_wait('old')} {_let_wait('new')} {_LOWER_MARK} END",
    "CREATE TRIGGER usage_session_update AFTER UPDATE OF hidden, project_id ON session "
    "WHEN new.hidden <> old.hidden OR new.project_id <> old.project_id "
    "BEGIN UPDATE usage_hour SET hidden = new.hidden, "
    f"project_rid = {project_rid('new')} WHERE session_rid = new.rid; END",
    # Foreign keys do the same, but in a shell they are off.
    "CREATE TRIGGER usage_session_delete AFTER DELETE ON session "
    "BEGIN DELETE FROM usage_hour WHERE session_rid = old.rid; "
    "DELETE FROM usage_waiting WHERE rid = old.rid; END",
)
