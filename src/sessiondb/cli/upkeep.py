"""``migrate``, ``check``, ``doctor`` and ``backup``: the database as a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, open_store, say
from sessiondb.cli.text import clock, count, one_line, short_id, size
from sessiondb.errors import NotFoundError
from sessiondb.location import database as location

PROBLEMS_FOUND = 4


def _existing(options: Options) -> Path:
    """Return the path of the database without opening it; raises `NotFoundError`."""
    found = location.resolve(options.db, scope=cast("location.Scope", options.scope))
    if found.notice:
        say(found.notice)
    if found.path is None or not found.path.exists():
        raise NotFoundError(f"no database at {found.path or ':memory:'}", hint="`sessiondb init`")
    return found.path


@click.command("migrate")
@click.option("--dry-run", is_flag=True, help="Show what is pending, change nothing.")
@shared.as_json
@click.pass_obj
def migrate_command(options: Options, *, dry_run: bool, as_json: bool) -> None:
    """Bring the database to the schema of this release; a backup is kept first."""
    from sessiondb.engine import migrate

    path = _existing(options)
    steps = migrate.pending(path)
    kept = migrate.upgrade(path) if steps and not dry_run else None
    if as_json:
        found = [step._asdict() for step in steps]
        backup = str(kept) if kept else None
        output.write_json({"pending": found, "backup": backup, "dry_run": dry_run})
        return
    for step in steps:
        done = "pending" if dry_run else "applied"
        output.write(f"{done}\t{step.revision}\t{one_line(step.description)}\n")
    if kept:
        say(f"the file as it was: {kept}")
    if not steps:
        say(f"{path} is up to date")


@click.command("check")
@shared.as_json
@click.pass_obj
def check_command(options: Options, *, as_json: bool) -> int:
    """Verify the file, what refers to what, the search index, blobs, counters and counting.

    Exit 4 if something is wrong. Comparing the search index keeps writers
    waiting for that long.
    """
    from sessiondb.maintenance import check

    with open_store(options) as store:
        findings = check(store)
    if as_json:
        found = [asdict(finding) for finding in findings]
        output.write_json({"ok": not findings, "findings": found})
    else:
        for finding in findings:
            what = one_line(finding.what)
            output.write(f"{finding.check}\t{finding.count}\t{what}\n")
        say(f"{count(len(findings), 'finding')} in {store.path}" if findings else "all is well")
    return PROBLEMS_FOUND if findings else 0


@click.command("backup")
@click.argument("to", metavar="TO", type=click.Path(path_type=Path))
@shared.as_json
@click.pass_obj
def backup_command(options: Options, *, to: Path, as_json: bool) -> None:
    """Write a copy of the database to the new file TO (or into the folder TO), and verify it.

    Agents go on writing meanwhile; the copy is what the database was at one moment.
    """
    from sessiondb.maintenance import backup

    if to.is_dir():
        to /= f"sessions-{datetime.now().astimezone():%Y%m%d-%H%M%S}.db"
    with open_store(options) as store:
        made = backup(store, to)
    if as_json:
        output.write_json(asdict(made) | {"path": str(made.path)})
    else:
        output.write(f"{made.path}\n")
        say(f"{count(made.sessions, 'session')}, {size(made.bytes)}")


@click.command("doctor")
@shared.as_json
@click.pass_obj
def doctor_command(options: Options, *, as_json: bool) -> None:
    """Versions, settings and sizes of this installation and its database."""
    from sessiondb.maintenance import diagnose

    found = location.resolve(options.db, scope=cast("location.Scope", options.scope))
    report = diagnose(found)
    if as_json:
        output.write_json(report)
    else:
        output.page(_report(report))


def _report(report: dict[str, Any]) -> Iterator[str]:
    shown = output.screen()
    for name, value in report.items():
        if name == "advice":
            yield from (shown.style(f"! {one_line(line)}", fg="yellow") for line in value)
        elif not isinstance(value, dict | list):
            yield f"{_label(name)}: {_fact(name, value)}"
        elif value:
            yield shown.style(_label(name), bold=True)
            yield from _facts(name, value)


def _facts(name: str, value: Any) -> Iterator[str]:
    if name == "bytes_by_table":
        yield from (f"  {size(number):>10}  {table}" for table, number in value.items())
    elif name == "biggest_sessions":
        for s in value:
            yield f"  {size(s['bytes']):>10}  {short_id(s['id'])}  {one_line(s['title'])}"
    elif isinstance(value, list):
        yield from (f"  {one_line(str(item))}" for item in value)
    else:
        yield from (f"  {_label(key):<20} {_fact(key, fact)}" for key, fact in value.items())


def _label(name: str) -> str:
    return name.replace("_", " ")


def _fact(name: str, value: Any) -> str:
    if value is None or value == []:
        return "–"
    if name.startswith("time"):
        return clock(value)
    return size(value) if name.startswith("bytes") else one_line(str(value))
