"""The audit itself: it must detect forbidden opens, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import audit
import pytest

from sessiondb import Store, user


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize(
    "how", [Path.read_bytes, lambda p: os.close(os.open(p, os.O_RDONLY))]
)
def test_opening_a_database_that_is_in_use_is_seen(
    tmp_path: Path, suffix: str, how: Callable[[Path], object]
) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        store.append(store.create_session(), user("Hello"))
        how(Path(f"{store.path}{suffix}"))
    assert len(audit.violations) == 1
    assert __file__ in audit.violations[0]
    audit.violations.clear()


def test_opens_by_sqlite_and_of_files_not_in_use_are_not_counted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        store.append(store.create_session(), user("Hello"))
        assert store.sessions()
    path.read_bytes()
    (tmp_path / "another.db").write_bytes(b"")
    assert audit.violations == []
