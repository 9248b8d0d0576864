"""Watches over every test: no database that this process holds is opened but by SQLite.

POSIX drops all locks of a process on a file when it closes any descriptor of it, so reading
a database, its ``-wal`` or ``-shm`` like another file lets a second process write into a
running transaction. An audit hook sees each ``open`` of Python code and none of SQLite's,
which are made in C. An open counts if the file is one that a descriptor of this process
already has; the fixture `audited` fails the test in which that happened. What SQLite holds
counts, and so does a file that a test itself holds open beside it. One module may open a
``-wal``: SQLite locks the database and the ``-shm`` alone (``UNIXFILE_NOLOCK`` in
``src/os_unix.c``).

A hook cannot be removed, and it sees every event of the interpreter: it checks
names first. Child processes are not watched.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_ENDINGS = (".db", ".sqlite", ".sqlite3", "-wal", "-shm", "-journal")
_OPENS_LOGS = "engine/sqlite/write_ahead_log.py"
_DESCRIPTORS = Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")

#: Files that this process opened beside SQLite, and from where.
violations: list[str] = []


def _hook(event: str, args: tuple[object, ...]) -> None:
    if event != "open" or not isinstance(args[0], str | bytes | os.PathLike):
        return
    name = os.fsdecode(args[0])
    if not name.endswith(_ENDINGS) or not held(name):
        return
    caller = _caller()
    if not (name.endswith("-wal") and _OPENS_LOGS in caller):
        violations.append(f"{name} from {caller}")


def held(name: str) -> bool:
    """Return whether this process has the file of that name open."""
    try:
        facts = Path(name).stat()
        numbers = os.listdir(_DESCRIPTORS)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(facts.st_mode) and any(
        _same(facts, number) for number in numbers
    )


def _same(facts: os.stat_result, number: str) -> bool:
    try:
        return os.path.samestat(facts, os.fstat(int(number)))
    except OSError:
        return False


def _caller() -> str:
    frame, lines = sys._getframe(2), []
    while frame is not None and len(lines) < 4:
        lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(lines)


sys.addaudithook(_hook)


@pytest.fixture(autouse=True)
def audited() -> Iterator[None]:
    """Fail the test that opened a database besides SQLite."""
    violations.clear()
    yield
    assert not violations, (
        "a database was opened by other means than SQLite:\n" + "\n".join(violations)
    )
