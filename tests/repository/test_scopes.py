"""The scope of a session: the caller's own key for lists, searches and sums."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import processes
import pytest
from backends import Backend

from sessiondb import AsyncStore, InvalidInputError, Store, assistant, user
from sessiondb.formats import exporter, find

pytestmark = pytest.mark.slow


def titles(store: Store, **filters: Any) -> list[str]:
    return [item.title for item in store.sessions(**filters)]


@pytest.fixture
def scoped(store: Store) -> Store:
    """Sessions of two scopes and one of none, each with an answer that cost 1 USD."""
    for title, scope in (
        ("a1", "app/ann"),
        ("b1", "app/bob"),
        ("a2", "app/ann"),
        ("n", None),
    ):
        with store.effects() as fx:
            session = fx.create_session(title=title, scope=scope)
            fx.append(session, user("word"))
            fx.append(session, assistant("word"), cost=1.0)
            fx.add_prompt("word", session=session)
    return store


def test_lists_searches_and_sums_keep_to_a_scope(scoped: Store) -> None:
    assert titles(scoped, scope="app/ann") == ["a2", "a1"]
    assert titles(scoped, scope="app/ann", reverse=True) == ["a1", "a2"]
    assert titles(scoped, scope="app/ann", order="created") == ["a2", "a1"]
    assert set(titles(scoped, scope="app/ann", order="cost")) == {"a1", "a2"}
    assert set(titles(scoped, scope="app/ann", order="size")) == {"a1", "a2"}
    assert titles(scoped, scope="app/ann", title="1") == ["a1"]
    assert titles(scoped, scope="app/ann", project="/elsewhere") == []
    # Not a prefix, and not a pattern.
    for nobody in ("app", "app/%", "APP/ANN"):
        assert titles(scoped, scope=nobody) == []

    hits = scoped.search("word", scope="app/ann", all_hits=True)
    assert sorted({hit.session.title for hit in hits}) == ["a1", "a2"]
    assert len(scoped.search("*or*", scope="app/bob", all_hits=True)) == 2
    assert len(scoped.search("a", scope="app/bob")) == 0
    assert len(scoped.prompts(scope="app/ann")) == 2
    for by in ((), "model", "day", "tool", ("session", "project")):
        rows = scoped.usage(by=by, scope="app/ann")
        assert sum(row.cost or 0 for row in rows) == 2.0
    (row,) = scoped.usage(by="source", scope="app/bob")
    assert len(scoped.usage_records(row.key, scope="app/bob")) == 1
    assert scoped.usage(by=(), scope="app") == []


def test_the_pages_of_a_scope_join_to_its_list(store: Store) -> None:
    with store.effects() as fx:
        for number in range(15):
            fx.append(
                fx.create_session(title=f"{number}", scope="ab"[number % 2]), user("x")
            )
    for order in ("used", "created", "cost", "size"):
        for reverse in (False, True):
            how: dict[str, Any] = {"scope": "a", "order": order, "reverse": reverse}
            pages: list[str] = []
            cursor = None
            while True:
                page = store.sessions(**how, limit=3, cursor=cursor)
                pages += [item.title for item in page]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert pages == titles(store, **how)
            assert len(pages) == 8


def test_forks_and_subagents_have_the_scope_of_their_parent_unless_stated(
    store: Store,
) -> None:
    parent = store.create_session(scope="a")
    store.append(parent, user("Hello"))
    subagent = store.create_session(parent=parent)
    fork = store.fork(parent)
    stated = [
        store.create_session(parent=parent, scope="b"),
        store.fork(parent, scope="b"),
    ]
    assert [store.session(s).scope for s in (parent, subagent, fork)] == ["a"] * 3
    assert [store.session(s).scope for s in stated] == ["b", "b"]
    with store.effects() as fx:
        # Also of a parent that the unit itself makes.
        top = fx.create_session(scope="c")
        below = fx.create_session(parent=top)
        twice = fx.fork(below)
    assert store.session(below).scope == store.session(twice).scope == "c"


def test_a_scope_is_changed_and_cleared_like_other_facts(store: Store) -> None:
    session = store.create_session(scope="a")
    store.append(session, user("Hello"))
    store.update_session(session, scope="b")
    assert (titles(store, scope="a"), len(store.sessions(scope="b"))) == ([], 1)
    used = store.session(session).time_updated
    store.update_session(session, scope=None)
    assert store.session(session).scope is None
    assert titles(store, scope="b") == []
    assert store.session(session).time_updated == used


def test_an_opened_session_gets_its_scope_when_it_is_made(store: Store) -> None:
    first = store.open_session("thread-1", scope="a")
    again = store.open_session("thread-1", scope="b")
    assert first.id == again.id
    assert store.session(first).scope == "a"


WRONG: list[Any] = ["", 3, b"a", "a\nb", "\ud800", "x" * 257, ["a"]]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_scope_is_a_key_and_nothing_else(store: Store, wrong: Any) -> None:
    session = store.create_session()
    verbs: list[Callable[[], Any]] = [
        lambda: store.create_session(scope=wrong),
        lambda: store.open_session("thread-1", scope=wrong),
        lambda: store.fork(session, scope=wrong),
        lambda: store.update_session(session, scope=wrong),
    ]
    for verb in verbs:
        with pytest.raises(InvalidInputError, match="scope"):
            verb()
    if not isinstance(wrong, str) or wrong == "\ud800":
        for read in (store.sessions, store.usage, store.prompts):
            with pytest.raises(InvalidInputError, match="scope"):
                read(scope=wrong)


def test_a_log_keeps_the_scope_and_a_change_of_it(
    store: Store, opened: Callable[[str], Store], tmp_path: Path
) -> None:
    session = store.create_session(scope="app/ann")
    store.append(session, user("Hello"))
    log = tmp_path / "log.jsonl"

    def write_log() -> None:
        jsonl = exporter("jsonl")
        (document,) = jsonl.write([store.export(session, **jsonl.read)])
        log.write_bytes(
            b"".join(c if isinstance(c, bytes) else c.encode() for c in document.chunks)
        )

    def read_log(other: Store) -> None:
        for found in find(log):
            assert all(
                getattr(r, "problems", None) == () for r in other.ingest(found.read())
            )

    write_log()
    states = [json.loads(line) for line in log.read_text().splitlines()]
    assert [s["scope"] for s in states if s["type"] == "session_state"] == ["app/ann"]
    other = opened("other")
    read_log(other)
    assert other.session(session.id).scope == "app/ann"
    assert len(other.sessions(scope="app/ann")) == 1
    store.update_session(session, scope="app/bob")
    write_log()
    read_log(other)
    assert other.session(session.id).scope == "app/bob"
    # A change here is newer than the same log again.
    other.update_session(session.id, scope=None)
    read_log(other)
    assert other.session(session.id).scope is None


async def test_both_facades_and_every_process_see_a_scope(backend: Backend) -> None:
    place = backend.fresh()
    program = (
        "import sys; from sessiondb import Store, user\n"
        "with Store.open(sys.argv[1]) as store:\n"
        "    with store.effects() as fx:\n"
        "        fx.append(fx.open_session('thread-1', scope='theirs'), user('Hello'))\n"
    )
    async with AsyncStore.open(place, durability="normal") as store:
        session = await store.create_session(scope="ours")
        await store.append(session, user("Hello"))
        assert processes.said(processes.run(program, place)) == ""
        assert [s.id for s in await store.sessions(scope="ours")] == [session.id]
        (theirs,) = await store.sessions(scope="theirs", reverse=True)
        assert theirs.source_id == "thread-1"
        fork = await store.fork(theirs, scope="ours")
        assert len(await store.sessions(scope="ours")) == 2
        await store.update_session(fork, scope="theirs")
        assert len(await store.usage(by=(), scope="ours")) == 0
        hits = await store.search("hello", scope="theirs")
        assert {hit.session.id for hit in hits} == {theirs.id, fork.id}
