"""``rm``: the plan with sizes first, then a typed yes, then for good."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, open_store, say, terminal
from sessiondb.cli.text import ago, count, one_line, short_id, size

if TYPE_CHECKING:
    from sessiondb.model import DeletePlan, Session
    from sessiondb.store import Store


@dataclass(slots=True)
class Removal:
    """The plans of several deletes; nothing is counted, or deleted, twice."""

    plans: dict[str, DeletePlan] = field(default_factory=dict)
    going: dict[str, Session] = field(default_factory=dict)

    def add(self, plan: DeletePlan) -> None:
        """Take one more plan along; it stands for those of its descendants."""
        for session in plan.sessions:
            self.plans.pop(session.id, None)
            self.going[session.id] = session
        self.plans[plan.sessions[0].id] = plan

    @property
    def detached(self) -> list[Session]:
        """The forks that stay, without their parent."""
        found = [s for plan in self.plans.values() for s in plan.detached]
        return [s for s in found if s.id not in self.going]

    def total(self, name: str) -> int:
        """Return the sum of ``messages``, ``parts`` or ``bytes``."""
        return sum(getattr(plan, name) for plan in self.plans.values())

    def as_json(self) -> dict[str, Any]:
        """Return what goes and what stays."""
        from sessiondb.model import session_json

        lists = {"sessions": self.going.values(), "detached": self.detached}
        found: dict[str, Any] = {name: list(map(session_json, of)) for name, of in lists.items()}
        return found | {name: self.total(name) for name in ("messages", "parts", "bytes")}


@click.command("rm")
@click.argument("refs", metavar="[REF]...", nargs=-1)
@shared.filters()
@click.option("--keep-forks", is_flag=True, help="Forks stay, as sessions of their own.")
@click.option("--bundle", metavar="FILE", help="Write them to FILE first, for `import --restore`.")
@click.option("--dry-run", is_flag=True, help="Show the plan, remove nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared.as_json
@click.pass_obj
def rm_command(
    options: Options,
    *,
    refs: tuple[str, ...],
    where: shared.Where,
    keep_forks: bool,
    bundle: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Remove sessions for good: those named, or all that FILTERS choose.

    Forks and subagents go along. The plan is shown first; a terminal is asked
    for a typed yes, anything else needs --yes. --archived and --subagents alone
    choose nothing.
    """
    _check_usage(refs, where, ask=not (yes or dry_run))
    with open_store(options, writing=True) as store:
        removal = _planned(store, refs, where, keep_forks)
        _show_plan(removal, to_stdout=dry_run and not as_json)
        if not (dry_run or yes or not removal.going or _confirmed(removal)):
            say("nothing removed")
            return 1
        if not dry_run and removal.going:
            if bundle is not None:
                from sessiondb.cli.exporting import write_bundle

                write_bundle(store, removal.going.values(), bundle)
            _remove(store, removal, keep_forks)
            say(f"removed {count(len(removal.going), 'session')}, {size(removal.total('bytes'))}")
    if as_json:
        output.write_json({**removal.as_json(), "dry_run": dry_run})
    return 0


def _check_usage(refs: tuple[str, ...], where: shared.Where, *, ask: bool) -> None:
    if refs and where != shared.Where():
        raise click.UsageError("give sessions or filters, not both")
    if not refs and not where.narrows:
        raise click.UsageError("name the sessions to remove, or filters that choose them")
    if ask and not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked here: add --yes, or --dry-run for the plan")


def _planned(store: Store, refs: tuple[str, ...], where: shared.Where, keep_forks: bool) -> Removal:
    removal = Removal()
    name = terminal()
    named = [store.session(ref, terminal=name) for ref in refs]
    for session in named if refs else chosen(store, where):
        if session.id not in removal.going:
            removal.add(store.plan_delete(session, keep_forks=keep_forks))
    return removal


def chosen(store: Store, where: shared.Where) -> Iterator[Session]:
    """Yield every session that FILTERS choose, newest first."""
    cursor = None
    while True:
        page = store.sessions(**where.filters(), limit=1000, cursor=cursor)
        yield from page
        cursor = page.next_cursor
        if cursor is None:
            return


def _show_plan(removal: Removal, *, to_stdout: bool) -> None:
    for line in _plan(removal):
        if to_stdout:
            output.write(line + "\n")
        else:
            say(line)


def _plan(removal: Removal) -> Iterator[str]:
    yield (
        f"to remove: {count(len(removal.going), 'session')} with "
        f"{count(removal.total('messages'), 'message')}, {size(removal.total('bytes'))}"
    )
    yield from _lines(removal.going.values())
    if removal.detached:
        yield f"to keep, without their parent: {count(len(removal.detached), 'fork')}"
        yield from _lines(removal.detached)
    imported = sum(s.source_id is not None for s in removal.going.values())
    if imported:
        yield (
            f"{imported} came from an import; a later import leaves "
            f"{'it' if imported == 1 else 'them'} out unless it is told to --restore"
        )


def _lines(sessions: Iterable[Session]) -> Iterator[str]:
    for s in sessions:
        relation = f"({s.relation}) " if s.relation else ""
        messages = count(s.message_count, "message")
        facts = f"{messages}, {s.source}, {ago(s.time_updated)}"
        yield f"  {short_id(s.id)}  {relation}{one_line(s.title) or '–'}  ({facts})"


def _confirmed(removal: Removal) -> bool:
    click.echo(f"Type yes to remove {count(len(removal.going), 'session')}: ", err=True, nl=False)
    return sys.stdin.readline().strip() == "yes"


def _remove(store: Store, removal: Removal, keep_forks: bool) -> None:
    for session_id in removal.plans:
        store.delete(session_id, keep_forks=keep_forks)
    store.reap()
