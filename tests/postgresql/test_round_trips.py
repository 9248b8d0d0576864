"""How often a call waits for the server: off this machine nothing else decides what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from postgresql_server import Server

from sessiondb import ALL, AsyncStore, MessageDraft, PartDraft, Store

psycopg = pytest.importorskip("psycopg")


class Waits:
    """Counts the waits for a server."""

    def __init__(self) -> None:
        self.number = 0

    def of(self, work: Callable[[], object]) -> int:
        """Return how often *work* waits."""
        before = self.number
        work()
        return self.number - before


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    counted = Waits()
    wait = psycopg.Connection.wait

    def counting(*args: Any, **options: Any) -> Any:
        counted.number += 1
        return wait(*args, **options)

    monkeypatch.setattr(psycopg.Connection, "wait", counting)
    return counted


@pytest.fixture
def store(server: Server, database: str, waits: Waits) -> Iterator[Store]:
    """A store whose connections are open and have looked at the schema."""
    with Store.open(server.url(database)) as opened:
        opened.append(opened.create_session(directory="/tmp"), answer())
        opened.sessions(project=ALL)
        yield opened


def answer() -> MessageDraft:
    return MessageDraft(
        "assistant",
        [PartDraft("text", text="It is"), PartDraft("text", text="the second one.")],
    )


def test_an_append_begins_and_locks_and_reads_and_then_writes_and_commits(
    store: Store, waits: Waits
) -> None:
    session = store.create_session(directory="/tmp")
    for _ in range(8):
        assert waits.of(lambda: store.append(session, answer())) == 2


def test_the_appends_of_a_unit_wait_as_often_as_one(store: Store, waits: Waits) -> None:
    session = store.create_session(directory="/tmp")
    unit = store._core.unit()
    for _ in range(10):
        unit.append(session, answer())
    assert waits.of(lambda: store.commit(unit)) == 2


def test_other_writes_wait_for_what_they_have_to_know(
    store: Store, waits: Waits
) -> None:
    session = store.create_session(directory="/tmp")
    assert waits.of(lambda: store.set_title(session, "Tea")) == 2
    assert waits.of(lambda: store.set_value("tea", "green", {"cups": 1})) == 3
    assert waits.of(lambda: store.create_session(directory="/tmp")) == 5


def test_a_read_waits_once_for_each_statement(store: Store, waits: Waits) -> None:
    session = store.create_session(directory="/tmp")
    store.append(session, answer())
    store.set_value("tea", "green", {"cups": 1})
    assert waits.of(lambda: store.sessions(project=ALL)) == 1
    assert waits.of(lambda: store.session(session)) == 1
    # The time of the server decides whether it has expired.
    assert waits.of(lambda: store.value("tea", "green")) == 2
    # The session, its messages, their parts.
    assert waits.of(lambda: store.messages(session)) == 3


async def test_writers_who_come_together_wait_together(
    server: Server, database: str, waits: Waits
) -> None:
    async with AsyncStore.open(server.url(database)) as store:
        sessions = [await store.create_session(directory="/tmp") for _ in range(64)]
        before = waits.number
        await asyncio.gather(*(store.append(each, answer()) for each in sessions))
        # They are a batch or two: the first to come may be committed alone.
        assert waits.number - before <= 8
        for each in sessions:
            assert len(await store.messages(each)) == 1


def test_a_family_that_a_connection_does_not_know_costs_one_wait_of_a_read(
    store: Store, server: Server, database: str, waits: Waits
) -> None:
    root = store.create_session(directory="/tmp")
    child = store.create_session(parent=root)
    with Store.open(server.url(database)) as other:
        other.append(other.create_session(directory="/tmp"), answer())
        other.sessions(project=ALL)
        assert waits.of(lambda: other.append(child, answer())) == 2
        assert waits.of(lambda: other.session(root)) == 1
        # It is looked for as if it were a root.
        assert waits.of(lambda: other.session(child)) == 2
        assert waits.of(lambda: other.session(child)) == 1
