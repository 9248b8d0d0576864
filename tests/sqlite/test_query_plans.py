"""How SQLite answers: every documented order comes from an index, at any depth and size."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from sessiondb import ALL, BEGINNING, HERE, Store, assistant, tool, user
from sessiondb.engine.sql import Statement
from sessiondb.engine.sqlite import search_query, search_waiting
from sessiondb.engine.sqlite.engine import SQLITE

pytestmark = pytest.mark.slow

FLAGS = ("archived", "subagents", "empty")
SORTED_BY_HAND = "USE TEMP B-TREE FOR ORDER BY"


@contextmanager
def statements(store: Store) -> Iterator[list[str]]:
    """Record every statement that reads run, with its values."""
    connection, noted = store._core.readers.checkout(), []
    connection.set_trace_callback(noted.append)
    store._core.readers.give_back(connection)
    yield noted
    connection.set_trace_callback(None)


def plans(store: Store, read: Callable[[], Any]) -> dict[str, str]:
    """Return the plan of each SELECT that *read* makes."""
    with statements(store) as noted:
        read()
    found = {}
    with closing(sqlite3.connect(store.path)) as connection:
        search_query.register(connection)
        search_waiting.register(connection)
        for sql in noted:
            if sql.startswith("SELECT"):
                rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
                # Steps of a subquery are indented: a preview may sort the parts of a message.
                found[sql] = "\n".join("  " * (row[1] > 0) + row[-1] for row in rows)
    assert found
    return found


def list_plan(store: Store, **arguments: Any) -> str:
    made = plans(store, lambda: store.sessions(**arguments))
    (plan,) = [
        plan
        for sql, plan in made.items()
        if "session_blob" in sql and "ORDER BY" in sql
    ]
    return plan


@pytest.fixture
def listed(store: Store) -> Store:
    """A store with a few sessions, and their project in the current directory."""
    for number in range(4):
        store.append(store.create_session(title=f"t{number}"), user("x"))
    return store


@pytest.mark.parametrize("order", ["used", "created"])
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_every_order_of_a_list_comes_from_an_index(
    listed: Store, order: str, deep: bool, everywhere: bool, reverse: bool
) -> None:
    project: Any = ALL if everywhere else "."
    where: dict[str, Any] = {"project": project, "order": order, "limit": 2}
    where["reverse"] = reverse
    if deep:
        where["cursor"] = listed.sessions(**where).next_cursor
        assert where["cursor"]
    for size in range(4):
        for flags in itertools.combinations(FLAGS, size):
            plan = list_plan(listed, **where, **dict.fromkeys(flags, True))
            assert SORTED_BY_HAND not in plan
            index = "ix_session_" + ("" if everywhere else "project_") + order
            assert f"USING INDEX {index}" in plan
            assert ("MERGE (UNION ALL)" in plan) == bool(flags)


@pytest.mark.parametrize(
    "filters",
    [
        {"source": "sessiondb"},
        {"agent": "build"},
        {"title": "t"},
        {"since": 1},
        {"until": 1 << 50},
    ],
)
@pytest.mark.parametrize("order", ["used", "created"])
def test_filters_keep_the_order_of_the_index(
    listed: Store, filters: Any, order: str
) -> None:
    plan = list_plan(listed, project=ALL, order=order, **filters)
    assert SORTED_BY_HAND not in plan
    assert f"ix_session_{order} (hidden=?" in plan


@pytest.mark.parametrize("order", ["used", "created"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("project", [ALL, "."])
def test_a_list_of_a_scope_comes_from_the_index_of_scopes(
    listed: Store, order: str, reverse: bool, project: Any
) -> None:
    for _ in range(3):
        listed.append(listed.create_session(scope="a"), user("x"))
    where: dict[str, Any] = {"scope": "a", "order": order, "reverse": reverse}
    where |= {"project": project, "limit": 2}
    cursor = listed.sessions(**where).next_cursor
    for flags in ({}, dict.fromkeys(FLAGS, True)):
        for page in (None, cursor):
            plan = list_plan(listed, **where, **flags, cursor=page)
            assert SORTED_BY_HAND not in plan
            assert f"USING INDEX ix_session_scope_{order} (scope=? AND hidden=?" in plan


def test_a_list_and_a_total_of_a_scope_cost_the_same_among_any_number_of_sessions(
    listed: Store,
) -> None:
    for _ in range(3):
        session = listed.create_session(scope="a")
        listed.append(session, assistant("x"), cost=1.0)

    def work(read: Callable[[], Any]) -> int:
        connection, steps = listed._core.readers.checkout(), [0]
        connection.set_progress_handler(lambda: steps.__setitem__(0, steps[0] + 1), 10)
        listed._core.readers.give_back(connection)
        read()
        connection.set_progress_handler(None, 10)
        return steps[0]

    def list_scope() -> None:
        assert len(listed.sessions(scope="a")) == 3

    def sum_scope() -> None:
        assert listed.usage(by=("day", "model"), scope="a")[0].cost == 3.0

    reads = (list_scope, sum_scope)
    listed._core.writer.connection.put_waiting()
    before = [work(read) for read in reads]
    with listed.effects() as fx:
        for number in range(600):
            scope = f"b{number % 7}" if number % 2 else None
            fx.append(fx.create_session(scope=scope), assistant("x"), cost=1.0)
    listed._core.writer.connection.put_waiting()
    for read, steps in zip(reads, before, strict=True):
        assert work(read) <= steps * 1.2


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("deep", [False, True])
def test_the_prompt_history_comes_from_an_index(
    listed: Store, everywhere: bool, deep: bool
) -> None:
    where: dict[str, Any] = {"project": ALL if everywhere else HERE, "limit": 2}
    for number in range(4):
        listed.add_prompt(f"p{number}")
    if deep:
        where["cursor"] = listed.prompts(**where).next_cursor
        assert where["cursor"]
    made = plans(listed, lambda: listed.prompts(**where))
    (plan,) = [plan for sql, plan in made.items() if "FROM prompt" in sql]
    assert SORTED_BY_HAND not in plan
    assert f"ix_prompt_{'created' if everywhere else 'project_id'}" in plan


def test_the_pages_of_a_session_are_range_scans(listed: Store) -> None:
    session = listed.sessions(project=ALL).items[0]
    for number in range(30):
        listed.append(
            session, assistant(f"{number}", tool("a", {}, call_id=f"c{number}"))
        )
    one = listed.messages(session)[1]
    reads: dict[str, Callable[[], Any]] = {
        "all": lambda: listed.messages(session),
        "tail": lambda: listed.messages(session, last=5),
        "walk": lambda: list(listed.walk(session, page=7)),
        "branches": lambda: listed.messages(session, branches=True, limit=3),
        "at": lambda: listed.messages(session, at=9, after=3),
        "ids": lambda: listed.messages(session, ids=[one.id], roles="assistant"),
        "roles": lambda: listed.messages(session, roles="assistant", newest=True),
        "kinds": lambda: listed.messages(session, kinds="x", branches=True),
        "tree": lambda: listed.tree(session, messages=True),
        "labels": lambda: listed.labels(session),
        "todos": lambda: listed.todos(session),
        "context": lambda: listed.context(session),
    }
    for name, read in reads.items():
        for sql, plan in plans(listed, read).items():
            lines = plan.splitlines()
            assert SORTED_BY_HAND not in lines or "FROM session" in sql, (
                name,
                sql,
                plan,
            )
            scans = [line for line in lines if line.strip().startswith("SCAN ")]
            assert all("VIRTUAL TABLE" in line for line in scans), (name, sql, plan)
            if "json_each" in sql:
                assert "autoindex_part_1 (session_id=?)" not in plan, (name, sql, plan)


def test_messages_are_found_by_their_ids_through_an_index(listed: Store) -> None:
    session = listed.sessions(project=ALL).items[0]
    one = listed.messages(session)[0]
    reads: list[Callable[[], Any]] = [
        lambda: listed.find_message(one.id),
        lambda: listed.find_message(one.id, source="sessiondb"),
        lambda: listed.messages(session, ids=[one.id]),
    ]
    for read in reads:
        made = plans(listed, read)
        (plan,) = [
            plan
            for sql, plan in made.items()
            if "message.id " in sql.split("WHERE")[-1]
        ]
        assert "sqlite_autoindex_message_2 (id=?" in plan
        assert "SCAN m" not in plan
        assert "SCAN session" not in plan


def test_messages_take_two_range_scans_however_many_there_are(listed: Store) -> None:
    session = listed.create_session()
    counts = []
    for size in (5, 40):
        with listed.effects() as fx:
            for number in range(size):
                fx.append(session, assistant(f"{number}"))
        with statements(listed) as noted:
            listed.messages(session.id)
        counts.append(len([sql for sql in noted if sql.startswith("SELECT")]))
    assert counts[0] == counts[1]


def fill(store: Store, parent: str, number: int) -> None:
    """Put subagents in front of everything, as only a very busy parent would."""
    with closing(sqlite3.connect(store.path)) as connection, connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(session)")][1:]
        kept = [
            name
            for name in names
            if name not in ("id", "slug", "parent_id", "relation")
        ]
        connection.execute(
            f"INSERT INTO session (id, slug, parent_id, relation, {', '.join(kept)}) "
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
            f"SELECT printf('ses_0%025d', i), printf('s%d', i), id, 'subagent', {', '.join(kept)} "
            "FROM n, session WHERE id = ?",
            (number, parent),
        )


@pytest.mark.parametrize("order", ["used", "created"])
def test_a_list_behind_many_subagents_costs_what_it_costs_without(
    listed: Store, order: str
) -> None:
    def work() -> int:
        connection, steps = listed._core.readers.checkout(), [0]

        def count() -> int:
            steps[0] += 1
            return 0

        connection.set_progress_handler(count, 10)
        listed._core.readers.give_back(connection)
        assert len(listed.sessions(project=ALL, order=order, limit=50)) == 4
        assert len(listed.sessions(project=".", order=order, limit=50)) == 4
        connection.set_progress_handler(None, 10)
        return steps[0]

    alone = work()
    fill(listed, listed.sessions(project=ALL).items[0].id, 3000)
    assert len(listed.sessions(project=ALL, subagents=True, limit=5000)) == 3004
    assert work() <= alone * 1.3


@pytest.mark.parametrize(
    "read",
    [
        lambda store, session, end: store.messages(session, last=20),
        lambda store, session, end: store.messages(session, newest=True, limit=20),
        lambda store, session, end: store.messages(session, roles="user", last=20),
        lambda store, session, end: store.messages(session, after=end - 20),
        lambda store, session, end: store.messages(session, at=end - 3, last=20),
        lambda store, session, end: store.messages(session, after=end - 21, limit=20),
        lambda store, session, end: store.messages(
            session, ids=[f"m{number}" for number in range(20)]
        ),
    ],
)
def test_the_last_messages_cost_the_same_in_a_session_of_any_length(
    listed: Store, read: Callable[[Store, str, int], list[Any]]
) -> None:
    session, end = listed.create_session(), 0

    def work(number: int) -> int:
        nonlocal end
        with listed.effects() as fx:
            for _ in range(number):
                fx.append(session, user("x", id=f"m{end}"))
                end += 1
        connection, steps = listed._core.readers.checkout(), [0]
        connection.set_progress_handler(lambda: steps.__setitem__(0, steps[0] + 1), 10)
        listed._core.readers.give_back(connection)
        assert len(read(listed, session.id, end)) == 20
        connection.set_progress_handler(None, 10)
        return steps[0]

    assert work(40) * 1.2 >= work(1000)


@pytest.mark.parametrize("order", ["newest", "time", "rank"])
@pytest.mark.parametrize("all_hits", [False, True])
def test_a_search_matches_by_one_walk_and_never_row_by_row(
    listed: Store, order: str, all_hits: bool
) -> None:
    made = plans(listed, lambda: listed.search("x", order=order, all_hits=all_hits))
    walks = [sql for sql in made if "part_search AS f" in sql]
    assert walks
    for sql in walks:
        lines = [line.strip() for line in made[sql].splitlines()]
        walk = [line for line in lines if line.startswith("SCAN f VIRTUAL TABLE INDEX")]
        assert len(walk) == 1 + ("session_search" in sql), made[sql]
        assert not any("part_search" in line for line in lines)
        # FTS5 writes "=" for a lookup of one row; it then matches again for each.
        assert not any("=" in line for line in walk)
        # Only the few that wait are sorted, in the other half of the union.
        if "session_search" not in sql:
            assert SORTED_BY_HAND not in lines[lines.index(walk[0]) :]


def test_searching_by_rank_costs_the_same_however_many_older_matches_there_are(
    listed: Store,
) -> None:
    session = listed.create_session()

    def work(number: int) -> int:
        with listed.effects() as fx:
            for _ in range(number):
                fx.append(session, user("wombat"))
        connection, steps = listed._core.readers.checkout(), [0]
        connection.set_progress_handler(lambda: steps.__setitem__(0, steps[0] + 1), 10)
        listed._core.readers.give_back(connection)
        assert len(listed.search("wombat", order="rank", all_hits=True)) == 20
        connection.set_progress_handler(None, 10)
        return steps[0]

    assert work(2100) * 1.1 >= work(2000)


def test_a_poll_of_the_feed_takes_two_index_seeks_and_scans_no_messages(
    listed: Store,
) -> None:
    feed = listed.changes(since=BEGINNING, poll=0)
    made = plans(listed, lambda: next(feed))
    (plan,) = [
        plan for sql, plan in made.items() if "FROM deletion" in sql and "UNION" in sql
    ]
    assert "MERGE (UNION ALL)" in plan
    for index in (
        "ix_session_change (change>?)",
        "ix_message_open",
        "ix_part_unsettled",
    ):
        assert index in plan
    assert "SEARCH d USING INDEX" in plan
    assert "SCAN" not in plan
    assert "TEMP B-TREE" not in plan
    feed.close()


def test_parts_are_found_by_their_addresses_without_a_walk_through_their_session(
    store: Store,
) -> None:
    statement = Statement("effects.transaction.MARK").text_on(SQLITE)
    with closing(sqlite3.connect(store.path)) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", {"parts": "[]"})
        plan = [row[-1] for row in rows]
    assert "(session_id=? AND seq=? AND idx=?)" in plan[0]
