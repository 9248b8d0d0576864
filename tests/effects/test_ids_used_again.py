"""The id of a session is free as soon as the session is deleted, however large it was."""

from __future__ import annotations

import signal
import time

import pytest
from backends import Backend
from facades import Contract
from processes import run, start

from sessiondb import ALL, BEGINNING, Store, assistant, tool, user
from sessiondb.errors import ConflictError
from sessiondb.maintenance import check

LARGE = "b" * 3000


async def test_one_unit_deletes_creates_and_writes(contract: Contract) -> None:
    store = contract.store
    async with store.effects() as fx:
        fx.create_session(id="thread-1", title="old")
        fx.append("thread-1", user("old words", id="m1"))
        fx.append("thread-1", assistant(tool("cat", {}, output=LARGE)))
    async with store.effects() as fx:
        fx.delete("thread-1")
        fx.create_session(id="thread-1", title="new")
        fx.append("thread-1", user("new words", id="m1"))
    assert [m.text for m in await store.messages("thread-1")] == ["new words"]
    session = await store.session("thread-1")
    assert (session.title, session.message_count) == ("new", 1)
    assert not await store.search("old")
    assert contract.rows("SELECT count(*) FROM blob") == [(0,)]
    contract.check()


async def test_a_loop_of_deletes_and_creates_never_meets_the_session_before(
    contract: Contract,
) -> None:
    store = contract.store
    for number in range(10):
        await store.create_session(id="thread-1")
        await store.append("thread-1", user(f"words {number}"))
        (message,) = await store.messages("thread-1")
        assert (message.seq, message.text) == (1, f"words {number}")
        await store.delete("thread-1")
    assert await store.reap() == 3, (
        "only the last one left rows: part, message, session"
    )
    contract.check()


async def test_a_name_and_an_id_are_free_together(contract: Contract) -> None:
    store = contract.store
    for number in range(3):
        opened = await store.open_session("name", id="mine")
        assert opened.created
        assert opened.id == "mine"
        await store.append(opened, user(f"words {number}"))
        await store.delete(opened)
    contract.check()


async def test_a_fork_takes_the_id_of_a_deleted_session(contract: Contract) -> None:
    store = contract.store
    session = await store.create_session()
    await store.append(session, user("asked"))
    await store.create_session(id="copy")
    await store.append("copy", user("other"))
    async with store.effects() as fx:
        fx.delete("copy")
        fx.fork(session, id="copy")
        fx.append("copy", user("again"))
    assert [m.text for m in await store.messages("copy")] == ["asked", "again"]
    contract.check()


async def test_the_deleted_family_of_an_id_that_is_used_again_leaves_nothing(
    contract: Contract,
) -> None:
    store = contract.store
    async with store.effects() as fx:
        fx.create_session(id="root")
        fx.append("root", user("asked"))
        helper = fx.create_session(parent="root")
        fx.append(helper, user(LARGE))
        fx.append(fx.fork("root"), user(LARGE + "c"))
    await store.delete("root")
    await store.create_session(id="root")
    contract.check()
    await store.reap()
    sessions = await store.sessions(project=ALL, subagents=True, empty=True)
    assert [item.id for item in sessions] == ["root"]
    assert contract.rows("SELECT count(*) FROM blob") == [(0,)]
    contract.check()


async def test_an_expected_revision_never_matches_another_session_of_the_id(
    contract: Contract,
) -> None:
    store = contract.store
    await store.create_session(id="thread-1")
    await store.append("thread-1", user("old"))
    read = (await store.session("thread-1")).revision
    await store.delete("thread-1")
    await store.create_session(id="thread-1")
    await store.append("thread-1", user("new"))
    assert (await store.session("thread-1")).revision > read
    with pytest.raises(ConflictError, match="revision"):
        await store.append("thread-1", user("x"), expect_revision=read)


async def test_a_consumer_of_changes_gets_the_deletion_and_the_new_session(
    contract: Contract,
) -> None:
    store = contract.store
    await store.create_session(id="thread-1")
    await store.append("thread-1", user("old"))
    async with store.effects() as fx:
        fx.delete("thread-1")
        fx.create_session(id="thread-1")
        fx.append("thread-1", user("new"))
    seen = []
    async for change in store.changes(since=BEGINNING):
        seen.append((change.session_id, change.deleted, change.since_seq))
        if len(seen) == 2:
            break
    assert seen == [("thread-1", True, 0), ("thread-1", False, 0)]


async def test_the_deletion_stays_known_to_imports(contract: Contract) -> None:
    await contract.store.create_session(id="thread-1")
    await contract.store.delete("thread-1")
    await contract.store.create_session(id="thread-1")
    buried = contract.rows("SELECT source, source_id, revision FROM tombstone")
    assert buried == [("tests", "thread-1", 3)]


def filled(store: Store, size: int) -> None:
    with store.effects() as fx:
        fx.create_session(id="long")
        for number in range(size):
            fx.append("long", user(f"words {number}"))


@pytest.mark.slow
def test_a_session_of_20_000_messages_makes_room_in_the_same_unit(store: Store) -> None:
    filled(store, 20_000)
    began = time.monotonic()
    with store.effects() as fx:
        fx.delete("long")
        fx.create_session(id="long")
        fx.append("long", user("new"))
    assert time.monotonic() - began < 20
    assert [m.text for m in store.messages("long")] == ["new"]
    store.delete("long")
    filled(store, 3)
    assert len(store.messages("long")) == 3
    assert check(store) == []


REPLACING = """
import sys
from sessiondb import Store, user
store = Store.open(sys.argv[1], durability="normal")
print("ready", flush=True)
for number in range(10**6):
    with store.effects() as fx:
        fx.delete("long")
        fx.create_session(id="long")
        for place in range(2_000):
            fx.append("long", user(f"words {number} {place}"))
"""


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_one_session_or_the_other(
    backend: Backend,
) -> None:
    place = backend.fresh()
    with Store.open(place, durability="normal") as store:
        filled(store, 20_000)
    for pause in (0.05, 0.3, 0.6, 1.0):
        child = start(REPLACING, place)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(pause)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        with Store.open(place, durability="normal") as store:
            texts = [m.text or "" for m in store.messages("long")]
            assert len(texts) in (2_000, 20_000)
            assert len({text.split()[1] for text in texts}) in (1, 20_000)
            assert check(store) == []


CREATING = """
import sys
from sessiondb import Store, user
with Store.open(sys.argv[1], durability="normal") as store:
    for number in range(20):
        with store.effects() as fx:
            fx.open_session("name", id="mine")
            fx.delete("mine")
            fx.open_session("name", id="mine")
            fx.append("mine", user(sys.argv[2]))
"""


@pytest.mark.slow
def test_two_processes_use_one_id_again_and_again(backend: Backend) -> None:
    place = backend.fresh()
    children = [start(CREATING, place, name) for name in ("one", "two")]
    for child in children:
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 0, errors
    with Store.open(place, durability="normal") as store:
        assert len(store.messages("mine")) == 1
        assert check(store) == []


def test_another_process_finds_the_new_session_at_once(
    store: Store, backend: Backend
) -> None:
    store.create_session(id="thread-1")
    store.append("thread-1", user("old"))
    store.delete("thread-1")
    code = """
    import sys
    from sessiondb import Store, user
    with Store.open(sys.argv[1]) as store:
        store.create_session(id="thread-1")
        store.append("thread-1", user("new"))
    """
    done = run(code, backend.place_of(store))
    assert done.returncode == 0, done.stderr
    assert [m.text for m in store.messages("thread-1")] == ["new"]
    assert backend.rows(store, "SELECT text FROM part") == [("new",)]
