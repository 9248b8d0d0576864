"""Reads of the session and the project that a caller names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.arguments import checks_arguments
from sessiondb.database.core import Core
from sessiondb.ids import valid_id
from sessiondb.model import Project, Session, bounds
from sessiondb.model.bounds import Time
from sessiondb.model.handles import SessionHandle, SessionRef
from sessiondb.repository import Read
from sessiondb.repository.references import (
    Extent,
    extent_by_id,
    extent_of,
    find_extent,
    find_session,
    last_used,
    session_by_id,
)
from sessiondb.repository.sessions import ALL, HERE, Filters, ProjectFilter


@checks_arguments
class ScopedQueries:
    """The reads that others begin with, see `queries`."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._base = core.base

    def _filters_of_project(
        self, project: ProjectFilter, **fields: Any
    ) -> Read[Filters]:
        """Return the filters; for an unknown project, filters that nothing passes."""
        for name in ("since", "until"):
            is_end = name == "until"
            fields[name] = bounds.typed_time(fields.get(name), name, end=is_end)
        if project is ALL:
            return Filters(**fields)
        if isinstance(project, Project):
            return Filters(project_id=project.id, **fields)

        project_id = yield from self._core.worktrees.project_of(
            None if project is HERE else project
        )
        return Filters(project_id=project_id or "", **fields)

    def session(
        self, ref: SessionRef, *, terminal: str | Mapping[str, Time] | None = None
    ) -> Read[Session]:
        """Return one session; raises `NotFoundError` and `AmbiguousIdError`.

        ``@`` is the one last used in *terminal*: its name, or the names that programs
        have for it, each with the time (Unix ms) since when it names this terminal.
        """
        if isinstance(ref, SessionHandle | Session):
            return (yield from session_by_id(self._base, ref.id))
        if not isinstance(ref, str) or not ref.startswith("@"):
            return (yield from find_session(self._base, ref))

        filters = yield from self._filters_of_project(HERE)
        directory = self._core.locate(None).directory
        names = _names_of(terminal)
        return (yield from last_used(self._base, ref, filters, directory, names))

    def _extent_of(self, ref: SessionRef) -> Read[Extent]:
        """Return the extent of one session; raises the errors of `session`."""
        if isinstance(ref, SessionHandle | Session):
            return (yield from extent_by_id(ref.id))
        if not isinstance(ref, str) or not ref.startswith("@"):
            return (yield from find_extent(self._base, ref))
        return extent_of((yield from self.session(ref)))


def _names_of(terminal: str | Mapping[str, Time] | None) -> dict[str, int] | None:
    """Return the names of a terminal with their times; raises `InvalidInputError`."""
    if terminal is None or isinstance(terminal, str):
        return None if terminal is None else {terminal: 0}

    noun = "the time of a name in terminal"
    since: dict[str, int] = {}
    for name, time in terminal.items():
        known_time = bounds.integer(bounds.moment(time, noun), noun)
        since[valid_id(name, "a name in terminal")] = known_time or 0
    return since
