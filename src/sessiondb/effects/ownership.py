"""Once-only counting: of all copies of one answer, exactly one is not inherited.

Copies are the rows with one ``usage_key``, or with one (root, seq, id): what a
fork took over. The owner is a copy whose session has no other copy among its
ancestors; among several, that of the smallest (time_created, id). Deleted
sessions do not take part. Whoever adds, removes or relinks rows calls `assign_owner`
with the rows it touched, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import and_, func, literal_column, select, text

from sessiondb.effects.transaction import SessionState, Transaction
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.schema import message, part, session
from sessiondb.schema.sums import cost_sum, count_sum
from sessiondb.schema.tables import TOKENS, USAGE


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """One row of a class of copies; ``born``: a fork got it when it was made."""

    session_id: str
    seq: int
    id: str
    usage_key: str | None
    inherited: int
    root_id: str
    time_created: int
    message_time: int
    born: int | None

    @property
    def usage_class(self) -> UsageClass:
        """The key of its class."""
        return UsageClass(
            self.root_id, self.seq, self.id, self.message_time, self.usage_key
        )


_COLUMNS = (
    message.c.session_id,
    message.c.seq,
    message.c.id,
    message.c.usage_key,
    message.c.inherited,
    session.c.root_id,
    session.c.time_created,
    message.c.time_created.label("message_time"),
    and_(session.c.relation == text("'fork'"), message.c.seq <= session.c.parent_seq),
)
_alive = session.c.time_deleted.is_(None)
_BY_KEY = Statement(
    lambda: (
        select(*_COLUMNS)
        .join_from(message, session, session.c.id == message.c.session_id)
        .where(message.c.usage_key == p("key"), _alive)
    )
)
# Ids that two programs made may agree by chance, in one family too. Copies also keep
# their time, and one of them is inherited, or came with a fork.
_BY_FAMILY = Statement(
    lambda: (
        select(*_COLUMNS)
        .join_from(session, message, session.c.id == message.c.session_id)
        .where(
            session.c.root_id == p("root"),
            _alive,
            message.c.id == p("mid"),
            message.c.seq == p("seq"),
            message.c.time_created == p("time"),
        )
    )
)
_PARENTS = Statement(
    lambda: select(session.c.parent_id).where(session.c.id == p("sid")),
)
_SET_MESSAGE = update_of(
    message, "inherited", message.c.session_id == p("sid"), message.c.seq == p("at")
)
_SET_PARTS = update_of(
    part, "inherited", part.c.session_id == p("sid"), part.c.seq == p("at")
)
_UNINDEX = Statement(
    lambda: (
        part.update()
        .where(
            part.c.session_id == p("sid"),
            part.c.seq == p("at"),
            part.c.indexed == text("1"),
        )
        .values(indexed=text("0"))
    )
)
_PART_RIDS = Statement(
    lambda: select(part.c.rid).where(
        part.c.session_id == p("sid"), part.c.seq == p("at")
    )
)


#: The counters of a session, in the order of `_TOTAL`.
_COUNTERS = ("message_count", "cost", "cost_inherited", *TOKENS)


def _total() -> Any:
    sums = [cost_sum("cost", "inherited = 0"), cost_sum("cost", "inherited = 1")]
    sums += [count_sum(name, "inherited = 0") for name in TOKENS]
    columns: list[Any] = [literal_column(sql) for sql in sums]
    return (
        select(func.count(), *columns)
        .select_from(message)
        .where(message.c.session_id == p("sid"))
    )


_TOTAL = Statement(_total)
_RECOUNT = update_of(
    session,
    " ".join(_COUNTERS),
    session.c.id == p("sid"),
)


def recount(tx: Transaction, session_ids: Iterable[str]) -> None:
    """Make the counters of sessions those of their messages."""
    for session_id in session_ids:
        values = dict(zip(_COUNTERS, tx.one(_TOTAL, sid=session_id), strict=True))
        tx.run(_RECOUNT, sid=session_id, **values)
        state = tx.states.get(session_id)
        if state is None:
            continue
        for name, value in values.items():
            setattr(state, name, value)


_MODEL_SOURCE = Statement(
    lambda: select(session.c.model_source).where(session.c.id == p("sid"))
)
_LAST_ANSWER = Statement(
    lambda: (
        select(message.c.provider_id, message.c.model_id)
        .where(
            message.c.session_id == p("sid"),
            message.c.role == text("'assistant'"),
            message.c.model_id.is_not(None),
        )
        .order_by(message.c.seq.desc())
        .limit(1)
    )
)
_SET_MODEL = update_of(session, "provider_id model_id", session.c.id == p("sid"))


def derive_model(tx: Transaction, session_id: str) -> None:
    """Make the model of a session that of its last answer, unless it was stated.

    An append does this by itself; whoever removes, copies or imports messages calls it.
    """
    if tx.one(_MODEL_SOURCE, sid=session_id)[0] != "derived":
        return

    provider_id, model_id = tx.one(_LAST_ANSWER, sid=session_id) or (None, None)
    tx.run(_SET_MODEL, sid=session_id, provider_id=provider_id, model_id=model_id)
    if session_id in tx.states:
        state = tx.states[session_id]
        state.provider_id, state.model_id = provider_id, model_id


@cache
def _known(column: str, inherited: int) -> Statement:
    """Return the query for a message that still states a *column*, the last first."""
    return Statement(
        lambda: (
            select(message.c.seq)
            .where(
                message.c.session_id == p("sid"),
                message.c.inherited == text(str(inherited)),
                message.c[column].is_not(None),
            )
            .order_by(message.c.seq.desc())
            .limit(1)
        )
    )


def subtract(
    tx: Transaction, state: SessionState, removed: Iterable[tuple[int, Sequence[Any]]]
) -> None:
    """Take removed messages, as (inherited, values of `USAGE`), out of the counters.

    The rows are gone already. Counting again would read all of the session for the
    removal of one message.
    """
    gone: set[tuple[str, int]] = set()
    for inherited, (cost, *tokens) in removed:
        state.message_count -= 1
        if inherited and cost is not None:
            state.cost_inherited = (state.cost_inherited or 0.0) - cost
            gone.add(("cost", 1))

        if inherited:
            continue

        state.count(cost, tokens, -1)
        stated = zip(USAGE, (cost, *tokens), strict=True)
        gone.update((name, 0) for name, value in stated if value is not None)

    # A sum is NULL, not 0, where no message is left that states the value.
    for name, inherited in gone:
        if tx.one(_known(name, inherited), sid=state.id) is None:
            setattr(state, "cost_inherited" if inherited else name, None)


def _ancestors(
    tx: Transaction, session_id: str, known: dict[str, list[str]]
) -> list[str]:
    if session_id not in known:
        # Of a chain that is a circle in a damaged file, each id once.
        chain: dict[str, None] = {}
        above = _parent(tx, session_id)
        while above is not None and above not in chain:
            chain[above] = None
            above = _parent(tx, above)

        known[session_id] = list(chain)
    return known[session_id]


def _parent(tx: Transaction, session_id: str) -> str | None:
    row = tx.one(_PARENTS, sid=session_id)
    return None if row is None else row[0]


def owner_of(tx: Transaction, copies: list[Copy], known: dict[str, list[str]]) -> Copy:
    """Return the copy that is counted."""
    if len(copies) == 1:
        return copies[0]

    sessions = {copy.session_id for copy in copies}
    topmost = [
        copy
        for copy in copies
        if sessions.isdisjoint(_ancestors(tx, copy.session_id, known))
    ]
    return min(topmost or copies, key=lambda c: (c.time_created, c.session_id, c.seq))


class UsageClass(NamedTuple):
    """The key of a message's class: enough to find its copies when it is gone."""

    root_id: str
    seq: int
    id: str
    time_created: int
    usage_key: str | None


