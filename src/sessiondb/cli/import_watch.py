"""``import --watch``: what other agents write, imported while they write it.

A look reads sizes and times of files and opens nothing; only a store with a file
that changed since the look before is read, by its reader. A failure that may pass
(a store that is locked, torn or gone, a database that is busy) is reported once, and
the next look tries again. A file that ends inside of a line is being written, as far
as a watcher can know: that is a problem only if the file stays so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sessiondb.cli import output
from sessiondb.cli.import_report import Report, problem_line
from sessiondb.cli.opening import say
from sessiondb.cli.sources import Sources
from sessiondb.cli.text import clock, count, one_line, short_id
from sessiondb.cli.watchers import Watchers
from sessiondb.clock import now_ms
from sessiondb.errors import NotFoundError, SessionDBError
from sessiondb.formats.kit.files import file_stamp
from sessiondb.location.database import database_of
from sessiondb.model import Imported, Problem
from sessiondb.model.handles import SessionHandle

if TYPE_CHECKING:
    from sessiondb.model import SourceItem
    from sessiondb.store import Store

#: Seconds between two looks: at least so many, and so many for a second of work.
PAUSE, SHARE = 1.0, 10
#: Seconds between two searches for stores in projects, which walk many folders.
SEARCH = 30.0

#: Seconds without a change after which a file is not being written any more.
SETTLED = 10.0

Take = Callable[["Iterable[SourceItem]"], "Iterator[Imported | Problem]"]


class StoreChanges:
    """Which stores at ``places`` changed since the last look.

    With *projects*, the stores of projects below that folder are added as they appear.
    """

    def __init__(
        self,
        places: list[Path],
        formats: tuple[str, ...] | None,
        projects: Path | None = None,
    ) -> None:
        self.places, self._formats, self._projects = places, formats, projects
        self._searched = -SEARCH
        self._seen = self._current_stamps()

    def _current_stamps(self) -> dict[Path, tuple[int, ...]]:
        from sessiondb.formats import stamps

        self._search_projects()
        stamps_by_path: dict[Path, tuple[int, ...]] = {}
        for place in self.places:
            stamps_by_path |= stamps(place, formats=self._formats)
        return stamps_by_path

    def _search_projects(self) -> None:
        """Add the stores of projects that appeared, now and then."""
        from sessiondb.formats import in_projects

        now = time.monotonic()
        if self._projects is not None and now - self._searched >= SEARCH:
            self._searched = now
            appeared, _ = in_projects(self._projects, formats=self._formats)
            self.places = list(dict.fromkeys([*self.places, *appeared]))

    def look(self) -> Sources | None:
        """Return the stores with a new or changed file; None if there are none."""
        earlier, self._seen = self._seen, self._current_stamps()
        changed = [
            file for file, stamp in self._seen.items() if earlier.get(file) != stamp
        ]
        if not changed:
            return None

        touched = {path for file in changed for path in _stores_of(file)}
        return Sources(self.places, self._formats, wanted=touched.__contains__)

    def forget(self, stores: Iterable[Path]) -> None:
        """Let the next look find these stores changed, if they are there."""
        again = set(stores)
        for file in list(self._seen):
            if again.intersection(_stores_of(file)):
                del self._seen[file]

    def forget_all(self) -> None:
        """Let the next look find every store changed."""
        self._seen = {}


def _stores_of(file: Path) -> tuple[Path, ...]:
    """Return every path at which a store may be that *file* is part of."""
    database = file.with_name(file.name.rsplit("-", 1)[0])
    return (file, database, *file.parents)


class UnfinishedFiles:
    """The problems of files that may be half written; each waits for its file.

    It is dropped if the file changes: the next look reads that again.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Wait] = {}

    def keep(self, result: Imported | Problem) -> bool:
        """Keep a problem that the rest of its file may solve; False for any other."""
        if not isinstance(result, Problem):
            return False
        file = Path(result.source)
        # A document is one record: it has no line that could be complete.
        if not result.is_torn and file.suffix != ".json":
            return False

        size_and_time = file_stamp(file)
        wait = self._waiting.get(result.source)
        if wait is None or wait.at != size_and_time:
            wait = self._waiting[result.source] = _Wait(
                [], size_and_time, time.monotonic()
            )
        # A store is read again if another file of it changed.
        if result not in wait.problems:
            wait.problems.append(result)
        return True

    def settled(self) -> list[Problem]:
        """Return the problems whose files have not changed for `SETTLED` seconds.

        Each is returned once.
        """
        now = time.monotonic()
        problems: list[Problem] = []
        for source, wait in list(self._waiting.items()):
            has_changed = file_stamp(Path(source)) != wait.at
            is_settled = now - wait.since >= SETTLED
            if is_settled and not has_changed:
                problems += wait.problems
            if is_settled or has_changed:
                del self._waiting[source]
        return problems


