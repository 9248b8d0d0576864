"""Processes that write to the same sessions in crossing orders, and side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from crew import crew, reports_of
from postgresql_server import Server, running

from sessiondb import ALL, Store, user
from sessiondb.maintenance import check

psycopg = pytest.importorskip("psycopg")

from waiting import commits_held  # noqa: E402

pytestmark = pytest.mark.slow
PROCESSES = 8


def texts(store: Store, session: str) -> list[str]:
    return [message.parts[0].text or "" for message in store.messages(session)]


def aborted(url: str) -> int:
    """Return how many transactions the server has aborted for others that waited."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        sql = (
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        )
        ((number,),) = connection.execute(sql).fetchall()
    return int(number)


def test_units_that_state_their_sessions_never_wait_in_a_circle(url: str) -> None:
    work = """
        name, sessions, turns = args
        chance = random.Random(name)
        written = []
        with Store.open(url, durability="normal") as store:
            begin()
            for turn in range(turns):
                text = f"{name} {turn}"
                chosen = chance.sample(sessions, 3)
                with store.effects() as unit:
                    for session in chosen:
                        unit.append(session, user(text))
                    for key in chance.sample("abcd", 2):
                        unit.set_value("shared", key, text)
                written += [(session, text) for session in chosen]
        report(written)
    """
    with Store.open(url) as store:
        sessions = [store.create_session(directory="/tmp").id for _ in range(6)]
        members = [(str(number), sessions, 8) for number in range(PROCESSES)]
        expected = defaultdict(list)
        for written in reports_of(work, url, *members):
            for session, text in written:
                expected[session].append(text)
        for session in sessions:
            assert sorted(texts(store, session)) == sorted(expected[session])
        assert check(store) == []
    assert aborted(url) == 0


def test_nothing_is_lost_or_doubled_in_a_storm_of_crossing_units(url: str) -> None:
    work = """
        name, sessions, turns = args
        chance = random.Random(name)
        written, deleted = [], []
        with Store.open(url, durability="normal") as store:
            begin()
            for turn in range(turns):
                text = f"{name} {turn}"
                first, second, third = chance.sample(sessions, 3)
                with store.effects() as unit:
                    helper = unit.create_session(parent=first, directory=f"/p/{turn}")
                    unit.append(third, user(text))
                    fork = unit.fork(second)
                    unit.append(first, user(text))
                    named = unit.open_session(
                        f"named {chance.randrange(4)}", directory=f"/p/{name}"
                    )
                    unit.append(named, user(text))
                    unit.append(helper, user(text))
                    unit.append(fork, user(text))
                    unit.set_directory(second, f"/p/{turn % 2}")
                    unit.set_value("shared", str(chance.randrange(4)), text)
                appended = [first, third, named.id, helper.id, fork.id]
                written += [(session, text) for session in appended]
                if turn % 2:
                    store.delete(helper)
                    deleted.append(helper.id)
                if turn % 3 == 0:
                    store.delete(fork)
                    deleted.append(fork.id)
        report([written, deleted])
    """
    with Store.open(url) as store:
        sessions = [store.create_session(directory="/p/0").id for _ in range(5)]
        members = [(str(number), sessions, 6) for number in range(PROCESSES)]
        reports = reports_of(work, url, *members)
        deleted = {session for _, gone in reports for session in gone}
        expected = defaultdict(list)
        for written, _ in reports:
            for session, text in written:
                expected[session].append(text)
        for session in expected.keys() - deleted:
            stored = texts(store, session)
            for text in expected[session]:
                # A fork began with what its parent had.
                assert stored.count(text) == 1, (session, text)
            if session in sessions:
                assert len(stored) == len(expected[session])
        listed = store.sessions(project=ALL, subagents=True, limit=200)
        assert {item.id for item in listed} == expected.keys() - deleted
        assert check(store) == []
    units = PROCESSES * 6
    assert aborted(url) < units


