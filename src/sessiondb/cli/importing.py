"""``import``: sessions of other agents, with a report of what became of each."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, open_store, say
from sessiondb.cli.progress import counted
from sessiondb.cli.text import count, one_line
from sessiondb.errors import InvalidInputError, NotFoundError, SourceError, abridged
from sessiondb.formats.registry import readable
from sessiondb.hints import command
from sessiondb.location import load_config, project_at
from sessiondb.model import Imported, Problem

if TYPE_CHECKING:
    from sessiondb.formats import ForeignStore
    from sessiondb.model import SourceSession

OUTCOMES = ("imported", "updated", "unchanged", "deleted", "diverged")
PROBLEMS_FOUND = 4
#: Problems that are shown as text; JSON has them all.
SHOWN_PROBLEMS = 20


@dataclass(slots=True)
class Report:
    """The result of an import."""

    outcomes: Counter[str] = field(default_factory=Counter)
    sessions: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, result: Imported | Problem) -> None:
        """Count one result."""
        if isinstance(result, Problem):
            self.problems.append(result)
            return
        self.outcomes[result.outcome] += 1
        names = ("id", "source", "source_id", "messages", "outcome")
        self.sessions.append({name: getattr(result, name) for name in names})

    def as_json(self) -> dict[str, Any]:
        """Return the complete report."""
        found = [
            {"source": p.source, "line": p.line, "why": p.why} for p in self.problems
        ]
        counts = {name: self.outcomes[name] for name in OUTCOMES}
        return {**counts, "sessions": self.sessions, "problems": found}


@click.command("import")
@click.argument("paths", type=shared.PATH, metavar="[PATH]...", nargs=-1)
@click.option("--from", "formats", metavar="F", multiple=True,
              help=f"Only stores of this format: {shared.either(readable())}.",
              shell_complete=shared.one_of(readable))  # fmt: skip
@click.option(
    "--project", type=shared.PATH, metavar="DIR", help="Only of the project of DIR."
)
@click.option("--restore", is_flag=True, help="Bring removed sessions back.")
@click.option("--as-fork", is_flag=True, help="Bring what diverged as forks.")
@click.option("--watch", is_flag=True, help="Go on with what changes, until Ctrl-C.")
@click.option("--dry-run", is_flag=True, help="Report, write nothing.")
@shared.as_json
@click.pass_obj
def import_command(
    options: Options,
    *,
    paths: tuple[str, ...],
    formats: tuple[str, ...],
    project: str | None,
    restore: bool,
    as_fork: bool,
    watch: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Import the sessions of other agents; doing it again imports what is new.

    PATH is a file, a store, or any folder above stores; without one the places
    where agents keep their sessions. Nothing there is changed. A database of
    one project takes that project's sessions only.

    --watch reports each session on stderr, or with --json each import that
    found something new, a report a line. Any number may watch at once; --restore
    is about the first import alone.
    """
    if watch and dry_run:
        raise click.UsageError("--watch and --dry-run exclude each other")
    places = _places(paths, formats)
    with open_store(options, writing=True) as store:
        root = project and project_at(project).root
        take = partial(store.ingest, project_root=root, as_fork=as_fork)
        if watch:
            from sessiondb.cli.import_watch import Changes, follow

            # Before anything is read: a file written during the import has changed after it.
            changes = Changes(places, formats)
        report, sources = Report(), Sources(places, formats, strict=bool(paths))
        results = take(sources, undelete=restore, dry_run=dry_run)
        for result in counted(results, "import", quiet=as_json):
            report.add(result)
        _show(report, sources.stores, dry_run, as_json)
        of_one_project = root is not None or store.location.kind == "local"
        if (
            of_one_project
            and sources.stores
            and not (report.outcomes or report.problems)
        ):
            say("none of the sessions there belongs to this project")
            say(f"  {command('--global', 'import', *paths)} imports all of them")
        if watch:
            changes.forget(sources.unread)
            follow(store, changes, take, report, as_json=as_json)
    return PROBLEMS_FOUND if report.problems else 0


