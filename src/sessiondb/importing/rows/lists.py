"""The lists of an imported session: its todos, and the files that it changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, upsert_text
from sessiondb.importing.rows.run import Run
from sessiondb.schema.rows import FILE_DIFF, TODO

_TODOS = Statement("importing.rows.lists.TODOS")
_CLEAR_TODOS = Statement("importing.rows.lists.CLEAR_TODOS")
_DIFFS = Statement("importing.rows.lists.DIFFS")
_DIFF_BLOBS = Statement("importing.rows.lists.DIFF_BLOBS")
_CLEAR_DIFFS = Statement("importing.rows.lists.CLEAR_DIFFS")


def replace_changed(tx: Transaction, run: Run) -> bool:
    """Replace the lists of the source that differ; return whether one did."""
    checked, session_id = run.checked, run.session_id
    changed = False

    if checked.todos is not None:
        todos = [tuple(row) for row in tx.run(_TODOS, sid=session_id)]
        # Without their times: a source that states none would change them each time.
        if todos != [row[:4] for row in checked.todos]:
            write_todos(tx, session_id, checked.todos)
            changed = True

    if checked.diffs is not None:
        # By their places, which order the diffs of a session. Of two that a damaged log
        # has at one place the last one stays.
        diffs = {row[:2]: tuple(row) for row in tx.run(_DIFFS, sid=session_id)}
        if diffs != {row[:2]: row for row in checked.diffs}:
            write_diffs(tx, run, checked.diffs)
            changed = True
    return changed


def write_todos(
    tx: Transaction, session_id: str, rows: Iterable[Sequence[Any]]
) -> None:
    """Replace the todos of a session by *rows*, which begin with ``id``."""
    tx.run(_CLEAR_TODOS, sid=session_id)
    for position, (*columns, created, updated) in enumerate(rows):
        time_created = created or tx.now
        place = (session_id, position)
        tx.insert(
            "todo", TODO, (*place, *columns, time_created, updated or time_created)
        )


def write_diffs(tx: Transaction, run: Run, rows: Iterable[Sequence[Any]]) -> None:
    """Replace the diffs of a session by *rows*, which begin with ``seq``."""
    old_blobs = tx.run(_DIFF_BLOBS, sid=run.session_id).fetchall()
    tx.loose.update(name for row in old_blobs for name in row if name)
    tx.insert_blobs(run.session_id, run.checked.diff_blobs)
    tx.run(_CLEAR_DIFFS, sid=run.session_id)

    sql = upsert_text("file_diff", FILE_DIFF)
    for row in rows:
        tx.connection.execute(sql, (run.session_id, *row))
