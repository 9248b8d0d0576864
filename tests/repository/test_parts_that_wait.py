"""Parts that wait for the search index are found like those in it, from any process."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import suppress

import pytest
from backends import Backend
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import Store, assistant, text, tool, user
from sessiondb.errors import NotFoundError
from sessiondb.maintenance import check

STEPS = ("prompt", "answer", "call", "settle", "change", "remove", "delete", "fork", "rest",
         "rebuild")  # fmt: skip
#: Appends words to a session of its own, and says which are stored.
WRITER = """
import sys
from sessiondb import Store, assistant, text, tool, user
place, name, count = sys.argv[1:]
with Store.open(place, durability="normal") as store:
    session = store.create_session(title=name)
    for number in range(int(count)):
        word = f"{name}w{number}"
        store.append(session, user(word))
        call = tool("bash", {"command": f"run {word}"}, output=f"ran {word}")
        store.append(session, assistant(text(f"said {word}"), call))
        print(word, flush=True)
        sys.stdin.readline()
"""


def words_by_hand(backend: Backend, store: Store) -> dict[str, int]:
    """Return in how many parts each word of the test is, read without any index."""
    counts: dict[str, int] = {}
    rows = backend.rows(
        store,
        "SELECT p.text, p.input FROM part AS p JOIN session AS s ON s.id = p.session_id "
        "WHERE p.indexed = 1 AND s.time_deleted IS NULL",
    )
    backend.assert_searchable(store)
    beside_nothing = "SELECT id FROM part WHERE indexed = 0 AND words IS NOT NULL"
    assert backend.rows(store, beside_nothing) == []
    for said, arguments in rows:
        line = f"{said or ''} {arguments or ''}".replace('"', " ")
        for word in {word for word in line.split() if "w" in word}:
            counts[word] = counts.get(word, 0) + 1
    return counts


@settings(max_examples=25)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=10, max_size=70),
    seed=st.integers(0, 1000),
)
def test_whatever_is_written_is_found_at_once_and_nothing_else(
    backend: Backend, steps: list[str], seed: int
) -> None:
    place = backend.fresh()
    chance, calls = random.Random(seed), []
    with Store.open(place, durability="normal") as store:
        sessions = [store.create_session(title="x").id for _ in range(3)]
        with Store.open(place, read_only=True) as reader, backend.watching(place):
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
                    case "change" | "remove" if backend.has_triggers:
                        change_in_shell(backend, store, step, word, chance)
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
                        assert backend.waiting_parts(store) == 0
                    case "rebuild":
                        backend.rebuild_search(store)

                expected = words_by_hand(backend, store)
                for asked in {word, chance.choice([*expected, word])}:
                    hits = reader.search(asked, all_hits=True, limit=1000)
                    assert len(hits) == expected.get(asked, 0), (asked, step)
        # What else a shell may break is not of search.
        assert not [found for found in check(store) if found.check == "search"]


def change_in_shell(
    backend: Backend, store: Store, step: str, word: str, chance: random.Random
) -> None:
    """Change or remove a part, new or old, as a user of a shell does."""
    rids = [rid for (rid,) in backend.rows(store, "SELECT rid FROM part ORDER BY rid")]
    if not rids:
        return
    rid = chance.choice([rids[-1], chance.choice(rids)])
    if step == "change":
        backend.run(store, "UPDATE part SET text = ? WHERE rid = ?", word, rid)
    else:
        backend.run(store, "DELETE FROM part WHERE rid = ?", rid)


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
    store: Store, backend: Backend, order: str
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
    assert backend.waiting_parts(store) == (4 if backend.parts_wait else 0)
    store._core.writer.idle()
    assert backend.waiting_parts(store) == 0
    assert hits() == waiting
    assert all(waiting)


@pytest.mark.slow
def test_what_several_processes_write_is_found_by_a_reader_as_soon_as_it_is_stored(
    backend: Backend,
) -> None:
    turns = 60
    place = backend.fresh()
    writers = {
        name: subprocess.Popen(
            [sys.executable, "-c", WRITER, str(place), name, str(turns)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("a", "b", "c")
    }  # fmt: skip
    with Store.open(place, read_only=True) as reader:
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
    with Store.open(place) as store:
        # What else a shell may break is not of search.
        assert not [found for found in check(store) if found.check == "search"]
