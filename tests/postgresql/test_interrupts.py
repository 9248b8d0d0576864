"""An interrupt on any line never leaves an answer to be taken for that of another statement."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest
from lines import Interrupter, interrupt

from sessiondb import MessageDraft, PartDraft, Store
from sessiondb.engine.address import ServerAddress

psycopg = pytest.importorskip("psycopg")

from sessiondb.engine.postgresql.connecting import connect  # noqa: E402
from sessiondb.engine.postgresql.connection import BEGIN_READ  # noqa: E402

pytestmark = pytest.mark.slow
ON_THE_WAY = ("engine/postgresql/pipeline.py", "engine/postgresql/connection.py")


def write_and_read(connection: Any) -> None:
    """Use a connection in all of its ways."""
    connection.begin_write(1.0)
    connection.execute("INSERT INTO tea VALUES (?)", ("a",))
    assert connection.time()
    connection.executemany("INSERT INTO tea VALUES (?)", [("b",), ("c",)])
    connection.execute("SAVEPOINT block")
    connection.execute("DELETE FROM tea")
    connection.execute("ROLLBACK TO block")
    connection.commit()
    connection.execute(BEGIN_READ)
    connection.execute("SELECT name FROM tea").fetchone()
    connection.execute("ROLLBACK")
    connection.execute("DELETE FROM tea")


def check(connection: Any, number: int) -> None:
    """Check that a connection is out of use, or answers what is asked."""
    for _ in range(3):
        if not connection.is_usable:
            return
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            answer = connection.execute("SELECT ?, 'asked'", (number,)).fetchall()
        except psycopg.OperationalError:
            assert not connection.is_usable
            return
        assert answer == [(number, "asked")]
        number += 1


def test_a_connection_that_is_used_further_gives_each_statement_its_own_answer(
    address: ServerAddress, connected: Callable[..., Any]
) -> None:
    made = connected()
    made.execute("CREATE TABLE alembic_version AS SELECT '0001' AS version_num")
    made.execute("CREATE TABLE meta AS SELECT 'changed_families' AS key, '0' AS value")
    made.execute("CREATE TABLE tea (name text)")
    connection, at, dropped, kept = connect(address), 0, 0, 0
    is_reached = True
    while is_reached:
        at += 1
        interrupter = Interrupter(at, interrupt, only=ON_THE_WAY)
        with suppress(KeyboardInterrupt), interrupter:
            write_and_read(connection)
        is_reached = interrupter.acted
        check(connection, at)
        if connection.is_usable:
            kept += 1
        else:
            dropped += 1
            connection.close()
            connection = connect(address)
    connection.close()
    assert at > 300
    assert dropped
    assert kept


def texts_of(store: Store, session: str) -> list[str]:
    return [message.parts[0].text or "" for message in store.messages(session)]


def test_an_append_that_is_interrupted_on_many_lines_is_stored_once_or_not_at_all(
    server: Any, database: str
) -> None:
    with closing(Store.open(server.url(database))) as store:
        session = store.create_session(directory="/tmp").id
        at, texts, is_reached = 0, list[str](), True
        while is_reached:
            # All of them are in the test above.
            at += 7
            draft = MessageDraft("user", [PartDraft("text", text=str(at))])
            interrupter = Interrupter(at, interrupt, only=ON_THE_WAY)
            with suppress(KeyboardInterrupt), interrupter:
                store.append(session, draft)
            is_reached = interrupter.acted
            # It waits for the session: a COMMIT that was sent may still be under way.
            store.set_title(session, f"After {at}")
            stored = texts_of(store, session)
            assert stored in (texts, [*texts, str(at)])
            texts = stored
        assert texts[-1] == str(at)
        assert store.session(session).message_count == len(texts)
