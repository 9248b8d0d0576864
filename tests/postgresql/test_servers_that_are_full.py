"""A server that admits no more connections: errors in bounded time, and work after it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
from postgresql_server import Server, running

from sessiondb import AsyncStore, BusyError, Store, UnavailableError, user

psycopg = pytest.importorskip("psycopg")

pytestmark = pytest.mark.slow
#: A write waits about ten seconds for a server that is out of reach.
PATIENCE = 15.0


@pytest.fixture(scope="module")
def small_server(server: Server) -> Iterator[Server]:
    """A server that admits ten connections."""
    with running(server.programs, connections=10) as started:
        yield started


@pytest.fixture
def url(small_server: Server) -> Iterator[str]:
    assert small_server.run("CREATE DATABASE agents") == ""
    yield small_server.url("agents")
    assert small_server.run("DROP DATABASE agents WITH (FORCE)") == ""


@contextmanager
def all_connections_taken(url: str) -> Iterator[ExitStack]:
    """Open connections until the server refuses one; closing the stack gives them back."""
    with ExitStack() as stack:
        with pytest.raises(psycopg.OperationalError):
            while True:
                stack.enter_context(psycopg.connect(url))
        yield stack


def test_what_is_open_works_on_and_what_is_new_is_refused_until_there_is_room(
    url: str,
) -> None:
    with Store.open(url) as store:
        session = store.create_session(directory="/tmp").id
        with all_connections_taken(url):
            store.append(session, user("one"))
            assert len(store.messages(session)) == 1
            begun = time.monotonic()
            with pytest.raises(UnavailableError, match="too many"):
                Store.open(url)
            assert time.monotonic() - begun < PATIENCE
        with Store.open(url) as other:
            assert len(other.messages(session)) == 1


def test_a_write_waits_for_room_and_reports_it_if_there_is_none(url: str) -> None:
    with (
        Store.open(url) as reading,
        Store.open(url) as store,
        ThreadPoolExecutor(1) as thread,
    ):
        session = reading.create_session(directory="/tmp").id
        store._core.writer.connection.disconnect()
        with all_connections_taken(url) as taken:
            begun = time.monotonic()
            with pytest.raises(UnavailableError, match="too many"):
                store.append(session, user("not stored"))
            assert time.monotonic() - begun < PATIENCE
            writing = thread.submit(store.append, session, user("stored"))
            time.sleep(0.5)
            taken.close()
            writing.result(PATIENCE)
        stored = [message.parts[0].text for message in reading.messages(session)]
        assert stored == ["stored"]


def test_a_database_that_admits_no_more_connections_is_busy_until_it_does(
    url: str, small_server: Server
) -> None:
    with Store.open(url) as store:
        session = store.create_session(directory="/tmp").id
    guest = url.replace("user=sessiondb", "user=guest")
    small_server.run(
        "CREATE ROLE guest LOGIN IN ROLE pg_write_all_data, pg_read_all_data"
    )
    grant = "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO guest"
    with psycopg.connect(url, autocommit=True) as owner, Store.open(guest) as store:
        owner.execute(grant)
        owner.execute("ALTER DATABASE agents CONNECTION LIMIT 0")
        begun = time.monotonic()
        with pytest.raises(BusyError):
            store.append(session, user("refused"))
        assert time.monotonic() - begun < PATIENCE
        owner.execute("ALTER DATABASE agents CONNECTION LIMIT -1")
        store.append(session, user("stored"))
        assert [m.parts[0].text for m in store.messages(session)] == ["stored"]


async def test_many_reads_of_a_program_take_few_connections(url: str) -> None:
    async with AsyncStore.open(url) as store:
        session = (await store.create_session(directory="/tmp")).id
        await asyncio.gather(*[store.append(session, user(f"{n}")) for n in range(20)])
        found = await asyncio.gather(*[store.messages(session) for _ in range(40)])
        assert {len(messages) for messages in found} == {20}
        with psycopg.connect(url) as connection:
            sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sessiondb'"
            ((count,),) = connection.execute(sql).fetchall()
        assert count <= 6
