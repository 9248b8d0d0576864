"""Comparing sessions: the common beginning is found by content, not by place."""

from __future__ import annotations

import itertools

import pytest
from foreign_sessions import said, session_of, take_in
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessiondb import Store, user
from sessiondb.model import Comparison, SourceMessage


def texts_of(found: Comparison) -> tuple[list[str], list[str], list[str]]:
    common, only_a, only_b = found.common, found.only_a, found.only_b
    return [m.text for m in common], [m.text for m in only_a], [m.text for m in only_b]


def usage(name: str) -> SourceMessage:
    """A cost of the session that belongs to no message, as a title has one."""
    return said(name, name, role="event", kind="usage", cost=0.5)


def copied(name: str, of: str) -> SourceMessage:
    """A message that its program copied under a new id."""
    return said(name, of, usage_id=of)


def test_a_cost_at_the_start_of_the_original_hides_nothing_that_is_shared(
    store: Store,
) -> None:
    original = session_of("o", usage("title"), said("a"), said("b"), said("c"))
    fork = session_of(
        "f", copied("a2", "a"), copied("b2", "b"), said("d"),
        relation="fork", parent_source_id="o",
    )  # fmt: skip
    first, second = (item.id for item in take_in(store, original, fork))
    assert texts_of(store.compare(first, second)) == (["a", "b"], ["title", "c"], ["d"])
    assert texts_of(store.compare(second, first)) == (["a", "b"], ["d"], ["title", "c"])


def test_a_cost_that_both_have_is_shared(store: Store) -> None:
    original = session_of("o", usage("title"), said("a"), said("b"))
    (done,) = take_in(store, original)
    fork = store.fork(done.id, at=2)
    store.append(fork, user("x"))
    assert texts_of(store.compare(done.id, fork)) == (["title", "a"], ["b"], ["x"])


def test_messages_that_are_only_numbered_alike_are_not_shared(store: Store) -> None:
    parent = session_of("p", said("1", "plan"), said("2", "do"))
    child = session_of(
        "c", said("1", "look", at=5), said("2", "found", at=6),
        relation="subagent", parent_source_id="p",
    )  # fmt: skip
    stranger = session_of("s", said("1", "plan", usage_id="other"))
    ids = [item.id for item in take_in(store, parent, child, stranger)]
    assert texts_of(store.compare(ids[0], ids[1]))[0] == []
    assert texts_of(store.compare(ids[0], ids[2]))[0] == []


def test_copies_are_shared_whether_or_not_their_families_are_linked(
    store: Store,
) -> None:
    original = session_of("o", said("a"), said("b"))
    copy = session_of("f", copied("a2", "a"), copied("b2", "b"))
    first, second = (item.id for item in take_in(store, original, copy))
    assert store.session(first).root_id != store.session(second).root_id
    assert texts_of(store.compare(first, second))[0] == ["a", "b"]


_RUNS = itertools.count()
lengths = st.integers(0, 4)


@pytest.mark.slow
@given(
    shared=lengths,
    more=st.tuples(lengths, lengths),
    costs=st.lists(st.booleans(), max_size=8),
)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_costs_anywhere_move_no_message_from_one_list_to_another(
    store: Store, shared: int, more: tuple[int, int], costs: list[bool]
) -> None:
    name = f"run{next(_RUNS)}"
    begun = [said(f"{name}-{n}", f"{n}") for n in range(shared)]
    again = [
        said(f"{name}-{n}-again", f"{n}", usage_id=f"{name}-{n}") for n in range(shared)
    ]
    own_a = [said(f"{name}-a{n}", f"a{n}") for n in range(more[0])]
    own_b = [said(f"{name}-b{n}", f"b{n}") for n in range(more[1])]

    messages = [*begun, *own_a]
    for place, wanted in enumerate(costs):
        if wanted:
            messages.insert(min(place, len(messages)), usage(f"{name}-u{place}"))
    original = session_of(f"{name}-o", *messages)
    fork = session_of(
        f"{name}-f", *again, *own_b, relation="fork", parent_source_id=f"{name}-o"
    )
    first, second = (item.id for item in take_in(store, original, fork))

    common, only_a, only_b = texts_of(store.compare(first, second))
    assert common == [f"{n}" for n in range(shared)]
    assert [word for word in only_a if "-u" not in word] == [
        f"a{n}" for n in range(more[0])
    ]
    assert only_b == [f"b{n}" for n in range(more[1])]
    assert len(only_a) == more[0] + sum(costs)
