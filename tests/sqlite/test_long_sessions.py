"""The cost of a write does not depend on the length of its session, in steps of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sessiondb import MessageDraft, Store, assistant, text, tool, tool_result, user
from sessiondb.effects.transaction import Transaction
from sessiondb.effects.unit import Unit
from sessiondb.engine.sqlite.connection import connect

SHORT, LONG = 400, 20_000
SESSION = "ses_long"

FILL = (
    "INSERT INTO message (session_id, seq, id, parent_seq, turn_id, role, cost, tokens_input,"
    " tokens_output, time_created, time_completed) "
    "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < :size) "
    "SELECT :session, i, printf('msg_%09d', i), i - 1,"
    " iif(i = 2, 'msg_first', printf('msg_%09d', i - (i % 2 = 0))),"
    " iif(i % 2, 'user', 'assistant'), iif(i % 2, NULL, 0.5), iif(i % 2, NULL, 7), 0, i, i FROM n",
    "INSERT INTO part (session_id, seq, idx, id, type, tool, call_id, status, time_created,"
    " time_updated) SELECT session_id, seq, 0, printf('prt_%09d', seq), 'tool', 'bash',"
    " printf('call_%09d', seq), 'completed', 1, 1 FROM message"
    " WHERE session_id = :session AND seq > 1 AND seq <= :size",
    "INSERT INTO part (session_id, seq, idx, id, type, text, time_created, time_updated)"
    " VALUES (:session, 3, 1, 'prt_second', 'text', 'second', 1, 1)",
    "UPDATE part SET call_id = 'before' WHERE session_id = :session AND seq = :size",
    "UPDATE session SET leaf_seq = :size, last_seq = :size, message_count = :size, tokens_input ="
    " (SELECT sum(tokens_input) FROM message), tokens_output = (SELECT sum(tokens_output) FROM"
    " message), cost = (SELECT sum(cost) FROM message) WHERE id = :session",
)


def filled(path: Path, size: int) -> Path:
    """A session of *size* messages, then an open one with a call, and one that called last."""
    with Store.open(path, durability="normal") as store:
        store.create_session(id=SESSION)
        store.append(SESSION, replace(user("first"), id="msg_first"))
        with closing(sqlite3.connect(path)) as db, db:
            for statement in FILL:
                db.execute(statement, {"session": SESSION, "size": size})
        call = tool("bash", {"a": 1}, call_id="waits")
        store.append(
            SESSION, replace(assistant("so far", call), id="msg_open"), open=True
        )
        last = assistant(tool("bash", {}, call_id="last"))
        store.append(
            SESSION, replace(last, id="msg_last"), cost=0.25, tokens={"input": 3}
        )
    return path


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A short session and a long one, each in a database of its own."""
    folder = tmp_path_factory.mktemp("long")
    return filled(folder / "short.db", SHORT), filled(folder / "long.db", LONG)


def result(call_id: str) -> MessageDraft:
    return MessageDraft("tool", (tool_result(call_id, "output"),))


