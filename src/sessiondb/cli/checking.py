"""``check`` and ``check --repair``: verify the database, and repair it if possible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sessiondb.arguments import file_of
from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.consent import Consent
from sessiondb.cli.opening import Options, existing, open_store, say
from sessiondb.cli.protocol import PROBLEMS_FOUND
from sessiondb.cli.text import count, one_line
from sessiondb.hints import command

if TYPE_CHECKING:
    from sessiondb.maintenance import Finding
    from sessiondb.maintenance.repair import Repaired
    from sessiondb.store import Store

REPAIR = "sessiondb check --repair"
#: The last resort, if no repair can help.
SAVE = "sessiondb export -a --to jsonl -o FILE"


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
    """Verify the file, its references, the search index, blobs, counters and ownership.

    Exit 4 if something is wrong. Writers wait while the search index is compared.

    With --repair, rows that refer to nothing are removed or detached, and counters,
    ownership and the search index are made to agree again. The plan is shown first,
    a typed yes is required on a terminal, and a copy of the file is made. The
    content of existing sessions is never changed.
    """
    from sessiondb.maintenance import check

    if (dry_run or yes) and not repairing:
        raise click.UsageError("--dry-run and --yes belong to --repair")
    existing(options)
    with open_store(options, writing=repairing and not dry_run) as store:
        findings = check(store)
        if repairing:
            consent = Consent(dry_run=dry_run, yes=yes, as_json=as_json)
            return _repair(store, findings, consent)
        _report(file_of(store), findings, as_json)
    return PROBLEMS_FOUND if findings else 0


def _report(path: Path, findings: list[Finding], as_json: bool) -> None:
    if as_json:
        output.write_json(
            {"ok": not findings, "findings": list(map(_as_json, findings))}
        )
        return

    for finding in findings:
        output.write_tsv(*_as_json(finding).values())
    if findings:
        say(f"{count(len(findings), 'finding')} in {path}")
    else:
        say("all is well")
    if any(finding.repair for finding in findings):
        plans = command("check", "--repair", "--dry-run")
        say(f"{plans} shows what a repair would do")


def _as_json(finding: Finding) -> dict[str, Any]:
    """Return a finding with the command that does something about it."""
    return {
        "check": finding.check,
        "count": finding.count,
        "what": one_line(finding.what),
        "command": REPAIR if finding.repair else SAVE,
    }


def _repair(store: Store, findings: list[Finding], consent: Consent) -> int:
    """Show the plan, ask, repair and report; return the exit code."""
    from sessiondb.maintenance.repair import Repaired, repair, repairable

    plan = repairable(findings)
    # Without damage there is nothing to ask, and a script needs no --yes.
    if plan:
        consent.check()
    consent.show(_plan(findings, plan))

    if consent.dry_run:
        done = Repaired(None, [], findings)
    elif plan and not consent.given("repair the database"):
        say("nothing repaired")
        return 1
    else:
        done = repair(store, findings)
    _report_repair(plan, done, consent)
    return PROBLEMS_FOUND if done.left else 0


def _plan(findings: list[Finding], plan: list[Finding]) -> Iterator[str]:
    if plan:
        yield f"to repair: {count(len(plan), 'finding')}, after a copy of the file"
    else:
        yield "nothing to repair"
    for finding in plan:
        yield f"  {finding.count:,} {one_line(finding.what)}: {finding.repair}"

    left = [finding for finding in findings if finding not in plan]
    if left:
        yield "beyond repair, restore from a backup:"
    for finding in left:
        yield f"  {finding.count:,} {one_line(finding.what)}"


def _report_repair(plan: list[Finding], done: Repaired, consent: Consent) -> None:
    if consent.as_json:
        output.write_json(_repair_json(plan, done, consent))
    elif not consent.dry_run:
        for finding in done.left:
            output.write_tsv(*_as_json(finding).values())
        if done.backup:
            say(f"the file before the repair: {done.backup}")
        if plan:
            left = f"{count(len(done.left), 'finding')} left"
            say(f"repaired; {left if done.left else 'all is well now'}")


def _repair_json(
    plan: list[Finding], done: Repaired, consent: Consent
) -> dict[str, Any]:
    return {
        "plan": [_as_json(finding) | {"repair": finding.repair} for finding in plan],
        "repaired": list(map(_as_json, done.repaired)),
        "left": list(map(_as_json, done.left)),
        "backup": done.backup,
        "dry_run": consent.dry_run,
    }
