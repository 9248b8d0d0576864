"""A store for each test, without durability for speed, and a clock that can be set."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hand_clock import Clock

from sessiondb import Store, clock


@pytest.fixture
def store(tmp_path: Path, empty: Path) -> Iterator[Store]:
    """Return a store on a fresh file; these tests do not cover power cuts."""
    shutil.copy(empty, tmp_path / "sessions.db")
    with Store.open(tmp_path / "sessions.db", durability="normal") as store:
        yield store


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock that sessiondb reads instead of the machine's."""
    fake = Clock()
    monkeypatch.setattr(clock, "time", fake)
    return fake
