"""``migrate``, ``check``, ``doctor``, ``backup`` and ``vacuum``: the database as a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from sessiondb.arguments import file_of
from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, open_store, say, typed_yes
from sessiondb.cli.progress import watched
from sessiondb.cli.text import clock, count, one_line, short_id, size
from sessiondb.errors import NotFoundError
from sessiondb.hints import command, with_database
from sessiondb.location import database as location
from sessiondb.location.directories import expanded

if TYPE_CHECKING:
    from sessiondb.maintenance import Finding, VacuumPlan
    from sessiondb.store import Store

PROBLEMS_FOUND = 4
REPAIR = "sessiondb check --repair"
#: The last resort, if no repair can help.
SAVE = "sessiondb export -a --to jsonl -o FILE"


def _existing(options: Options) -> Path:
    """Return the path of the database without opening it; raises `NotFoundError`."""
    found = location.resolve(options.db, scope=cast("location.Scope", options.scope))
    if found.notice:
        say(found.notice)
    if found.path is None or not found.path.exists():
        hint = f"{command('init')} makes it"
        raise NotFoundError(f"no database at {found.path or ':memory:'}", hint=hint)
    return found.path


@click.command("migrate")
@click.option("--dry-run", is_flag=True, help="Show what is pending, change nothing.")
@shared.as_json
@click.pass_obj
def migrate_command(options: Options, *, dry_run: bool, as_json: bool) -> None:
    """Bring the database to the schema of this release; a backup is kept first."""
    from sessiondb.engine.sqlite import migrations

    path = _existing(options)
    steps = migrations.pending(path)
    kept = migrations.upgrade(path) if steps and not dry_run else None
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
@click.option(
    "--repair", "repairing", is_flag=True, help="Repair what can be repaired."
)
@click.option(
    "--dry-run", is_flag=True, help="With --repair: show the plan, change nothing."
)
@click.option("--yes", is_flag=True, help="With --repair: do not ask.")
@shared.as_json
@click.pass_obj
def check_command(
    options: Options, *, repairing: bool, dry_run: bool, yes: bool, as_json: bool
) -> int:
    """Verify the file, what refers to what, the search index, blobs, counters and counting.

    Exit 4 if something is wrong. Comparing the search index keeps writers
    waiting for that long.

    With --repair, rows that refer to nothing are removed or detached, and counters,
    ownership and the search index are made to agree again. The plan is shown first,
    a typed yes is required on a terminal, and a copy of the file is made. The
    content of sessions that are still there is never changed.
    """
    if (dry_run or yes) and not repairing:
        raise click.UsageError("--dry-run and --yes belong to --repair")
    if repairing and not (dry_run or yes or sys.stdin.isatty()):
        raise click.UsageError(
            "not a terminal: pass --yes, or --dry-run to see the plan"
        )
    from sessiondb.maintenance import check

    _existing(options)
    with open_store(options, writing=repairing and not dry_run) as store:
        findings = check(store)
        if not repairing:
            return _checked(file_of(store), findings, as_json)
        for line in _repair_plan(findings):
            output.write(f"{line}\n") if dry_run and not as_json else say(line)
        return _repair(store, findings, dry_run, yes, as_json)


def _checked(path: Path, findings: list[Finding], as_json: bool) -> int:
    if as_json:
        output.write_json(
            {"ok": not findings, "findings": [_finding(f) for f in findings]}
        )
    else:
        for finding in findings:
            output.write_tsv(*_finding(finding).values())
        say(
            f"{count(len(findings), 'finding')} in {path}"
            if findings
            else "all is well"
        )
        if any(finding.repair for finding in findings):
            say(
                f"{command('check', '--repair', '--dry-run')} shows what a repair would do"
            )
    return PROBLEMS_FOUND if findings else 0


def _finding(finding: Finding) -> dict[str, Any]:
    """Return a finding with the command that does something about it."""
    command = REPAIR if finding.repair else SAVE
    what = {
        "check": finding.check,
        "count": finding.count,
        "what": one_line(finding.what),
    }
    return {**what, "command": command}


def _repair_plan(findings: list[Finding]) -> Iterator[str]:
    mendable = [finding for finding in findings if finding.repair]
    if mendable:
        yield f"to repair: {count(len(mendable), 'finding')}, after a copy of the file"
    else:
        yield "nothing to repair"
    for finding in mendable:
        yield f"  {finding.count:,} {one_line(finding.what)}: {finding.repair}"
    if left := [finding for finding in findings if not finding.repair]:
        yield "beyond repair, restore from a backup:"
        yield from (f"  {finding.count:,} {one_line(finding.what)}" for finding in left)


def _repair(
    store: Store, findings: list[Finding], dry_run: bool, yes: bool, as_json: bool
) -> int:
    """Ask, repair and report; return the exit code."""
    from sessiondb.maintenance.repair import Repaired, repair, repairable

    mendable = repairable(findings)
    if not (dry_run or yes or not mendable or typed_yes("repair the database")):
        say("nothing repaired")
        return 1
    done = Repaired(None, [], findings) if dry_run else repair(store, findings)
    if as_json:
        lists = {
            "plan": [_finding(f) | {"repair": f.repair} for f in mendable],
            "repaired": [_finding(f) for f in done.repaired],
            "left": [_finding(f) for f in done.left],
        }
        backup = str(done.backup) if done.backup else None
        output.write_json({**lists, "backup": backup, "dry_run": dry_run})
    elif not dry_run:
        for finding in done.left:
            output.write_tsv(*_finding(finding).values())
        if done.backup:
            say(f"the file as it was: {done.backup}")
        left = count(len(done.left), "finding")
        if mendable:
            say(f"repaired; {left} left" if done.left else "repaired; all is well now")
    return PROBLEMS_FOUND if done.left else 0


@click.command("backup")
@click.argument("target", metavar="TO", type=shared.PATH)
@shared.as_json
@click.pass_obj
def backup_command(options: Options, *, target: str, as_json: bool) -> None:
    """Write a copy of the database to the new file TO (or into the folder TO), and verify it.

    Agents can keep writing; the copy is the database as it was at one moment.
    """
    from sessiondb.engine.outputs import part_of
    from sessiondb.maintenance.backup import backup

    to = Path(target)
    if os.path.isdir(to):
        to /= f"sessions-{datetime.now().astimezone():%Y%m%d-%H%M%S}.db"
    part = part_of(expanded(str(to)).absolute())
    with (
        open_store(options) as store,
        watched(lambda: _bytes(part), "backup", _bytes(file_of(store)), quiet=as_json),
    ):
        made = backup(store, to, part=part)
    if as_json:
        output.write_json(asdict(made) | {"path": str(made.path)})
    else:
        output.write(f"{made.path}\n")
        say(f"{count(made.sessions, 'session')}, {size(made.bytes)}")


@click.command("vacuum")
@click.option("--dry-run", is_flag=True, help="Show the plan, change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared.as_json
@click.pass_obj
def vacuum_command(options: Options, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Give unused space back to the disk; all sessions stay.

    Agents may keep working: their writes wait. The plan is shown first;
    on a terminal you are asked for a typed yes.
    """
    from sessiondb.maintenance import plan_vacuum, vacuum

    _existing(options)
    done = None
    with open_store(options, writing=not dry_run) as store:
        if not dry_run:
            # Rows that were removed and are not gone yet would count as used.
            store.reap()
        plan = plan_vacuum(store)
        for line in _vacuum_plan(plan, file_of(store)):
            output.write(f"{line}\n") if dry_run and not as_json else say(line)
        if not (dry_run or yes or not sys.stdin.isatty() or typed_yes("vacuum")):
            say("nothing changed")
            return 1
        if not dry_run:
            wal = file_of(store).with_name(f"{file_of(store).name}-wal")
            with watched(
                lambda: _bytes(wal), "vacuum", plan.bytes_after, quiet=as_json
            ):
                done = vacuum(store)
            say(f"{size(done.bytes_before)} before, {size(done.bytes_after)} now")
            if not done.truncated:
                say("a reader still holds the old state; the file shrinks when it ends")
    if as_json:
        rooms = [asdict(room) | {"folder": str(room.folder)} for room in plan.rooms]
        result = asdict(done) if done else {}
        output.write_json(asdict(plan) | result | {"rooms": rooms, "dry_run": dry_run})
    return 0


