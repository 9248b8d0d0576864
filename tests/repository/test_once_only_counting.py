"""Writes, forks, removals and imports in any order: counted once, kept intact.

A machine does things to a store and to a plain model of it, and after each step
compares the two, row by row. With ``SESSIONDB_LONG=1`` it runs for minutes, and needs
``-o faulthandler_timeout=0``.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from backends import Backend
from foreign_sessions import T0, said, session_of
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from plain_model import Foreign, Kept, Model, Row

from sessiondb import Store, assistant
from sessiondb.maintenance import check
from sessiondb.model import Imported

#: Read before any test begins: the suite's own home clears what begins with SESSIONDB_.
LONG = bool(os.environ.get("SESSIONDB_LONG"))
#: Outcomes of sessions that an import writes.
WRITTEN = {"imported", "imported as fork", "updated"}
picks = st.integers(0, 30)
# Sums of these are exact in any order.
costs = st.sampled_from([None, None, 0.25, 1.0, 4.0])
counts = st.sampled_from([None, 5, 7])


def pick(items: Iterable[Any], number: int) -> Any:
    """Choose one of *items* by a number; small numbers are what hypothesis shrinks to."""
    found = list(items)
    return found[number % len(found)]


def some(model: str, size: int = 1) -> Callable[[Any], bool]:
    """A rule needs *size* sessions of that kind."""
    return lambda self: len(getattr(self, model)) >= size


class Counting(RuleBasedStateMachine):
    """One store, the program it imports from, and the model of what it must hold."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self.backend = backend

    @initialize()
    def begin(self) -> None:
        """Open a fresh store."""
        self.store = Store.open(self.backend.fresh(), durability="normal")
        self.model = Model()
        self.foreign: dict[str, Foreign] = {}
        self.numbers = itertools.count(1)

    def teardown(self) -> None:
        """Close it; the search index must agree with the parts to the end."""
        assert check(self.store) == []
        self.store.close()

    @property
    def kept(self) -> dict[str, Kept]:
        """The sessions of the model."""
        return self.model.sessions

    @property
    def filled(self) -> list[Kept]:
        """The sessions that have messages."""
        return [session for session in self.kept.values() if session.rows]

    # -- natively --------------------------------------------------------------

    @rule()
    def create(self) -> None:
        """A session of our own."""
        handle = self.store.create_session(directory="/here")
        time = self.store.session(handle).time_created
        self.kept[handle.id] = Kept(handle.id, time, root=handle.id)

    @precondition(some("kept"))
    @rule(which=picks, cost=costs, tokens=counts, is_open=st.booleans())
    def append(
        self, which: int, cost: float | None, tokens: int | None, is_open: bool
    ) -> None:
        """A message after the leaf; an open one has no cost yet."""
        session = pick(self.kept.values(), which)
        words = f"word{next(self.numbers)}"
        if is_open:
            cost = tokens = None
        usage = None if tokens is None else {"input": tokens}
        handle = self.store.append(
            session.id, assistant(words), cost=cost, tokens=usage, open=is_open
        )
        assert handle.seq is not None
        key = None if cost is None and tokens is None else handle.id
        row = Row(handle.id, handle.seq, session.leaf, words, cost, key, is_open)
        self.model.append(session, row)

    @precondition(some("filled"))
    @rule(which=picks, cost=costs)
    def finish(self, which: int, cost: float | None) -> None:
        """An open message ends; its copies ended before."""
        rows = [
            (s, r) for s in self.kept.values() for r in s.rows.values() if r.is_open
        ]
        if rows:
            session, row = pick(rows, which)
            self.store.finish(session.id, row.id, cost=cost)
            row.is_open, row.cost, row.key = (
                False,
                cost,
                None if cost is None else row.id,
            )
            self.model.use(session)

    @precondition(some("filled"))
    @rule(which=picks, at=picks)
    def set_leaf(self, which: int, at: int) -> None:
        """Continue from another message."""
        session = pick(self.filled, which)
        leaf = pick([*session.rows, None], at)
        self.store.set_leaf(session.id, leaf)
        if leaf != session.leaf:
            session.leaf = leaf
            self.model.use(session)

    @precondition(some("filled"))
    @rule(which=picks, at=picks, how=st.sampled_from(["leaf", "at", "before", "whole"]))
    def fork(self, which: int, at: int, how: str) -> None:
        """A fork, also of a fork, at any message of any branch."""
        session = pick(self.filled, which)
        seq = pick(session.rows, at)
        arguments: dict[str, Any] = {"at": {"at": seq}, "before": {"before": seq}}.get(
            how, {}
        )
        handle = self.store.fork(session.id, branches=how == "whole", **arguments)
        leaf = {"at": seq, "before": session.rows[seq].parent}.get(how, session.leaf)
        time = self.store.session(handle).time_created
        self.model.fork(session, handle.id, time, leaf, how == "whole")

    @precondition(some("filled"))
    @rule(which=picks, at=picks)
    def truncate(self, which: int, at: int) -> None:
        """Remove the messages after a message."""
        session = pick(self.filled, which)
        after = pick([*session.rows, None], at)
        self.store.truncate(session.id, after=after)
        self.model.truncate(session, after)

    @precondition(some("filled"))
    @rule(which=picks, at=st.lists(picks, min_size=1, max_size=4))
    def remove(self, which: int, at: list[int]) -> None:
        """Remove some messages of any branch."""
        session = pick(self.filled, which)
        going = {pick(session.rows, number) for number in at}
        self.store.remove(session.id, going)
        self.model.remove(session, going)

    @precondition(some("kept"))
    @rule(which=picks)
    def pop(self, which: int) -> None:
        """Take the leaf, if there is one."""
        session = pick(self.kept.values(), which)
        taken = self.store.pop(session.id)
        if session.leaf is None:
            assert taken is None
        else:
            row = session.rows[session.leaf]
            assert taken is not None
            assert (taken.id, taken.seq, taken.text) == (row.id, row.seq, row.text)
            self.model.remove(session, {row.seq})

    @precondition(some("filled"))
    @rule(which=picks, at=picks, cost=costs)
    def replace(self, which: int, at: int, cost: float | None) -> None:
        """Write a message again; it costs what it did, or what is stated now."""
        session = pick(self.filled, which)
        row = session.rows[pick(session.rows, at)]
        row.text = f"word{next(self.numbers)}"
        if row.is_open:
            cost = None
        self.store.replace(session.id, row.seq, assistant(row.text), cost=cost)
        if cost is not None:
            row.cost, row.key = cost, row.key or row.id
        self.model.use(session)

    @precondition(some("kept"))
    @rule(which=picks, keep_forks=st.booleans())
    def delete(self, which: int, keep_forks: bool) -> None:
        """Remove a session; the plan lists it beforehand."""
        session = pick(self.kept.values(), which)
        plan = self.store.plan_delete(session.id, keep_forks=keep_forks)
        self.store.delete(session.id, keep_forks=keep_forks)
        assert {item.id for item in plan.sessions} == self.model.delete(
            session, keep_forks
        )

    @rule()
    def reap(self) -> None:
        """Remove the rows of deleted sessions."""
        self.store.reap()

    # -- from elsewhere --------------------------------------------------------

    @rule(
        time=st.integers(0, 3),
        parent=picks,
        relation=st.sampled_from(["fork", "subagent"]),
    )
    def begin_elsewhere(self, time: int, parent: int, relation: str) -> None:
        """The other program begins a session; its parent may be one that it begins later."""
        name = f"s{len(self.foreign)}"
        above = [None, None, *self.foreign, f"s{len(self.foreign) + 1}"]
        chosen = pick(above, parent)
        self.foreign[name] = Foreign(
            name, T0 + time, chosen, relation if chosen else None
        )

    @precondition(some("foreign"))
    @rule(which=picks, time=st.integers(0, 3), length=picks)
    def fork_elsewhere(self, which: int, time: int, length: int) -> None:
        """The other program forks without saying so: copies under new ids, recognised."""
        original = pick(self.foreign.values(), which)
        name = f"s{len(self.foreign)}"
        copies = [
            replace(row, id=f"{name}-{row.id}")
            for row in original.messages[: length % 4 + 1]
        ]
        self.foreign[name] = Foreign(name, T0 + time, original.id, "fork", copies)

    @precondition(some("foreign"))
    @rule(which=picks, cost=costs, tokens=counts)
    def say_elsewhere(self, which: int, cost: float | None, tokens: int | None) -> None:
        """The other program continues its session."""
        session = pick(self.foreign.values(), which)
        name = f"m{next(self.numbers)}"
        session.messages.append(Row(name, 0, None, f"word{name}", cost, (name, tokens)))
        session.version += 1

    @precondition(some("foreign"))
    @rule(which=picks, at=picks, cost=costs, tokens=counts)
    def change_elsewhere(
        self, which: int, at: int, cost: float | None, tokens: int | None
    ) -> None:
        """The other program corrects a message."""
        session = pick(self.foreign.values(), which)
        if session.messages:
            row = pick(session.messages, at)
            row.text, row.cost, row.key = (
                f"word{next(self.numbers)}",
                cost,
                (row.key[0], tokens),
            )
            session.version += 1

    @precondition(some("foreign"))
    @rule(which=picks, at=picks, insert=st.booleans())
    def edit_elsewhere(self, which: int, at: int, insert: bool) -> None:
        """The other program takes a message out, or puts one in between."""
        session = pick(self.foreign.values(), which)
        place = at % (len(session.messages) + 1)
        if insert:
            name = f"m{next(self.numbers)}"
            session.messages.insert(
                place, Row(name, 0, None, f"word{name}", 1.0, (name, None))
            )
        else:
            del session.messages[place : place + 1]
        session.version += 1

    @precondition(some("foreign"))
    @rule(
        order=st.lists(picks, min_size=1, max_size=4),
        undelete=st.booleans(),
        as_fork=st.booleans(),
    )
    def take_in(self, order: list[int], undelete: bool, as_fork: bool) -> None:
        """Import some sessions, in any order."""
        items = [
            self.foreign[n] for n in dict.fromkeys(pick(self.foreign, i) for i in order)
        ]
        seen_before = [self.model.outcome(item, undelete, as_fork) for item in items]
        sources = map(self._source, items)
        found = self.store.ingest(sources, undelete=undelete, as_fork=as_fork)
        # A circle of parents is a problem, and no obstacle.
        by_name = {item.source_id: item for item in found if isinstance(item, Imported)}
        outcomes = zip(items, seen_before, strict=True)
        written = {item.id for item, before in outcomes if before in WRITTEN}
        for item, before in zip(items, seen_before, strict=True):
            result, expected = (
                by_name[item.id],
                self.model.outcome(item, undelete, as_fork),
            )
            forked = expected == "imported as fork"
            # "updated" where nothing changed is "unchanged"; what is still being written when a
            # session is looked up may change what there is to do with it.
            assert result.outcome in {
                "updated" if forked else expected,
                before,
                "unchanged",
            }
            if forked and result.outcome == "unchanged":
                # Its parent came with the same import, after it was looked up.
                assert self.model.noted[item.id] == item.version
            elif expected not in ("deleted", "unchanged", "diverged"):
                self.model.take_in(item, result.id, as_fork=forked, read=written)

    def _source(self, item: Foreign) -> Any:
        messages = [
            said(
                row.id, row.text, cost=row.cost, tokens=row.key[1], usage_id=row.key[0]
            )
            for row in item.messages
        ]
        return session_of(
            item.id, *messages, digest=str(item.version), time_created=item.time,
            parent_source_id=item.parent, relation=item.relation,
        )  # fmt: skip

    # -- invariants after every step ---------------------------------------------

    @invariant()
    def everything_is_as_the_model_says(self) -> None:
        """Rows, paths, who is counted, counters, usage, search."""
        if not hasattr(self, "model"):
            return
        counted = self.model.counted()
        with self.backend.watching(self.store):
            assert self._rows() == {
                (
                    s.id,
                    row.seq,
                    row.id,
                    row.parent,
                    row.text,
                    row.cost,
                    (s.id, row.seq) not in counted,
                )
                for s in self.kept.values()
                for row in s.rows.values()
            }
            self._check_search()
        self._check_sessions(counted)

    def _rows(self) -> set[tuple[Any, ...]]:
        rows = self.backend.rows(
            self.store,
            "SELECT m.session_id, m.seq, m.id, m.parent_seq, p.text, m.cost, m.inherited "
            "FROM message AS m JOIN session AS s ON s.id = m.session_id "
            "LEFT JOIN part AS p ON p.session_id = m.session_id AND p.seq = m.seq "
            "WHERE s.time_deleted IS NULL",
        )
        return {(*row[:-1], row[-1] == 1) for row in rows}

    def _check_search(self) -> None:
        self.backend.assert_searchable(self.store)
        sql = (
            "SELECT count(*) FROM part AS p JOIN session AS s ON s.id = p.session_id JOIN message "
            "AS m ON m.session_id = p.session_id AND m.seq = p.seq "
            "WHERE s.time_deleted IS NULL AND p.indexed <> CASE WHEN m.inherited = 0 AND "
            "(m.time_completed IS NOT NULL OR m.id NOT LIKE 'msg%') THEN 1 ELSE 0 END"
        )
        assert self.backend.rows(self.store, sql) == [(0,)]

    def _check_sessions(self, counted: set[tuple[str, int]]) -> None:
        total = 0.0
        for session in self.kept.values():
            own = [r for r in session.rows.values() if (session.id, r.seq) in counted]
            known = [row.cost for row in own if row.cost is not None]
            total += sum(known)
            stored = self.store.session(session.id)
            assert (stored.parent_id, stored.root_id, stored.leaf_seq) == (
                session.parent,
                session.root,
                session.leaf,
            )
            assert stored.message_count == len(session.rows)
            assert stored.cost == (sum(known) if known else None)
            path = session.path(session.leaf)
            read = self.store.messages(session.id)
            assert [(m.seq, m.text) for m in read] == [
                (s, session.rows[s].text) for s in path
            ]
        (row,) = self.store.usage(by=()) or [None]
        assert (row.cost if row else None) == (total or None)


SETTINGS = settings(
    max_examples=150 if LONG else 10,
    stateful_step_count=50 if LONG else 25,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
def test_whatever_is_done_each_copy_is_counted_once(backend: Backend) -> None:
    run_state_machine_as_test(lambda: Counting(backend), settings=SETTINGS)
