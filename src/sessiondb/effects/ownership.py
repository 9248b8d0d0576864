"""Once-only counting: of all copies of one answer, exactly one is not inherited.

Copies are the rows with one ``usage_key``, or with one (root, seq, id): what a fork
took over. Rows with one key have one name (`USAGE_NAME`), which the key was made from:
those whose name is their id are found by it, and the index of keys has only the others.
The owner is a copy whose session has no other copy among its ancestors; among several,
that of the smallest (time_created, id). Deleted sessions do not take part. Whoever
adds, removes or relinks rows calls `assign_owner` with the rows it touched, in the same
transaction.

Two transactions that write one answer side by side would not see each other's row. So
whoever gives a row a key locks the name of the answer before it looks for copies. What
else changes a class locks the sessions of all its rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from sessiondb.dataclass import dataclass
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.base import Name
from sessiondb.engine.sql import ComposedStatement, Statement, as_list
from sessiondb.schema.terms import COUNTERS, USAGE


class CopyPlace(NamedTuple):
    """The place of a message in its family, which the copies that forks made keep.

    Ids that two programs made may agree by chance, in one family too: copies also keep
    their time (Unix ms).
    """

    root_id: str
    seq: int
    id: str
    time_created: int


class UsageKey(NamedTuple):
    """A usage key, with the name in it."""

    key: str
    name: str


def name_of_answer(usage_name: str) -> Name:
    """Return the name under which an answer is locked: that in its usage key."""
    return "answer", usage_name


#: Messages that have a key or a place in common may be copies.
Link = UsageKey | CopyPlace


class UsageClass(NamedTuple):
    """The links of a message: enough to find its copies when it is gone."""

    root_id: str
    seq: int
    id: str
    time_created: int
    usage_key: str | None
    #: The response id, the message id or whatever else its key names.
    usage_name: str

    @property
    def links(self) -> set[Link]:
        """Its place in the family, and its usage key if it has one."""
        place = CopyPlace(self.root_id, self.seq, self.id, self.time_created)
        if self.usage_key is None:
            return {place}
        return {place, UsageKey(self.usage_key, self.usage_name)}


@dataclass(slots=True, eq=False)
class Copy:
    """A live message that may have copies; ``born``: a fork began with it.

    ``time_created`` is that of its session, in Unix ms.
    """

    session_id: str
    time_created: int
    inherited: int
    born: int | None
    seq: int
    links: set[Link]


_BY_KEY = Statement("effects.ownership.BY_KEY")
_BY_PLACE = Statement("effects.ownership.BY_PLACE")
#: Where `Place` is in a row of these columns.
_PLACE = slice(-6, -2)
#: Places whose seqs are this close are read together, with what is between them.
_GAP = 32
_PARENT = Statement("effects.ownership.PARENT")
_SET_MESSAGE = Statement("effects.ownership.SET_MESSAGE")
_SET_PARTS = Statement("effects.ownership.SET_PARTS")
_UNINDEX = Statement("effects.ownership.UNINDEX")
_PARTS = Statement("effects.ownership.PARTS")


_TOTAL = Statement("effects.ownership.TOTAL")
_RECOUNT = Statement("effects.ownership.RECOUNT")


def recount(tx: Transaction, session_ids: Iterable[str]) -> None:
    """Make the counters of sessions those of their messages."""
    names = list(session_ids)
    tx.lock(*names)
    for session_id in names:
        values = dict(zip(COUNTERS, tx.one(_TOTAL, sid=session_id), strict=True))
        tx.run(_RECOUNT, sid=session_id, **values)
        state = tx.states.get(session_id)
        if state is None:
            continue
        for name, value in values.items():
            setattr(state, name, value)


_MODEL_SOURCE = Statement("effects.ownership.MODEL_SOURCE")
_LAST_ANSWER = Statement("effects.ownership.LAST_ANSWER")
_SET_MODEL = Statement("effects.ownership.SET_MODEL")


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
def _known_statement(column: str, inherited: int) -> Statement:
    """Return the query for a message that still states a *column*, the last first."""
    return ComposedStatement(
        f"SELECT seq FROM message WHERE session_id = :sid AND inherited = {inherited} "
        f"AND {column} IS NOT NULL ORDER BY seq DESC LIMIT 1"
    )


def subtract(
    tx: Transaction, state: SessionState, removed: Iterable[tuple[int, Sequence[Any]]]
) -> None:
    """Take removed messages, as (inherited, values of `USAGE`), out of the counters.

    The rows are gone already. Counting again would read all of the session for the
    removal of one message.
    """
    # Each counter with the column that it sums up, and of which messages.
    gone: set[tuple[str, str, int]] = set()
    for inherited, (cost, *tokens) in removed:
        state.message_count -= 1
        if not inherited:
            state.count(cost, tokens, -1)
            usage = zip(USAGE, (cost, *tokens), strict=True)
            gone.update((name, name, 0) for name, value in usage if value is not None)
        elif cost is not None:
            state.cost_inherited = (state.cost_inherited or 0.0) - cost
            gone.add(("cost_inherited", "cost", 1))

    # A sum is NULL, not 0, if no message is left that states the value.
    for counter, column, inherited in gone:
        if tx.one(_known_statement(column, inherited), sid=state.id) is None:
            setattr(state, counter, None)


def parent_of(tx: Transaction, session_id: str) -> str | None:
    """Return the id of a session's parent; None for a root or an unknown session."""
    row = tx.one(_PARENT, sid=session_id)
    return None if row is None else row[0]


