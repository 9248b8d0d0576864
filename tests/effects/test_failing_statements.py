"""A statement that the database refuses fails its own effect, wherever the refusal is noticed.

A server runs statements together, and so reports the error of one when a later one is
read, or at the COMMIT. Whose it was, a caller is told as exactly as on a file.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from backends import Backend
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessiondb import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    SessionDBError,
    Store,
    user,
)
from sessiondb.effects import Unit
from sessiondb.effects.transaction import Transaction

_KEY = "INSERT INTO meta (key, value) VALUES (?, ?)"
_LABEL = "INSERT INTO label (session_id, seq, label) VALUES ('ses_nowhere', 1, 'x')"


@dataclass
class Write:
    """Writes a row."""

    key: str
    verb = "write"

    def apply(self, tx: Transaction) -> None:
        tx.connection.execute(_KEY, (self.key, "x"))


@dataclass
class Read:
    """Reads, so that all statements before it have run."""

    verb = "read"

    def apply(self, tx: Transaction) -> None:
        assert tx.connection.execute("SELECT count(*) FROM meta").fetchone()


@dataclass
class WriteNothing:
    """Writes a row that is refused: it lacks a value."""

    verb = "write-nothing"

    def apply(self, tx: Transaction) -> None:
        tx.connection.execute(_KEY, ("lacking", None))


@dataclass
class WriteOfNobody:
    """Writes a row of a session that does not exist."""

    verb = "write-of-nobody"

    def apply(self, tx: Transaction) -> None:
        tx.connection.execute(_LABEL)


@dataclass
class Refuse:
    """Fails without a statement."""

    verb = "refuse"

    def apply(self, tx: Transaction) -> None:
        raise ConflictError("refused")


_FAILING: dict[type[Any], type[SessionDBError]] = {
    WriteNothing: InvalidInputError,
    WriteOfNobody: NotFoundError,
    Refuse: ConflictError,
}
_KINDS = [Write, Read, *_FAILING]


@pytest.fixture(scope="module")
def shared(backend: Backend) -> Iterator[Store]:
    """A store for all examples."""
    with Store.open(backend.fresh(), durability="normal") as store:
        yield store


def outcome_of(kinds: list[type[Any]]) -> tuple[type[Exception], str, int] | None:
    """Return the first failure of a unit with effects of these kinds."""
    for position, kind in enumerate(kinds):
        if kind in _FAILING:
            return _FAILING[kind], kind.verb, position
    return None


def commit_together(
    store: Store, units: list[Unit]
) -> list[tuple[type[Exception], str | None, int | None] | None]:
    """Commit units in one batch; return how each ended."""

    def commit(unit: Unit) -> tuple[type[Exception], str | None, int | None] | None:
        try:
            store.commit(unit)
        except SessionDBError as error:
            return type(error), error.effect, error.position
        return None

    writer = store._core.writer
    with ThreadPoolExecutor(len(units)) as threads:
        with writer._role:
            ended = [threads.submit(commit, unit) for unit in units]
            while len(writer._queue) < len(units):
                time.sleep(0)
        return [future.result() for future in ended]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(st.sampled_from(_KINDS), min_size=1, max_size=4),
        min_size=1,
        max_size=4,
    )
)
def test_units_end_alike_whatever_else_is_in_their_batch(
    shared: Store, backend: Backend, kinds: list[list[type[Any]]]
) -> None:
    before = {key for (key,) in backend.rows(shared, "SELECT key FROM meta")}
    units, keys = [], []
    for number, kinds_of_unit in enumerate(kinds):
        unit = shared._core.unit()
        for place, kind in enumerate(kinds_of_unit):
            key = f"{len(before)}.{number}.{place}"
            if kind is Write:
                keys.append((key, outcome_of(kinds_of_unit)))
            unit.add(Write(key) if kind is Write else kind())
        units.append(unit)
    assert commit_together(shared, units) == [outcome_of(each) for each in kinds]
    after = {key for (key,) in backend.rows(shared, "SELECT key FROM meta")}
    assert after - before == {key for key, failure in keys if failure is None}


@pytest.mark.parametrize("place", range(4))
def test_a_unit_that_fails_at_its_end_names_the_effect(
    store: Store, backend: Backend, place: int
) -> None:
    session = store.create_session(directory="/tmp")
    unit = store._core.unit()
    for number in range(4):
        if number == place:
            unit.add(WriteOfNobody())
        else:
            unit.append(session, user(f"{number}"))
    with pytest.raises(NotFoundError) as caught:
        store.commit(unit)
    assert (caught.value.effect, caught.value.position) == ("write-of-nobody", place)
    assert store.messages(session) == []
    store.append(session, user("afterwards"))
    assert len(store.messages(session)) == 1
