"""``import --watch``: what other agents write, imported while they write it.

A look reads sizes and times of files and opens nothing; only a store with a file
that changed since the look before is read, by its reader. A failure that may pass
(a store that is locked, torn or gone, a database that is busy) is reported once, and
the next look tries again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sessiondb.cli import output
from sessiondb.cli.importing import Report, Sources, problem_line
from sessiondb.cli.opening import say
from sessiondb.cli.text import clock, count, one_line, short_id
from sessiondb.clock import now_ms
from sessiondb.effects import SessionHandle
from sessiondb.errors import NotFoundError, SessionDBError
from sessiondb.model import Imported, Problem

if TYPE_CHECKING:
    from sessiondb.model import SourceSession
    from sessiondb.store import Store

#: Seconds between two looks: at least so many, and so many for a second of work.
PAUSE, SHARE = 1.0, 10

Take = Callable[["Iterable[SourceSession | Problem]"], "Iterator[Imported | Problem]"]


class Changes:
    """Which stores at *places* changed since the last look."""

    def __init__(self, places: list[Path], formats: tuple[str, ...]) -> None:
        self._places, self._formats = places, formats
        self._seen = self._look()

    def _look(self) -> dict[Path, tuple[int, ...]]:
        from sessiondb.formats import stamps

        found: dict[Path, tuple[int, ...]] = {}
        for place in self._places:
            found |= stamps(place, formats=self._formats or None)
        return found

    def look(self) -> Sources | None:
        """Return the stores with a file that is new or changed; None if there is none."""
        before, self._seen = self._seen, self._look()
        changed = [
            file for file, stamp in self._seen.items() if before.get(file) != stamp
        ]
        touched = {path for file in changed for path in _stores(file)}
        if not touched:
            return None
        return Sources(self._places, self._formats, wanted=touched.__contains__)

    def forget(self, stores: Iterable[Path]) -> None:
        """Let the next look find these stores changed, if they are there."""
        again = set(stores)
        self._seen = {
            f: s for f, s in self._seen.items() if not again & set(_stores(f))
        }

    def forget_all(self) -> None:
        """Let the next look find every store changed."""
        self._seen = {}


def _stores(file: Path) -> tuple[Path, ...]:
    """Return every path at which a store may be that *file* is part of."""
    return (file, file.with_name(file.name.rsplit("-", 1)[0]), *file.parents)


def follow(
    store: Store, changes: Changes, take: Take, first: Report, *, as_json: bool
) -> None:
    """Import what changes after the *first* import and report it, until interrupted."""
    told = _Told(store, first, as_json)
    say("watching; Ctrl-C ends it")
    while True:
        sys.stdout.flush()
        spent = time.process_time()
        try:
            if sources := changes.look():
                told.tell(take(sources))
                changes.forget(sources.unread)
        except SessionDBError as error:
            if not error.retryable:
                raise
            changes.forget_all()
            told.tell([Problem(str(store.path), f"{error}; trying again")])
        time.sleep(max(PAUSE, SHARE * (time.process_time() - spent)))


class _Told:
    """Says what is new: what was imported or updated each time, anything else once."""

    def __init__(self, store: Store, first: Report, as_json: bool) -> None:
        self._store, self._as_json = store, as_json
        self._known: set[object] = set(first.problems)
        self._known.update(
            (s["outcome"], s["source"], s["source_id"]) for s in first.sessions
        )

    def tell(self, results: Iterable[Imported | Problem]) -> None:
        """Tell of *results* as they come; as JSON when all are there, or no more can come."""
        report = Report()
        try:
            for result in filter(self._is_new, results):
                report.add(result)
                if not self._as_json:
                    say(self._line(result))
        finally:
            if self._as_json and (report.sessions or report.problems):
                output.write_json(report.as_json())

    def _is_new(self, result: Imported | Problem) -> bool:
        if isinstance(result, Imported):
            if result.outcome in ("imported", "updated"):
                return True
            key: object = (result.outcome, result.source, result.source_id)
            new = result.outcome != "unchanged" and key not in self._known
        else:
            key, new = result, result not in self._known
        self._known.add(key)
        return new

    def _line(self, result: Imported | Problem) -> str:
        if isinstance(result, Problem):
            return f"{clock(now_ms())}  {problem_line(result)}"
        facts = [clock(now_ms()), f"{result.outcome:8}", short_id(result.id)]
        with suppress(NotFoundError):  # it was removed by now
            session = self._store.session(SessionHandle(result.id))
            facts += [session.source, count(session.message_count, "message")]
            facts += [one_line(session.title or "–")]
        return "  ".join(facts)
