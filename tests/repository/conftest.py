"""Every test of this folder runs on each engine; and a clock that can be set."""

from __future__ import annotations

import pytest
from engines import pytest_generate_tests  # noqa: F401  a hook of this folder
from hand_clock import Clock

from sessiondb import clock


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock that sessiondb reads instead of the machine's."""
    fake = Clock()
    monkeypatch.setattr(clock, "time", fake)
    return fake