class Copies:
    """The live copies of some messages, and the copies of those.

    They are read together, by key and by place until nothing new is found: a query for
    each copy would look into every session of a family once for each of its messages.
    """

    def __init__(self, tx: Transaction, rows: Iterable[UsageClass]) -> None:
        self._tx = tx
        self._found: set[tuple[str, int]] = set()
        self._linked: dict[Link, list[Copy]] = {}
        self._parents: dict[str, str | None] = {}
        self._above: dict[str, list[str]] = {}

        read: set[Link] = set()
        unread = _links_of(rows)
        while unread:
            read |= unread
            new = self._by_key([link for link in unread if isinstance(link, UsageKey)])
            new += self._by_place(
                [link for link in unread if isinstance(link, CopyPlace)]
            )
            unread = _links_of(new) - read

    def _by_key(self, links: list[UsageKey]) -> list[Copy]:
        if not links:
            return []
        keys, names = zip(*links, strict=True)
        rows = self._tx.run(_BY_KEY, keys=as_list(keys), names=as_list(names))
        return self._take_in(rows)

    def _by_place(self, places: list[CopyPlace]) -> list[Copy]:
        new: list[Copy] = []
        for run in _runs_of_places(places):
            wanted, roots = set(run), {place.root_id for place in run}
            bounds = {"least": run[0].seq, "most": run[-1].seq}
            rows = self._tx.run(_BY_PLACE, roots=as_list(roots), **bounds)
            new += self._take_in(row for row in rows if row[_PLACE] in wanted)
        return new

    def _take_in(self, rows: Iterable[Sequence[Any]]) -> list[Copy]:
        """Return the rows that were not found before."""
        new: list[Copy] = []
        for session_id, parent_id, created, inherited, born, *key in rows:
            row = UsageClass(*key)
            if (session_id, row.seq) in self._found:
                continue

            copy = Copy(session_id, created, inherited, born, row.seq, row.links)
            new.append(copy)
            self._found.add((session_id, row.seq))
            self._parents[session_id] = parent_id
            for link in copy.links:
                self._linked.setdefault(link, []).append(copy)

        return new

    @property
    def session_ids(self) -> set[str]:
        """The sessions that have one of them."""
        return {session_id for session_id, _ in self._found}

    def having(self, link: Link) -> list[Copy]:
        """Return the messages that have *link*; those of a place may be no copies."""
        return self._linked.get(link, [])

    def of(self, copy: Copy) -> list[Copy]:
        """Return all copies in one class with *copy*, itself among them."""
        copies = {copy: None}
        links, seen = list(copy.links), set(copy.links)
        # Grows while it is walked: a copy may have copies under another key.
        for link in links:
            for other in self._joined_by(link):
                if other in copies:
                    continue
                copies[other] = None
                links += other.links - seen
                seen |= other.links

        return list(copies)

    def _joined_by(self, link: Link) -> list[Copy]:
        copies = self.having(link)
        # Ids that two programs made may agree by chance. Of copies, one came with a
        # fork or, as the sessions between two forks may be removed, is inherited
        # although no other message has its key.
        is_class = isinstance(link, UsageKey) or any(
            copy.born or (copy.inherited and self._is_alone(copy)) for copy in copies
        )
        return copies if is_class else []

    def _is_alone(self, copy: Copy) -> bool:
        """Return whether no other message has the usage key of *copy*."""
        keys = (link for link in copy.links if isinstance(link, UsageKey))
        return all(len(self._linked[key]) == 1 for key in keys)

    def owner(self, copies: list[Copy]) -> Copy:
        """Return the one of *copies* that is counted."""
        sessions = {copy.session_id for copy in copies}
        topmost = [
            copy
            for copy in copies
            if sessions.isdisjoint(self._ancestors_of(copy.session_id))
        ]
        return min(
            topmost or copies, key=attrgetter("time_created", "session_id", "seq")
        )

    def _ancestors_of(self, session_id: str) -> list[str]:
        if session_id not in self._above:
            # Of a chain that is a circle in a damaged file, each id once.
            chain: dict[str, None] = {}
            ancestor = self._parent_of(session_id)
            while ancestor is not None and ancestor not in chain:
                chain[ancestor] = None
                ancestor = self._parent_of(ancestor)

            self._above[session_id] = list(chain)
        return self._above[session_id]

    def _parent_of(self, session_id: str) -> str | None:
        if session_id not in self._parents:
            self._parents[session_id] = parent_of(self._tx, session_id)
        return self._parents[session_id]


