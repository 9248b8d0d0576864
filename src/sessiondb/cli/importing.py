"""``import``: sessions of other agents, with a report of what became of each."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, open_store, say
from sessiondb.cli.text import count, one_line
from sessiondb.errors import SessionDBError
from sessiondb.location import load_config, project_at
from sessiondb.model import Imported, Problem

if TYPE_CHECKING:
    from sessiondb.model import SourceSession

OUTCOMES = ("imported", "updated", "unchanged", "deleted", "diverged")
PROBLEMS_FOUND = 4
#: Problems that are shown as text; JSON has them all.
SHOWN_PROBLEMS = 20


@dataclass(slots=True)
class Report:
    """What an import did."""

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
        """Return the whole report."""
        found = [{"source": p.source, "line": p.line, "why": p.why} for p in self.problems]
        counts = {name: self.outcomes[name] for name in OUTCOMES}
        return {**counts, "sessions": self.sessions, "problems": found}


@click.command("import")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--from", "formats", metavar="F", multiple=True, help="Only this agent's format.")
@click.option("--project", metavar="DIR", help="Only sessions of the project of DIR.")
@click.option("--restore", is_flag=True, help="Bring removed sessions back.")
@click.option("--as-fork", is_flag=True, help="Bring what diverged as forks.")
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
    dry_run: bool,
    as_json: bool,
) -> int:
    """Bring in the sessions of other agents; doing it again brings what is new.

    PATH is a file, a store, or any folder above stores; without one the places
    where agents keep their sessions. Nothing there is changed. A database of
    one project takes that project's sessions only.
    """
    report = Report()
    with open_store(options, writing=True) as store:
        sources = _Sources(_locations(paths, formats), formats, strict=bool(paths))
        results = store.ingest(
            sources, project_root=project and project_at(project).root, restore=restore,
            as_fork=as_fork, dry_run=dry_run,
        )  # fmt: skip
        for result in _with_progress(results):
            report.add(result)
    _show(report, sources.stores, dry_run, as_json)
    return PROBLEMS_FOUND if report.problems else 0


def _locations(paths: tuple[str, ...], formats: tuple[str, ...]) -> list[Path]:
    if paths:
        return [Path(path) for path in paths]
    from sessiondb.formats import default_locations

    known = default_locations(os.environ, formats=formats or None)
    return [path for path in [*known, *load_config().import_paths] if path.exists()]


class _Sources:
    """The sessions of all stores at *paths*; what cannot be read is a problem, never the end."""

    def __init__(self, paths: list[Path], formats: tuple[str, ...], *, strict: bool) -> None:
        self._paths, self._formats, self._strict = paths, formats, strict
        self.stores = 0

    def __iter__(self) -> Iterator[SourceSession | Problem]:
        from sessiondb.formats import find

        for path in self._paths:
            before = self.stores
            try:
                for found in find(path, formats=self._formats or None):
                    self.stores += 1
                    yield from found.read()
            except SessionDBError as error:
                if error.exit_code != PROBLEMS_FOUND:
                    raise
                yield Problem(str(path), str(error))
            else:
                if self._strict and self.stores == before:
                    yield Problem(str(path), "no sessions of a known agent are here")


def _with_progress(results: Iterable[Imported | Problem]) -> Iterator[Imported | Problem]:
    """Count along on one line of stderr, where that is a terminal."""
    moving = sys.stderr.isatty()
    for number, result in enumerate(results, 1):
        if moving:
            click.echo(f"\r{count(number, 'session')} read", err=True, nl=False)
        yield result
    if moving:
        click.echo("\r\033[K", err=True, nl=False)


def _show(report: Report, stores: int, dry_run: bool, as_json: bool) -> None:
    if as_json:
        output.write_json(report.as_json())
    else:
        found = [f"{report.outcomes[name]} {name}" for name in OUTCOMES if report.outcomes[name]]
        done = "would be " if dry_run and found else ""
        output.write(f"{done}{', '.join(found) or 'no sessions'} · {count(stores, 'store')}\n")
    if report.outcomes["deleted"]:
        say(f"{report.outcomes['deleted']} were removed here before; --restore brings them back")
    if report.outcomes["diverged"]:
        say(f"{report.outcomes['diverged']} were continued here; --as-fork brings their new state")
    if report.problems and not as_json:
        say(f"{count(len(report.problems), 'problem')}, all else was imported:")
        for p in report.problems[:SHOWN_PROBLEMS]:
            say(f"  {p.source}" + (f":{p.line}" if p.line else "") + f": {one_line(p.why)}")
        if len(report.problems) > SHOWN_PROBLEMS:
            say(f"  … {len(report.problems) - SHOWN_PROBLEMS} more (--json has them all)")
