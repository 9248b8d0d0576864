"""``rm`` and ``prune``: the plan with sizes first, then a typed yes, then for good."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.emptiness import unknown_names
from sessiondb.cli.opening import Options, open_store, say, terminal, typed_yes
from sessiondb.cli.text import ago, count, one_line, short_id, size
from sessiondb.engine.outputs import check_place
from sessiondb.errors import ConflictError
from sessiondb.hints import command

if TYPE_CHECKING:
    from sessiondb.maintenance import Removal
    from sessiondb.model import Session
    from sessiondb.store import Store

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class How:
    """How a removal is done: the options that ``rm`` and ``prune`` share."""

    keep_forks: bool
    bundle: str | None
    dry_run: bool
    yes: bool
    as_json: bool

    def check(self) -> None:
        """Raise `ConflictError` if the bundle would replace a file.

        And `click.UsageError` for stdout, which cannot be read back, or if a typed yes
        is needed and stdin is not a terminal.
        """
        if self.bundle == "-":  # which is stdout for `export`
            raise click.UsageError("a bundle must be a file, not stdout")
        # An existing file may be a bundle, and the last copy of other sessions.
        if self.bundle is not None and check_place(Path(self.bundle)):
            hint = "a bundle needs a new file"
            raise ConflictError(f"{self.bundle} already exists", hint=hint)
        if not (self.yes or self.dry_run or sys.stdin.isatty()):
            raise click.UsageError(
                "not a terminal: pass --yes, or --dry-run to see the plan"
            )


_OPTIONS = (
    click.option("--keep-forks", is_flag=True, help="Forks stay, as sessions of their own."),
    click.option("--bundle", type=shared.PATH, metavar="FILE",
                 help="Write them to FILE first, for `import --restore`."),
    click.option("--dry-run", is_flag=True, help="Show the plan, remove nothing."),
    click.option("--yes", is_flag=True, help="Do not ask."),
    shared.as_json,
)  # fmt: skip


def _removing(function: F) -> F:
    """Add the options of a removal; the command gets them as ``how``, a `How`."""

    @wraps(function)
    def collected(*args: Any, **given: Any) -> Any:
        how = How(**{name: given.pop(name) for name in How.__dataclass_fields__})
        return function(*args, how=how, **given)

    decorated: Any = collected
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


@click.command("rm")
@click.argument("refs", type=shared.REF, metavar="[REF]...", nargs=-1)
@shared.filters()
@_removing
@click.pass_obj
def rm_command(
    options: Options, *, refs: tuple[str, ...], where: shared.Where, how: How
) -> int:
    """Remove sessions for good: those named, or all that the filters choose.

    Forks and subagents go along. The plan is shown first; a terminal is asked
    for a typed yes, anything else needs --yes. --archived and --subagents alone
    choose nothing.
    """
    if refs and where != shared.Where():
        raise click.UsageError("give sessions or filters, not both")
    if not refs and not where.narrows:
        raise click.UsageError(
            "name the sessions to remove, or filters that choose them"
        )
    how.check()
    with open_store(options, writing=True) as store:
        removal = _planned(store, refs, where, how.keep_forks)
        _say_unknown(store, removal, where)
        return _go_through(store, removal, how)


@click.command("prune")
@click.option(
    "--older-than", type=shared.Moment(), help="Not used since T: 30d, 2026-11-01."
)
@click.option("--empty", is_flag=True, help="Without any message.")
@click.option(
    "--keep",
    type=click.IntRange(1, 10**9),
    metavar="N",
    help="All but the N used last.",
)
@shared.filters()
@_removing
@click.pass_obj
def prune_command(
    options: Options,
    *,
    older_than: int | None,
    empty: bool,
    keep: int | None,
    where: shared.Where,
    how: How,
) -> int:
    """Remove old sessions, those without a message, or all but the newest, for good.

    Only sessions of this project (-a: of any), and only those that the other
    filters choose. A session stays as long as a fork below it does, unless you
    say --keep-forks. The plan is shown first; a terminal is asked for a typed
    yes, anything else needs --yes.
    """
    if older_than is None and not empty and keep is None:
        raise click.UsageError("say what to prune: --older-than T, --empty or --keep N")
    if empty and keep is not None:
        raise click.UsageError("--empty and --keep exclude each other")
    how.check()
    from sessiondb.maintenance import plan_prune

    with open_store(options, writing=True) as store:
        removal = plan_prune(
            store, older_than=older_than, empty=empty, keep=keep, keep_forks=how.keep_forks,
            **where.filters(),
        )  # fmt: skip
        _say_unknown(store, removal, where)
        code = _go_through(store, removal, how)
    if removal.going and not code and not how.dry_run:
        say(f"{command('vacuum')} gives their space back to the disk")
    return code


def _say_unknown(store: Store, removal: Removal, where: shared.Where) -> None:
    if not removal.going:
        for line in unknown_names(store, where):
            say(line)


def _planned(
    store: Store, refs: tuple[str, ...], where: shared.Where, keep_forks: bool
) -> Removal:
    from sessiondb.maintenance import Removal

    removal = Removal(keep_forks)
    name = terminal()
    named = [store.session(ref, terminal=name) for ref in refs]
    for session in named if refs else chosen(store, where):
        if session.id not in removal.going:
            removal.add(store.plan_delete(session, keep_forks=keep_forks))
    return removal.measure(store)


def chosen(store: Store, where: shared.Where) -> Iterator[Session]:
    """Yield every session that FILTERS choose, newest first."""
    from sessiondb.maintenance import every

    return every(store, **where.filters())


def _go_through(store: Store, removal: Removal, how: How) -> int:
    """Show the plan, ask, remove and report; return the exit code."""
    _show_plan(removal, to_stdout=how.dry_run and not how.as_json)
    question = f"remove {count(len(removal.going), 'session')}"
    if not (how.dry_run or how.yes or not removal.going or typed_yes(question)):
        say("nothing removed")
        return 1
    if not how.dry_run and removal.going:
        removal.carry_out(store, _bundled(store, removal, how))
        say(f"removed {count(len(removal.going), 'session')}, {size(removal.bytes)}")
    if how.as_json:
        output.write_json({**removal.as_json(), "dry_run": how.dry_run})
    return 0


def _bundled(store: Store, removal: Removal, how: How) -> dict[str, int] | None:
    """Write the bundle and return the revisions in it; None without one."""
    if how.bundle is None:
        return None
    from sessiondb.maintenance.bundle import write_bundle

    revisions = write_bundle(store, removal.going.values(), Path(how.bundle))
    written = count(len(revisions), "session")
    restores = command("import", "--restore", how.bundle)
    say(f"wrote {written} to {how.bundle}; {restores} restores them")
    return revisions


def _show_plan(removal: Removal, *, to_stdout: bool) -> None:
    for line in _plan(removal):
        if to_stdout:
            output.write(line + "\n")
        else:
            say(line)


def _plan(removal: Removal) -> Iterator[str]:
    yield (
        f"to remove: {count(len(removal.going), 'session')} with "
        f"{count(removal.total('messages'), 'message')}, {size(removal.bytes)}"
    )
    yield from _lines(removal.going.values())
    if removal.detached:
        yield f"to keep, without their parent: {count(len(removal.detached), 'fork')}"
        yield from _lines(removal.detached)
    if removal.staying:
        yield f"to keep, for a session below them: {count(len(removal.staying), 'session')}"
        yield from _lines(removal.staying.values())
    imported = sum(s.time_imported is not None for s in removal.going.values())
    if imported:
        yield (
            f"{imported} came from an import; a later import leaves "
            f"{'it' if imported == 1 else 'them'} out, except with --restore"
        )


def _lines(sessions: Iterable[Session]) -> Iterator[str]:
    for s in sessions:
        relation = f"({s.relation}) " if s.relation else ""
        messages = count(s.message_count, "message")
        facts = f"{messages}, {s.source}, {ago(s.time_updated)}"
        yield f"  {short_id(s.id)}  {relation}{one_line(s.title) or '–'}  ({facts})"