def _links_of(items: Iterable[UsageClass | Copy]) -> set[Link]:
    return {link for item in items for link in item.links}


def _runs_of_places(places: Iterable[CopyPlace]) -> list[list[CopyPlace]]:
    """Return *places* in order of their seqs, in runs without a gap above `_GAP`."""
    runs: list[list[CopyPlace]] = []
    for place in sorted(places, key=attrgetter("seq")):
        if not runs or place.seq - runs[-1][-1].seq > _GAP:
            runs.append([])
        runs[-1].append(place)
    return runs


def assign_owner(tx: Transaction, rows: Collection[UsageClass]) -> set[str]:
    """Give exactly one owner to each class that one of *rows* belongs to.

    The rows themselves may be gone. Returns the sessions whose counters must be
    made again; the caller calls `recount` for them.
    """
    touched: set[str] = set()
    copies = Copies(tx, rows)
    # They may have changed until their writers let go.
    while tx.lock(*copies.session_ids):
        copies = Copies(tx, rows)
    settled: set[Copy] = set()
    # One by one: a row that is gone, or has another key now, joins nothing any more.
    for copy in chain.from_iterable(map(copies.having, _links_of(rows))):
        if copy in settled:
            continue

        alike = copies.of(copy)
        settled.update(alike)
        owner = copies.owner(alike)
        for each in alike:
            inherited = int(each is not owner)
            # Rows that are owned by the right copy already are not touched.
            if each.inherited != inherited:
                mark(tx, each.session_id, each.seq, inherited)
                each.inherited = inherited
                touched.add(each.session_id)

    return touched


def mark(tx: Transaction, session_id: str, seq: int, inherited: int) -> None:
    """Make one message own or inherited, with its parts and their place in search."""
    tx.run(_SET_MESSAGE, sid=session_id, at=seq, inherited=inherited)
    if inherited:
        tx.run(_UNINDEX, sid=session_id, at=seq)
        tx.engine.search.take_out(tx.connection, session_id, seq)

    tx.run(_SET_PARTS, sid=session_id, at=seq, inherited=inherited)
    if not inherited:
        tx.index_parts(session_id, seq, tx.column(_PARTS, sid=session_id, at=seq))
