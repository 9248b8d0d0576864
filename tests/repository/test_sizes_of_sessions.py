"""The reported sizes of sessions: what a removal frees, and lists in their order."""

from __future__ import annotations

import random

import pytest
from backends import Backend

from sessiondb import Store, assistant, tool, user
from sessiondb.repository.sessions import ALL

pytestmark = pytest.mark.slow


def test_blobs_shared_by_forks_are_freed_with_the_last_of_them(
    backend: Backend,
) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        session = store.create_session()
        with store.effects() as fx:
            for _ in range(50):
                output = random.randbytes(random.randint(1_500, 20_000)).hex()
                fx.append(session, assistant(tool("bash", {}, output=output)))
        alone = store.plan_delete(session).bytes
        fork = store.fork(session)
        kept = store.plan_delete(session, keep_forks=True).bytes
        assert kept < 0.5 * alone
        assert store.freed_bytes([session, fork]) > alone
        assert store.freed_bytes([]) == 0
        page = store.sessions(project=ALL, order="size")
        assert (
            dict(zip((s.id for s in page), page.sizes, strict=True))[session.id] == kept
        )


def test_pages_by_size_follow_each_other(backend: Backend) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        for number in range(7):
            session = store.create_session(title=str(number))
            store.append(session, user("word " * (number % 3)))
        everything = store.sessions(project=ALL, order="size")
        found, sizes, cursor = [], [], None
        while True:
            page = store.sessions(project=ALL, order="size", limit=2, cursor=cursor)
            found += page.items
            sizes += page.sizes
            if (cursor := page.next_cursor) is None:
                break
        assert (tuple(found), tuple(sizes)) == (everything.items, everything.sizes)
        assert sizes == sorted(sizes, reverse=True)
        assert len(store.sessions(project=ALL, order="size", title="absent")) == 0
