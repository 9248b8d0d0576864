"""A store of one's own, as fast as a store may be, and a clock that can be set."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hand_clock import Clock

from sessiondb import Store, clock


@pytest.fixture
def store(tmp_path: Path, empty: Path) -> Iterator[Store]:
    """Return a store on a fresh file; power cuts are not what these tests are about."""
    shutil.copy(empty, tmp_path / "sessions.db")
    with Store.open(tmp_path / "sessions.db", durability="normal") as store:
        yield store


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock that sessiondb reads instead of the machine's."""
    fake = Clock()
    monkeypatch.setattr(clock, "time", fake)
    return fake
