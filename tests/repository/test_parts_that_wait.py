"""Parts that wait for the search index are found like those in it, from any process."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import Store, assistant, text, tool, user
from sessiondb.engine.sqlite.waiting_parts import MOST_WAITING
from sessiondb.errors import NotFoundError
from sessiondb.maintenance import backup, check

STEPS = ("prompt", "answer", "call", "settle", "change", "remove", "delete", "fork", "rest",
         "rebuild")  # fmt: skip
#: Appends words to a session of its own, and says which are stored.
WRITER = """
import sys
from sessiondb import Store, assistant, text, tool, user
path, name, count = sys.argv[1:]
with Store.open(path, durability="normal") as store:
    session = store.create_session(title=name)
    for number in range(int(count)):
        word = f"{name}w{number}"
        store.append(session, user(word))
        call = tool("bash", {"command": f"run {word}"}, output=f"ran {word}")
        store.append(session, assistant(text(f"said {word}"), call))
        print(word, flush=True)
        sys.stdin.readline()
"""


@contextmanager
def shell(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of the sqlite3 module as it is, without anything of ours."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        connection.execute("PRAGMA foreign_keys=ON")
        yield connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def count_waiting(path: Path) -> int:
    with shell(path) as connection:
        return count_waiting_in(connection)


def count_waiting_in(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM part_search_waiting").fetchone()
    return int(row[0])


def test_a_part_waits_until_there_is_much_text(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessiondb.writer.service.IDLE_SECONDS", 60)
    with Store.open(path, durability="normal") as store:
        session = store.create_session()
        store.append(session, user("one"))
        assert count_waiting(path) == 1
        store.append(session, user("word " * 60_000))
        assert count_waiting(path) == 0


def words_by_hand(connection: sqlite3.Connection) -> dict[str, int]:
    """Return in how many parts each word of the test is, read without any index."""
    counts: dict[str, int] = {}
    rows = connection.execute(
        "SELECT coalesce(p.text, '') || ' ' || coalesce(p.input, '') FROM part AS p "
        "JOIN session AS s ON s.id = p.session_id "
        "WHERE p.indexed = 1 AND s.time_deleted IS NULL"
    ).fetchall()
    connection.execute(
        "INSERT INTO part_search (part_search, rank) VALUES ('integrity-check', 1)"
    )
    beside_nothing = "SELECT id FROM part WHERE indexed = 0 AND words IS NOT NULL"
    assert connection.execute(beside_nothing).fetchall() == []
    for (line,) in rows:
        for word in {word for word in line.replace('"', " ").split() if "w" in word}:
            counts[word] = counts.get(word, 0) + 1
    return counts


@settings(max_examples=25)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=10, max_size=70),
    seed=st.integers(0, 1000),
)
def test_whatever_is_written_is_found_at_once_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int
) -> None:
    path = tmp_path_factory.mktemp("waiting") / "sessions.db"
    chance, calls = random.Random(seed), []
    with Store.open(path, durability="normal") as store:
        sessions = [store.create_session(title="x").id for _ in range(3)]
        with Store.open(path, read_only=True) as reader, shell(path) as beside:
            for number, step in enumerate(steps):
                session, word = chance.choice(sessions), f"w{number}"
                match step:
                    case "prompt":
                        store.append(session, user(f"asked {word}"))
                    case "answer":
                        store.append(session, assistant(f"said {word}"))
                    case "call":
                        call = tool("bash", {"command": word})
                        handle = store.append(session, assistant(text(word), call))
                        calls.append((session, handle.parts[1].id))
                    case "settle" if calls:
                        session, part_id = calls.pop(0)
                        # It may be gone, with its session or in the shell.
                        with suppress(NotFoundError):
                            store.settle(session, part_id, output=f"ran {word}")
                    case "change" | "remove":
                        change_in_shell(beside, step, word, chance)
                    case "delete":
                        store.delete(session)
                        # Its forks went with it.
                        listed = store.sessions(limit=100, subagents=True, empty=True)
                        sessions = [found.id for found in listed]
                        sessions = sessions or [store.create_session(title="x").id]
                    case "fork":
                        sessions.append(store.fork(session).id)
                    case "rest":
                        store._core.writer.idle()
                        assert count_waiting_in(beside) == 0
                    case "rebuild":
                        beside.execute(
                            "INSERT INTO part_search (part_search) VALUES ('rebuild')"
                        )

                assert count_waiting_in(beside) < MOST_WAITING
                expected = words_by_hand(beside)
                for asked in {word, chance.choice([*expected, word])}:
                    hits = reader.search(asked, all_hits=True, limit=1000)
                    assert len(hits) == expected.get(asked, 0), (asked, step)
        # What else a shell may break is not of search.
        assert not [found for found in check(store) if found.check == "search"]


def change_in_shell(
    connection: sqlite3.Connection, step: str, word: str, chance: random.Random
) -> None:
    """Change or remove a part, new or old, as a user of sqlite3 does."""
    rids = [rid for (rid,) in connection.execute("SELECT rid FROM part")]
    if not rids:
        return
    rid = chance.choice([rids[-1], chance.choice(rids)])
    if step == "change":
        connection.execute("UPDATE part SET text = ? WHERE rid = ?", (word, rid))
    else:
        connection.execute("DELETE FROM part WHERE rid = ?", (rid,))


def test_pages_of_a_search_go_on_while_what_waits_enters_the_index(
    store: Store,
) -> None:
    session = store.create_session()
    for number in range(10):
        store.append(session, user(f"needle {number}"))
    shown = []
    cursor = None
    while True:
        page = store.search("needle", all_hits=True, limit=3, cursor=cursor)
        shown += [hit.snippet for hit in page]
        store.append(session, user("needle of later"))
        store._core.writer.idle()
        cursor = page.next_cursor
        if cursor is None:
            break
    assert shown == [f"‹needle› {number}" for number in reversed(range(10))]


@pytest.mark.parametrize("order", ["newest", "time", "rank"])
def test_a_search_has_the_same_hits_before_and_after_they_enter_the_index(
    store: Store, order: str
) -> None:
    session = store.create_session()
    store.append(session, user("a needle in fooBar"))
    store.append(session, user("ein Café-Besuch, needle 漢字 needle 🎉"))
    call = tool("bash", {"command": "echo needle"}, output="needle\n" * 50, title="t")
    store.append(session, assistant(text("no such word"), call))
    queries = ("needle", "bar", "cafe", "漢字", "🎉", '"a needle"', "need*", "-foo needle",
               '"Café-Besuch"', "needle OR word")  # fmt: skip

    def hits() -> list[list[tuple[int, str]]]:
        found = []
        for query in queries:
            page = store.search(query, all_hits=True, order=order)
            found.append([(hit.seq, hit.snippet) for hit in page])
        return found

    waiting = hits()
    assert count_waiting(store.path) == 4
    store._core.writer.idle()
    assert count_waiting(store.path) == 0
    assert hits() == waiting
    assert all(waiting)


def test_a_number_of_a_part_that_waited_and_was_deleted_is_not_given_again(
    store: Store,
) -> None:
    session = store.create_session()
    for number in range(3):
        store.append(session, user(f"needle {number}"))
    with shell(store.path) as connection:
        connection.execute("DELETE FROM part WHERE rid = (SELECT max(rid) FROM part)")
        assert connection.execute("SELECT max(rid) FROM part").fetchone() == (2,)
    store.append(session, user("needle 3"))
    with shell(store.path) as connection:
        assert connection.execute("SELECT max(rid) FROM part").fetchone() == (4,)
    assert len(store.search("needle", all_hits=True)) == 3


def test_text_that_waits_and_is_not_utf_8_does_not_keep_the_rest_from_being_found(
    store: Store,
) -> None:
    session = store.create_session()
    store.append(session, user("first needle"))
    store.append(session, user("second needle"))
    with shell(store.path) as connection:
        connection.execute(
            "UPDATE part SET text = CAST(x'ff6e6565646c65ff' AS TEXT) WHERE rid = 1"
        )
    assert [hit.seq for hit in store.search("second")] == [2]


def test_a_backup_and_a_closed_database_have_all_in_the_index(
    path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    with Store.open(path) as store:
        store.append(store.create_session(), user("needle"))
        assert count_waiting(path) == 1
        backup(store, copy)
        assert count_waiting(copy) == 0
    assert count_waiting(path) == 0
    for file in (path, copy):
        with shell(file) as connection:
            sql = "SELECT rowid FROM part_search WHERE part_search MATCH 'needle'"
            assert connection.execute(sql).fetchall() == [(1,)]


@pytest.mark.slow
def test_what_several_processes_write_is_found_by_a_reader_as_soon_as_it_is_stored(
    path: Path,
) -> None:
    turns = 60
    Store.open(path).close()
    writers = {
        name: subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name, str(turns)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("a", "b", "c")
    }  # fmt: skip
    with Store.open(path, read_only=True) as reader:
        for number in range(turns):
            for name, process in writers.items():
                assert process.stdout is not None
                assert process.stdin is not None
                assert process.stdout.readline().strip() == f"{name}w{number}"
                # The prompt, the text and the call; they wait, or not.
                for asked in (f"{name}w{number}", f"{name}w{number // 2}"):
                    assert len(reader.search(asked, all_hits=True)) == 3
                process.stdin.write("\n")
                process.stdin.flush()
    for process in writers.values():
        process.communicate()
        assert process.returncode == 0
    with Store.open(path) as store:
        # What else a shell may break is not of search.
        assert not [found for found in check(store) if found.check == "search"]