def _places(paths: tuple[str, ...], formats: tuple[str, ...]) -> list[Path]:
    """Return where to look; raises `NotFoundError` if there is nothing at any of *paths*.

    And `InvalidInputError` for an unknown format, both before anything is written.
    """
    from sessiondb.formats import default_locations

    usual = default_locations(os.environ, formats=formats or None)
    if not paths:
        return [*usual, *load_config().import_paths]
    places = [Path(path) for path in paths]
    if not any(map(_is_there, places)):
        hint = f"check the path; {command('import')} looks where agents keep their sessions"
        missing = ", ".join(map(abridged, paths))
        raise NotFoundError(f"there is nothing at {missing}", hint=hint)
    return places


def _is_there(place: Path) -> bool:
    """Return whether something is at *place*, readable or not; raises `InvalidInputError`."""
    try:
        place.stat()
    except ValueError as error:
        raise InvalidInputError(
            f"PATH is not a path: {abridged(str(place))}"
        ) from error
    except OSError as error:
        return error.errno not in (
            errno.ENOENT,
            errno.ENOTDIR,
            errno.ELOOP,
            errno.ENAMETOOLONG,
        )
    return True


def _nothing_at(place: Path) -> Problem:
    """Return why there is no session at *place*, naming the agents that it belongs to."""
    from sessiondb.formats.unsupported import agents_at

    agents = agents_at(place)
    why = "no sessions of a known agent are here"
    return Problem(
        str(place), f"{', '.join(agents)}: not supported yet" if agents else why
    )


class Sources:
    """The sessions of the stores at *places*; what cannot be read is a problem, never the end.

    *wanted* chooses stores by their path. Where not *strict*, a place where
    nothing is, is not a problem. ``unread`` are the stores that could not be opened.
    """

    def __init__(
        self,
        places: list[Path],
        formats: tuple[str, ...],
        *,
        strict: bool = False,
        wanted: Callable[[Path], bool] = lambda _: True,
    ) -> None:
        self._places, self._formats = places, formats
        self._strict, self._wanted = strict, wanted
        self.stores = 0
        self.unread: list[Path] = []

    def __iter__(self) -> Iterator[SourceSession | Problem]:
        for place in self._places:
            before = self.stores
            if self._strict and not _is_there(place):
                yield Problem(str(place), "there is nothing here")
                continue
            try:
                if self._strict or place.exists():
                    yield from self._below(place)
            except (SourceError, OSError) as error:
                yield Problem(str(place), str(error))
            else:
                if self._strict and self.stores == before:
                    yield _nothing_at(place)

    def _below(self, place: Path) -> Iterator[SourceSession | Problem]:
        from sessiondb.formats import find

        for found in find(place, formats=self._formats or None):
            if self._wanted(found.path):
                self.stores += 1
                yield from self._read(found)

    def _read(self, found: ForeignStore) -> Iterator[SourceSession | Problem]:
        try:
            yield from found.read()
        except (SourceError, OSError) as error:
            self.unread.append(found.path)
            yield Problem(str(found.path), str(error))


def _show(report: Report, stores: int, dry_run: bool, as_json: bool) -> None:
    if as_json:
        output.write_json(report.as_json())
    else:
        found = [
            f"{report.outcomes[name]} {name}"
            for name in OUTCOMES
            if report.outcomes[name]
        ]
        done = "would be " if dry_run and found else ""
        output.write(
            f"{done}{', '.join(found) or 'no sessions'} · {count(stores, 'store')}\n"
        )
    if report.outcomes["deleted"]:
        say(
            f"{report.outcomes['deleted']} were removed here before; --restore restores them"
        )
    if report.outcomes["diverged"]:
        say(
            f"{report.outcomes['diverged']} were continued here; --as-fork imports their new state"
        )
    if report.problems and not as_json:
        say(f"{count(len(report.problems), 'problem')}, all else was imported:")
        for p in report.problems[:SHOWN_PROBLEMS]:
            say(f"  {problem_line(p)}")
        if len(report.problems) > SHOWN_PROBLEMS:
            say(
                f"  … {len(report.problems) - SHOWN_PROBLEMS} more (--json has them all)"
            )


def problem_line(problem: Problem) -> str:
    """Return where a problem is and what it is, on one line."""
    where = problem.source + (f":{problem.line}" if problem.line else "")
    return f"{one_line(where)}: {one_line(problem.why)}"
