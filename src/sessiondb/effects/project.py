"""Which project a session belongs to, decided inside the transaction.

The facts about a directory are gathered before, from the file system; here they are
compared with the rows. A moved folder is adopted only if all its old paths are gone,
root commit and remote agree and there is one candidate; adoption adds a directory and
never removes one. A worktree belongs to one project: whatever
would give it a second one merges them (`effects.merge`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable

from sessiondb.dataclass import dataclass
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement
from sessiondb.places import stored
from sessiondb.schema.rows import DIRECTORY


@dataclass(slots=True)
class ProjectPlace:
    """A directory and its worktree, as the file system (or a source) has them.

    ``remote`` and ``root_commit`` are filled in before the unit is queued
    (``complete``). The second takes a git process, so it stays None for a root
    whose first commit the database knows already.
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


#: Returns the place of a directory, None being the current one.
Locate = Callable[[str | None], ProjectPlace]
_BY_DIRECTORY = Statement("effects.project.BY_DIRECTORY")
SAME_REPOSITORY = Statement("effects.project.SAME_REPOSITORY")
_FACTS = Statement("effects.project.FACTS")
_SET_FACTS = Statement("effects.project.SET_FACTS")
_BY_ID = Statement("effects.project.BY_ID")
_SET_WORKTREE = Statement("effects.project.SET_WORKTREE")
_PROJECT = tuple(
    "id worktree vcs remote root_commit name time_created time_updated".split()
)
_FORGET_DIRECTORY = Statement("effects.project.FORGET_DIRECTORY")


def project_of(tx: Transaction, place: ProjectPlace) -> str:
    """Return the id of the project of *place*, making or adopting one where needed."""
    root = stored(place.root, tx.root)
    row = tx.one(_BY_DIRECTORY, directory=root)
    # Another writer may be making it.
    if row is None and tx.lock_name("project", root):
        row = tx.one(_BY_DIRECTORY, directory=root)
    if row is not None:
        project_id = str(row[0])
        _refresh_project(tx, project_id, place)
    else:
        project_id = _adopt_project(tx, place, root) or _make_project(tx, place, root)

    directory = stored(place.checkout, tx.root)
    if place.kind == "sandbox" and tx.one(_BY_DIRECTORY, directory=directory) is None:
        add_directory(tx, project_id, directory, "sandbox")

    return project_id


#: The project and the stored directory of a session; both are None without one.
Home = tuple[str | None, str | None]


def home_of(tx: Transaction, place: ProjectPlace | None) -> Home:
    """Return the project of *place* and its directory; None has neither."""
    if place is None:
        return None, None
    return project_of(tx, place), stored(place.directory, tx.root)


def add_directory(tx: Transaction, project_id: str, directory: str, kind: str) -> None:
    """Record that a directory belongs to a project, or belongs to it again."""
    # Not an upsert: the row that was written last is the one that counts.
    tx.run(_FORGET_DIRECTORY, directory=directory, pid=project_id)
    tx.insert("project_directory", DIRECTORY, (directory, project_id, kind, tx.now))


@dataclass(frozen=True, slots=True, eq=False)
class RefreshProject:
    """Record the facts of git about a worktree; a no-op if it has no project."""

    verb = "refresh_project"
    place: ProjectPlace

    def apply(self, tx: Transaction) -> None:
        """Write what changed."""
        row = tx.one(_BY_DIRECTORY, directory=stored(self.place.root, tx.root))
        if row is not None:
            _refresh_project(tx, str(row[0]), self.place)


def _refresh_project(tx: Transaction, project_id: str, place: ProjectPlace) -> None:
    """Fill in what was not known when the project was made, and follow its remote.

    A remote that git does not name any more is kept: without it a folder that
    moves could not be recognised. The first commit is never replaced.
    """
    if place.vcs is None:
        return

    old = tx.one(_FACTS, pid=project_id)
    vcs, remote, root_commit = old
    # A source may state what was true elsewhere, and then.
    remote = place.remote or remote if place.here else remote or place.remote
    new = (vcs or place.vcs, remote, root_commit or place.root_commit)
    # Most commits change nothing here.
    if new != tuple(old):
        facts = dict(zip(("vcs", "remote", "root_commit"), new, strict=True))
        tx.run(_SET_FACTS, pid=project_id, time_updated=tx.now, **facts)


def moved_project(worktrees: Iterable[tuple[str, str]], base: str | None) -> str | None:
    """Return the project that moved, of (project, worktree) pairs of one repository.

    None if there are several projects, or one of the worktrees still exists.
    """
    projects = set()
    for project_id, worktree in worktrees:
        if os.path.exists(os.path.join(base or "", worktree)):
            return None
        projects.add(project_id)

    return projects.pop() if len(projects) == 1 else None


def _adopt_project(tx: Transaction, place: ProjectPlace, root: str) -> str | None:
    if place.root_commit is None or not place.here:
        return None

    facts = {"root_commit": place.root_commit, "remote": place.remote}
    moved = moved_project(tx.run(SAME_REPOSITORY, **facts).fetchall(), tx.root)
    if moved is not None:
        add_directory(tx, moved, root, "worktree")
        tx.run(_SET_WORKTREE, pid=moved, worktree=root, time_updated=tx.now)

    return moved


def is_known(tx: Transaction, directory: str) -> bool:
    """Return whether *directory*, as it is stored, belongs to a project."""
    return tx.one(_BY_DIRECTORY, directory=directory) is not None


def _make_project(tx: Transaction, place: ProjectPlace, root: str) -> str:
    salt, project_id = 0, _hash_hex(root.encode("utf-8", "surrogatepass"))
    while tx.one(_BY_ID, pid=project_id) is not None:
        salt += 1
        project_id = _hash_hex(root.encode("utf-8", "surrogatepass") + b"\0%d" % salt)

    name = os.path.basename(place.root) or place.root
    facts = (
        project_id,
        root,
        place.vcs,
        place.remote,
        place.root_commit,
        name,
        tx.now,
        tx.now,
    )
    tx.insert("project", _PROJECT, facts)
    add_directory(tx, project_id, root, "worktree")
    return project_id


def _hash_hex(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()
