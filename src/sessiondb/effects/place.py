"""Effects on where things are: moved folders, and which session a terminal used last."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from sqlalchemy import or_, select

from sessiondb.effects.project import Place, add_directory, project_of
from sessiondb.effects.session import free_slug
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, insert_text, p, update_of
from sessiondb.errors import NotFoundError
from sessiondb.places import stored
from sessiondb.schema import project, project_directory, session, terminal

_BELOW = Statement(
    lambda: select(session.c.id, session.c.directory, session.c.project_id).where(
        or_(
            session.c.directory == p("old"),
            session.c.directory.like(p("below"), escape="\\"),
        )
    )
)
_MOVE = update_of(session, "directory project_id slug", session.c.id == p("sid"))
_ROOTED = Statement(lambda: select(project.c.id).where(project.c.worktree == p("old")))
_WORKTREE = update_of(project, "worktree time_updated", project.c.id == p("pid"))
_FORMER = update_of(
    project_directory,
    "kind",
    project_directory.c.project_id == p("pid"),
    project_directory.c.directory == p("old"),
)
_KNOWN = Statement(
    lambda: select(project_directory.c.rid).where(
        project_directory.c.project_id == p("pid"), project_directory.c.directory == p("new")
    )
)


@dataclass(slots=True)
class Relink:
    """Note that a folder moved: its project, and every session below it, follow."""

    verb = "relink"
    old: str
    place: Place
    moved: int = field(default=0)

    def apply(self, tx: Transaction) -> None:
        """Write it; raises `NotFoundError` where nothing is known of the old folder."""
        old, new = stored(self.old, tx.root), stored(self.place.directory, tx.root)
        rooted = [pid for (pid,) in tx.run(_ROOTED, old=old).fetchall()]
        for pid in rooted:
            tx.run(_WORKTREE, pid=pid, worktree=new, time_updated=tx.now)
            tx.run(_FORMER, pid=pid, old=old, kind="former")
            if tx.one(_KNOWN, pid=pid, new=new) is None:
                add_directory(tx, pid, new, "worktree")
        escaped = old.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        rows = tx.run(_BELOW, old=old, below=f"{escaped}{os.sep}%").fetchall()
        if not rows and not rooted:
            if tx.retried:
                return
            raise NotFoundError(f"no project and no session is at {self.old}")
        target = rooted[0] if rooted else project_of(tx, self.place)
        for sid, directory, pid in rows:
            there = pid if pid in rooted else target
            slug = free_slug(tx, there, sid)
            where = new + directory[len(old) :]
            tx.run(_MOVE, sid=sid, directory=where, project_id=there, slug=slug)
        self.moved = len(rows)


@dataclass(frozen=True, slots=True, eq=False)
class UseTerminal:
    """Note the session that was last used in a terminal and directory."""

    verb = "note_used"
    session_id: str
    terminal_id: str
    directory: str

    def apply(self, tx: Transaction) -> None:
        """Write it; raises `NotFoundError`."""
        tx.peek(self.session_id)
        columns = ("id", "directory", "session_id", "time_updated")
        sql = insert_text(terminal, columns, "OR REPLACE")
        where = self.directory
        tx.connection.execute(sql, (self.terminal_id, where, self.session_id, tx.now))
