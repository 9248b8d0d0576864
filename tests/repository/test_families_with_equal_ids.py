"""Messages whose ids, times and usage agree by chance: one owner for each class of copies.

Real programs give few messages of different content one id. Damaged and edited logs have
them, so the sessions here have three ids, two times and three usage keys among them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pytest
from backends import Backend
from foreign_sessions import T0, said, session_of
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sessiondb import Store
from sessiondb.maintenance import check, repair
from sessiondb.model import SourceMessage, SourceSession

TRIED = 400 if os.environ.get("SESSIONDB_LONG") else 25
# What fails is not shrunk: each try is several imports, and the limit of a test two minutes.
examples = settings(
    max_examples=TRIED,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
messages = st.lists(
    st.builds(
        lambda name, at, tokens, usage_id: said(
            name, at=at, cost=1.0, tokens=tokens, usage_id=usage_id
        ),
        st.sampled_from(["m1", "m2", "m3"]),
        st.sampled_from([0, 5]),
        st.sampled_from([1, 2]),
        # One that is the id of another message, and one that no message has.
        st.sampled_from([None, "a", "m1", "m2"]),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda message: message.draft.id,
)
relations = st.sampled_from([None, "fork", "fork"])


@dataclass
class History:
    """A session as its program had it at two imports, and its place in the family."""

    parent: int
    relation: str | None
    states: tuple[list[SourceMessage], list[SourceMessage]]
    born: int

    def at(self, number: int, state: int) -> SourceSession:
        """The session with that number, as it was at an import."""
        above = {"parent_source_id": f"{self.parent}", "relation": self.relation}
        return session_of(
            f"{number}",
            *self.states[state],
            digest=f"{state}",
            time_created=T0 + self.born,
            **(above if self.relation and number else {}),
        )


@st.composite
def families(draw: Callable[..., int]) -> list[History]:
    """Sessions, each below an earlier one or alone."""
    size = draw(st.integers(2, 5))
    return [
        History(
            draw(st.integers(0, max(number - 1, 0))),
            draw(relations),
            draw(st.tuples(messages, messages)),
            draw(st.integers(0, 2)),
        )
        for number in range(size)
    ]


def import_all(store: Store, family: list[History], order: Random) -> None:
    """Import both states of each session, one after the other, in any order."""
    for state in (0, 1):
        numbers = list(range(len(family)))
        order.shuffle(numbers)
        for number in numbers:
            list(store.ingest([family[number].at(number, state)]))
            assert check(store) == []


@pytest.mark.slow
@examples
@given(families(), st.randoms(use_true_random=False))
def test_each_import_leaves_one_owner_for_each_class_of_copies(
    backend: Backend, family: list[History], order: Random
) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        import_all(store, family, order)


def test_a_fork_that_begins_later_since_its_parent_grew_counts_its_copies_once(
    backend: Backend,
) -> None:
    def says(name: str, at: int, tokens: int, usage_id: str | None) -> SourceMessage:
        return said(name, at=at, cost=1.0, tokens=tokens, usage_id=usage_id)

    root = [says("m1", 5, 1, None), says("m2", 5, 1, None)]
    grown = [says("m3", 0, 1, None)], [says("m3", 0, 1, None), says("m2", 0, 2, None)]
    below = [says("m3", 0, 2, "b"), says("m2", 5, 1, "a")]
    family = [
        History(0, None, (root, root), 0),
        History(0, "fork", grown, 2),
        History(1, "fork", (below, below), 0),
    ]
    with Store.open(backend.fresh()) as store:
        for number, state in ((0, 0), (1, 0), (2, 0), (1, 1)):
            list(store.ingest([family[number].at(number, state)]))
            assert check(store) == []


@pytest.mark.needs("is_file", "a repair is of a file")
@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE message SET inherited = 1",
        "UPDATE message SET inherited = 0",
        "UPDATE message SET inherited = rid % 2",
        "UPDATE message SET usage_key = (SELECT max(usage_key) FROM message) WHERE rid % 2 = 1",
        "UPDATE message SET usage_key = NULL WHERE rid % 2 = 1",
    ],
)
@settings(examples, max_examples=max(TRIED // 5, 1))
@given(families(), st.randoms(use_true_random=False))
def test_a_repair_leaves_one_owner_for_each_class_of_copies(
    backend: Backend,
    damage: str,
    family: list[History],
    order: Random,
) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        import_all(store, family, order)
        backend.run(store, damage)
        repair(store)
        assert check(store) == []
