"""Reads that an `AsyncStore` implements itself: SQLAlchemy's connection, and exports."""

from __future__ import annotations

import asyncio

import pytest
from backends import Backend
from sqlalchemy import text as sql
from sqlalchemy.exc import DBAPIError

from sessiondb import AsyncStore, Store, StoreClosedError, assistant, tool, user

pytestmark = pytest.mark.slow

#: `read_past_damage` is for a person who waits: it copies a file in the caller's thread.
NAMES = {name for name in vars(Store) if not name.startswith("_")} - {
    "read_past_damage"
}


def test_both_facades_have_the_same_names() -> None:
    assert {name for name in vars(AsyncStore) if not name.startswith("_")} == NAMES


async def test_an_async_connection_reads_and_cannot_write(backend: Backend) -> None:
    async with AsyncStore.open(backend.fresh(), durability="normal") as store:
        session = await store.create_session(title="Asked")
        async with store.connection() as connection:
            rows = (
                await connection.execute(sql("SELECT id, title FROM session"))
            ).all()
            assert rows == [(session.id, "Asked")]
            with pytest.raises(DBAPIError, match=r"read-?only"):
                await connection.execute(sql("DELETE FROM session"))
    with pytest.raises(StoreClosedError):
        store.connection()


async def test_an_export_is_read_in_the_thread_of_its_writer(backend: Backend) -> None:
    place = backend.fresh()
    async with AsyncStore.open(place, durability="normal") as store:
        session = await store.create_session()
        await store.append(session, user("list the files"))
        await store.append(session, assistant(tool("ls", output="a.py")))
        await store.set_todos(session, ["look"])
        export = await store.export(session)
        messages = await asyncio.to_thread(lambda: list(export.messages))
    with Store.open(place) as again:
        same = again.export(session)
        assert messages == list(same.messages)
        assert (export.session, export.todos) == (same.session, same.todos)
