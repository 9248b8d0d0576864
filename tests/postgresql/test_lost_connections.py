"""Connections that are lost: nothing is lost with them, nothing is stored twice."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from postgresql_server import Server
from proxy import LOSE_IT, LOSE_THE_ANSWER, PASS, Proxy, proxy_before

from sessiondb import ALL, AsyncStore, MessageDraft, PartDraft, Store, UnavailableError


def said(text: str) -> MessageDraft:
    return MessageDraft("user", [PartDraft("text", text=text)])


def texts(store: Store, session: str) -> list[str]:
    return [message.parts[0].text or "" for message in store.messages(session)]


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with proxy_before(server.socket_file) as running:
        yield running


@pytest.fixture
def url(proxy: Proxy, database: str) -> str:
    return f"postgresql://sessiondb@127.0.0.1:{proxy.port}/{database}"


def once(verdict: str, word: bytes = b"COMMIT") -> tuple[threading.Event, object]:
    """Return a rule that gives *verdict* for the next message with *word*."""
    done = threading.Event()

    def rule(sent: bytes) -> str:
        if word not in sent or done.is_set():
            return PASS
        done.set()
        return verdict

    return done, rule


@pytest.mark.parametrize("verdict", [LOSE_IT, LOSE_THE_ANSWER])
def test_a_unit_whose_commit_is_not_answered_is_stored_once_and_reported_as_stored(
    url: str, proxy: Proxy, verdict: str
) -> None:
    with Store.open(url) as store:
        session = store.create_session().id
        done, proxy.rule = once(verdict)  # type: ignore[assignment]
        message = store.append(session, said("once"))
        assert done.is_set()
        assert texts(store, session) == ["once"]
        assert store.message(session, message).seq == 1
        assert store.session(session).revision == 2
        store.set_title(session, "afterwards")
        assert store.session(session).title == "afterwards"


def test_a_connection_that_was_cut_while_it_rested_is_replaced(
    url: str, proxy: Proxy
) -> None:
    with Store.open(url) as store:
        session = store.create_session().id
        for number in range(3):
            proxy.lose_all()
            store.append(session, said(f"{number}"))
            proxy.lose_all()
            assert len(store.messages(session)) == number + 1


def test_a_connection_that_is_lost_while_it_is_opened_is_opened_again(
    url: str, proxy: Proxy
) -> None:
    with Store.open(url) as store:
        session = store.create_session().id
        proxy.lose_all()
        done, proxy.rule = once(LOSE_IT, b"user")  # type: ignore[assignment]
        store.append(session, said("once"))
        assert done.is_set()
        proxy.lose_all()
        done, proxy.rule = once(LOSE_IT, b"user")  # type: ignore[assignment]
        assert texts(store, session) == ["once"]
        assert done.is_set()


async def test_an_asynchronous_store_replaces_them_as_well(
    url: str, proxy: Proxy
) -> None:
    async with AsyncStore.open(url) as store:
        session = (await store.create_session()).id
        for number in range(3):
            proxy.lose_all()
            await store.append(session, said(f"{number}"))
            proxy.lose_all()
            assert len(await store.messages(session)) == number + 1


@pytest.mark.slow
def test_none_of_many_units_is_lost_or_doubled_on_a_line_that_breaks_all_the_time(
    url: str, proxy: Proxy
) -> None:
    chance = random.Random(22)

    def rule(sent: bytes) -> str:
        if b"COMMIT" in sent and chance.random() < 0.2:
            return chance.choice([LOSE_IT, LOSE_THE_ANSWER])
        return PASS

    with Store.open(url) as store:
        sessions = [store.create_session().id for _ in range(4)]
        proxy.rule = rule

        def write(session: str) -> None:
            for number in range(50):
                store.append(session, said(f"{number}"))

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(write, sessions))
        proxy.rule = lambda _: PASS
        for session in sessions:
            assert texts(store, session) == [str(number) for number in range(50)]
            assert store.session(session).message_count == 50
    assert proxy.lost > 5


@pytest.mark.slow
def test_a_server_that_restarts_is_waited_for(url: str, server: Server) -> None:
    with Store.open(url) as store:
        session = store.create_session().id
        store.append(session, said("before"))
        server.stop("fast")
        server.start_again()
        store.append(session, said("after"))
        assert texts(store, session) == ["before", "after"]


@pytest.mark.slow
def test_a_server_that_stays_away_is_reported_and_can_be_written_to_later(
    url: str, server: Server
) -> None:
    with Store.open(url) as store:
        session = store.create_session().id
        store.append(session, said("before"))
        server.stop()
        try:
            with pytest.raises(UnavailableError):
                store.append(session, said("not stored"))
            with pytest.raises(UnavailableError):
                store.sessions(project=ALL)
        finally:
            server.start_again()
        store.append(session, said("after"))
        assert texts(store, session) == ["before", "after"]


@pytest.mark.slow
def test_a_server_is_given_ten_seconds_and_tried_once_more_after_the_last(
    url: str, proxy: Proxy, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    refused: list[int] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        refused.append(proxy.refused)

    with Store.open(url) as store:
        session = store.create_session().id
        server.stop()
        try:
            with monkeypatch.context() as patched, pytest.raises(UnavailableError):
                patched.setattr(time, "sleep", sleep)
                store.append(session, said("not stored"))
        finally:
            server.start_again()
    assert pauses == sorted(pauses)
    assert sum(pauses) == pytest.approx(10, abs=1)
    assert len(set(refused)) == len(pauses)
    assert proxy.refused > refused[-1]