def copies_of(tx: Transaction, row: UsageClass) -> list[Copy]:
    """Return all live rows of one class: its copies, and the copies of those."""
    found: dict[tuple[str, int], Copy] = {}
    queried: set[UsageClass | str | None] = {None}
    waiting = [row]
    # Grows while it is walked: a copy may have copies under another key.
    for one in waiting:
        alike: list[Copy] = []
        key, place = one.usage_key, one._replace(usage_key=None)
        if key not in queried:
            alike += (Copy(*r) for r in tx.run(_BY_KEY, key=key).fetchall())
        if place not in queried:
            alike += _family(tx, place)
        queried |= {key, place}

        for copy in alike:
            if (copy.session_id, copy.seq) not in found:
                found[copy.session_id, copy.seq] = copy
                waiting.append(copy.usage_class)

    return list(found.values())


def _family(tx: Transaction, row: UsageClass) -> list[Copy]:
    rows = tx.run(
        _BY_FAMILY, root=row.root_id, mid=row.id, seq=row.seq, time=row.time_created
    )
    family = [Copy(*found) for found in rows.fetchall()]
    # The sessions between two forks may be removed: then each copy counts by itself.
    is_copied = any(copy.inherited or copy.born for copy in family)
    return family if is_copied else []


def assign_owner(tx: Transaction, rows: Iterable[UsageClass]) -> set[str]:
    """Give exactly one owner to each class that one of *rows* belongs to.

    The rows themselves may be gone. Returns the sessions whose counters must be
    made again; the caller calls `recount` for them.
    """
    known: dict[str, list[str]] = {}
    touched: set[str] = set()
    for row in rows:
        copies = copies_of(tx, row)
        if not copies:
            continue
        # Rows that are owned by the right copy already are not touched.
        owner = owner_of(tx, copies, known)
        for copy in copies:
            inherited = int(copy is not owner)
            if copy.inherited != inherited:
                mark(tx, copy.session_id, copy.seq, inherited)
                touched.add(copy.session_id)

    return touched


def mark(tx: Transaction, session_id: str, seq: int, inherited: int) -> None:
    """Make one message own or inherited, with its parts and their place in search."""
    tx.run(_SET_MESSAGE, sid=session_id, at=seq, inherited=inherited)
    if inherited:
        tx.run(_UNINDEX, sid=session_id, at=seq)

    tx.run(_SET_PARTS, sid=session_id, at=seq, inherited=inherited)
    if not inherited:
        tx.to_index += tx.column(_PART_RIDS, sid=session_id, at=seq)
