"""Which project a session belongs to, decided inside the transaction.

The facts about a directory are gathered before, from the file system; here they
meet the rows. A moved folder is adopted only if its old path is gone, root
commit and remote agree and there is one candidate; adoption adds a directory
and never removes one.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from sqlalchemy import select

from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, p
from sessiondb.places import stored
from sessiondb.schema import project, project_directory


@dataclass(slots=True)
class Place:
    """A directory and the worktree it belongs to, as the file system (or a source) has it.

    ``remote`` and ``root_commit`` take a git process to find out; they are filled
    in before the unit is queued, and only for a root that the database does not
    know (``complete``).
    """

    root: str
    directory: str
    checkout: str
    kind: str = "worktree"
    vcs: str | None = None
    remote: str | None = None
    root_commit: str | None = None
    here: bool = True
    complete: bool = True


_BY_DIRECTORY = Statement(
    lambda: (
        select(project_directory.c.project_id)
        .where(project_directory.c.directory == p("directory"))
        .where(project_directory.c.kind != "former")
        .order_by(project_directory.c.rid.desc())
        .limit(1)
    )
)
_BY_COMMIT = Statement(
    lambda: select(project.c.id, project.c.worktree).where(
        project.c.root_commit == p("root_commit"),
        project.c.remote.is_not_distinct_from(p("remote")),
    )
)
_BY_ID = Statement(lambda: select(project.c.worktree).where(project.c.id == p("pid")))
_PROJECT = tuple("id worktree vcs remote root_commit name time_created time_updated".split())
_DIRECTORY = ("directory", "project_id", "kind", "time_created")


def project_of(tx: Transaction, place: Place) -> str:
    """Return the id of the project of *place*, making or adopting one where needed."""
    root = stored(place.root, tx.root)
    row = tx.one(_BY_DIRECTORY, directory=root)
    project_id = row[0] if row else _adopted(tx, place, root) or _made(tx, place, root)
    directory = stored(place.checkout, tx.root)
    if place.kind == "sandbox" and tx.one(_BY_DIRECTORY, directory=directory) is None:
        add_directory(tx, project_id, directory, "sandbox")
    return project_id


def add_directory(tx: Transaction, project_id: str, directory: str, kind: str) -> None:
    """Note that a directory belongs to a project."""
    tx.insert(project_directory, _DIRECTORY, (directory, project_id, kind, tx.now))


def _adopted(tx: Transaction, place: Place, root: str) -> str | None:
    if place.root_commit is None or not place.here:
        return None
    rows = tx.run(_BY_COMMIT, root_commit=place.root_commit, remote=place.remote).fetchall()
    base = tx.root or ""
    moved = [pid for pid, worktree in rows if not os.path.exists(os.path.join(base, worktree))]
    if len(rows) != 1 or len(moved) != 1:
        return None
    add_directory(tx, moved[0], root, "worktree")
    return str(moved[0])


def _made(tx: Transaction, place: Place, root: str) -> str:
    salt, project_id = 0, _hash(root.encode("utf-8", "surrogatepass"))
    while tx.one(_BY_ID, pid=project_id) is not None:
        salt += 1
        project_id = _hash(root.encode("utf-8", "surrogatepass") + b"\0%d" % salt)
    name = os.path.basename(place.root) or place.root
    facts = (project_id, root, place.vcs, place.remote, place.root_commit, name, tx.now, tx.now)
    tx.insert(project, _PROJECT, facts)
    add_directory(tx, project_id, root, "worktree")
    return project_id


def _hash(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()
