"""Fixtures for the tests of programs that store sessions here.

# conftest.py
pytest_plugins = ["sessiondb.testing"]

def test_my_agent(session_store):
    my_agent.run(store=session_store)
    assert session_store.sessions(project=ALL)
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from sessiondb.aio import AsyncStore
from sessiondb.store import Store


@pytest.fixture
def session_store(tmp_path: Path) -> Generator[Store]:
    """A `Store` on a fresh file of this test, closed afterwards."""
    with Store.open(tmp_path / "sessions.db", durability="normal") as store:
        yield store


@pytest_asyncio.fixture
async def async_session_store(tmp_path: Path) -> AsyncGenerator[AsyncStore]:
    """An `AsyncStore` on a fresh file of this test, closed afterwards."""
    path = tmp_path / "sessions.db"
    async with await AsyncStore.open(path, durability="normal") as store:
        yield store
