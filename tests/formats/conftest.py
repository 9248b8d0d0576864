"""Stores of files, which formats read and write by their paths."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from backends import Backend

from sessiondb import Store


@pytest.fixture
def opened(tmp_path: Path, backend: Backend) -> Iterator[Callable[[str], Store]]:
    """Return a function that opens the database of a name in `tmp_path`."""
    with ExitStack() as stack:

        def open_(name: str) -> Store:
            path = tmp_path / f"{name}.db"
            if not path.exists():
                shutil.copy(backend.fresh(), path)
            return stack.enter_context(Store.open(path, durability="normal"))

        yield open_
