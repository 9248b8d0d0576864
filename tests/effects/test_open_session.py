"""`open_session`: get or create by the name that a program has for its session."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from backends import Backend, Place
from facades import Contract
from peers import Connection, other

from sessiondb import (
    ALL,
    AsyncStore,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    OpenedSession,
    Store,
    assistant,
    tool,
    user,
)
from sessiondb.formats import exporter, find
from sessiondb.model import Document, SourceMessage, SourceSession


async def test_the_first_call_creates_the_session_and_later_calls_find_it(
    contract: Contract,
) -> None:
    first = await contract.store.open_session(
        "thread-1", title="T", model="m", version="3"
    )
    again = await contract.store.open_session("thread-1", title="another", agent="x")
    assert (first.created, again.created) == (True, False)
    assert first.id == again.id
    session = await contract.store.session(first)
    assert (session.source, session.source_id) == ("tests", "thread-1")
    assert (session.title, session.model_id, session.version) == ("T", "m", "3")
    assert (session.agent, session.time_imported) == (None, None)
    assert (await contract.store.session("thread-1")).id == first.id


async def test_two_programs_with_one_name_have_two_sessions(contract: Contract) -> None:
    mine = await contract.store.open_session("thread-1")
    theirs = await contract.store.open_session("thread-1", source="another")
    peer = await contract.open(source="another")
    assert (await peer.open_session("thread-1")).id == theirs.id != mine.id


async def test_the_rest_of_the_unit_writes_to_the_session_that_was_found(
    contract: Contract, tmp_path: Path
) -> None:
    store = contract.store
    known = await store.open_session("t", directory=str(tmp_path))
    await store.append(known, user("before"))
    async with store.effects() as fx:
        opened = fx.open_session("t")
        assert opened.created is None
        asked = fx.append(opened, user("now"))
        answer = fx.append(opened, assistant(tool("a", {}, call_id="c")), open=True)
        more = fx.add_part(opened, answer, "more")
        fx.settle(opened, "c", output="fine")
        fx.finish(opened, answer)
        fx.set_title(opened, "Named")
        fx.set_todos(opened, ["one"])
        fx.set_share(opened, "https://example.org/s/1", secret="s")
        fx.label(opened, answer, "here")
        fx.note_used(opened, "tty")
        fx.add_prompt("now", session=opened)
        child = fx.create_session(parent=opened)
        fork = fx.fork(opened)
        fx.truncate(opened, after=asked)
        fx.update_session(opened, version="2")
        fx.archive(opened)
    assert (opened.id, opened.created) == (known.id, False)
    for handle in (asked, answer, more, *answer.parts):
        assert handle.session_id == known.id
    messages = await store.messages(known)
    assert [m.text for m in messages] == ["before", "now"]
    assert messages[1].id == asked.id
    found = await store.session(known)
    assert (found.title, found.version) == ("Named", "2")
    assert found.time_archived is not None
    for made in (child, fork):
        assert (await store.session(made)).parent_id == known.id
    (prompt,) = await store.prompts()
    assert prompt.session_id == known.id
    assert contract.rows("SELECT DISTINCT session_id FROM terminal") == [(known.id,)]
    contract.check()


async def test_one_unit_may_open_one_name_twice(contract: Contract) -> None:
    async with contract.store.effects() as fx:
        first, second = fx.open_session("t"), fx.open_session("t")
        fx.append(second, user("through the second"))
        fx.append(first, user("through the first"))
    assert first.id == second.id
    assert (first.created, second.created) == (True, False)
    assert len(await contract.store.messages(first)) == 2


async def test_a_unit_that_is_committed_again_says_the_same(contract: Contract) -> None:
    unit = contract.store.unit()
    opened = unit.open_session("t")
    unit.append(opened, user("x", id="m"))
    await contract.store.commit(unit)
    await contract.store.commit(unit)
    assert opened.created is True
    assert len(await contract.store.messages(opened)) == 1


async def test_a_unit_that_fails_leaves_nothing_and_can_be_tried_again(
    contract: Contract,
) -> None:
    unit = contract.store.unit()
    opened = unit.open_session("t")
    unit.append(opened, user("x"), expect_leaf=7)
    with pytest.raises(ConflictError):
        await contract.store.commit(unit)
    assert opened.created is None
    with pytest.raises(NotFoundError):
        await contract.store.session("t")
    assert (await contract.store.open_session("t")).created


async def test_a_deleted_session_stays_deleted_and_its_name_is_free(
    contract: Contract,
) -> None:
    store = contract.store
    old = await store.open_session("t")
    await store.append(old, user("old"))
    await store.delete(old)
    new = await store.open_session("t")
    assert new.created
    assert new.id != old.id
    await store.append(new, user("new"))
    await store.reap()
    assert [m.text for m in await store.messages("t")] == ["new"]
    async with store.effects() as fx:
        fx.delete(new)
        third = fx.open_session("t")
        fx.append(third, user("newest"))
    assert [m.text for m in await store.messages("t")] == ["newest"]
    contract.check()


async def test_a_name_is_an_id_and_a_session_id_of_another_name_is_a_conflict(
    contract: Contract,
) -> None:
    for bad in ("", "a\nb", "\ud800", "é" * 129, None, 7):
        with pytest.raises(InvalidInputError):
            await contract.store.open_session(bad)
    with pytest.raises(InvalidInputError):
        await contract.store.open_session("t", source="")
    with pytest.raises(InvalidInputError):
        await contract.store.open_session("t", colour="red")
    one = await contract.store.open_session("one", id="mine")
    assert one.id == "mine"
    with pytest.raises(ConflictError):
        await contract.store.open_session("two", id="mine")


def open_many(pipe: Connection, place: Place) -> None:
    """Open twenty names and write to each, as fast as another process does the same."""
    with Store.open(place, source="tests", durability="normal") as store:
        pipe.send("ready")
        pipe.recv()
        for n in range(20):
            with store.effects() as fx:
                opened = fx.open_session(f"thread-{n}")
                fx.append(opened, user("x"))
            pipe.send((opened.id, opened.created))


@pytest.mark.slow
def test_two_processes_at_once_make_one_session(backend: Backend) -> None:
    place = backend.fresh()
    with other(open_many, place) as one, other(open_many, place) as two:
        for process in (one, two):
            assert process.hear() == "ready"
        for process in (one, two):
            process.say()
        for _ in range(20):
            (first, made), (second, made_too) = one.hear(), two.hear()
            assert first == second
            assert {made, made_too} == {True, False}
        one.end()
        two.end()
    with Store.open(place) as store:
        page = store.sessions(project=ALL, limit=100)
        assert [s.message_count for s in page] == [2] * 20


async def test_tasks_of_one_loop_make_one_session(backend: Backend) -> None:
    async with AsyncStore.open(backend.fresh(), source="tests") as store:
        opened = await asyncio.gather(*(store.open_session("t") for _ in range(30)))
    assert len({item.id for item in opened}) == 1
    assert sum(bool(item.created) for item in opened) == 1
    assert all(isinstance(item, OpenedSession) for item in opened)


# -- forks with a name ------------------------------------------------------------------


async def test_a_fork_has_a_name_by_which_it_is_opened(contract: Contract) -> None:
    store = contract.store
    original = await store.open_session("thread-1")
    await store.append(original, user("one", id="m1"))
    fork = await store.fork(original, source_id="thread-2", source="another")
    opened = await store.open_session("thread-2", source="another")
    assert (opened.id, opened.created) == (fork.id, False)
    assert [m.id for m in await store.messages(opened)] == ["m1"]
    assert (await store.open_session("thread-1")).id == original.id
    contract.check()


async def test_the_name_of_a_fork_is_taken_until_its_session_is_deleted(
    contract: Contract,
) -> None:
    store = contract.store
    original = await store.open_session("thread-1")
    await store.append(original, user("one"))
    first = await store.open_session("thread-2")
    with pytest.raises(ConflictError, match="already"):
        await store.fork(original, source_id="thread-2")
    with pytest.raises(InvalidInputError, match="source_id"):
        await store.fork(original, source_id="")
    await store.append(first, user("two"))
    async with store.effects() as fx:
        fx.delete(first)
        fork = fx.fork(original, source_id="thread-2")
    assert (await store.open_session("thread-2")).id == fork.id
    contract.check()


# -- a name of a program's own is not an import -----------------------------------------


def test_an_opened_session_counts_as_native_and_not_as_imported(
    backend: Backend, tmp_path: Path
) -> None:
    with Store.open(backend.fresh(), source="tests", durability="normal") as store:
        opened = store.open_session("t", directory=str(tmp_path))
        message = store.append(opened, assistant(tool("a", {})), open=True)
        session = store.session(opened)
        assert (session.time_imported, session.time_detached) == (None, None)
        assert [item.session.id for item in store.unfinished()] == [opened.id]
        store.recover(opened)
        assert store.unfinished() == []
        fork = store.session(store.fork(opened))
        assert (fork.source, fork.source_id) == ("tests", None)
        assert store.message(opened, message).finish == "cancelled"


def source(text: str, digest: str) -> SourceSession:
    messages = [SourceMessage(user(text, id="m"))]
    return SourceSession("tests", "t", "/their/store", digest, messages, directory="/")


def test_an_import_never_overwrites_a_session_that_was_opened_under_its_name(
    backend: Backend,
    tmp_path: Path,
) -> None:
    with Store.open(backend.fresh(), source="tests", durability="normal") as store:
        opened = store.open_session("t", directory=str(tmp_path))
        store.append(opened, user("ours"))
        (result,) = store.ingest([source("theirs", "1")])
        assert (result.outcome, result.id) == ("diverged", opened.id)  # type: ignore[union-attr]
        assert [m.text for m in store.messages(opened)] == ["ours"]


def test_an_import_that_is_opened_and_continued_is_detached(backend: Backend) -> None:
    with Store.open(backend.fresh(), source="tests", durability="normal") as store:
        (imported,) = store.ingest([source("theirs", "1")])
        opened = store.open_session("t")
        assert (opened.id, opened.created) == (imported.id, False)  # type: ignore[union-attr]
        assert store.session(opened).time_imported is not None
        store.append(opened, user("ours"))
        assert store.session(opened).time_detached is not None


def test_a_log_keeps_the_name_and_does_not_make_an_import_of_it(
    backend: Backend, tmp_path: Path
) -> None:
    jsonl = exporter("jsonl")
    with Store.open(backend.fresh(), source="tests", durability="normal") as store:
        opened = store.open_session("t", directory=str(tmp_path))
        store.append(opened, user("x"))
        (document, *_) = [
            item
            for item in jsonl.write([store.export(opened, **jsonl.read)])
            if isinstance(item, Document)
        ]
        path = tmp_path / "log.jsonl"
        path.write_text("".join(document.chunks))
        store.delete(opened)
        store.reap()
        outcomes = [item.outcome for f in find(path) for item in store.ingest(f.read())]  # type: ignore[union-attr]
        assert outcomes == ["deleted"]
        assert store.open_session("t").created
        outcomes = [item.outcome for f in find(path) for item in store.ingest(f.read())]  # type: ignore[union-attr]
        assert outcomes == ["deleted"], (
            "the log of the one that was removed, not of the new one"
        )
    with Store.open(backend.fresh(), source="tests", durability="normal") as store:
        for found in find(path):
            assert [item.outcome for item in store.ingest(found.read())] == ["imported"]  # type: ignore[union-attr]
        again = store.open_session("t")
        assert (again.id, again.created) == (opened.id, False)
        store.append(again, user("more"))
        assert store.session(again).time_detached is None
