"""Both façades through one suite: a test that uses ``contract`` runs once with each."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from facades import Contract

from sessiondb import SessionHandle


@pytest_asyncio.fixture(params=["sync", "async"])
async def contract(
    request: pytest.FixtureRequest, tmp_path: Path, empty: Path
) -> AsyncGenerator[Contract]:
    """A fresh database file with an open store of one of the two façades."""
    made = Contract(request.param, tmp_path / "sessions.db")
    shutil.copy(empty, made.path)
    made.store = await made.open()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def session(contract: Contract, tmp_path: Path) -> SessionHandle:
    """An empty session in it."""
    handle: SessionHandle = await contract.store.create_session(directory=str(tmp_path))
    return handle
