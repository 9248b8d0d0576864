"""Copies in forks are counted once, at a cost that does not grow with the chain of forks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

import pytest
from backends import Backend
from foreign_sessions import T0, said, session_of, take_in
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import Store
from sessiondb.dataclass import dataclass
from sessiondb.effects import ownership
from sessiondb.effects.transaction import Transaction
from sessiondb.maintenance import check
from sessiondb.model import SourceMessage, SourceSession

EVERY_MESSAGE = """
    SELECT session.root_id, message.seq, message.id, message.time_created, usage_key,
      coalesce(usage_name, nullif(response_id, ''), message.id)
    FROM message JOIN session ON session.id = message.session_id
"""


@dataclass(slots=True, eq=False)
class Decide:
    """Decide again for every message which of its copies is counted."""

    verb = "import"
    changed: set[str] = field(default_factory=set)

    def apply(self, tx: Transaction) -> None:
        rows = tx.connection.execute(EVERY_MESSAGE).fetchall()
        classes = [ownership.UsageClass(*row) for row in rows]
        self.changed = ownership.assign_owner(tx, classes)


def decided_again(store: Store) -> set[str]:
    """Return the sessions in which another copy should have been counted."""
    unit, decide = store._core.unit(), Decide()
    unit.add(decide)
    store._core.commit(unit)
    return decide.changed


@st.composite
def families(draw: st.DrawFn) -> list[SourceSession]:
    """Sessions that fork each other, with copies that kept their ids, or did not."""
    sessions: dict[str, list[SourceMessage]] = {}
    family: list[SourceSession] = []
    for number in range(draw(st.integers(2, 5))):
        name = f"s{number}"
        messages: list[SourceMessage] = []
        fields: dict[str, Any] = {}
        if sessions:
            parent = draw(st.sampled_from(sorted(sessions)))
            fields = {"parent_source_id": parent, "relation": "fork"}
            copied = sessions[parent][: draw(st.integers(0, 4))]
            messages += [
                copy_of(message, index, draw(st.sampled_from(WAYS)), name)
                for index, message in enumerate(copied)
            ]
        for index in range(draw(st.integers(0, 2))):
            at = draw(st.sampled_from((index, 10 * number + index)))
            messages.append(said(f"{name}-{index}", at=at, cost=1.0, tokens=at))
        sessions[name] = messages
        family.append(session_of(name, *messages, **fields))
    return draw(st.permutations(family))


#: How a fork writes a message of its parent again.
WAYS = ("same", "same", "same", "other id", "other usage", "other time")


def copy_of(
    message: SourceMessage, index: int, way: str, session: str
) -> SourceMessage:
    draft = message.draft
    name, time = str(draft.id), (draft.time_created or 0) - T0
    usage_id = message.usage_id or name
    tokens = None if draft.tokens is None else draft.tokens.input
    if way == "other id":
        name = f"{session}-copy-{index}"
    if way == "other usage":
        tokens = (tokens or 0) + 1
    if way == "other time":
        time += 1
    return said(name, at=time, cost=1.0, tokens=tokens, usage_id=usage_id)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(family=families(), together=st.booleans())
def test_the_copy_that_is_counted_is_the_one_that_a_second_look_decides_for(
    backend: Backend,
    family: list[SourceSession],
    together: bool,
) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        batches: Iterable[list[SourceSession]] = [family]
        if not together:
            batches = ([session] for session in family)
        for sessions in batches:
            take_in(store, *sessions)
        # Where a child was cut is known when it is read the next time.
        take_in(store, *family)
        assert decided_again(store) == set()
        assert check(store) == []


def test_a_message_of_the_parent_is_not_compared_with_its_other_copies(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    take = ownership.Copies._take_in

    def count(copies: ownership.Copies, rows: Iterable[Any]) -> Any:
        found = list(rows)
        compared.append(len(found))
        return take(copies, found)

    monkeypatch.setattr(ownership.Copies, "_take_in", count)
    with Store.open(backend.fresh(), durability="normal") as store:
        messages: list[SourceMessage] = []
        for number in range(30):
            own = said(f"m{number}", at=number, cost=1.0)
            messages.append(own)
            fields: dict[str, Any] = {}
            if number:
                fields = {"parent_source_id": f"{number - 1}", "relation": "fork"}
            take_in(store, session_of(f"{number}", *messages, **fields))
        assert sum(compared) == 0
        assert store.usage(by=())[0].cost == 30.0
        assert check(store) == []
