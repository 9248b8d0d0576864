"""The words beside a text, in an index that any SQLite rebuilds and a shell changes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from sessiondb import Store, user
from sessiondb.engine.search_words import MARK
from sessiondb.maintenance import check
from sessiondb.model import Hit, MessageDraft, Page


def titles(found: Page[Hit]) -> list[str]:
    return [hit.session.title for hit in found]


def talk(store: Store, title: str, *messages: MessageDraft) -> str:
    with store.effects() as fx:
        handle = fx.create_session(title=title)
        for message in messages:
            fx.append(handle, message)
    return handle.id


def test_prose_has_no_words_beside_it_and_any_sqlite_rebuilds_the_index(
    store: Store,
) -> None:
    talk(store, "prose", user("The quick fox, that's all. 3 times, 4th of May; NASA"))
    talk(store, "names", user("oldString 字符集 🧵"))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        stored = "SELECT words IS NULL FROM part ORDER BY rid"
        assert connection.execute(stored).fetchall() == [(1,), (0,)]
        for command in ("'integrity-check', 1", "'rebuild', 0", "'integrity-check', 1"):
            connection.execute(
                f"INSERT INTO part_search (part_search, rank) VALUES ({command})"
            )
        connection.execute("UPDATE part SET words = NULL WHERE words IS NOT NULL")
        connection.execute(
            "INSERT INTO part_search (part_search, rank) VALUES ('integrity-check', 1)"
        )
    assert titles(store.search("字符集")) == []
    assert titles(store.search("oldString")) == ["names"]


@pytest.mark.parametrize("recursive", ["OFF", "ON"])
def test_a_text_that_a_shell_changes_keeps_no_words_of_the_old_one(
    store: Store, recursive: str
) -> None:
    first = talk(store, "in the index", user("oldString here"))
    store._core.writer.idle()
    second = talk(store, "waiting", user("oldString there"))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA recursive_triggers={recursive}")
        connection.execute("UPDATE part SET text = 'newValue'")
        connection.execute("UPDATE part SET title = 'a title'")
        assert connection.execute("SELECT words FROM part").fetchall() == [(None,)] * 2
        connection.execute(
            "UPDATE part SET text = 'halfWay', words = ?", (MARK + "way",)
        )
        connection.execute(
            "INSERT INTO part_search (part_search, rank) VALUES ('integrity-check', 1)"
        )
    assert titles(store.search("old")) == titles(store.search("newValue")) == []
    assert titles(store.search("way")) == ["waiting", "in the index"]
    assert check(store) == []
    for session in (first, second):
        store.delete(session)
    store.reap()
    assert check(store) == []
