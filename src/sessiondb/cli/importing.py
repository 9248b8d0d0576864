"""``import``: sessions of other agents, with a report of what became of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.import_report import Report, problem_line
from sessiondb.cli.opening import Options, open_store, say
from sessiondb.cli.progress import counted
from sessiondb.cli.protocol import exit_code
from sessiondb.cli.sources import STDIN, Sources, refuse_itself, sources_at
from sessiondb.cli.text import count
from sessiondb.cli.usage import exclusive
from sessiondb.errors import SessionDBError
from sessiondb.formats.kit.files import current_directory
from sessiondb.formats.registry import agent_name, importable_programs
from sessiondb.formats.unsupported import agents_of
from sessiondb.hints import command
from sessiondb.location import project_at
from sessiondb.model import Imported

if TYPE_CHECKING:
    from sessiondb.store import Store

#: Problems that are shown as text; JSON has at least a thousand of each log.
SHOWN_PROBLEMS = 20
#: Lines that announce stores as text, and stores of one agent that have a line each.
SHOWN_STORES, SHOWN_OF_AGENT = 20, 3
#: Advice about an outcome; the number of sessions is written before it.
_ADVICE = {
    "deleted": "were removed here before; --restore restores them",
    "diverged": "were continued here; --as-fork imports their new state",
}


@click.command("import")
@click.argument("paths", type=shared.PATH, metavar="[PATH]...", nargs=-1)
@shared.format_option(
    "--from",
    "formats",
    of=importable_programs,
    about="Only sessions of this program or format: ",
    multiple=True,
)
@click.option(
    "--project", type=shared.PATH, metavar="DIR", help="Only of the project at DIR."
)
@click.option("--restore", is_flag=True, help="Import removed sessions again.")
@click.option("--as-fork", is_flag=True, help="Import diverged sessions as forks.")
@click.option("--watch", is_flag=True, help="Keep importing changes, until Ctrl-C.")
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
    where agents keep their sessions, and the projects below the current directory.
    Stores that are found are reported. Nothing there is changed. A database of
    sessiondb (a backup, another machine's) is imported if it is named itself, and
    - is a log on stdin. A database of one project takes that project's sessions only.

    --watch reports each session on stderr, or with --json each import that
    found something new, one report per line. A second watcher of the same stores
    waits for the first one to end. --restore applies to the first import only.
    """
    exclusive({"--watch": watch, "--dry-run": dry_run})
    # The log on stdin ends: there is nothing to wait for.
    exclusive({"--watch": watch, "-": str(STDIN) in paths})
    sources = sources_at(paths, formats)
    with open_store(options, writing=True) as store:
        refuse_itself(sources, store.path)
        root = project and project_at(project).root
        take = partial(store.ingest, project_root=root, as_fork=as_fork)
        if watch:
            from sessiondb.cli.import_watch import StoreChanges, UnfinishedFiles, follow

            # Before anything is read: a file written during the import is a change.
            projects = None if sources.named else current_directory()
            changes = StoreChanges(sources.places, sources.formats, projects)
            unfinished = UnfinishedFiles()

        announced: dict[str, Any] = {}
        if not sources.named:
            announced = _announce_stores(sources, as_json)
        report = Report(sources.owner)
        results = take(sources, undelete=restore, dry_run=dry_run)
        with _report_unfinished(report, quiet=as_json or dry_run):
            for result in counted(results, "import", quiet=as_json, kind=Imported):
                if not (watch and unfinished.keep(result)):
                    report.add(result)

        _show_report(report, sources, announced, dry_run=dry_run, as_json=as_json)
        # An empty report of a store that is not empty would look like a failure.
        if _passed_over(store, root, sources, report):
            say("no session there belongs to this project")
            say(f"  {command('--global', 'import', *paths)} imports all of them")
        elif not (sources.named or sources.stores):
            say("no store of a known agent is in its usual place")
            say(f"  {command('import', 'PATH')} imports one from another place")

        if watch:
            # A store that could not be opened is tried again by the first look.
            changes.forget(sources.unread)
            follow(store, changes, take, report, unfinished, as_json=as_json)
    return exit_code(report.problems)


@contextmanager
def _report_unfinished(report: Report, *, quiet: bool) -> Iterator[None]:
    """Report what was imported if the block fails or is interrupted."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, SessionDBError):
        if report.written and not quiet:
            progress = f"{count(report.written, 'session')} imported before it stopped"
            say(f"{progress}; the same command imports the rest")
        raise


def _passed_over(
    store: Store, root: str | None, sources: Sources, report: Report
) -> bool:
    """Return whether there were stores, and every session was of another project."""
    of_one_project = root is not None or store.location.kind == "local"
    return of_one_project and sources.stores > 0 and report.is_empty


def _announce_stores(sources: Sources, as_json: bool) -> dict[str, Any]:
    """Report the stores that were found, and those of agents that cannot be read."""
    announced = [(agent_name(store.source), store.path) for store in sources.look()]
    # An import of one format is not about other agents.
    others = [] if sources.formats else agents_of(os.environ)
    if not as_json:
        _say_first(list(_announcement_lines(announced)), SHOWN_STORES)
        for name, path in others:
            say(f"{name}: not supported yet ({path})")

    stores, unsupported = (
        [{"agent": name, "path": str(path)} for name, path in items]
        for items in (announced, others)
    )
    return {"stores": stores, "unsupported": unsupported}


def _announcement_lines(stores: list[tuple[str, Path]]) -> Iterator[str]:
    """Yield the lines that announce stores: many of one agent are one line."""
    places: dict[str, list[Path]] = {}
    for name, path in stores:
        places.setdefault(name, []).append(path)

    for name, paths in places.items():
        if len(paths) > SHOWN_OF_AGENT:
            common = os.path.commonpath(paths)
            yield f"found {name}: {count(len(paths), 'store')} below {common}"
        else:
            yield from (f"found {name}: {path}" for path in paths)


def _show_report(
    report: Report,
    sources: Sources,
    announced: Mapping[str, Any],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    text = report.as_text(sources.stores, dry_run=dry_run)
    # Of a store that was named one line says it all.
    programs = {session["source"] for session in report.sessions}
    if report.agents and (not sources.named or len(programs) > 1):
        text = "\n".join((*report.table(), text))
    output.write_result({**report.as_json(), **announced}, text, as_json=as_json)

    # Advice goes to stderr: what a program reads on stdout stays a report.
    for outcome, advice in _ADVICE.items():
        if report.outcomes.get(outcome):
            say(f"{report.outcomes[outcome]} {advice}")

    if report.problems and not as_json:
        is_written = report.written and not dry_run
        others = ", everything else was imported" if is_written else ""
        say(f"{count(report.problem_count, 'problem')}{others}:")
        for problem in report.problems[:SHOWN_PROBLEMS]:
            say(f"  {problem_line(problem)}")

        left = sum(problem.number for problem in report.problems[SHOWN_PROBLEMS:])
        if left:
            listed = "them all"
            if report.problem_count > len(report.problems):
                listed = f"{len(report.problems):,} of them"
            say(f"  … {left:,} more (--json has {listed})")


def _say_first(lines: list[str], most: int) -> None:
    """Report the first of *lines*, and how many more there are."""
    for line in lines[:most]:
        say(line)
    left = len(lines) - most
    if left > 0:
        say(f"  … {left} more")