def test_a_unit_that_was_aborted_twice_waits_until_it_is_alone(url: str) -> None:
    # The other one never notices that both wait: it is always the unit that is aborted.
    with (
        Store.open(url) as store,
        psycopg.connect(url, autocommit=True) as other,
        ThreadPoolExecutor(1) as thread,
    ):
        for key in ("a", "b"):
            store.set_value("n", key, 0)
        other.execute("SET deadlock_timeout = '1h'")
        other.execute("BEGIN")
        other.execute(f"SELECT pg_advisory_xact_lock_shared({0x53444232})")
        lock = "SELECT 1 FROM key_value WHERE key = %s FOR UPDATE"
        other.execute(lock, ["b"])

        def write() -> None:
            with store.effects() as unit:
                unit.set_value("n", "a", 1)
                unit.set_value("n", "b", 1)

        with commits_held(url, "part") as gate:
            writing = thread.submit(write)
            for _ in range(3):
                gate.wait_for(1)
                other.execute("SAVEPOINT one")
                other.execute(lock, ["a"])
                other.execute("ROLLBACK TO one")
            gate.wait_for(1)
            other.execute("COMMIT")
        writing.result()
        assert [value.value for value in store.values("n")] == [1, 1]
    assert aborted(url) == 2


def test_four_processes_write_at_the_same_time(url: str) -> None:
    work = """
        name, own, every, turns = args
        with Store.open(url) as store:
            begin()
            for turn in range(turns):
                for session in [own, *every]:
                    store.append(session, user(f"{name} {turn}"))
        report(None)
    """
    turns = 10
    with Store.open(url) as store:
        own = [store.create_session(directory="/tmp").id for _ in range(4)]
        members = [(str(number), own[number], own, turns) for number in range(4)]
        with crew(work, url, *members) as processes:
            processes.prepare()
            with commits_held(url) as gate:
                processes.begin()
                # All have written to their own sessions, and none has committed.
                gate.wait_for(4)
            processes.reports()
        for number, session in enumerate(own):
            stored = texts(store, session)
            assert len(stored) == 5 * turns
            for process in range(4):
                times = 2 if process == number else 1
                in_order = [f"{process} {turn}" for turn in range(turns)] * times
                of_process = [text for text in stored if text.startswith(f"{process} ")]
                assert sorted(of_process) == sorted(in_order)
                assert [*dict.fromkeys(of_process)] == in_order[:turns]
        assert [store.session(session).message_count for session in own] == [50] * 4
        assert check(store) == []
    assert aborted(url) == 0


@pytest.fixture
def small_server(server: Server) -> Iterator[Server]:
    """Another server, with room for a thousand locks, about."""
    with running(server.programs, connections=8) as started:
        yield started


_COLUMNS = """
SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
WHERE table_name = 'session' AND is_generated = 'NEVER'
"""
_FIVE_THOUSAND = """
INSERT INTO session ({columns}) SELECT {columns} FROM (
    SELECT (json_populate_record(s, json_build_object(
        'id', 'ses_' || n, 'root_id', 'ses_' || n, 'slug', 'n' || n, 'rid', 10 + n,
        'change', s.change + n
    ))).* FROM session AS s, generate_series(1, 5000) AS n) AS made
"""
_ROUTES = (
    "INSERT INTO route SELECT id, family FROM session "
    "ON CONFLICT (session_id) DO NOTHING"
)


def test_a_unit_may_write_to_five_thousand_sessions(small_server: Server) -> None:
    with Store.open(small_server.url(), durability="normal") as store:
        first = store.create_session(directory=None)
        with psycopg.connect(small_server.url()) as connection:
            ((columns,),) = connection.execute(_COLUMNS).fetchall()
            connection.execute(_FIVE_THOUSAND.format(columns=columns))
            connection.execute(_ROUTES)
        with store.effects() as unit:
            for number in range(5_000):
                unit.archive(f"ses_{number + 1}")
        store.append(first, user("still writable"))
        (listed,) = store.sessions(project=ALL, empty=True)
        assert listed.id == first.id
