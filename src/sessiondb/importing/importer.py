"""Import: what readers yield, on its way into the database.

Most of a second import are logs that are as they were: their heads are known
(`known_files`), and their sessions are recognised together (`unchanged`). Anything else
is imported by `sessions`, which is loaded for the first of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from sessiondb.database.core import Core
from sessiondb.errors import InvalidInputError
from sessiondb.formats.kit.remembered import answered_by
from sessiondb.importing.beside.terminals import Uses
from sessiondb.importing.known_files import KnownFiles
from sessiondb.importing.request import ImportRequest
from sessiondb.importing.unchanged import (
    history_entry,
    is_known_history,
    is_log,
    read_ahead,
    unchanged_sessions,
)
from sessiondb.loading import load
from sessiondb.model import Imported, Problem, SourceHistory, SourceItem

if TYPE_CHECKING:
    from sessiondb.importing.sessions import SessionImporter

Results = Iterator[Imported | Problem]


class Importer:
    """One import: takes what readers yield, and yields the result of each session."""

    def __init__(self, request: ImportRequest) -> None:
        self._request = request
        self._core = request.core
        self._known_files = KnownFiles(request.core)
        self._uses = Uses(request.core, request.locate_directory)
        #: Whether anything had to be imported by `sessions`.
        self._has_changes = False

    def run(self, items: Iterable[SourceItem]) -> Results:
        """Import everything; yield problems at once, results after their commit."""
        for done in self._import_items(items):
            if isinstance(done, Imported):
                self._uses.imported(done)
            yield done
        if not self._request.dry_run:
            self._uses.commit()

    def _import_items(self, items: Iterable[SourceItem]) -> Results:
        for chunk in read_ahead(answered_by(self._known_files, items)):
            outcomes: list[Imported | None] = [None for _ in chunk]
            # Whether a session is of one project depends on more than its names.
            if self._request.project_root is None and is_log(chunk[0]):
                outcomes = self._core.read(unchanged_sessions(chunk))
            committed = self._committed
            for item, outcome in zip(chunk, outcomes, strict=True):
                # Rows written since may have the others read again.
                if outcome is not None and self._committed == committed:
                    yield outcome
                elif isinstance(item, Problem):
                    yield item
                elif not self._is_known_history(item):
                    self._has_changes = True
                    yield from self._sessions.import_item(item)

        facts = None if self._request.dry_run else self._known_files.changes()
        if self._has_changes or facts is not None:
            yield from self._sessions.complete(facts)

    def _is_known_history(self, item: SourceItem) -> bool:
        """Return whether an item is a prompt history of which nothing can be new."""
        if self._has_changes or not isinstance(item, SourceHistory):
            return False
        try:
            entry = history_entry(item, self._request.project_root)
        except InvalidInputError:
            return False
        return self._core.read(is_known_history(entry))

    @property
    def _committed(self) -> int:
        """The number of transactions."""
        return self._sessions.committed if self._has_changes else 0

    @cached_property
    def _sessions(self) -> SessionImporter:
        load("sessiondb.importing.sessions")
        from sessiondb.importing.sessions import SessionImporter

        return SessionImporter(self._request, self._uses)


def new_importer(
    core: Core, undelete: bool, as_fork: bool, dry_run: bool, project_root: str | None
) -> Importer:
    """Return an importer; a project-local database takes its project's sessions."""
    local = core.location.kind == "local"
    root = core.base if local else project_root
    return Importer(ImportRequest(core, undelete, as_fork, dry_run, root))
