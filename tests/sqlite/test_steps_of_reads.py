"""What a read costs does not depend on how much there is, in steps of SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from backends import Backend
from foreign_sessions import said, session_of, take_in

from sessiondb import Store


def steps_of(store: Store, read: Any, each: int = 100) -> int:
    """Return how many of SQLite's steps a read takes, counted in *each* of them."""
    connection = store._core.readers.checkout()
    steps = []
    connection.set_progress_handler(lambda: steps.append(1), each)  # type: ignore[attr-defined]
    store._core.readers.give_back(connection)
    read()
    connection.set_progress_handler(None, 0)  # type: ignore[attr-defined]
    return len(steps)


@pytest.fixture(scope="module")
def large(backend: Backend) -> Iterator[Store]:
    """A store of 20,000 values in one namespace, and of 5,000 namespaces."""
    place = backend.fresh()
    backend.run_many(
        place,
        "INSERT INTO key_value (namespace, key, revision, time_created, "
        "time_updated, value) VALUES (?, ?, 1, 1, 1, '1')",
        [('["one"]', f"{number:05}") for number in range(20_000)]
        + [(f'["users","{number:05}"]', "k") for number in range(5_000)],
    )
    with Store.open(place, durability="normal") as store:
        yield store


@pytest.mark.slow
def test_a_page_costs_the_same_at_any_depth(large: Store) -> None:
    first = large.values("one", limit=10)
    deep = large.values("one", limit=10_000).next_cursor
    costs = [
        steps_of(
            large, lambda: large.values("one", limit=10, cursor=first.next_cursor)
        ),
        steps_of(large, lambda: large.values("one", limit=10, cursor=deep)),
        steps_of(
            large, lambda: large.values("one", limit=10, cursor=deep, reverse=True)
        ),
    ]
    assert max(costs) <= min(costs) + 2


@pytest.mark.slow
def test_namespaces_cost_the_same_whatever_they_hold(large: Store) -> None:
    assert large.namespaces(depth=1).items == (("one",), ("users",))
    # 25,000 values would take hundreds of these.
    assert steps_of(large, lambda: large.namespaces(depth=1)) < 60
    assert steps_of(large, lambda: large.namespaces("one")) < 10


def test_a_session_that_was_removed_is_recognised_without_a_scan(
    store: Store,
    backend: Backend,
) -> None:
    def steps(name: str) -> int:
        results: list[Any] = []
        count = steps_of(
            store, lambda: results.extend(take_in(store, session_of(name))), 10
        )
        assert [result.outcome for result in results] == ["deleted"]
        return count

    (done,) = take_in(store, session_of("s", said("m")))
    store.delete(done.id)
    store.reap()
    before = steps("s")
    rows = [(change, f"ses_{change}") for change in range(1_000, 6_000)]
    backend.run_many(
        store,
        "INSERT INTO deletion (change, session_id, revision, last_seq) VALUES (?, ?, 1, 1)",
        rows,
    )
    assert steps("s") < before + 100
