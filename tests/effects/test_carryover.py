"""Transactions that continue from the last one: another writer is always seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from backends import Backend, Place
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import (
    ConflictError,
    LeaseHeldError,
    NotFoundError,
    Store,
    assistant,
    user,
)
from sessiondb.clock import now_ms
from sessiondb.effects.transaction import Carryover

#: Changes by another process between two appends, as SQL.
OTHERS: dict[str, str] = {
    "leaf": "UPDATE session SET leaf_seq = 1 WHERE id = :sid",
    "numbers": "UPDATE session SET change = change + 100 WHERE id = :sid",
    "revision": "UPDATE session SET revision = revision + 5 WHERE id = :sid",
    "sums": "UPDATE session SET cost = 7.0, tokens_input = 9 WHERE id = :sid",
    "model": "UPDATE session SET model_id = 'm', model_source = 'caller' WHERE id = :sid",
    "deleted": "UPDATE session SET time_deleted = :now WHERE id = :sid",
    "leased": "INSERT INTO lease (session_id, holder, ttl, time_expires) "
    "VALUES (:sid, 'elsewhere:1:0', 60000, :now + 60000)",
}


def as_other_process(backend: Backend, store: Store, sql: str, session: str) -> None:
    backend.run(store, sql, {"sid": session, "now": now_ms()})


def row_of(backend: Backend, where: Store | Place, session: str) -> dict[str, Any]:
    (row,) = backend.records(where, "SELECT * FROM session WHERE id = ?", session)
    return row


@pytest.fixture
def session(store: Store) -> str:
    """A session whose row the last transaction carries over."""
    made = store.create_session().id
    for _ in range(3):
        store.append(made, assistant("before"), cost=1.0)
    return made


def test_an_append_continues_from_the_leaf_that_another_process_set(
    store: Store, session: str, backend: Backend
) -> None:
    as_other_process(backend, store, OTHERS["leaf"], session)
    store.append(session, assistant("after"))
    assert [message.seq for message in store.messages(session)] == [1, 4]


def test_the_change_after_one_of_another_process_has_a_higher_number(
    store: Store, session: str, backend: Backend
) -> None:
    as_other_process(backend, store, OTHERS["numbers"], session)
    before = row_of(backend, store, session)["change"]
    store.append(session, assistant("after"))
    assert row_of(backend, store, session)["change"] > before


def test_a_revision_of_another_process_is_counted(
    store: Store, session: str, backend: Backend
) -> None:
    before = store.session(session).revision
    as_other_process(backend, store, OTHERS["revision"], session)
    with pytest.raises(ConflictError, match="is at revision"):
        store.append(session, assistant("after"), expect_revision=before)
    store.append(session, assistant("after"), expect_revision=before + 5)
    assert store.session(session).revision == before + 6


def test_sums_of_another_process_are_added_to(
    store: Store, session: str, backend: Backend
) -> None:
    as_other_process(backend, store, OTHERS["sums"], session)
    store.append(session, assistant("after"), cost=1.0, tokens={"input": 1})
    row = row_of(backend, store, session)
    assert (row["cost"], row["tokens_input"]) == (8.0, 10)


def test_a_model_that_another_process_stated_stays(
    store: Store, session: str, backend: Backend
) -> None:
    as_other_process(backend, store, OTHERS["model"], session)
    store.append(session, assistant("after"), model="other")
    assert row_of(backend, store, session)["model_id"] == "m"


@pytest.mark.parametrize(
    ("done", "error"), [("deleted", NotFoundError), ("leased", LeaseHeldError)]
)
def test_an_append_is_refused_for_what_another_process_did(
    store: Store, session: str, backend: Backend, done: str, error: type[Exception]
) -> None:
    as_other_process(backend, store, OTHERS[done], session)
    with pytest.raises(error):
        store.append(session, assistant("after"))
    assert row_of(backend, store, session)["last_seq"] == 3


def test_a_unit_that_fails_leaves_nothing_to_the_next(
    store: Store, session: str, backend: Backend
) -> None:
    before = row_of(backend, store, session)
    with pytest.raises(ConflictError), store.effects() as unit:
        unit.append(session, user("lost"), model="lost")
        unit.append(session, assistant("lost"), expect_revision=10**6, cost=50.0)
    assert row_of(backend, store, session) == before

    store.append(session, assistant("after"), cost=1.0)
    after = row_of(backend, store, session)
    assert (after["last_seq"], after["cost"]) == (4, 4.0)
    assert after["revision"] == before["revision"] + 1


VERBS: list[Callable[[Store, str], object]] = [
    lambda store, session: store.append(session, user("a prompt")),
    lambda store, session: store.append(session, assistant("x"), cost=0.5, model="a"),
    lambda store, session: store.append(session, assistant("y", id="own"), model="b"),
    lambda store, session: store.set_title(session, "named"),
    lambda store, session: store.update_session(session, model="stated"),
    lambda store, session: store.set_leaf(session, None),
    lambda store, session: store.truncate(session, after=None),
    lambda store, session: store.archive(session),
    lambda store, session: store.fork(session),
    lambda store, session: store.set_todos(session, ["one"]),
]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.integers(0, len(VERBS) - 1), max_size=12))
def test_a_row_that_is_carried_over_is_the_one_that_would_be_read(
    steps: list[int], backend: Backend
) -> None:
    def rows(*, is_forgetful: bool) -> list[dict[str, Any]]:
        place = backend.fresh()
        with Store.open(place, durability="normal") as store:
            session = store.create_session(id="ses_one", time=1_700_000_000_000).id
            for step in steps:
                if is_forgetful:
                    store._core.writer.connection.carryover = Carryover()
                VERBS[step](store, session)
        row = row_of(backend, place, session)
        varying = {name for name in row if name.startswith("time_")} | {"project_id"}
        if not backend.counts_changes:
            varying.add("change")
        return [{name: row[name] for name in row.keys() - varying}]

    assert rows(is_forgetful=False) == rows(is_forgetful=True)
