"""``rm`` and ``prune``: the plan with sizes first, then a typed yes, then for good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.consent import Consent
from sessiondb.cli.emptiness import unknown_names
from sessiondb.cli.moments import Moment
from sessiondb.cli.opening import Options, current, open_store, say
from sessiondb.cli.sizes import Size
from sessiondb.cli.text import ago, count, cut, one_line, short_id, size, title_of
from sessiondb.cli.usage import exclusive
from sessiondb.dataclass import dataclass
from sessiondb.engine.outputs import check_place
from sessiondb.errors import ConflictError
from sessiondb.hints import command
from sessiondb.moments import FORMS
from sessiondb.words import moment

if TYPE_CHECKING:
    from sessiondb.maintenance import Removal
    from sessiondb.model import Session
    from sessiondb.store import Store


#: Sessions of a plan that are named each; more of them are summed up by program.
LISTED = 20


@dataclass(frozen=True, kw_only=True)
class RemovalOptions(Consent):
    """The options that ``rm`` and ``prune`` share."""

    keep_forks: bool
    bundle: str | None
    undo: str | None
    verbose: bool

    def check(self) -> None:
        """Raise an error if the removal could not be carried out as typed.

        `ConflictError` if the bundle would replace a file, `click.UsageError` for a
        bundle on stdout, which cannot be read back, and if a typed yes is needed and
        stdin is not a terminal.
        """
        if self.bundle == "-":  # which is stdout for `export`
            raise click.UsageError("a bundle must be a file, not stdout")
        # An existing file may be a bundle, and the last copy of other sessions.
        if self.bundle is not None and check_place(Path(self.bundle)):
            raise ConflictError(
                f"{self.bundle} already exists", hint="a bundle needs a new file"
            )
        super().check()


_removal = shared.gathered(
    "how",
    RemovalOptions,
    {
        "keep_forks": click.option(
            "--keep-forks", is_flag=True, help="Forks stay, as sessions of their own."
        ),
        "bundle": click.option(
            "--bundle",
            type=shared.PATH,
            metavar="FILE",
            help="Write them to FILE first, for --undo.",
        ),
        "undo": click.option(
            "--undo",
            type=shared.PATH,
            metavar="FILE",
            help="Restore the sessions that were written to FILE.",
        ),
        "dry_run": click.option(
            "--dry-run", is_flag=True, help="Show the plan, remove nothing."
        ),
        "yes": click.option("--yes", is_flag=True, help="Do not ask."),
        "verbose": click.option(
            "-v", "--verbose", is_flag=True, help="Name every session of the plan."
        ),
        "as_json": shared.as_json,
    },
)


@click.command("rm")
@click.argument("refs", type=shared.REF, metavar="[REF]...", nargs=-1)
@shared.filters
@_removal
@click.pass_obj
def rm_command(
    options: Options,
    *,
    refs: tuple[str, ...],
    filters: shared.FilterOptions,
    how: RemovalOptions,
) -> int:
    """Remove sessions for good: those named, or all that the filters choose.

    Forks and subagents are removed with them. The plan is shown first; type yes
    on a terminal, anything else needs --yes. --archived and --subagents alone
    choose nothing. A removal is undone with --undo FILE if it had --bundle FILE.
    """
    selection = shared.Selection(refs, filters)
    if how.undo is not None:
        _check_alone(how, {"sessions": refs or None, "filters": filters.narrows})
        return _restore(how)
    selection.check("remove")
    how.check()  # before the plan: it may take long

    from sessiondb.maintenance import Removal

    with open_store(options, writing=True) as store:
        removal = Removal(how.keep_forks)
        for session in selection.sessions(store):
            if session.id not in removal.going:
                removal.add(store.plan_delete(session, keep_forks=how.keep_forks))
        return _carry_out(store, removal.measure(store), filters, how)


@click.command("prune")
@click.option("--older-than", type=Moment(), help=f"Not used since T: {FORMS}.")
@click.option("--empty", is_flag=True, help="Without any message.")
@click.option(
    "--keep",
    type=click.IntRange(1, 10**9),
    metavar="N",
    help="All but the N used last.",
)
@click.option(
    "--free",
    type=Size(),
    help="The oldest, until they free SIZE: 500MB, 1.5GB.",
)
@shared.filters
@_removal
@click.pass_obj
def prune_command(
    options: Options,
    *,
    older_than: int | None,
    empty: bool,
    keep: int | None,
    free: int | None,
    filters: shared.FilterOptions,
    how: RemovalOptions,
) -> int:
    """Remove old sessions, those without a message, or all but the newest, for good.

    Only sessions of this project (-a: of any), and only those that the other
    filters choose. A session stays as long as a fork below it does, except with
    --keep-forks. --free removes the sessions that were not used for the longest
    time, and no more than it takes. The plan is shown first; type yes on a
    terminal, anything else needs --yes. A prune is undone with --undo FILE if
    it had --bundle FILE.
    """
    if how.undo is not None:
        rules = {
            "--older-than": older_than,
            "--empty": empty,
            "--keep": keep,
            "--free": free,
            "filters": filters.narrows,
        }
        _check_alone(how, rules)
        return _restore(how)
    if (older_than, keep, free) == (None, None, None) and not empty:
        raise click.UsageError(
            "say what to prune: --older-than T, --empty, --keep N or --free SIZE"
        )
    exclusive({"--empty": empty, "--keep": keep})
    how.check()

    from sessiondb.maintenance import plan_prune

    with open_store(options, writing=True) as store:
        removal = plan_prune(
            store,
            older_than=older_than,
            empty=empty,
            keep=keep,
            free=free,
            keep_forks=how.keep_forks,
            **filters.keywords(),
        )
        if free is not None and removal.bytes < free and not how.as_json:
            freed = f"these free {size(removal.bytes)}, not {size(free)}"
            say(f"{freed}: nothing else is left{filters.wider}")
        code = _carry_out(store, removal, filters, how)

    if removal.going and not code and not how.dry_run:
        say(f"{command('vacuum')} gives their space back to the disk")
    return code


def _carry_out(
    store: Store,
    removal: Removal,
    filters: shared.FilterOptions,
    options: RemovalOptions,
) -> int:
    """Show the plan, ask, remove and report; return the exit code."""
    sessions = count(len(removal.going), "session")
    if not removal.going and (unknown := unknown_names(store, filters)):
        say(unknown)
    options.show(_removal_lines(removal, options.verbose or current().verbose))
    if removal.going and options.bundle is None and not options.yes:
        say("this cannot be undone; --bundle FILE keeps a copy, for --undo FILE")

    if removal.going and not options.dry_run:
        if not options.given(f"remove {sessions}"):
            say("nothing removed")
            return 1
        # The bundle is complete on disk before the first session is removed.
        removal.carry_out(store, _write_bundle(store, removal, options.bundle))
        say(f"removed {sessions}, {size(removal.bytes)}")

    if options.as_json:
        output.write_json({**removal.as_json(), "dry_run": options.dry_run})
    return 0


def _write_bundle(
    store: Store, removal: Removal, bundle: str | None
) -> dict[str, int] | None:
    """Write the bundle and return the revisions in it; None without one."""
    if bundle is None:
        return None
    from sessiondb.maintenance.bundle import write_bundle

    revisions = write_bundle(store, removal.going.values(), Path(bundle))
    written = count(len(revisions), "session")
    restores = command(current().command or "rm", "--undo", bundle)
    say(f"wrote {written} to {bundle}; {restores} restores them")
    return revisions


def _check_alone(options: RemovalOptions, others: Mapping[str, Any]) -> None:
    """Raise `click.UsageError` if anything is chosen for removal beside ``--undo``."""
    for name, value in {**others, "--bundle": options.bundle}.items():
        exclusive({"--undo": options.undo, name: value})


def _restore(options: RemovalOptions) -> int:
    """Import the sessions of a bundle again, as ``import --restore`` does."""
    from sessiondb.cli.importing import import_command

    context = click.get_current_context()
    code: int = context.invoke(
        import_command,
        paths=(options.undo,),
        formats=(),
        project=None,
        restore=True,
        as_fork=False,
        watch=False,
        dry_run=options.dry_run,
        as_json=options.as_json,
    )
    return code


def _removal_lines(removal: Removal, verbose: bool) -> Iterator[str]:
    """Yield the plan; more than `LISTED` sessions are summed up unless *verbose*."""
    going = list(removal.going.values())
    if going:
        sessions = count(len(going), "session")
        messages = count(removal.total("messages"), "message")
        yield f"to remove: {sessions} with {messages}, {size(removal.bytes)}"
        yield from _session_lines(going, verbose)
    else:
        yield "nothing to remove"

    detached = removal.detached
    if detached:
        yield f"to keep, without their parent: {count(len(detached), 'fork')}"
        yield from _session_lines(detached, verbose)
    if removal.staying:
        staying = count(len(removal.staying), "session")
        yield f"to keep, for a session below them: {staying}"
        yield from _session_lines(list(removal.staying.values()), verbose)

    imported = sum(s.time_imported is not None for s in going)
    if imported:
        pronoun = "it" if imported == 1 else "them"
        yield (
            f"{imported} came from an import; a later import leaves {pronoun} out, "
            "except with --restore"
        )
    if max(len(going), len(detached), len(removal.staying)) > LISTED and not verbose:
        yield "--verbose names every session"


def _session_lines(sessions: Sequence[Session], verbose: bool) -> Iterator[str]:
    """Yield a line for each session, or for each program if there are many."""
    if len(sessions) > LISTED and not verbose:
        yield from _source_lines(sessions)
        return
    shown = output.screen()
    for s in sessions:
        relation = f"({s.relation}) " if s.relation else ""
        messages = count(s.message_count, "message")
        facts = f"  ({messages}, {one_line(s.source)}, {ago(s.time_updated)})"
        line = f"  {short_id(s.id)}  {relation}{title_of(s)}"
        if shown.terminal:
            line = cut(line, max(shown.width - len(facts), output.MIN_TITLE))
            facts = cut(facts, max(shown.width - output.MIN_TITLE, output.MIN_COLUMN))
        yield line + facts


def _source_lines(sessions: Sequence[Session]) -> Iterator[str]:
    """Yield the sum of the sessions of each program, the most sessions first."""
    by_source: dict[str, list[Session]] = {}
    for s in sessions:
        by_source.setdefault(s.source, []).append(s)

    for source, some in sorted(by_source.items(), key=lambda item: -len(item[1])):
        messages = count(sum(s.message_count for s in some), "message")
        first = moment(min(s.time_updated for s in some), "%Y-%m-%d", None)
        last = moment(max(s.time_updated for s in some), "%Y-%m-%d", None)
        days = first if first == last else f"{first} to {last}"
        sessions_of = count(len(some), "session")
        yield f"  {one_line(source)}: {sessions_of}, {messages}, used {days}"
