"""The columns whose values follow from other rows, each declared once.

`check` counts the rows that differ from a declaration, `repair` sets them to what it
says. Values are compared as they are, NULL included: with ``=``, a NULL that should be
a number would equal nothing, and differ from nothing. `message.inherited`, names of
blobs and the search index follow from more than a query: see `check` and `ownership`.
"""

from __future__ import annotations

from sessiondb.dataclass import dataclass
from sessiondb.schema.purposes import is_prompt
from sessiondb.schema.rows import SEARCHED
from sessiondb.schema.sums import cost_sum, count_sum
from sessiondb.schema.terms import HIDDEN, TOKENS

#: The sessions whose columns must be right: neither deleted nor half imported.
LIVE = "s.time_deleted IS NULL AND s.time_importing IS NULL"
#: Sums of floats made in another order differ in their last digits.
_ROUNDING = "1e-6"


@dataclass(frozen=True, slots=True)
class Derivation:
    """Columns of one table that follow from other rows."""

    table: str
    #: The columns that name a row; the first is the id of its session.
    key: tuple[str, ...]
    #: FROM and WHERE of the rows that have to be right, and its name for the table.
    rows: str
    alias: str
    #: Column → its right value, as SQL.
    values: dict[str, str]
    #: The check that reports wrong rows, what it calls them, and what a repair does.
    check: str
    what: str
    repair: str
    #: Those of the columns that are sums of floats.
    float_sums: tuple[str, ...] = ()

    @property
    def wrong(self) -> str:
        """The query for the wrong rows: the key, then the right values."""
        names = [f"{self.alias}.{name}" for name in self.key]
        differs = " OR ".join(map(self._differs_sql, self.values))
        selected = ", ".join([*names, *self.values.values()])
        return f"SELECT {selected} {self.rows} AND ({differs})"

    @property
    def count(self) -> str:
        """The query for the number of wrong rows."""
        return f"SELECT count(*) FROM ({self.wrong}) AS wrong"

    def _differs_sql(self, name: str) -> str:
        stored, right = f"{self.alias}.{name}", self.values[name]
        if name not in self.float_sums:
            return f"{stored} IS DISTINCT FROM {right}"
        # A difference with NULL is NULL: then both have to be.
        close = f"abs({stored} - {right}) <= {_ROUNDING} * (1 + abs({right}))"
        return f"NOT coalesce({close}, {stored} IS NULL AND {right} IS NULL)"


_SUMS = {
    "message_count": "count(m.seq)",
    "prompt_count": f"count(CASE WHEN {is_prompt('m')} THEN 1 END)",
    "cost": cost_sum("m.cost", "m.inherited = 0"),
    "cost_inherited": cost_sum("m.cost", "m.inherited = 1"),
    **{name: count_sum(f"m.{name}", "m.inherited = 0") for name in TOKENS},
}
_SUMS_OF_SESSIONS = (
    f"SELECT s.id, {', '.join(f'{sql} AS {name}' for name, sql in _SUMS.items())} "
    "FROM session AS s LEFT JOIN message AS m ON m.session_id = s.id "
    f"WHERE {LIVE} GROUP BY s.id"
)
COUNTERS = Derivation(
    table="session",
    key=("id",),
    rows=f"FROM ({_SUMS_OF_SESSIONS}) AS sums CROSS JOIN session AS s "
    "WHERE s.id = sums.id",
    alias="s",
    values={name: f"sums.{name}" for name in _SUMS},
    check="counters",
    what="sessions whose messages, cost or tokens are not those of their messages",
    repair="count again",
    float_sums=("cost", "cost_inherited"),
)
HIDDEN_SESSIONS = Derivation(
    table="session",
    key=("id",),
    rows="FROM session AS s WHERE s.id IS NOT NULL",
    alias="s",
    values={"hidden": f"({HIDDEN.format('s.')})"},
    check="counters",
    what="sessions that default lists have, or leave out, against the rule",
    repair="list them by the rule",
)
_LAST_ANSWER = (
    "(SELECT max(m.seq) FROM message AS m WHERE m.session_id = s.id "
    "AND m.role = 'assistant' AND m.model_id IS NOT NULL)"
)
MODEL = Derivation(
    table="session",
    key=("id",),
    rows="FROM session AS s "
    f"LEFT JOIN message AS a ON a.session_id = s.id AND a.seq = {_LAST_ANSWER} "
    f"WHERE s.model_source = 'derived' AND {LIVE}",
    alias="s",
    values={
        # Before the first answer a caller may state a provider alone.
        "provider_id": "CASE WHEN a.seq IS NULL THEN s.provider_id "
        "ELSE a.provider_id END",
        "model_id": "a.model_id",
    },
    check="counters",
    what="sessions whose model is not that of their last answer",
    repair="take that of the answer",
)
#: A session that has a relation and no parent was detached, and keeps its root.
ROOT = Derivation(
    table="session",
    key=("id",),
    rows="FROM session AS s LEFT JOIN session AS p ON p.id = s.parent_id "
    "WHERE s.time_deleted IS NULL AND (p.id IS NOT NULL AND p.time_deleted IS NULL "
    "OR s.parent_id IS NULL AND s.relation IS NULL)",
    alias="s",
    values={"root_id": "coalesce(p.root_id, s.id)"},
    check="tree",
    what="sessions whose root is not that of their parent",
    repair="take that of the parent",
)
#: In this order, a look into an index for each message, and not for each of its parts.
_PARTS_OF_MESSAGES = "FROM message AS m CROSS JOIN part AS p"
_OF_MESSAGE = "p.session_id = m.session_id AND p.seq = m.seq"
PART_INHERITED = Derivation(
    table="part",
    key=("session_id", "seq", "idx"),
    rows=f"{_PARTS_OF_MESSAGES} WHERE {_OF_MESSAGE}",
    alias="p",
    values={"inherited": "m.inherited"},
    check="ownership",
    what="parts that do not agree with their message about being inherited",
    repair="follow the message",
)
_SEARCHABLE = " OR ".join(f"coalesce(p.{name}, '') <> ''" for name in SEARCHED)
#: Whether a part does not change any more: its message is complete, or its call is.
_FINAL = "m.time_completed IS NOT NULL OR p.status IN ('completed', 'error')"
#: Of an open message another program may write on: then its import decides.
PART_INDEXED = Derivation(
    table="part",
    key=("session_id", "seq", "idx"),
    rows=f"{_PARTS_OF_MESSAGES} CROSS JOIN session AS s "
    f"WHERE {_OF_MESSAGE} AND s.id = m.session_id AND {LIVE}",
    alias="p",
    values={
        "indexed": f"CASE WHEN m.inherited = 1 OR NOT ({_SEARCHABLE}) THEN 0 "
        f"WHEN {_FINAL} OR p.indexed = 1 THEN 1 ELSE 0 END"
    },
    check="search",
    what="parts that are in the search index, or are not, against the rule",
    repair="index them by the rule",
)
#: In the order in which a repair applies them: what follows from what.
DERIVATIONS = (
    ROOT,
    PART_INHERITED,
    PART_INDEXED,
    COUNTERS,
    HIDDEN_SESSIONS,
    MODEL,
)
