"""Effects on places: folders that moved, and what a terminal used last."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.effects.merge import merge_projects, projects_at
from sessiondb.effects.project import ProjectPlace, add_directory, project_of
from sessiondb.effects.session import free_slug
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, upsert_text
from sessiondb.errors import NotFoundError
from sessiondb.places import stored
from sessiondb.schema.rows import TERMINAL

LAST_USE = Statement("effects.place.LAST_USE")
_USES = Statement("effects.place.USES")
_DROP_USES = Statement("effects.place.DROP_USES")
_SESSIONS = Statement("effects.place.SESSIONS")
MOVE = Statement("effects.place.MOVE")
_ROOTED = Statement("effects.place.ROOTED")
_WORKTREE = Statement("effects.place.WORKTREE")
_DIRECTORIES = Statement("effects.place.DIRECTORIES")
_FORMER = Statement("effects.place.FORMER")


@dataclass(slots=True)
class Relink:
    """Record that a folder moved: its projects, and every session below it, follow.

    The sessions that terminals used last there are those of the new place.

    A project that is at the new place already takes in the one that comes: its
    own sessions stay where they are.
    """

    verb = "relink"
    old: str
    place: ProjectPlace
    moved: int = field(default=0)

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError` if nothing is known of the old folder."""
        tx.flush()
        move = _Move(stored(self.old, tx.root), stored(self.place.directory, tx.root))
        rooted = tx.run(_ROOTED, **move.filter).fetchall()
        rows = tx.run(_SESSIONS, **move.filter).fetchall()
        if not rows and not rooted:
            if tx.retried:
                return
            raise NotFoundError(f"no project and no session is at {self.old}")

        root = stored(self.place.root, tx.root)
        owner = {
            pid: self._move_project(tx, move, root, pid, old_worktree)
            for pid, old_worktree in rooted
        }
        target = next(
            (owner[pid] for pid, worktree in rooted if worktree == move.old), None
        )

        for sid, directory, pid in rows:
            if pid not in owner:
                owner[pid] = target = target or project_of(tx, self.place)
            new_owner = owner[pid]
            slug = free_slug(tx, new_owner, sid)
            tx.run(
                MOVE,
                sid=sid,
                directory=move.of(directory),
                project_id=new_owner,
                slug=slug,
            )

        _move_uses(tx, _Move(self.old, self.place.directory))
        self.moved = len(rows)

    def _move_project(
        self, tx: Transaction, move: _Move, root: str, project_id: str, worktree: str
    ) -> str:
        """Move a project and return the one that its sessions belong to now."""
        # The folder itself may have become part of a repository; a project below it
        # stays what it is.
        new_root = root if worktree == move.old else move.of(worktree)
        occupants = [pid for pid in projects_at(tx, new_root) if pid != project_id]
        for directory, kind in tx.run(
            _DIRECTORIES, pid=project_id, **move.filter
        ).fetchall():
            if move.of(directory) != directory:
                tx.run(_FORMER, pid=project_id, old=directory, kind="former")
                add_directory(tx, project_id, move.of(directory), kind)

        tx.run(_WORKTREE, pid=project_id, worktree=new_root, time_updated=tx.now)
        add_directory(tx, project_id, new_root, "worktree")
        if not occupants:
            return project_id

        merge_projects(tx, occupants[0], [project_id, *occupants[1:]])
        return occupants[0]


@dataclass(frozen=True, slots=True)
class _Move:
    """From one directory to another, both as they are stored."""

    old: str
    new: str

    @property
    def filter(self) -> dict[str, str]:
        return {"old": self.old, "below": f"{self.old}{os.sep}"}

    def of(self, directory: str) -> str:
        """Return where a directory at or below the old one is now."""
        return self.new + directory[len(self.old) :]


@dataclass(frozen=True, slots=True, eq=False)
class TakeUses:
    """Record the sessions that other programs used last in terminals.

    *uses* are rows of the table. A newer one here stays, whichever program wrote it.
    """

    verb = "import"
    uses: tuple[tuple[Any, ...], ...]

    def apply(self, tx: Transaction) -> None:
        """Apply it; a no-op for a session that was removed since."""
        _take_uses(tx, [row for row in self.uses if tx.exists(row[2])])


def _take_uses(tx: Transaction, uses: Iterable[tuple[Any, ...]]) -> None:
    """Write the rows of *uses*, unless there is one that is as new."""
    sql = upsert_text("terminal", TERMINAL)
    for row in uses:
        name, directory, _, time = row
        last_use = tx.value(LAST_USE, name=name, directory=directory)
        if last_use is None or last_use < time:
            tx.connection.execute(sql, row)


def _move_uses(tx: Transaction, move: _Move) -> None:
    uses = tx.run(_USES, **move.filter).fetchall()
    tx.run(_DROP_USES, **move.filter)
    moved = (
        (name, move.of(directory), sid, time) for name, directory, sid, time in uses
    )
    _take_uses(tx, moved)


@dataclass(frozen=True, slots=True, eq=False)
class UseTerminal:
    """Record the session that was last used in a terminal and directory."""

    verb = "note_used"
    session_id: str
    terminal_id: str
    directory: str

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError`."""
        tx.peek(self.session_id)
        sql = upsert_text("terminal", TERMINAL)
        directory = self.directory
        tx.connection.execute(
            sql, (self.terminal_id, directory, self.session_id, tx.now)
        )
