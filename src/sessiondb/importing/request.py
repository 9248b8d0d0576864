"""The import that a caller asks for."""

from __future__ import annotations

import os

from sessiondb import location
from sessiondb.database.core import Core
from sessiondb.dataclass import dataclass
from sessiondb.effects.project import ProjectPlace


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """Into which database, and what becomes of sessions that are known there.

    *undelete* imports what was removed here, *as_fork* what was continued on both
    sides; *dry_run* writes nothing. *project_root* limits it to one project's sessions.
    """

    core: Core
    undelete: bool = False
    as_fork: bool = False
    dry_run: bool = False
    project_root: str | None = None

    def locate_directory(self, directory: str) -> ProjectPlace:
        """Return the project of a directory, which may not exist here."""
        if os.path.isdir(directory):
            return self.core.locate(directory)
        project = location.project_at(directory)
        return ProjectPlace(project.root, project.directory, project.root, here=False)
