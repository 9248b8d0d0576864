"""A store of one's own, as fast as a store may be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sessiondb import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a store on a fresh file; power cuts are not what these tests are about."""
    with Store.open(tmp_path / "sessions.db", durability="normal") as store:
        yield store
