"""The messages of a session: live path, branches, tail, pages, one by name."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import msgpack
import pytest
from backends import Backend
from foreign_sessions import said, session_of, take_in
from hand_clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import FileDiff, Store, assistant, event, text, tool, tool_result, user
from sessiondb.errors import InvalidInputError, NotFoundError
from sessiondb.model import Message, MessageDraft
from sessiondb.schema.columns import TABLES

pytestmark = pytest.mark.slow


def seqs(messages: list[Message]) -> list[int]:
    return [item.seq for item in messages]


def words(messages: list[Message]) -> list[str]:
    return [item.text for item in messages]


def result(call_id: str, output: str) -> MessageDraft:
    """A result that is a record of its own."""
    return MessageDraft("tool", (tool_result(call_id, output),))


@pytest.fixture
def branched(store: Store) -> str:
    """A session with two branches: 1 2 3 4, and 1 2 5 6 which is live."""
    session = store.create_session(title="branched")
    for number in range(1, 5):
        store.append(session, user(f"m{number}"))
    store.append(session, user("m5"), after=2)
    store.append(session, user("m6"))
    return session.id


@pytest.fixture
def inserted(store: Store) -> str:
    """An import whose source put messages in between: the live path is 1 5 2 3 6 4."""
    origin = [said(name) for name in ("a", "b", "c", "d")]
    take_in(store, session_of("s", *origin))
    origin[1:1] = [said("between a and b")]
    origin[4:4] = [said("between c and d")]
    (result,) = take_in(store, session_of("s", *origin))
    return result.id


def test_the_live_path_is_what_leads_to_the_leaf(store: Store, branched: str) -> None:
    assert seqs(store.messages(branched)) == [1, 2, 5, 6]
    assert seqs(store.messages(branched, branches=True)) == [1, 2, 3, 4, 5, 6]
    store.set_leaf(branched, 4)
    assert seqs(store.messages(branched)) == [1, 2, 3, 4]
    store.set_leaf(branched, None)
    assert store.messages(branched) == []
    assert len(store.messages(branched, branches=True)) == 6


def test_an_import_that_inserted_in_the_middle_reads_in_the_order_of_its_tree(
    store: Store, inserted: str
) -> None:
    path = [1, 5, 2, 3, 6, 4]
    assert seqs(store.messages(inserted)) == path
    assert words(store.messages(inserted))[1::3] == [
        "between a and b",
        "between c and d",
    ]
    assert seqs(list(store.walk(inserted, page=2))) == path
    for last in range(1, 8):
        assert seqs(store.messages(inserted, last=last)) == path[-last:]
        for place, before in enumerate(path):
            found = store.messages(inserted, last=last, before=before)
            assert seqs(found) == path[max(0, place - last) : place]


def test_a_range_is_cut_by_after_and_before_both_exclusive(
    store: Store, branched: str
) -> None:
    assert seqs(store.messages(branched, after=1)) == [2, 5, 6]
    assert seqs(store.messages(branched, before=5)) == [1, 2]
    assert seqs(store.messages(branched, after=1, before=6)) == [2, 5]
    assert seqs(store.messages(branched, after=1, limit=1)) == [2]
    assert seqs(store.messages(branched, after=1, last=1)) == [6]
    assert seqs(store.messages(branched, limit=2)) == [1, 2]
    assert seqs(store.messages(branched, branches=True, after=2, before=5)) == [3, 4]
    # A message of another branch cuts at the place it would have.
    assert seqs(store.messages(branched, after=3)) == [5, 6]
    assert seqs(store.messages(branched, before=4, last=1)) == [2]
    first = store.messages(branched)[0]
    assert seqs(store.messages(branched, after=first, before=6)) == [2, 5]


@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_the_pages_of_a_session_join_to_all_its_messages(data: st.DataObject) -> None:
    with Store.open(":memory:", durability="normal") as store:
        session = store.create_session()
        with store.effects() as fx:
            handles = []
            for number in range(data.draw(st.integers(1, 30))):
                after = data.draw(st.sampled_from([None, None, *handles[-4:]]))
                more = {} if after is None else {"after": after}
                handles.append(fx.append(session, user(f"{number}"), **more))
        complete = seqs(store.messages(session))
        size = data.draw(st.integers(1, 9))
        assert seqs(list(store.walk(session, page=size))) == complete
        everything = seqs(store.messages(session, branches=True))
        assert seqs(list(store.walk(session, page=size, branches=True))) == everything
        forward: list[int] = []
        while page := seqs(
            store.messages(session, limit=size, after=(forward or [None])[-1])
        ):
            forward += page
        assert forward == complete
        backward: list[int] = []
        while page := seqs(
            store.messages(session, last=size, before=(backward or [None])[0])
        ):
            backward = page + backward
        assert backward == complete


def test_a_message_is_found_by_id_by_seq_and_by_label(
    store: Store, branched: str
) -> None:
    off = store.message(branched, 3)
    assert off.text == "m3"
    assert store.message(branched, off.id) == off
    store.label(branched, 3, "good idea")
    assert store.message(branched, "good idea") == off
    assert [(item.seq, item.label) for item in store.labels(branched)] == [
        (3, "good idea")
    ]
    for nothing in ("no such", 99, "3", "0"):
        with pytest.raises(NotFoundError):
            store.message(branched, nothing)


def test_a_label_moves_to_the_message_that_got_it_last(
    store: Store, branched: str
) -> None:
    store.label(branched, 3, "here")
    store.label(branched, 3, "also")
    store.label(branched, 5, "here")
    assert [(item.seq, item.label) for item in store.labels(branched)] == [
        (3, "also"),
        (5, "here"),
    ]
    store.label(branched, 3, None)
    assert [(item.seq, item.label) for item in store.labels(branched)] == [(5, "here")]


def test_large_values_come_back_verbatim_and_are_stored_once_as_a_blob(
    store: Store,
) -> None:
    session = store.create_session()
    large = "ä" * 5000
    store.append(
        session, assistant(text(large), tool("cat", {"of": large}, output=large))
    )
    words_part, call = store.messages(session)[0].parts
    assert words_part.text == call.text == large
    assert call.input == {"of": large}
    name = hashlib.sha256(large.encode()).hexdigest()
    assert store.blob(name) == large.encode()
    with pytest.raises(NotFoundError):
        store.blob("0" * 64)


def test_a_blob_is_found_through_each_session_that_refers_to_it_and_no_other(
    store: Store,
) -> None:
    text_, input_, data, before, after = (letter * 2000 for letter in "tidba")
    session, other = store.create_session(), store.create_session()
    call = tool("cat", input_, output=text_, note=data)
    store.append(session, assistant(call, more=data))
    diff = FileDiff("a.py", before=before.encode(), after=after.encode())
    store.set_diffs(session, [diff])
    fork = store.fork(session)
    with store.connection() as connection:
        stored = connection.exec_driver_sql("SELECT hash FROM blob").scalars().all()
    assert len(stored) >= 5
    for name in stored:
        assert store.blob(name, session=session) == store.blob(name)
        with pytest.raises(
            NotFoundError, match=f"no blob {name} in session {other.id}"
        ):
            store.blob(name, session=other)
    assert store.blob(hashlib.sha256(text_.encode()).hexdigest(), session=fork)
    with pytest.raises(NotFoundError):
        store.blob("0" * 64, session="no-such-session")


#: A value for each type of column, and what a record has of those that are decoded.
VALUES: dict[str, object] = {
    "TEXT": "1", "INTEGER": 1, "REAL": 0.5, "BLOB": msgpack.packb({"x": 1}),
}  # fmt: skip
DECODED: dict[str, object] = {
    "error": 1, "data": {"x": 1}, "inherited": True, "synthetic": True,
}  # fmt: skip
NAMED_OTHERWISE = {"input": "input_json"}
#: Columns that find a row, or name a blob, or are for the search alone.
NOT_READ = {
    "rid", "session_id", "seq", "idx", "data_blob", "text_blob", "input_blob",
    "indexed", "words",
}  # fmt: skip


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (table, column)
        for table in ("message", "part")
        for column in TABLES[table]
        if column not in NOT_READ
    ],
)
def test_a_value_in_any_column_is_read_and_changes_nothing_else(
    store: Store, backend: Backend, table: str, column: str
) -> None:
    session = store.create_session()
    for word in "abc":
        store.append(session, user(text(word), text(word)))
    before = store.messages(session)
    kind, _ = TABLES[table][column]
    at = "seq = 2" if table == "message" else "seq = 2 AND idx = 1"
    sql = f"UPDATE {table} SET {column} = ? WHERE {at}"
    assert backend.distort(store, sql, VALUES[kind]) == 1

    name = NAMED_OTHERWISE.get(column, column)
    value = {name: DECODED.get(column, VALUES[kind])}
    first, second, third = before
    if table == "message":
        changed = replace(second, **value)
    else:
        parts = (second.parts[0], replace(second.parts[1], **value))
        changed = replace(second, parts=parts)
    assert store.messages(session, branches=True) == [first, changed, third]
    assert store.message(session, 2) == changed


@pytest.mark.needs("has_our_clock", "the times are the server's")
def test_siblings_of_one_millisecond_are_in_order_of_their_creation(
    store: Store, set_clock: Clock
) -> None:
    parent = store.create_session()
    store.append(parent, user("x"))
    made = []
    for number in range(12):
        if number % 3 == 0:
            made.append(store.fork(parent).id)
        else:
            made.append(store.create_session(parent=parent).id)
    # An id of the caller's has no time in it: it is before or behind them by its name.
    stated = store.create_session(parent=parent, id="agent-1").id
    children = [child.session for child in store.tree(parent).children]
    assert {child.time_created for child in children} == {set_clock.now}
    assert [child.id for child in children] == [*made, stated]


def test_the_tree_shows_the_family_and_the_messages_of_the_one_asked_for(
    store: Store, branched: str
) -> None:
    store.label(branched, 3, "x")
    helper = store.create_session(parent=branched, title="helper")
    fork = store.fork(branched)
    below = store.fork(fork, at=2)
    assert all(child.messages == () for child in store.tree(fork).children)
    tree = store.tree(fork, messages=True)
    assert tree.session.id == branched
    assert [child.session.id for child in tree.children] == [helper.id, fork.id]
    (copy,) = [child for child in tree.children if child.session.id == fork.id]
    assert [child.session.id for child in copy.children] == [below.id]
    assert tree.messages == ()
    assert [(n.seq, n.preview) for n in copy.messages] == [
        (s, f"m{s}") for s in (1, 2, 5, 6)
    ]
    nodes = store.tree(branched, messages=True).messages
    assert [(n.seq, n.parent_seq, n.on_path) for n in nodes] == [
        (1, None, True), (2, 1, True), (3, 2, False), (4, 3, False), (5, 2, True), (6, 5, True),
    ]  # fmt: skip
    assert [n.labels for n in nodes if n.labels] == [("x",)]


def test_a_family_as_deep_as_it_may_be_is_shown_and_deeper_is_refused(
    store: Store,
    backend: Backend,
) -> None:
    session = store.create_session()
    above = store.create_session(parent=session)
    (row,) = backend.records(store, "SELECT * FROM session WHERE id = ?", above.id)
    del row["rid"], row["hidden"]  # the engine sets these
    descendants = []
    for number in range(498):
        row["parent_id"] = row["id"]
        row["id"] = row["slug"] = f"ses_{number:026}"
        descendants.append(tuple(row.values()))
    marks = ", ".join("?" * len(row))
    sql = f"INSERT INTO session ({', '.join(row)}) VALUES ({marks})"
    backend.run_many(store, sql, descendants)
    above = store.session(row["id"])
    tree, depth = store.tree(above), 1
    while tree.children:
        (tree,), depth = tree.children, depth + 1
    assert depth == 500
    last = store.create_session(parent=above)
    with pytest.raises(InvalidInputError, match="ancestors"):
        store.create_session(parent=last)
    store.delete(session)
    store.reap()
    assert list(store.sessions(project="/", empty=True, subagents=True)) == []


def test_a_call_is_shown_with_its_last_result_on_the_path(store: Store) -> None:
    session = store.create_session()
    call = store.append(session, assistant(tool("bash", {}, call_id="c")))
    first = store.append(session, result("c", "first"))
    store.append(session, result("c", "second"))
    assert store.messages(session)[0].parts[0].text == "second"
    assert store.messages(session)[1].parts[0].text == "first"
    other = store.append(session, result("c", "on another branch"), after=call)
    assert store.messages(session)[0].parts[0].text == "on another branch"
    store.set_leaf(session, first)
    assert store.messages(session)[0].parts[0].text == "first"
    assert store.message(session, other).parts[0].text == "on another branch"
    assert store.message(session, call).parts[0].text == "first"
    assert [m.parts[0].text for m in store.walk(session, page=1)] == ["first", "first"]


def test_a_call_id_that_is_used_again_never_mixes_two_results(store: Store) -> None:
    session = store.create_session()
    for output in ("one", "two", "three"):
        store.append(session, assistant(tool("bash", {}, call_id="call_0")))
        store.append(session, result("call_0", output))
    shown = [item.parts[0].text for item in store.messages(session)]
    assert shown == ["one", "one", "two", "two", "three", "three"]
    assert [item.parts[0].text for item in store.messages(session, last=1)] == ["three"]
    assert store.message(session, 2).parts[0].text == "one"


def test_a_walk_continues_while_others_write_and_omits_removed_messages(
    store: Store,
) -> None:
    session = store.create_session()
    with store.effects() as fx:
        for number in range(10):
            fx.append(session, user(f"{number}"))
    walk = store.walk(session, page=4)
    seen = [next(walk).text]
    store.append(session, event("custom"))
    store.truncate(session, after=6)
    seen += [item.text for item in walk]
    assert seen == ["0", "1", "2", "3", "4", "5"]


def test_reads_of_missing_sessions_and_messages_raise(
    store: Store, branched: str
) -> None:
    for read in (
        store.messages,
        store.tree,
        store.context,
        store.todos,
        store.plan_delete,
    ):
        with pytest.raises(NotFoundError):
            read("ses_nowhere")
    with pytest.raises(NotFoundError):
        store.messages(branched, after="nothing")
    for wrong in ({"last": 0}, {"limit": -1}, {"last": True}):
        with pytest.raises(InvalidInputError):
            store.messages(branched, **wrong)
    with pytest.raises(InvalidInputError):
        next(store.walk(branched, page=0))