VERBS: dict[str, Callable[[Unit], Any]] = {
    "a prompt": lambda fx: fx.append(SESSION, user("x")),
    "an answer": lambda fx: fx.append(
        SESSION, assistant("x"), cost=1.0, tokens={"input": 1}
    ),
    "a message with its own id": lambda fx: fx.append(
        SESSION, replace(user("x"), id="mine")
    ),
    "a message on a branch": lambda fx: fx.append(
        SESSION, user("x"), after="msg_first"
    ),
    "a result right after its call": lambda fx: fx.append(SESSION, result("last")),
    "a result without a call": lambda fx: fx.append(SESSION, result("nowhere")),
    "a second result": lambda fx: fx.append(SESSION, result("before")),
    "settling by call id": lambda fx: fx.settle(SESSION, "last", output="x"),
    "starting an open call": lambda fx: fx.start(SESSION, "waits", input={"b": 1}),
    "a further part": lambda fx: fx.add_part(SESSION, "msg_open", text("more")),
    "finishing": lambda fx: fx.finish(SESSION, "msg_open", finish="stop", cost=1.0),
    "moving the leaf": lambda fx: fx.set_leaf(SESSION, "msg_first"),
    "truncating the last message": lambda fx: fx.truncate(SESSION, after="msg_open"),
    "popping": lambda fx: fx.pop(SESSION),
    "removing the last message": lambda fx: fx.remove(SESSION, ["msg_last"]),
    "removing one in the middle": lambda fx: fx.remove(SESSION, ["msg_000000200"]),
    "removing the first message": lambda fx: fx.remove(SESSION, ["msg_first"]),
    "replacing the last message": lambda fx: fx.replace(
        SESSION, "msg_last", assistant(tool("bash", {}, call_id="last")), cost=2.0
    ),
    "replacing one in the middle": lambda fx: fx.replace(
        SESSION, "msg_000000200", assistant("x")
    ),
    "replacing the first message": lambda fx: fx.replace(
        SESSION, "msg_first", user("other")
    ),
    "a part of a finished message": lambda fx: fx.add_part(
        SESSION, "msg_000000200", tool("bash", {}, call_id="late")
    ),
    "a condition": lambda fx: fx.expect(SESSION, leaf="msg_last"),
    "metadata that are computed": lambda fx: fx.update_metadata(
        SESSION, lambda _: {"a": 1}
    ),
    "a label": lambda fx: fx.label(SESSION, "msg_last", "here"),
    "a title": lambda fx: fx.set_title(SESSION, "new"),
}


def steps(path: Path, queue: Callable[[Unit], Any]) -> int:
    """How many steps, in tens, SQLite takes to apply a unit, which is rolled back."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    with Store.open(path) as store, closing(connect(path)) as connection:
        unit = store._core.unit()
        queue(unit)
        connection.execute("BEGIN IMMEDIATE")
        connection.set_progress_handler(count, 10)
        tx = Transaction(connection)
        tx.begin_unit(False, None)
        for effect in unit.effects:
            effect.apply(tx)
        tx.flush()
        tx.finish()
        connection.set_progress_handler(None, 10)
        connection.execute("ROLLBACK")
    return counted


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_write_costs_the_same_in_a_session_of_any_length(
    sessions: tuple[Path, Path], verb: str
) -> None:
    short, long = sessions
    assert steps(long, VERBS[verb]) <= steps(short, VERBS[verb]) * 1.3


@pytest.mark.slow
def test_a_retried_result_costs_the_same_in_a_session_of_any_length(
    tmp_path: Path,
) -> None:
    def work(size: int) -> int:
        path = filled(tmp_path / f"{size}.db", size)
        item = replace(result("last"), id="msg_result")
        with Store.open(path, durability="normal") as store:
            store.append(SESSION, item)
        return steps(path, lambda fx: fx.append(SESSION, item))

    assert work(LONG // 4) <= work(SHORT) * 1.3


@pytest.mark.slow
def test_a_result_costs_the_same_however_many_calls_have_its_id(tmp_path: Path) -> None:
    def work(size: int) -> tuple[int, int, int]:
        path = filled(tmp_path / f"{size}.db", size)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE part SET call_id = 'last' WHERE call_id IS NOT NULL")
        first = steps(path, lambda fx: fx.append(SESSION, result("last")))
        with Store.open(path, durability="normal") as store:
            store.append(SESSION, result("last"))
        second = steps(path, lambda fx: fx.append(SESSION, result("last")))
        copied = steps(path, lambda fx: fx.fork(SESSION))
        return first, second, copied

    for_few, for_many = work(200), work(2_000)
    assert for_many[0] <= for_few[0] * 1.3
    assert for_many[1] <= for_few[1] * 1.3
    assert for_many[2] <= for_few[2] * 10 * 1.3


@pytest.mark.slow
def test_the_family_of_a_session_costs_the_same_however_long_it_is(
    sessions: tuple[Path, Path],
) -> None:
    def work(path: Path) -> int:
        counted = [0]
        with Store.open(path) as store:
            connection = store._core.readers.checkout()
            connection.set_progress_handler(
                lambda: counted.__setitem__(0, counted[0] + 1), 10
            )
            store._core.readers.give_back(connection)
            assert store.tree(SESSION).session.id == SESSION
            connection.set_progress_handler(None, 10)
        return counted[0]

    assert work(sessions[1]) <= work(sessions[0]) * 1.3
