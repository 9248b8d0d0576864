"""The triggers that keep the sums of usage exact: see `usage_cells`.

A message that is deleted or changed makes its session wait: subtracting would leave
the rounding of floats, and could not know whether a sum is 0 or unknown. A message that
states its usage for the first time, as an answer does that was open when the mark
passed it, is added to its cell: a long session is not summed up again for it.
"""

from __future__ import annotations

from sessiondb.engine.sqlite.usage_cells import (
    MARK_OF_USAGE,
    MODEL,
    hour_of,
    is_in_cell,
    model_of,
    model_rid,
    project_rid,
)
from sessiondb.schema.terms import USAGE
from sessiondb.schema.usage import has_usage, prompt_length

_FOLLOWED = ("rid", "session_id", "agent", "provider_id", "model_id", *USAGE,
             "inherited", "time_created")  # fmt: skip
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
    """Return the statement by which the session of a covered message waits.

    Not if it does not exist any more.
    """
    return (
        "INSERT INTO usage_waiting (rid) SELECT rid FROM session "
        f"WHERE id = {message}.session_id AND {has_usage(message)} "
        f"AND {message}.rid <= {MARK_OF_USAGE} "
        "AND rid NOT IN (SELECT rid FROM usage_waiting);"
    )


def _added(name: str) -> str:
    if name == "cost":
        return f"{name} = {name} + new.{name}"
    # Floats do not overflow: see `schema.sums`.
    total = f"CAST(coalesce({name}, 0) + 1.0 * new.{name} AS INTEGER)"
    return f"{name} = CASE WHEN new.{name} IS NULL THEN {name} ELSE {total} END"


_OF_SESSION = "FROM session AS s WHERE s.id = new.session_id"
_MODEL = model_of("new", "s")
_NEW_MODEL = (
    f"INSERT INTO usage_model ({', '.join(MODEL)}) "
    f"SELECT {', '.join(_MODEL.values())} {_OF_SESSION} "
    f"AND {model_rid(_MODEL)} IS NULL;"
)
_CELL = (
    "SELECT c.rid FROM session AS s CROSS JOIN usage_hour AS c "
    f"WHERE s.id = new.session_id AND {is_in_cell('new', 's', 'c')}"
)
_EMPTY_CELL = (
    "INSERT INTO usage_hour (session_rid, hour, model_rid, hidden, project_rid, "
    f"messages, cost, longest_prompt) SELECT s.rid, {hour_of('new')}, "
    f"{model_rid(_MODEL)}, s.hidden, {project_rid('s')}, 0, "
    f"CASE WHEN new.cost IS NOT NULL THEN 0.0 END, 0 {_OF_SESSION} "
    f"AND NOT EXISTS ({_CELL});"
)
_ADD = (
    f"UPDATE usage_hour SET messages = messages + 1, {', '.join(map(_added, USAGE))}, "
    "longest_prompt = "
    f"max(longest_prompt, CAST({prompt_length('new')} AS INTEGER)) "
    f"WHERE rid = ({_CELL});"
)
_LAST_MESSAGE = "coalesce((SELECT max(rid) FROM message), 0)"
#: A number of a message that was deleted is given again, if it was the largest one.
_LOWER_MARK = (
    f"UPDATE meta SET value = {_LAST_MESSAGE} WHERE key = 'usage_to' "
    f"AND CAST(value AS INTEGER) > {_LAST_MESSAGE};"
)
_UPDATE = f"UPDATE OF {', '.join(_FOLLOWED)} ON message"

TRIGGERS = (
    "CREATE TRIGGER usage_delete AFTER DELETE ON message "
    f"WHEN {has_usage('old')} AND {_IS_COVERED} OR old.rid > {_LAST_MESSAGE} "
    f"BEGIN {_let_wait('old')} {_LOWER_MARK} END",
    f"CREATE TRIGGER usage_add AFTER {_UPDATE} WHEN {_ADDS} "
    f"BEGIN {_NEW_MODEL} {_EMPTY_CELL} {_ADD} END",
    f"CREATE TRIGGER usage_change AFTER {_UPDATE} "
    f"WHEN ({_CHANGES}) AND ({has_usage('old')} OR {_MOVES}) "
    f"AND ({_IS_COVERED} OR new.rid <= {MARK_OF_USAGE}) "
    f"BEGIN {_let_wait('old')} {_let_wait('new')} {_LOWER_MARK} END",
    "CREATE TRIGGER usage_session_update AFTER UPDATE OF hidden, project_id ON session "
    "WHEN new.hidden <> old.hidden OR new.project_id IS NOT old.project_id "
    "BEGIN UPDATE usage_hour SET hidden = new.hidden, "
    f"project_rid = {project_rid('new')} WHERE session_rid = new.rid; END",
    "CREATE TRIGGER usage_session_model AFTER UPDATE OF source, agent ON session "
    "WHEN (new.source <> old.source OR new.agent IS NOT old.agent) "
    "AND EXISTS (SELECT 1 FROM usage_hour WHERE session_rid = new.rid) "
    "BEGIN INSERT INTO usage_waiting (rid) SELECT new.rid "
    "WHERE new.rid NOT IN (SELECT rid FROM usage_waiting); END",
    # Foreign keys do the same, but in a shell they are off.
    "CREATE TRIGGER usage_session_delete AFTER DELETE ON session "
    "BEGIN DELETE FROM usage_hour WHERE session_rid = old.rid; "
    "DELETE FROM usage_waiting WHERE rid = old.rid; END",
)
