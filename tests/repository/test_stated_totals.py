"""The total that a program states for a session is reached, and never exceeded."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest
from backends import Backend
from foreign_sessions import said, session_of, take_in
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import Store
from sessiondb.maintenance import check
from sessiondb.model import MessageDraft, Problem, SourceMessage, SourceSession
from sessiondb.model.source import STATED_TOTAL, sum_event_id


def spent(store: Store) -> float:
    return sum(row.cost or 0 for row in store.usage(by=()))


def newer(total: float, *costs: float) -> SourceSession:
    """A session in a store that states its total, and lost some of its messages."""
    event = MessageDraft(
        "event", id=sum_event_id("s"), kind="usage", cost=round(total - sum(costs), 9),
        data={STATED_TOTAL: {"cost": total}},
    )  # fmt: skip
    return older(*costs, first=[SourceMessage(event)], path="/elsewhere/new")


def older(
    *costs: float,
    first: list[SourceMessage] | None = None,
    path: str = "/elsewhere/old",
) -> SourceSession:
    """A session in a store that has all of its messages, and states no total."""
    messages = [said(f"m{n}", at=n, cost=cost) for n, cost in enumerate(costs)]
    item = session_of("s", *(first or []), *messages)
    return SourceSession(
        item.source, item.source_id, path, item.digest + path, item.messages,
        time_created=item.time_created, directory=item.directory,
    )  # fmt: skip


@pytest.mark.parametrize("times", [1, 2])
def test_a_message_that_one_store_lost_is_counted_once_in_any_order(
    store: Store, backend: Backend, times: int
) -> None:
    both = [newer(6.0, 1.0, 2.0), older(1.0, 2.0, 2.5)]
    for order in permutations(both):
        with Store.open(backend.fresh()) as here:
            for item in order * times:
                take_in(here, item)
                assert spent(here) <= 6.0
            assert spent(here) == 6.0
            assert check(here) == []


def test_messages_that_state_more_than_the_total_leave_nothing_to_add(
    store: Store,
) -> None:
    take_in(store, newer(4.0, 1.0))
    assert spent(store) == 4.0
    take_in(store, older(1.0, 2.0, 5.0))
    assert spent(store) == 8.0
    take_in(store, older(1.0, 2.0, 5.0, 1.0))
    assert spent(store) == 9.0


@pytest.mark.slow
@given(
    kept=st.lists(st.integers(0, 9), max_size=3),
    lost=st.lists(st.integers(0, 9), max_size=3),
    beside=st.integers(1, 9),
    order=st.lists(st.booleans(), min_size=1, max_size=4),
)
@settings(max_examples=15, deadline=None)
def test_no_order_of_stores_changes_what_a_session_cost(
    backend: Backend,
    kept: list[int],
    lost: list[int],
    beside: int,
    order: list[bool],
) -> None:
    new = newer(float(sum(kept) + sum(lost) + beside), *map(float, kept))
    old = older(*map(float, kept), *map(float, lost))
    with Store.open(backend.fresh()) as here:
        for is_new in [*order, True]:
            take_in(here, new if is_new else old)
        assert spent(here) == sum(kept) + sum(lost) + beside


@pytest.mark.slow
def test_an_upgraded_store_of_opencode_and_the_one_before_it_count_once(
    real_store: Callable[[str], Path], backend: Backend
) -> None:
    stores = [
        real_store(name) / "data"
        for name in ("opencode-upgraded-2.0.15", "opencode-1.18.33")
    ]
    with Store.open(backend.fresh(), durability="normal") as alone:
        results = [*_read(alone, stores[0])]
        assert not [item for item in results if isinstance(item, Problem)]
        expected = spent(alone)
    for order in permutations(stores):
        with Store.open(backend.fresh(), durability="normal") as here:
            for folder in (*order, *order):
                list(_read(here, folder))
            assert spent(here) == pytest.approx(expected)
            assert check(here) == []


def _read(store: Store, folder: Path) -> list[object]:
    from sessiondb.formats import find

    return [item for found in find(folder) for item in store.ingest(found.read())]
