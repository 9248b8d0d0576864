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
    columns: tuple[str, ...]
    #: A query: the ``rid`` of each row, then the right value of each of the columns.
    values: str
    #: The check that reports wrong rows, what it calls them, and what a repair does.
    check: str
    what: str
    repair: str
    #: Those of the columns that are sums of floats.
    float_sums: tuple[str, ...] = ()

    @property
    def wrong(self) -> str:
        """The query for the wrong rows: ``rid``, then the right values."""
        names = ", ".join(f"right_{name}" for name in self.columns)
        differs = " OR ".join(self._differs_sql(name) for name in self.columns)
        return (
            f"WITH derived (rid, {names}) AS ({self.values}) "
            f"SELECT derived.rid, {names} FROM derived "
            f"JOIN {self.table} AS stored ON stored.rid = derived.rid WHERE {differs}"
        )

    @property
    def count(self) -> str:
        """The query for the number of wrong rows."""
        return f"SELECT count(*) FROM ({self.wrong})"

    def _differs_sql(self, name: str) -> str:
        stored, right = f"stored.{name}", f"derived.right_{name}"
        if name not in self.float_sums:
            return f"{stored} IS NOT {right}"
        # A difference with NULL is NULL: then both have to be.
        close = f"abs({stored} - {right}) <= {_ROUNDING} * (1 + abs({right}))"
        return f"NOT coalesce({close}, {stored} IS {right})"


_TOKEN_SUMS = ", ".join(count_sum(f"m.{name}", "m.inherited = 0") for name in TOKENS)
COUNTERS = Derivation(
    table="session",
    columns=("message_count", "prompt_count", "cost", "cost_inherited", *TOKENS),
    values=(
        "SELECT s.rid, count(m.rid), "
        f"count(CASE WHEN {is_prompt('m')} THEN 1 END), "
        f"{cost_sum('m.cost', 'm.inherited = 0')}, "
        f"{cost_sum('m.cost', 'm.inherited = 1')}, {_TOKEN_SUMS} "
        "FROM session AS s LEFT JOIN message AS m ON m.session_id = s.id "
        f"WHERE {LIVE} GROUP BY s.rid"
    ),
    check="counters",
    what="sessions whose messages, cost or tokens are not those of their messages",
    repair="count again",
    float_sums=("cost", "cost_inherited"),
)
HIDDEN_SESSIONS = Derivation(
    table="session",
    columns=("hidden",),
    values=f"SELECT s.rid, ({HIDDEN.format('s.')}) FROM session AS s",
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
    columns=("provider_id", "model_id"),
    values=(
        # Before the first answer a caller may state a provider alone.
        "SELECT s.rid, iif(a.rid IS NULL, s.provider_id, a.provider_id), a.model_id "
        "FROM session AS s "
        f"LEFT JOIN message AS a ON a.session_id = s.id AND a.seq = {_LAST_ANSWER} "
        f"WHERE s.model_source = 'derived' AND {LIVE}"
    ),
    check="counters",
    what="sessions whose model is not that of their last answer",
    repair="take that of the answer",
)
#: A session that has a relation and no parent was detached, and keeps its root.
ROOT = Derivation(
    table="session",
    columns=("root_id",),
    values=(
        "SELECT s.rid, p.root_id FROM session AS s JOIN session AS p "
        "ON p.id = s.parent_id "
        "WHERE s.time_deleted IS NULL AND p.time_deleted IS NULL "
        "UNION ALL SELECT s.rid, s.id FROM session AS s "
        "WHERE s.parent_id IS NULL AND s.relation IS NULL AND s.time_deleted IS NULL"
    ),
    check="tree",
    what="sessions whose root is not that of their parent",
    repair="take that of the parent",
)
#: In this order, a look into an index for each message, and not for each of its parts.
_PARTS_OF_MESSAGES = (
    "message AS m CROSS JOIN part AS p ON p.session_id = m.session_id AND p.seq = m.seq"
)
PART_INHERITED = Derivation(
    table="part",
    columns=("inherited",),
    values=(f"SELECT p.rid, m.inherited FROM {_PARTS_OF_MESSAGES}"),
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
    columns=("indexed",),
    values=(
        f"SELECT p.rid, CASE WHEN m.inherited = 1 OR NOT ({_SEARCHABLE}) THEN 0 "
        f"WHEN {_FINAL} THEN 1 ELSE p.indexed IN (1) END FROM {_PARTS_OF_MESSAGES} "
        f"CROSS JOIN session AS s ON s.id = m.session_id WHERE {LIVE}"
    ),
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
