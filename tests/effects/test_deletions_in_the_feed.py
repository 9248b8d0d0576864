"""A follower of the changes gets every deletion exactly once, wherever it continues."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import aclosing, closing
from typing import Any

import pytest
from backends import Backend
from facades import AwaitedStore, Contract, eventually
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import BEGINNING, Change, SessionHandle, Store, user
from sessiondb.model import SourceSession

pytestmark = pytest.mark.slow


async def since(contract: Contract, cursor: str, count: int) -> list[Change]:
    """Return the next *count* changes after *cursor*; assert that none follows."""
    store = contract.store
    found: list[Change] = []
    try:
        async with (
            aclosing(store.changes(since=cursor, poll=0.002)) as changes,
            _timeout(count),
        ):
            async for change in changes:
                found.append(change)
                if len(found) == count:
                    break
    except TimeoutError:
        pass
    assert len(found) == count, found
    last = found[-1].cursor if found else cursor
    assert contract.backend.unreported(contract.place, last) == 0
    return found


def _timeout(count: int) -> asyncio.Timeout:
    return asyncio.timeout(5 if count else 0.05)


async def test_a_deletion_whose_rows_were_removed_before_the_first_look_is_reported_once(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append(session, user("Hello"))
    start = await contract.store.newest_change()
    revision = (await contract.store.session(session)).revision
    await contract.store.delete(session)
    await contract.store.reap()
    assert contract.rows("SELECT * FROM session") == []
    (gone,) = await since(contract, start, 1)
    assert (gone.session_id, gone.deleted, gone.last_seq) == (session.id, True, 1)
    assert gone.revision > revision
    assert await since(contract, gone.cursor, 0) == []


async def test_a_deletion_is_reported_once_before_and_after_its_rows_are_removed(
    contract: Contract, session: SessionHandle
) -> None:
    start = await contract.store.newest_change()
    await contract.store.delete(session)
    (before,) = await since(contract, start, 1)
    await contract.store.reap()
    assert await since(contract, start, 1) == [before]
    assert await since(contract, before.cursor, 0) == []


async def test_a_family_is_reported_member_by_member_and_what_was_detached_is_not_deleted(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append(session, user("Hello"))
    below = await contract.store.create_session(parent=session)
    deeper = await contract.store.create_session(parent=below)
    fork = await contract.store.fork(session)
    start = await contract.store.newest_change()
    await contract.store.delete(session, keep_forks=True)
    await contract.store.reap()
    found = await since(contract, start, 4)
    assert {c.session_id: c.deleted for c in found} == {
        session.id: True,
        below.id: True,
        deeper.id: True,
        fork.id: False,
    }


async def test_a_commit_that_deletes_reports_what_it_detached_too(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append(session, user("Hello"))
    fork = await contract.store.fork(session)
    notified: list[Change] = []
    contract.store.on_commit(notified.extend)
    await contract.store.delete(session, keep_forks=True)
    expected = {session.id: True, fork.id: False}
    await eventually(lambda: {c.session_id: c.deleted for c in notified} == expected)


async def test_a_session_that_is_created_again_under_its_id_is_deleted_first_and_then_new(
    contract: Contract,
) -> None:
    await contract.store.create_session(id="again", directory="/tmp")
    await contract.store.append("again", user("one"))
    start = await contract.store.newest_change()
    await contract.store.delete("again")
    await contract.store.reap()
    await contract.store.create_session(id="again", directory="/tmp")
    await contract.store.append("again", user("two"))
    found = await since(contract, start, 2)
    assert [(c.session_id, c.deleted) for c in found] == [
        ("again", True),
        ("again", False),
    ]
    assert found[1].since_seq == 0


def imported(name: str) -> SourceSession:
    return SourceSession(
        "other", name, "/tmp/other", "digest", (), title="Hello", directory="/tmp",
        time_created=1,
    )  # fmt: skip


async def ingest(store: AwaitedStore, found: SourceSession, **how: Any) -> None:
    if isinstance(store.inner, Store):
        list(store.inner.ingest([found], **how))
    else:
        [result async for result in store.inner.ingest([found], **how)]


async def test_a_session_removed_and_imported_again_is_deleted_under_its_old_id(
    contract: Contract,
) -> None:
    await ingest(contract.store, imported("theirs"))
    ((first,),) = contract.rows("SELECT id FROM session")
    start = await contract.store.newest_change()
    await contract.store.delete(first)
    await contract.store.reap()
    await ingest(contract.store, imported("theirs"), undelete=True)
    ((second,),) = contract.rows("SELECT id FROM session")
    found = await since(contract, start, 2)
    assert [(c.session_id, c.deleted) for c in found] == [
        (first, True),
        (second, False),
    ]


@pytest.mark.needs("has_triggers", "no trigger records what a shell deletes")
@pytest.mark.parametrize("foreign_keys", [False, True])
async def test_a_delete_in_the_shell_is_reported_with_its_cascaded_sessions(
    contract: Contract, session: SessionHandle, foreign_keys: bool
) -> None:
    await contract.store.append(session, user("Hello"))
    below = await contract.store.create_session(parent=session)
    start = await contract.store.newest_change()
    shell = contract.backend.run if foreign_keys else contract.backend.tear
    shell(contract.place, "DELETE FROM session WHERE id = ?", session.id)
    found = await since(contract, start, 2 if foreign_keys else 1)
    assert {c.session_id for c in found if c.deleted} == (
        {session.id, below.id} if foreign_keys else {session.id}
    )
    other = await contract.store.create_session(directory="/tmp")
    (last,) = await since(contract, found[-1].cursor, 1)
    assert (last.session_id, last.deleted) == (other.id, False)


async def test_a_shell_that_removes_what_was_deleted_reports_nothing_again(
    contract: Contract, session: SessionHandle
) -> None:
    start = await contract.store.newest_change()
    await contract.store.delete(session)
    contract.execute("DELETE FROM session")
    assert [c.deleted for c in await since(contract, start, 1)] == [True]


async def test_more_deletions_than_one_look_takes_in_are_all_reported(
    contract: Contract,
) -> None:
    async with contract.store.effects() as fx:
        made = [fx.create_session(directory="/tmp") for _ in range(620)]
    for batch in (made[:300], made[300:600]):
        async with contract.store.effects() as fx:
            for session in batch:
                fx.delete(session.id)
    gone = 600
    if contract.backend.has_triggers:
        contract.execute(f"DELETE FROM session WHERE id = '{made[gone].id}'")
        gone += 1
    found = await since(contract, BEGINNING, 620)
    assert {c.session_id for c in found if not c.deleted} == {s.id for s in made[gone:]}
    assert [c.cursor for c in found] == sorted({c.cursor for c in found})


class World:
    """A database that changes, and one consumer that looks now and then and keeps its cursor."""

    def __init__(self, backend: Backend, store: Store) -> None:
        self.backend, self.store = backend, store
        self.known: set[str] = set()
        #: Sessions whose messages a shell left behind: their ids are not free.
        self.torn: set[str] = set()
        self.reported: Counter[str] = Counter()
        self.gone: Counter[str] = Counter()
        self.cursor, self.made = BEGINNING, 0

    def living(self) -> list[str]:
        sql = "SELECT id FROM session WHERE time_deleted IS NULL ORDER BY id"
        return [id_ for (id_,) in self.backend.rows(self.store, sql)]

    def step(self, name: str, which: int) -> None:
        before = self.living()
        getattr(self, name)(
            SessionHandle(before[which % len(before)]) if before else None, which
        )
        self.gone.update(set(before) - set(self.living()))

    def make(self, parent: SessionHandle | None, which: int) -> None:
        self.made += 1
        above: dict[str, Any] = {"directory": "/tmp"}
        if parent and which % 2:
            above = {"parent": parent}
        self.store.create_session(id=f"s{self.made}", **above)

    def append(self, session: SessionHandle | None, _: int) -> None:
        if session:
            self.store.append(session, user("x"))

    def delete(self, session: SessionHandle | None, which: int) -> None:
        if session:
            self.store.delete(session)
        if which % 2:
            self.store.reap()

    def shell(self, session: SessionHandle | None, which: int) -> None:
        if session and self.backend.has_triggers:
            shell = self.backend.run if which % 2 else self.backend.tear
            shell(self.store, "DELETE FROM session WHERE id = ?", session.id)
            self.torn |= {session.id} if which % 2 == 0 else set()

    def again(self, _: SessionHandle | None, which: int) -> None:
        self.store.reap()
        free = sorted(set(self.gone) - set(self.living()) - self.torn)
        if free:
            self.store.create_session(id=free[which % len(free)], directory="/tmp")

    def look(self, *_: object) -> None:
        with closing(self.store.changes(since=self.cursor, poll=0)) as feed:
            for _ in range(self.backend.unreported(self.store, self.cursor)):
                change = next(feed)
                self.cursor = change.cursor
                if change.deleted:
                    self.known.discard(change.session_id)
                    self.reported[change.session_id] += 1
                else:
                    self.known.add(change.session_id)


_STEPS = st.tuples(
    st.sampled_from("make append delete shell again look".split()), st.integers(0, 5)
)


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(_STEPS, min_size=3, max_size=16))
def test_a_follower_that_continues_from_its_cursor_knows_the_living_sessions(
    backend: Backend, steps: list[tuple[str, int]]
) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        world = World(backend, store)
        for name, which in steps:
            world.step(name, which)
        world.look()
        assert world.known == set(world.living())
        assert world.reported == world.gone
