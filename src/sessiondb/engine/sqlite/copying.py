"""A copy of a database as of one moment, made by SQLite while others write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sessiondb.engine import placing
from sessiondb.engine.sqlite import claims, files
from sessiondb.engine.sqlite.connection import begin_write, connect
from sessiondb.engine.sqlite.failures import translated
from sessiondb.engine.sqlite.search import SQLiteSearchIndex
from sessiondb.engine.sqlite.usage_sums import SQLiteUsageSums


@contextlib.contextmanager
def copied(
    path: Path, target: Path, *, exact: bool = False, part: Path | None = None
) -> Iterator[Path]:
    """Copy the database at *path* to the new file *target*, named when the block ends.

    The block gets the copy under its temporary name, to verify it. The copy is
    compact, or *exact*: page for page, which is necessary if pages may be damaged.
    If the block is left by an exception, nothing is at *target*. Raises the errors of
    `placing.settle` and of `translate`.
    """
    if placing.check_place(target, claims):
        raise placing.taken(target)
    part = part or placing.part_of(target)

    try:
        # SQLite itself would make the file readable by everybody.
        files.prepare(part)
        _copy_database(path, part, exact)
        yield part
        placing.settle(part, target, claims)
    finally:
        for left in (part, *files.siblings(part)):
            with contextlib.suppress(OSError):
                left.unlink()


def _copy_database(path: Path, copy_path: Path, exact: bool) -> None:
    with closing(connect(path)) as connection, translated():
        if not exact:
            connection.execute("VACUUM INTO ?", (str(copy_path),))
            _complete_copy(copy_path)
            return
        with closing(connect(copy_path)) as target:
            connection.backup(target)


def _complete_copy(path: Path) -> None:
    """Complete search and sums of a copy, and write it through.

    VACUUM INTO does not.
    """
    with closing(connect(path)) as connection:
        begin_write(connection)
        SQLiteSearchIndex().put_waiting(connection)
        SQLiteUsageSums().put_waiting(connection)
        connection.execute("COMMIT")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version={version}")
