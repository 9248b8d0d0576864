"""What is removed while another process writes it again stays, and what is deleted goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from crew import crew

from sessiondb import Store, user
from sessiondb.database.core import Core
from sessiondb.maintenance import check

pytest.importorskip("psycopg")

from waiting import commits_held

pytestmark = pytest.mark.slow
REAP = """
    with Store.open(url) as store:
        begin()
        report(store.reap())
"""


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store that leaves the rows of deleted sessions to other processes."""
    monkeypatch.setattr(Core, "reap_soon", lambda *_: None)
    with Store.open(url) as opened:
        yield opened


def meet(url: str, table: str, write: Callable[[], Any], code: str) -> list[Any]:
    """Let a member encounter what *write*, which changes *table*, has not committed yet.

    Returns the report of the member, once both have ended.
    """
    with crew(code, url, ()) as member, ThreadPoolExecutor(1) as thread:
        member.prepare()
        with commits_held(url, table) as gate:
            written: Future[Any] = thread.submit(write)
            gate.wait_for(1)
            member.begin()
            gate.wait_for(2)
        written.result()
        return member.reports()


def test_a_session_with_the_id_of_a_deleted_one_is_not_removed_with_its_rows(
    store: Store, url: str
) -> None:
    store.create_session(id="s", title="old")
    store.append("s", user("old"))
    store.delete("s")

    def write_it_again() -> None:
        with store.effects() as unit:
            unit.create_session(id="s", title="new")
            unit.append("s", user("new"))

    meet(url, "session", write_it_again, REAP)
    assert store.session("s").title == "new"
    assert [message.parts[0].text for message in store.messages("s")] == ["new"]
    assert check(store) == []


def test_a_value_that_is_written_again_when_it_has_expired_stays(
    store: Store, url: str
) -> None:
    first = store.set_value("n", "k", "old", ttl=0.01)
    time.sleep(0.1)
    meet(url, "key_value", lambda: store.set_value("n", "k", "new"), REAP)
    value = store.value("n", "k")
    assert value is not None
    assert value.value == "new"
    assert value.revision > (first.revision or 0)


def test_a_value_written_while_it_is_removed_has_a_later_revision(
    store: Store, url: str
) -> None:
    first = store.set_value("n", "k", "old", ttl=0.01)
    time.sleep(0.1)
    write = """
        with Store.open(url) as store:
            begin()
            report(store.set_value("n", "k", "new").revision)
    """
    (revision,) = meet(url, "key_value", store.reap, write)
    assert revision > (first.revision or 0)


def test_a_session_that_is_opened_while_it_is_deleted_is_a_new_one(
    store: Store, url: str
) -> None:
    old = store.open_session("name")
    write = """
        with Store.open(url) as store:
            begin()
            with store.effects() as unit:
                session = unit.open_session("name")
                unit.append(session, user("new"))
            report(session.id)
    """
    (new,) = meet(url, "session", lambda: store.delete(old), write)
    assert new != old.id
    assert [message.parts[0].text for message in store.messages(new)] == ["new"]