class _Wait(NamedTuple):
    """Problems of a file, its size and time then, and since when these are the same."""

    problems: list[Problem]
    at: tuple[int, int] | None
    since: float


def follow(
    store: Store,
    changes: StoreChanges,
    take: Take,
    first: Report,
    unfinished: UnfinishedFiles,
    *,
    as_json: bool,
) -> None:
    """Import what changes after the *first* import and report it, until interrupted.

    *unfinished* has the problems of that import that may pass.
    """
    reporter = _Reporter(store, first, unfinished, as_json)
    database = database_of(store)
    Watchers(database, changes.places).join()
    say("watching; Ctrl-C ends it")
    while True:
        sys.stdout.flush()
        spent = time.process_time()
        try:
            if sources := changes.look():
                reporter.report(take(sources))
                changes.forget(sources.unread)
            reporter.report_settled()
        except SessionDBError as error:
            if not error.retryable:
                raise
            # Nothing of this look is known to be imported.
            changes.forget_all()
            reporter.report([Problem(str(database), f"{error}; trying again")])

        time.sleep(max(PAUSE, SHARE * (time.process_time() - spent)))


class _Reporter:
    """Reports what is new: each session that was written, anything else once."""

    def __init__(
        self, store: Store, first: Report, unfinished: UnfinishedFiles, as_json: bool
    ) -> None:
        self._store, self._as_json = store, as_json
        self._unfinished = unfinished
        self._known: set[object] = set(first.problems)
        names = ("outcome", "id")
        self._known.update(tuple(map(s.get, names)) for s in first.sessions)

    def report(self, results: Iterable[Imported | Problem]) -> None:
        """Report *results* as they come, or as JSON after the last one.

        Problems of files that may be half written are kept for `report_settled`.
        """
        keep = self._unfinished.keep
        self._report_results(result for result in results if not keep(result))

    def report_settled(self) -> None:
        """Report the problems of files that no program is writing any more."""
        self._report_results(self._unfinished.settled())

    def _report_results(self, results: Iterable[Imported | Problem]) -> None:
        report = Report()
        try:
            for result in filter(self._is_new, results):
                report.add(result)
                if not self._as_json:
                    say(self._result_line(result))
        finally:
            if self._as_json and not report.is_empty:
                output.write_json(report.as_json())

    def _is_new(self, result: Imported | Problem) -> bool:
        if isinstance(result, Problem):
            return self._is_first(result)
        if result.outcome in ("imported", "updated"):
            return True

        # The first import may have reported it, and each look finds it again.
        key = (result.outcome, result.id)
        return result.outcome != "unchanged" and self._is_first(key)

    def _is_first(self, key: object) -> bool:
        """Return whether *key* was never reported, and remember that it is now."""
        new = key not in self._known
        self._known.add(key)
        return new

    def _result_line(self, result: Imported | Problem) -> str:
        if isinstance(result, Problem):
            return f"{clock(now_ms())}  {problem_line(result)}"

        facts = [clock(now_ms()), f"{result.outcome:8}", short_id(result.id)]
        # It may have been removed by now.
        with suppress(NotFoundError):
            session = self._store.session(SessionHandle(result.id))
            facts += [session.source, count(session.message_count, "message")]
            facts += [one_line(session.title or "–")]
        return "  ".join(facts)
