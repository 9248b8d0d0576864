"""Which messages a read returns: the path to any message, some by id, role, kind or time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import processes
import pytest
from backends import Backend
from foreign_sessions import said, session_of, take_in
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import (
    AsyncStore,
    InvalidInputError,
    Message,
    MessageDraft,
    NotFoundError,
    Store,
    assistant,
    event,
    system,
    tool,
    tool_result,
    user,
)

pytestmark = pytest.mark.slow

T0 = 1_780_000_000_000
KINDS = ("compaction", "model_change")


def seqs(messages: Iterable[Message]) -> list[int]:
    return [item.seq for item in messages]


def result(call_id: str, output: str) -> MessageDraft:
    """A result that is a record of its own."""
    return MessageDraft("tool", (tool_result(call_id, output),))


@pytest.fixture
def branched(store: Store) -> str:
    """A session of all roles with two branches: 1 2 3 4, and 1 2 5 6 7 which is live."""
    session = store.create_session(title="branched")
    store.append(session, user("a", id="first"), time=T0)
    store.append(session, assistant("b"), time=T0 + 1)
    store.append(session, user("c", id="aside"), time=T0 + 2)
    store.append(session, event("compaction", "d"), time=T0 + 3)
    store.append(session, system("e"), after=2, time=T0 + 9)
    store.append(session, event("compaction", "f"), time=T0 + 5)
    store.append(session, user("g", id="last"), time=T0 + 6)
    store.label(session, 4, "cut")
    return session.id


@pytest.fixture
def inserted(store: Store) -> str:
    """An import whose source put messages in between: the live path is 1 5 2 3 6 4."""
    origin = [said(name, at=place) for place, name in enumerate("abcd")]
    take_in(store, session_of("s", *origin))
    origin[1:1] = [said("between a and b", role="user", at=9)]
    origin[4:4] = [said("between c and d", role="user", at=9)]
    (taken,) = take_in(store, session_of("s", *origin))
    return taken.id


def test_a_path_ends_at_any_message_that_is_named(store: Store, branched: str) -> None:
    assert seqs(store.messages(branched, at=4)) == [1, 2, 3, 4]
    assert seqs(store.messages(branched, at="cut")) == [1, 2, 3, 4]
    assert seqs(store.messages(branched, at="aside", last=2)) == [2, 3]
    aside = store.message(branched, "aside")
    assert seqs(store.messages(branched, at=aside, after=1)) == [2, 3]
    assert seqs(store.messages(branched, at=5, before=2)) == [1]
    assert seqs(store.messages(branched, at=1)) == [1]
    for nowhere in ("no such", 99):
        with pytest.raises(NotFoundError):
            store.messages(branched, at=nowhere)


def test_the_path_to_a_message_is_out_of_order_where_the_session_is(
    store: Store, inserted: str
) -> None:
    path = [1, 5, 2, 3, 6, 4]
    for place, at in enumerate(path):
        assert seqs(store.messages(inserted, at=at)) == path[: place + 1]
    for place, after in enumerate(path):
        rest = path[place + 1 :]
        assert seqs(store.messages(inserted, after=after)) == rest
        assert seqs(store.messages(inserted, after=after, last=2)) == rest[-2:]
        assert seqs(store.messages(inserted, after=after, limit=2)) == rest[:2]
    assert seqs(store.messages(inserted, roles="user")) == [5, 6]
    assert seqs(store.messages(inserted, roles="user", last=1)) == [6]
    assert seqs(store.messages(inserted, roles="user", after=5)) == [6]
    assert seqs(store.messages(inserted, roles="assistant", before=6)) == [1, 2, 3]
    assert seqs(store.walk(inserted, newest=True, page=2)) == path[::-1]


def test_messages_are_read_by_their_ids_wherever_they_are(
    store: Store, branched: str
) -> None:
    last = store.message(branched, 7)
    found = store.messages(branched, ids=["last", "aside", "gone", "last"])
    assert [item.id for item in found] == ["aside", "last"]
    handle = store.append(branched, user("h"))
    assert store.messages(branched, ids=[handle, last])[0] == last
    assert seqs(store.messages(branched, ids=["aside", last], newest=True)) == [7, 3]
    assert seqs(store.messages(branched, ids=["aside", last], last=1)) == [7]
    assert seqs(store.messages(branched, ids=iter(["aside", last]), limit=1)) == [3]
    assert store.messages(branched, ids=[]) == []
    # An id of another session is not one of this session.
    other = store.append(store.create_session(), user("elsewhere"))
    assert store.messages(branched, ids=[other]) == []
    refused: list[Any] = ["last", [3], [None], 3, ["\ud800"]]
    for ids in refused:
        with pytest.raises(InvalidInputError):
            store.messages(branched, ids=ids)


def test_roles_and_kinds_narrow_what_the_others_count(
    store: Store, branched: str
) -> None:
    assert seqs(store.messages(branched, roles="user")) == [1, 7]
    assert seqs(store.messages(branched, roles=("human", "ai"))) == [1, 2, 7]
    assert seqs(store.messages(branched, kinds="compaction")) == [6]
    assert seqs(store.messages(branched, kinds=KINDS, branches=True)) == [4, 6]
    assert seqs(store.messages(branched, kinds="compaction", at="cut")) == [4]
    assert seqs(store.messages(branched, roles="event", kinds="compaction")) == [6]
    assert seqs(store.messages(branched, roles="user", last=1)) == [7]
    assert seqs(store.messages(branched, roles="user", limit=1)) == [1]
    assert seqs(store.messages(branched, roles="user", after=1)) == [7]
    assert seqs(store.messages(branched, roles="user", before=7)) == [1]
    assert seqs(store.messages(branched, ids=["aside", "last"], roles="user")) == [3, 7]
    for nothing in ({"kinds": "no such"}, {"roles": ()}, {"kinds": []}):
        assert store.messages(branched, **nothing) == []
    refused: list[Any] = [
        {"roles": "robot"},
        {"roles": ["user", None]},
        {"roles": 3},
        {"kinds": [3]},
        {"kinds": "\ud800"},
    ]
    for wrong in refused:
        with pytest.raises(InvalidInputError):
            store.messages(branched, **wrong)


def test_since_compares_times_of_creation_and_not_places(
    store: Store, branched: str
) -> None:
    # Message 5 has a later time than those that follow it.
    assert seqs(store.messages(branched, since=T0 + 6)) == [5, 7]
    assert seqs(store.messages(branched, since=T0 + 6, last=1)) == [7]
    assert seqs(store.messages(branched, since="1973")) == [1, 2, 5, 6, 7]
    assert store.messages(branched, since="2100-01-01") == []
    assert seqs(store.messages(branched, since=T0 + 2, branches=True)) == [
        3,
        4,
        5,
        6,
        7,
    ]
    with pytest.raises(InvalidInputError, match="since: 'soon' is not a time"):
        store.messages(branched, since="soon")


def test_the_newest_come_first_and_a_limit_counts_from_them(
    store: Store, branched: str
) -> None:
    assert seqs(store.messages(branched, newest=True)) == [7, 6, 5, 2, 1]
    assert seqs(store.messages(branched, newest=True, limit=2)) == [7, 6]
    assert seqs(store.messages(branched, newest=True, last=2)) == [7, 6]
    assert seqs(store.messages(branched, newest=True, before=6, limit=2)) == [5, 2]
    assert seqs(store.messages(branched, newest=True, branches=True, limit=3)) == [
        7,
        6,
        5,
    ]
    assert seqs(store.messages(branched, newest=True, roles="user", limit=1)) == [7]


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": 1, "branches": True},
        {"ids": ["last"], "at": 1},
        {"ids": ["last"], "branches": True},
        {"ids": ["last"], "after": 1},
        {"ids": ["last"], "before": 1},
        {"newest": True, "last": 1, "limit": 1},
        {"last": 0},
        {"limit": 0, "roles": "user"},
        {"limit": 0, "newest": True},
        {"newest": 3},
        {"resolve": None},
    ],
)
def test_what_has_no_meaning_together_is_refused(
    store: Store, branched: str, wrong: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInputError):
        store.messages(branched, **wrong)
    if "at" in wrong:
        with pytest.raises(InvalidInputError):
            list(store.walk(branched, at=1, branches=True))


TREES = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.sampled_from(["user", "assistant", "event", "call", "result"]),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=24,
)


def grown(store: Store, tree: list[tuple[int, str, int]]) -> str:
    """Make a session of *tree*: where each message is appended, what, and when."""
    session = store.create_session()
    with store.effects() as fx:
        handles: list[Any] = []
        for number, (back, what, time) in enumerate(tree):
            draft = {
                "user": user(f"{number}"),
                "assistant": assistant(f"{number}"),
                "event": event(KINDS[number % 2]),
                "call": assistant(tool("ls", {}, call_id=f"c{number % 3}")),
                "result": result(f"c{number % 3}", f"output {number}"),
            }[what]
            # Mostly at the end, else behind one of the last ones.
            after = {"after": handles[-back]} if 0 < back <= len(handles) else {}
            handles.append(fx.append(session, draft, time=T0 + time, **after))
    return session.id


@given(tree=TREES, data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_choice_is_what_a_caller_would_choose_of_the_whole(
    tree: list[tuple[int, str, int]], data: st.DataObject
) -> None:
    with Store.open(":memory:", durability="normal") as store:
        session = grown(store, tree)
        everything = store.messages(session, branches=True)
        for _ in range(6):
            at = data.draw(st.none() | st.sampled_from(seqs(everything)))
            if at is not None:
                store.set_leaf(session, at)
            path = store.messages(session)
            if at is not None:
                store.set_leaf(session, everything[-1])
                assert store.messages(session, at=at) == path
            else:
                path = store.messages(session)

            place = st.none() | st.sampled_from(seqs(everything))
            some = st.none() | st.integers(1, 5)
            after, before = data.draw(place), data.draw(place)
            last, limit = data.draw(some), data.draw(some)
            newest = data.draw(st.booleans()) and not (last and limit)
            role = data.draw(st.none() | st.sampled_from(["user", "event"]))
            kind = data.draw(st.none() | st.sampled_from(KINDS))
            since = data.draw(st.none() | st.integers(0, 9))

            expected = [
                item
                for item in path
                if (after is None or item.seq > after)
                and (before is None or item.seq < before)
                and (role is None or item.role == role)
                and (kind is None or item.kind == kind)
                and (since is None or item.time_created >= T0 + since)
            ]
            if newest:
                expected = expected[::-1][: limit or last]
            else:
                expected = expected[:limit]
                expected = expected if last is None else expected[-last:]
            choice: dict[str, Any] = {
                "at": at,
                "after": after,
                "before": before,
                "roles": role,
                "kinds": kind,
                "since": None if since is None else T0 + since,
                "newest": newest,
            }
            assert store.messages(session, last=last, limit=limit, **choice) == expected
            if last is None and limit is None:
                size = data.draw(st.integers(1, 5))
                assert list(store.walk(session, page=size, **choice)) == expected


def test_results_stay_where_they_were_recorded_unless_they_are_resolved(
    store: Store,
) -> None:
    session = store.create_session()
    store.append(session, assistant(tool("ls", {}, call_id="c")))
    store.append(session, result("c", "a.py"))
    call, record = store.messages(session, resolve=False)
    assert (call.parts[0].text, call.parts[0].status) == ("a.py", "completed")
    assert record.parts[0].text is None
    assert [m.parts[0].text for m in store.messages(session)] == ["a.py", "a.py"]

    # A later result is a record with a text of its own: the call keeps the first.
    store.append(session, result("c", "b.py"))
    texts = [m.parts[0].text for m in store.messages(session, resolve=False)]
    assert texts == ["a.py", None, "b.py"]
    assert [m.parts[0].text for m in store.walk(session, resolve=False)] == texts
    assert store.messages(session)[0].parts[0].text == "b.py"
    assert store.messages(session, at=2)[0].parts[0].text == "a.py"
    assert next(store.walk(session, at=2)).parts[0].text == "a.py"
    assert store.messages(session, roles="assistant")[0].parts[0].text == "b.py"
    assert store.messages(session, roles="assistant", at=2)[0].parts[0].text == "a.py"


def test_a_message_is_found_by_its_id_in_whatever_session_it_is(store: Store) -> None:
    session = store.create_session()
    store.append(session, user("Hello", id="m"))
    found = store.find_message("m")
    assert found is not None
    assert (found.session_id, found.text, found.seq) == (session.id, "Hello", 1)
    assert store.find_message("no such") is None
    assert store.find_message("m", source="another program") is None
    assert store.find_message("m", source="sessiondb") == found
    store.archive(session)
    assert store.find_message("m") == found
    store.delete(session)
    assert store.find_message("m") is None
    refused: list[Any] = ["", 3, None, "\ud800", "x" * 5000]
    for wrong in refused:
        with pytest.raises(InvalidInputError):
            store.find_message(wrong)


def test_of_a_message_and_its_copies_the_one_that_counts_is_found(
    store: Store,
) -> None:
    session = store.create_session()
    store.append(session, user("Hello", id="m"))
    fork = store.fork(session)
    again = store.fork(fork)
    found = store.find_message("m")
    assert found is not None
    assert found.session_id == session.id
    # If the original goes, a copy counts instead.
    store.delete(session, keep_forks=True)
    found = store.find_message("m")
    assert found is not None
    assert (found.session_id, found.inherited) == (fork.id, False)
    assert store.message(again, "m").inherited


def test_of_unrelated_messages_of_one_id_that_of_the_oldest_session_is_found(
    store: Store,
) -> None:
    young, old = store.create_session(), store.create_session(time=T0 - 1)
    take_in(store, session_of("s", said("m", "Elsewhere"), time_created=T0 - 2))
    store.append(young, user("Young", id="m"))
    store.append(old, user("Old", id="m"))

    def text(**source: str) -> str:
        found = store.find_message("m", **source)
        assert found is not None
        return found.text

    assert text() == "Elsewhere"
    assert text(source="elsewhere") == "Elsewhere"
    assert text(source="sessiondb") == "Old"


def test_the_message_of_an_unfinished_import_is_not_found(store: Store) -> None:
    def broken() -> Any:
        yield said("m", "Elsewhere")
        raise KeyboardInterrupt

    origin = session_of("s", digest="d")
    with pytest.raises(KeyboardInterrupt):
        list(store.ingest([type(origin)(
            origin.source, "s", origin.path, "d", broken(), time_created=T0,
            directory="/elsewhere/project",
        )]))  # fmt: skip
    assert store.find_message("m") is None


def test_the_children_of_a_session_are_its_own_subagents_and_forks(
    store: Store,
) -> None:
    session = store.create_session()
    store.append(session, user("Hello"))
    fork = store.fork(session)
    subagent = store.create_session(parent=session)
    grandchild = store.create_session(parent=subagent)
    gone = store.create_session(parent=session)
    store.delete(gone)
    children = store.children(session)
    assert [item.id for item in children] == [fork.id, subagent.id]
    assert [item.relation for item in children] == ["fork", "subagent"]
    assert store.subagents(session) == [children[1]]
    assert [item.id for item in store.children(subagent)] == [grandchild.id]
    assert store.children(fork) == []
    store.archive(fork)
    assert [item.id for item in store.children(session)] == [fork.id, subagent.id]
    with pytest.raises(NotFoundError):
        store.children("no such")


async def test_an_async_store_chooses_alike(backend: Backend) -> None:
    place = backend.fresh()
    async with AsyncStore.open(place, durability="normal") as store:
        session = await store.create_session()
        for number in range(6):
            draft = (user, assistant)[number % 2](f"{number}", id=f"m{number}")
            await store.append(session, draft)
        child = await store.create_session(parent=session)
        choices: list[dict[str, Any]] = [
            {"at": 4, "newest": True},
            {"roles": "user", "after": 1},
            {"since": "today", "kinds": "none"},
            {"branches": True, "resolve": False},
        ]
        with Store.open(place) as other:
            for choice in choices:
                expected = other.messages(session, **choice)
                assert await store.messages(session, **choice) == expected
                walked = [m async for m in store.walk(session, page=2, **choice)]
                assert walked == expected
            by_id = await store.messages(session, ids=["m3", "m1"], newest=True)
            assert [item.id for item in by_id] == ["m3", "m1"]
        assert await store.find_message("m3") == by_id[0]
        assert [item.id for item in await store.children(session)] == [child.id]
        with pytest.raises(InvalidInputError):
            await store.messages(session, at=1, branches=True)


def test_what_another_process_wrote_is_found_at_once(backend: Backend) -> None:
    program = (
        "import sys; from sessiondb import Store, event\n"
        "with Store.open(sys.argv[1]) as store:\n"
        "    store.append(sys.argv[2], event('compaction', id='theirs'))\n"
    )
    place = backend.fresh()
    with Store.open(place) as store:
        session = store.create_session()
        store.append(session, user("Hello"))
        processes.run(program, place, session.id)
        (found,) = store.messages(session, kinds="compaction")
        assert store.find_message("theirs") == found
