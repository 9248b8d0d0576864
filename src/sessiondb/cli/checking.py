"""``check`` and ``check --repair``: verify the database, and repair it if possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import or_
from typing import TYPE_CHECKING, Any

import click

from sessiondb.arguments import file_of
from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.consent import Consent
from sessiondb.cli.opening import Options, existing, open_store, say
from sessiondb.cli.protocol import exit_code
from sessiondb.cli.text import count, one_line
from sessiondb.hints import command, word

if TYPE_CHECKING:
    from sessiondb.maintenance import Finding
    from sessiondb.maintenance.repair import Repaired
    from sessiondb.store import Store

REPAIR = "sessiondb check --repair"
#: Saves the sessions that can still be read, and names the others.
SAVE = "sessiondb export -a --to jsonl -o saved.jsonl"
#: The file between the steps that replace sessions by an older, intact state of them.
LOST = "lost.jsonl"
#: Sessions that are named in the steps; each has a command of its own in the table.
NAMED = 10


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
    ownership and the search index are made consistent again. The plan is shown first,
    a typed yes is required on a terminal, and a copy of the file is made. The
    content of existing sessions is never changed.
    """
    from sessiondb.maintenance import check
    from sessiondb.maintenance.repair import ON_A_SERVER

    if (dry_run or yes) and not repairing:
        raise click.UsageError("--dry-run and --yes belong to --repair")
    existing(options)
    with open_store(options, writing=repairing and not dry_run) as store:
        if repairing:
            # Not only after a check, which may take long.
            file_of(store, ON_A_SERVER)
        findings = check(store)
        if repairing:
            consent = Consent(dry_run=dry_run, yes=yes, as_json=as_json)
            return _repair_findings(store, findings, consent)
        _report_findings(store, findings, as_json)
    return exit_code(findings)


def _report_findings(store: Store, findings: list[Finding], as_json: bool) -> None:
    rows = _as_json(findings)
    if as_json:
        output.write_json({"ok": not findings, "findings": rows})
        return

    _write_findings(findings)
    place = store.path or store.location
    say(f"{count(len(findings), 'finding')} in {place}" if findings else "all is well")
    if any(finding.repair for finding in findings):
        plans = command("check", "--repair", "--dry-run")
        say(f"{plans} shows what a repair would do")


def _write_findings(findings: list[Finding]) -> None:
    """Write findings as lines, with the steps that replace what is lost."""
    for row in _as_json(findings):
        output.write_tsv(*row.values())
    lost = _sessions_with_losses(findings)
    if lost and not _is_torn(findings):
        named = lost[:NAMED]
        removes = command("rm", "--keep-forks", *named)
        returns = command("import", "--restore", LOST)
        steps = f"`{restore_command(named)}`, {removes}, {returns}"
        left = f" ({len(lost) - NAMED:,} more: see above)" if len(lost) > NAMED else ""
        say(f"BACKUP, the path of one, may still have the lost content: {steps}{left}")
        say(f"`{SAVE}` saves the sessions that can be read, and names the others")


def restore_command(sessions: Sequence[str]) -> str:
    """Return the first of three steps: the state that a backup has of *sessions*."""
    names = " ".join(map(word, sessions))
    return f"sessiondb --db BACKUP export {names} --with-children --to jsonl -o {LOST}"


def _sessions_with_losses(findings: list[Finding]) -> list[str]:
    """Return the sessions that lost something which no repair brings back."""
    lost = [f.session for f in findings if f.session is not None and f.repair is None]
    return list(dict.fromkeys(lost))


def _is_torn(findings: list[Finding]) -> bool:
    """Return whether pages are damaged: the rest of the file is in danger, too."""
    return any(f.check == "integrity" and f.repair is None for f in findings)


def _as_json(findings: list[Finding]) -> list[dict[str, Any]]:
    """Return findings, each with the command that does something about it."""
    lost = _sessions_with_losses(findings)
    rows = []
    for finding in findings:
        of_session = lost[:NAMED] if finding.session is None else [finding.session]
        if finding.repair:
            does = REPAIR
        elif of_session and not _is_torn(findings):
            does = restore_command(of_session)
        else:
            does = SAVE
        rows.append(
            {
                "check": finding.check,
                "count": finding.count,
                "what": one_line(finding.what),
                "command": does,
            }
        )
    return rows


def _repair_findings(store: Store, findings: list[Finding], consent: Consent) -> int:
    """Show the plan, ask, repair and report; return the exit code."""
    from sessiondb.maintenance.repair import Repaired, repair, repairable

    plan = repairable(findings)
    # Without damage there is nothing to ask, and a script needs no --yes.
    if plan:
        consent.check()
    consent.show(_plan_lines(findings, plan))

    if consent.dry_run:
        done = Repaired(None, [], findings)
    elif plan and not consent.given("repair the database"):
        say("nothing repaired")
        return 1
    else:
        done = repair(store, findings)
    _report_repair(plan, done, consent)
    return exit_code(done.left)


def _plan_lines(findings: list[Finding], plan: list[Finding]) -> Iterator[str]:
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
        _write_findings(done.left)
        if done.backup:
            say(f"the file before the repair: {done.backup}")
        if plan:
            left = f"{count(len(done.left), 'finding')} left"
            say(f"repaired; {left if done.left else 'all is well now'}")


def _repair_json(
    plan: list[Finding], done: Repaired, consent: Consent
) -> dict[str, Any]:
    repairs = [{"repair": finding.repair} for finding in plan]
    return {
        "plan": [*map(or_, _as_json(plan), repairs)],
        "repaired": _as_json(done.repaired),
        "left": _as_json(done.left),
        "backup": done.backup,
        "dry_run": consent.dry_run,
    }
