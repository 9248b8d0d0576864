"""One answer that two processes write at one moment is counted once."""

from __future__ import annotations

import pytest
from crew import crew
from postgresql_server import Server

from sessiondb import Store
from sessiondb.maintenance import check

pytest.importorskip("psycopg")

from waiting import commits_held

pytestmark = pytest.mark.slow
APPEND = """
    (session,) = args
    with Store.open(url) as store:
        begin()
        store.append(
            session, assistant("said"), model="m", cost=1.0, response_id="r", time=1_700_000_000_000
        )
    report(None)
"""
FINISH = """
    (session,) = args
    with Store.open(url) as store:
        message = store.append(
            session, assistant("said"), model="m", open=True, response_id="r", time=1_700_000_000_000
        )
        begin()
        store.finish(session, message, cost=1.0)
    report(None)
"""
REPLACE = """
    (session,) = args
    with Store.open(url) as store:
        message = store.append(
            session, assistant("said"), model="m", response_id="r", time=1_700_000_000_000
        )
        begin()
        store.replace(session, message, assistant("said again"), cost=1.0)
    report(None)
"""
IMPORT = """
    from foreign_sessions import said, session_of, take_in
    (name,) = args
    with Store.open(url) as store:
        begin()
        answer = said(f"said by {name}", usage_id="r", cost=1.0)
        take_in(store, session_of(f"session {name}", answer, directory="/tmp"))
    report(None)
"""


@pytest.fixture
def url(server: Server, database: str) -> str:
    """The URL of a database with two sessions."""
    url = server.url(database)
    with Store.open(url) as store:
        for name in ("one", "two"):
            store.create_session(id=name, directory="/tmp")
    return url


@pytest.mark.parametrize(
    "code",
    [APPEND, FINISH, REPLACE, IMPORT],
    ids=["append", "finish", "replace", "import"],
)
def test_an_answer_of_two_writers_is_counted_once(url: str, code: str) -> None:
    with crew(code, url, ("one",), ("two",)) as members:
        members.prepare()
        with commits_held(url) as gate:
            members.begin()
            gate.wait_for(2)
        members.reports()
    with Store.open(url) as store:
        (row,) = store.usage(by=())
        assert (row.cost, row.messages) == (1.0, 1)
        assert check(store) == []
