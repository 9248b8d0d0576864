"""``migrate``, ``backup`` and ``vacuum``: the schema, and the database as a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sessiondb.arguments import file_of
from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.consent import Consent, can_ask
from sessiondb.cli.opening import Options, existing, open_store, say
from sessiondb.cli.progress import watched
from sessiondb.cli.text import count, one_line, size
from sessiondb.dataclass import asdict
from sessiondb.location.directories import expanded

if TYPE_CHECKING:
    from sessiondb.maintenance import Vacuumed, VacuumPlan
    from sessiondb.store import Store


@click.command("migrate")
@click.option("--dry-run", is_flag=True, help="Show what is pending, change nothing.")
@shared.as_json
@click.pass_obj
def migrate_command(options: Options, *, dry_run: bool, as_json: bool) -> None:
    """Upgrade the database to the schema of this release; a backup is made first."""
    database = existing(options)
    steps = database.pending()
    backup = database.migrate() if steps and not dry_run else None
    if as_json:
        output.write_json(
            {
                "pending": [step._asdict() for step in steps],
                "backup": backup,
                "dry_run": dry_run,
            }
        )
        return

    done = "pending" if dry_run else "applied"
    for step in steps:
        output.write(f"{done}\t{step.revision}\t{one_line(step.description)}\n")
    if backup:
        say(f"the file before the migration: {backup}")
    if not steps:
        say(f"{database} is up to date")


@click.command("backup")
@click.argument("target", metavar="TO", type=shared.PATH)
@shared.as_json
@click.pass_obj
def backup_command(options: Options, *, target: str, as_json: bool) -> None:
    """Write a copy of the database to the new file TO, or into folder TO; verify it.

    Agents can keep writing; the copy is the database as it was at one moment.
    """
    from sessiondb.engine.outputs import part_of
    from sessiondb.maintenance.backup import ON_A_SERVER, backup

    path = Path(target)
    if os.path.isdir(path):
        path /= f"sessions-{datetime.now().astimezone():%Y%m%d-%H%M%S}.db"
    # The copy grows under this name until it is verified; its size is the progress.
    part = part_of(expanded(str(path)).absolute())
    with (
        open_store(options) as store,
        watched(
            lambda: _file_bytes(part),
            "backup",
            _file_bytes(file_of(store, ON_A_SERVER)),
            quiet=as_json,
        ),
    ):
        result = backup(store, path, part=part)

    if as_json:
        output.write_json(asdict(result))
    else:
        output.write(f"{result.path}\n")
        say(f"{count(result.sessions, 'session')}, {size(result.bytes)}")


@click.command("vacuum")
@click.option("--dry-run", is_flag=True, help="Show the plan, change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared.as_json
@click.pass_obj
def vacuum_command(options: Options, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Give unused space back to the disk; all sessions stay.

    Agents may keep working: their writes wait. The plan is shown first; type
    yes on a terminal.
    """
    from sessiondb.maintenance.vacuum import ON_A_SERVER, plan_vacuum

    consent = Consent(dry_run=dry_run, yes=yes, as_json=as_json)
    existing(options)
    result = {}
    with open_store(options, writing=not dry_run) as store:
        path = file_of(store, ON_A_SERVER)
        if not dry_run:
            # Removed rows that are not reaped yet would count as used.
            store.reap()
        plan = plan_vacuum(store)
        consent.show(_vacuum_plan(plan, path))
        if not dry_run:
            # Without a terminal no yes is needed: no session is lost.
            if can_ask() and not consent.given("vacuum"):
                say("nothing changed")
                return 1
            result = asdict(_run_vacuum(store, plan, path, quiet=as_json))

    if as_json:
        output.write_json(asdict(plan) | result | {"dry_run": dry_run})
    return 0


def _vacuum_plan(plan: VacuumPlan, path: Path) -> Iterator[str]:
    now, free, size_after = map(
        size, (plan.bytes_before, plan.bytes_free, plan.bytes_after)
    )
    yield f"{path}: {now}, {free} of it free; at most {size_after} after a vacuum"
    for room in plan.rooms:
        needed, available = size(room.bytes_needed), size(room.bytes_available)
        yield f"the vacuum needs {needed} in {room.folder}, where {available} are free"
    if plan.deleted_sessions:
        removed = count(plan.deleted_sessions, "removed session")
        yield f"{removed} still there: their space too"


def _run_vacuum(store: Store, plan: VacuumPlan, path: Path, *, quiet: bool) -> Vacuumed:
    """Carry out *plan*, showing its progress, and report it."""
    from sessiondb.maintenance import vacuum

    # The new content goes through the WAL; the file itself changes at the very end.
    wal = path.with_name(f"{path.name}-wal")
    with watched(lambda: _file_bytes(wal), "vacuum", plan.bytes_after, quiet=quiet):
        done = vacuum(store)

    say(f"{size(done.bytes_before)} before, {size(done.bytes_after)} now")
    if not done.truncated:
        say(
            "another process still holds a snapshot; the file shrinks when it closes it"
        )
    return done


def _file_bytes(path: Path) -> int:
    """Return the size of a file without opening it; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
