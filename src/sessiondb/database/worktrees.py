"""The worktrees that a store is used from, and git's facts about them.

A process of git is started only for a worktree whose first commit the database
does not know, and again only after the files of its repository have changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from sessiondb import codec, location
from sessiondb.effects.project import SAME_REPOSITORY, ProjectPlace, moved_project
from sessiondb.effects.unit import Unit
from sessiondb.engine.sql import Statement
from sessiondb.errors import InvalidInputError, SessionDBError, abridged
from sessiondb.loading import load
from sessiondb.places import named, stored
from sessiondb.repository import Read
from sessiondb.repository.sessions import project_at

#: Seconds after which a write looks again whether the current worktree has changed.
LOOK_AGAIN = 60.0

_KNOWN = Statement("database.worktrees.KNOWN")
_WITH_REMOTE = Statement("database.worktrees.WITH_REMOTE")
#: Remote and first commit; None is unknown, or already known to the database.
_Facts = tuple[str | None, str | None]
#: The facts of a worktree before its first look; its stamp is equal to no other.
_UNSEEN: tuple[object, _Facts] = (object(), (None, None))


class Worktrees:
    """The places of directories, and the remote and first commit of worktrees, by root.

    *base* is the folder that a project-local database belongs to, *cwd* the directory
    that counts as the current one (None: that of the process).
    """

    def __init__(
        self,
        base: str | None,
        cwd: str | os.PathLike[str] | None,
        read: Callable[[Read[Any]], Any],
    ) -> None:
        self._base, self._cwd, self._read = base, cwd, read
        self._of: dict[str, tuple[object, _Facts]] = {}
        self._look_again = 0.0

    def locate(self, directory: str | None) -> ProjectPlace:
        """Return the place of a directory (default: the current one).

        Raises `InvalidInputError` for anything but the path of a directory.
        """
        place = directory if directory is not None else (self._cwd or ".")
        path = os.fspath(place) if isinstance(place, str | os.PathLike) else None
        if not isinstance(path, str):
            raise InvalidInputError(f"a directory is a path, not {abridged(place)}")
        if codec.readable(path)[1]:
            raise InvalidInputError(
                f"a directory must be valid Unicode, without NUL: {abridged(path)}"
            )

        project = location.project_at(path)
        # The name of the current directory may consist of any bytes.
        return ProjectPlace(
            named(project.root),
            named(project.directory),
            named(project.checkout),
            project.kind,
            project.vcs,
            complete=False,
        )

    def project_of(self, directory: Any) -> Read[str | None]:
        """Return the id of the project of a directory.

        None if this database knows none. A folder that was moved belongs to the project
        that the next write from it adopts.
        """
        place = self.locate(directory)
        roots = (place.root, place.checkout, place.directory)
        project_id = yield from project_at(
            tuple(stored(root, self._base) for root in roots)
        )
        return project_id or (yield from self._moved_here(place))

    def is_due(self, unit: Unit) -> bool:
        """Return whether to look at the worktree again: once in `LOOK_AGAIN` seconds.

        An agent may append to one session for days, while the repository gets its first
        commit or a remote. A unit that names a place refreshes that place itself.
        """
        now = time.monotonic()
        if unit.places or now < self._look_again:
            return False
        self._look_again = now + LOOK_AGAIN
        return True

    def stale(self) -> ProjectPlace | None:
        """Return the current worktree if its project's facts may be out of date."""
        try:
            place = self.locate(None)
        except SessionDBError:
            # The current directory is gone, or has no name in Unicode.
            return None

        if self._is_fresh(place) or not self._known_facts(place):
            return None
        return place

    def complete(self, unit: Unit) -> None:
        """Fill in the facts of every place of a unit, before any lock is taken."""
        for place in unit.places:
            if not place.complete:
                place.remote, place.root_commit = self._facts_of_place(place)
                place.complete = True

    def may_start_git(self, unit: Unit) -> bool:
        """Return whether `complete` could have to start a process."""
        incomplete = (place for place in unit.places if not place.complete)
        return not all(map(self._is_fresh, incomplete))

    def _moved_here(self, place: ProjectPlace) -> Read[str | None]:
        """Return the project that a write from *place* would adopt.

        None if it is known, or new.
        """
        if place.vcs is None:
            return None

        remote = location.remote_of(place.root)
        rows = yield _WITH_REMOTE, {"remote": remote}
        worktrees: dict[str, list[Any]] = {}
        for commit, *worktree in rows:
            worktrees.setdefault(commit, []).append(worktree)

        gone = {
            c for c, project in worktrees.items() if moved_project(project, self._base)
        }

        # Only now is it worth a process.
        root_commit = _root_commit_of(place.root) if gone else None
        if root_commit not in gone:
            return None

        rows = yield SAME_REPOSITORY, {"root_commit": root_commit, "remote": remote}
        return moved_project(rows, self._base)

    def _is_fresh(self, place: ProjectPlace) -> bool:
        """Return whether the facts of a place are known and up to date."""
        if place.vcs is None:
            return True

        seen = self._of.get(place.root)
        return seen is not None and seen[0] == location.stamp_of(place.root)

    def _facts_of_place(self, place: ProjectPlace) -> _Facts:
        if place.vcs is None:
            return None, None

        stamp = location.stamp_of(place.root)
        seen, facts = self._of.get(place.root, _UNSEEN)
        if seen != stamp:
            facts = self._look_up_facts(place)
            self._of[place.root] = (stamp, facts)

        return facts

    def _look_up_facts(self, place: ProjectPlace) -> _Facts:
        rows = self._known_facts(place)
        is_known = bool(rows) and rows[0][0] is not None
        commit = None if is_known else _root_commit_of(place.root)
        return location.remote_of(place.root), commit

    def _known_facts(self, place: ProjectPlace) -> Any:
        return self._read(
            _rows_of(_KNOWN, {"directory": stored(place.root, self._base)})
        )


def _root_commit_of(root: str) -> str | None:
    """Return the first commit of a worktree; git runs in a process of its own."""
    load("subprocess")
    return location.root_commit_of(root)


def _rows_of(
    statement: Statement, params: dict[str, Any]
) -> Read[list[tuple[Any, ...]]]:
    rows = yield statement, params
    return rows
