"""Merging projects: of two that share a worktree, one is left, with everything of both.

`relink` merges where a folder moves onto a place that has a project already, and
`check --repair` in a file that has such a pair, which nothing in this package can
make.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from sessiondb.effects.session import free_slug, slug_holder
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement

MERGED = (
    "vcs remote root_commit name permission metadata time_initialized time_created"
).split()
_PROJECT = Statement("effects.merge.PROJECT")
_SET_PROJECT = Statement("effects.merge.SET_PROJECT")
_DROP_PROJECT = Statement("effects.merge.DROP_PROJECT")
_SESSIONS = Statement("effects.merge.SESSIONS")
_MOVE_SESSION = Statement("effects.merge.MOVE_SESSION")
_MOVE_PROMPTS = Statement("effects.merge.MOVE_PROMPTS")
_DIRECTORIES = Statement("effects.merge.DIRECTORIES")
_ADD_DIRECTORIES = Statement("effects.merge.ADD_DIRECTORIES")
_REVIVE = Statement("effects.merge.REVIVE")
_AT = Statement("effects.merge.AT")


def projects_at(tx: Transaction, worktree: str) -> list[str]:
    """Return the ids of the projects of a worktree, as it is stored; oldest first."""
    return tx.column(_AT, worktree=worktree)


def merge_projects(tx: Transaction, target: str, others: Iterable[str]) -> int:
    """Give all of *others* to the project *target*; return the number of sessions.

    Slugs stay unique, every directory is kept, and facts that both projects state are
    those of *target*. The session rows in memory must be written first.
    """
    moved = 0
    for other in others:
        moved += _move_sessions(tx, other, target)
        tx.run(_MOVE_PROMPTS, pid=other, project_id=target)
        tx.run(_REVIVE, pid=other, into=target)
        tx.run(_ADD_DIRECTORIES, pid=other, into=target)
        _merge_row(tx, target, other)
        # Deleting cascades to whatever refers to the row: nothing may by now.
        tx.run(_DROP_PROJECT, pid=other)

    return moved


def _move_sessions(tx: Transaction, other: str, target: str) -> int:
    rows = tx.run(_SESSIONS, pid=other).fetchall()
    for sid, slug in rows:
        taken = slug_holder(tx, target, slug) is not None
        new_slug = free_slug(tx, target, sid) if taken else slug
        tx.run(_MOVE_SESSION, sid=sid, project_id=target, slug=new_slug)

    return len(rows)


def _merge_row(tx: Transaction, target: str, other: str) -> None:
    target_row = dict(zip(MERGED, tx.one(_PROJECT, pid=target), strict=True))
    other_row = dict(zip(MERGED, tx.one(_PROJECT, pid=other), strict=True))
    # A fact that both projects have is kept as *into* has it.
    columns = {name: value for name, value in target_row.items() if value is not None}
    new = {**other_row, **columns}
    new["metadata"] = json.dumps(
        {**json.loads(other_row["metadata"]), **json.loads(target_row["metadata"])}
    )

    for name in ("time_initialized", "time_created"):
        values = [row[name] for row in (target_row, other_row) if row[name] is not None]
        new[name] = min(values, default=None)

    tx.run(_SET_PROJECT, pid=target, time_updated=tx.now, **new)
