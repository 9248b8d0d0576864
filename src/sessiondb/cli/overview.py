"""``sessiondb`` alone, and ``status``: the sessions here, and the cost of today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.costs import read_prices, usages_of
from sessiondb.cli.listing import session_table, telling_prompts
from sessiondb.cli.opening import Options, locate, open_store, rows_of
from sessiondb.cli.text import ago, cost_words, count, cut, one_line, title_of
from sessiondb.dataclass import asdict, dataclass
from sessiondb.hints import command, with_database
from sessiondb.moments import local_now, read_span

if TYPE_CHECKING:
    from sessiondb.engine.sql import Read
    from sessiondb.model import Session
    from sessiondb.prices import Prices
    from sessiondb.store import Store

#: Sessions that are listed by ``sessiondb`` alone.
SHOWN = 5
#: Columns of a title in the line of ``status``.
TITLE_WIDTH = 40
_COUNTS = """
SELECT count(*), count(CASE WHEN time_updated >= :today THEN 1 END),
       count(DISTINCT source)
  FROM session
 WHERE time_deleted IS NULL AND time_importing IS NULL
   AND coalesce(relation, '') <> 'subagent' AND message_count > 0
"""


@dataclass(frozen=True, slots=True)
class Status:
    """The sessions of all projects without subagents, and the cost of today in USD."""

    sessions: int
    sources: int
    #: Those that were used since midnight, local time.
    sessions_today: int
    #: Those that a living process holds.
    running: int
    #: The cost that programs stated; None if none did.
    cost_today: float | None
    #: The cost that known prices add to it; None if nothing was estimated.
    cost_estimated_today: float | None
    #: Tokens of today that have neither a cost nor a price.
    tokens_unpriced_today: int
    last: Session | None

    def as_json(self) -> dict[str, Any]:
        """Return the facts as JSON values, the last session with its fields."""
        from sessiondb.model import session_json

        values = asdict(self)
        values["last"] = None if self.last is None else session_json(self.last)
        return values

    @property
    def cost_words(self) -> str:
        """The cost of today as words; empty if nothing is known to cost anything."""
        words = cost_words(
            self.cost_today, self.cost_estimated_today, self.tokens_unpriced_today
        )
        cost, dot, unpriced = words.partition(" · ")
        return words and f"{cost} today{dot}{unpriced}"


EMPTY = Status(0, 0, 0, 0, None, None, 0, None)


@click.command("status")
@shared.as_json
@click.pass_obj
def status_command(options: Options, *, as_json: bool) -> None:
    """One line for a prompt or a status bar: sessions and cost of today, the last one.

    All projects count, and subagents and archived sessions for the cost. A session
    runs while a process that uses sessiondb holds it. Without a database the
    line says how to import; nothing is created.
    """
    status = _read_status(options)
    line = with_database(_status_line(status), options.database)
    output.write_result(status.as_json(), line.replace("`", ""), as_json=as_json)


def _status_line(status: Status) -> str:
    if status.last is None:
        return f"no sessions · {command('import')}"
    facts = [f"{count(status.sessions_today, 'session')} today"]
    if status.running:
        facts.append(f"{status.running:,} running")
    if status.cost_words:
        facts.append(status.cost_words)

    last = status.last
    title = cut(title_of(last), TITLE_WIDTH)
    facts.append(f"last {ago(last.time_updated)}: {one_line(last.source)} {title}")
    return " · ".join(facts)


def _read_status(options: Options) -> Status:
    """Return the status; of a database that does not exist it is `EMPTY`."""
    if not _exists(options):
        return EMPTY
    with open_store(options) as store:
        return _status_of(store, read_prices(None))


def _exists(options: Options) -> bool:
    """Return whether there is a database to open; reading creates none.

    One that ``--db`` names is opened, so that a wrong name is reported.
    """
    if options.db is not None:
        return True
    target = locate(options).target()
    return target is not None and target.exists()


def _living_leases(_: object) -> Read[int]:
    from sessiondb.engine.sql import ComposedStatement
    from sessiondb.repository import time_now
    from sessiondb.schema.terms import LIVING_LEASE

    now = yield from time_now()
    sql = f"SELECT count(*) FROM lease WHERE {LIVING_LEASE}"
    ((running,),) = yield ComposedStatement(sql), {"now": now}
    return int(running)


def _status_of(store: Store, prices: Prices) -> Status:
    from sessiondb.repository.sessions import ALL

    midnight, _ = read_span("today", local_now())
    today = int(midnight.timestamp() * 1000)
    ((sessions, sessions_today, sources),) = rows_of(store, _COUNTS, today=today)
    running = store.snapshot(_living_leases)

    usage = store.usage(
        by=(), prices=prices, since=today, project=ALL, archived=True, subagents=True
    )
    page = store.sessions(project=ALL, limit=1)
    cost = estimated = None
    unpriced = 0
    if usage:
        cost, estimated = usage[0].cost, usage[0].cost_estimated
        unpriced = usage[0].tokens_unpriced
    last = page.items[0] if page.items else None
    return Status(
        sessions, sources, sessions_today, running, cost, estimated, unpriced, last
    )


def write_overview(options: Options) -> None:
    """Write what is here: the sessions used last, the cost of today, next commands."""
    if not _exists(options):
        output.page(_first_steps(options))
        return

    with open_store(options) as store:
        status = _status_of(store, read_prices(None))
        sessions, everywhere = _last_sessions(store)
        usages = usages_of(store, sessions)
        prompts = telling_prompts(store, sessions)
    if sessions:
        rows = [(session, None) for session in sessions]
        table = session_table(rows, usages, prompts, everywhere, "used")
        output.page(_overview_lines(options, status, sessions, table, everywhere))
    else:
        output.page(_first_steps(options))


def _last_sessions(store: Store) -> tuple[list[Session], bool]:
    """Return the last sessions of this project, else of all; and whether of all."""
    from sessiondb.repository.sessions import ALL, HERE

    here = store.sessions(project=HERE, limit=SHOWN)
    if here.items:
        return list(here.items), False
    return list(store.sessions(project=ALL, limit=SHOWN).items), True


def _overview_lines(
    options: Options,
    status: Status,
    sessions: list[Session],
    table: Iterator[str],
    everywhere: bool,
) -> Iterator[str]:
    shown = output.screen()
    facts = [
        f"{count(status.sessions, 'session')} of {count(status.sources, 'program')}",
        f"{status.sessions_today:,} used today",
    ]
    if status.running:
        facts.append(f"{status.running:,} running")
    if status.sessions_today:
        facts.append(status.cost_words or "cost unknown")
    yield " · ".join(facts)

    yield ""
    place = "in all projects" if everywhere else "in this project"
    yield shown.style(f"Used last {place}", bold=True)
    yield from table

    yield ""
    scope = ["-a"] if everywhere else []
    ref = sessions[0].id[-6:].lower()
    yield from _command_lines(
        options,
        {
            command("show", ref): "read the first of them",
            command("resume", ref): "continue it in its agent",
            command("search", *scope, "WORDS"): "find words in all of them",
            command("list", "-a"): "list every project",
            command("stats", "-a", "--by", "day", "--since", "7d"): "cost of a week",
            command("import"): "import what is new",
            command("--help"): "all commands",
        },
    )


def _first_steps(options: Options) -> Iterator[str]:
    yield "No sessions yet. sessiondb reads what your coding agents have stored."
    yield ""
    yield from _command_lines(
        options,
        {
            command("import"): "import the sessions of all agents on this machine",
            command("import", "--dry-run"): "only show what would be imported",
            command("import", "--help"): "the agents it knows, other places",
            command("--help"): "all commands",
        },
    )


def _command_lines(options: Options, commands: Mapping[str, str]) -> Iterator[str]:
    """Yield each command as it can be typed, and its purpose in a second column."""
    shown = output.screen()
    typed = {
        with_database(line, options.database).strip("`"): purpose
        for line, purpose in commands.items()
    }
    width = max(len(line) for line in typed)
    longest = max(len(purpose) for purpose in typed.values())
    # With a long path of a database the commands alone fill the screen.
    fits = width + longest + 4 <= shown.width
    for line, purpose in typed.items():
        if fits:
            yield f"  {shown.style(line.ljust(width), fg='cyan')}  {purpose}"
        else:
            yield f"  {shown.style(line, fg='cyan')}"