def _vacuum_plan(plan: VacuumPlan, path: Path) -> Iterator[str]:
    now, free, after = map(size, (plan.bytes_before, plan.bytes_free, plan.bytes_after))
    yield f"{path}: {now}, {free} of it free; at most {after} after a vacuum"
    for room in plan.rooms:
        needed, there = size(room.bytes_needed), size(room.bytes_available)
        yield f"the vacuum needs {needed} in {room.folder}, where {there} are free"
    if plan.deleted_sessions:
        yield f"{count(plan.deleted_sessions, 'removed session')} still there: their space too"


def _bytes(path: Path) -> int:
    """Return the size of a file without opening it; 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


@click.command("doctor")
@shared.as_json
@click.pass_obj
def doctor_command(options: Options, *, as_json: bool) -> None:
    """Versions, settings and sizes of this installation and its database."""
    from sessiondb.maintenance import diagnose

    found = location.resolve(options.db, scope=cast("location.Scope", options.scope))
    report = diagnose(found)
    report["advice"] = [
        with_database(line, options.database) for line in report["advice"]
    ]
    if as_json:
        output.write_json(report)
    else:
        output.page(_report(report))


def _report(report: dict[str, Any]) -> Iterator[str]:
    shown = output.screen()
    for name, value in report.items():
        if name == "advice":
            yield from (
                shown.style(f"! {one_line(line)}", fg="yellow") for line in value
            )
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
        yield from (
            f"  {_label(key):<20} {_fact(key, fact)}" for key, fact in value.items()
        )


def _label(name: str) -> str:
    return name.replace("_", " ")


def _fact(name: str, value: Any) -> str:
    if value is None or value == []:
        return "–"
    if name.startswith("time"):
        return clock(value)
    return size(value) if name.startswith("bytes") else one_line(str(value))
