"""``list`` and ``prompts``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.costs import ESTIMATED, Usages, cost_cell, cost_json, usages_of
from sessiondb.cli.emptiness import no_sessions
from sessiondb.cli.opening import MAX_TYPED, Options, open_store, rows_of, say
from sessiondb.cli.text import (
    count,
    cut,
    iso,
    last_used,
    one_line,
    rounded,
    short_id,
    size,
    title_of,
)
from sessiondb.dataclass import asdict
from sessiondb.hints import command

if TYPE_CHECKING:
    from sessiondb.model import Prompt, Session
    from sessiondb.store import Store

    #: A session and its bytes; None unless they are sorted by size.
    Row = tuple[Session, int | None]

#: Columns of a title that several sessions have, before the last prompt of each.
_REPEATED_WIDTH = 16
_LAST_PROMPT = """
SELECT substr(text, 1, 300) FROM transcript
 WHERE session_id = :id AND purpose = 'prompt' AND type = 'text' AND synthetic = 0
 ORDER BY seq DESC, idx LIMIT 1
"""


@click.command("list")
@shared.filters
@click.option(
    "--sort",
    type=click.Choice(["used", "created", "cost", "size"]),
    default="used",
    show_default=True,
    help="Newest first by last use or creation; or highest stated cost, largest.",
)
@click.option(
    "--reverse", is_flag=True, help="The other way round: oldest, cheapest, smallest."
)
@shared.paged(50)
@shared.as_json_or_jsonl
@click.pass_obj
def list_command(
    options: Options,
    *,
    filters: shared.FilterOptions,
    sort: str,
    reverse: bool,
    limit: int,
    cursor: str | None,
    as_json: bool,
    as_jsonl: bool,
) -> None:
    """Sessions of this project, newest first (-a: everywhere).

    In a pipe each line is, tab-separated: id, time of last use, source, agent,
    messages, cost, title, directory, prompts, estimated cost, tokens without a price;
    with --sort size also the bytes. On a terminal ~ is an estimate from prices, and a
    title that several sessions have is followed by the last prompt of each.
    """
    with open_store(options) as store:
        read = partial(
            store.sessions,
            **filters.keywords(),
            order=sort,
            reverse=reverse,
            limit=limit,
        )
        page = shared.read_page(read, cursor)
        nothing = None if page.items else no_sessions(store, filters)
        usages = usages_of(store, page.items)
        is_seen = output.screen().terminal
        prompts = telling_prompts(store, page.items) if is_seen else {}

    def table(rows: Sequence[Row]) -> Iterator[str]:
        return session_table(rows, usages, prompts, filters.everywhere, sort)

    def row_json(row: Row) -> dict[str, Any]:
        return _row_json(row, usages)

    def values(row: Row) -> list[Any]:
        return _values_of_row(row, usages)

    rows = list(zip_longest(page, page.sizes))
    more = {"next_cursor": page.next_cursor}
    listing = output.Listing("sessions", rows, row_json, values, table, more)
    listing.write(as_json=as_json, as_jsonl=as_jsonl)

    if nothing is not None:
        say(nothing)
    elif page.next_cursor and not as_json:
        more_sessions = shared.further(page, cursor, exact=as_jsonl)
        say(f"{count(len(page), 'session')} · {more_sessions}{_legend(usages)}")
    elif output.screen().terminal:
        say(f"{count(len(page), 'session')}{filters.wider}{_legend(usages)}")
    if sort == "cost" and page.items and output.screen().terminal:
        by_session = command("stats", "-a", "--by", "session")
        say(f"in order of what is stated; {by_session} adds estimates")


def _legend(usages: Usages) -> str:
    """Return on a terminal, where costs are estimated, what marks them."""
    is_marked = any(usage.cost_estimated is not None for usage in usages.values())
    if is_marked and output.screen().terminal:
        return f" · {ESTIMATED}$ is estimated"
    return ""


def _row_json(row: Row, usages: Usages) -> dict[str, Any]:
    from sessiondb.model import session_json

    session, number = row
    sized = {} if number is None else {"bytes": number}
    return session_json(session) | cost_json(session, usages) | sized


def _values_of_row(row: Row, usages: Usages) -> list[Any]:
    s, number = row
    usage = usages.get(s.id)
    values: list[Any] = [
        s.id,
        iso(s.time_updated),
        s.source,
        s.agent,
        s.message_count,
        rounded(s.cost),
        s.title,
        s.directory,
        s.prompt_count,
        None if usage is None else rounded(usage.cost_estimated),
        0 if usage is None else usage.tokens_unpriced,
    ]
    # At the end, so that the other columns have the same place in every order.
    return values if number is None else [*values, number]


def telling_prompts(store: Store, sessions: Sequence[Session]) -> dict[str, str]:
    """Return the last prompts of the *sessions* that have one title, by their ids.

    A session whose title is this prompt is not in it.
    """
    titles = Counter(map(title_of, sessions))
    prompts = {}
    for session in sessions:
        title = title_of(session)
        if titles[title] == 1:
            continue
        rows = rows_of(store, _LAST_PROMPT, id=session.id)
        prompt = one_line(rows[0][0] or "") if rows else ""
        if prompt and not prompt.startswith(title.removesuffix("…")):
            prompts[session.id] = prompt
    return prompts


def session_table(
    rows: Sequence[Row],
    usages: Usages,
    prompts: Mapping[str, str],
    everywhere: bool,
    sort: str,
) -> Iterator[str]:
    """Yield the lines of a table of sessions; with projects where *everywhere*.

    *prompts* are those of `telling_prompts`.
    """
    optional = {"PROJECT": everywhere, "SIZE": sort == "size"}
    head = [name for name in _COLUMNS if optional.get(name, True)]
    # A narrow screen keeps the column that the list is sorted by.
    spare = (
        "SOURCE PROJECT PROMPTS COST"
        if sort == "cost"
        else "SOURCE PROJECT COST PROMPTS"
    )

    lines = [[_cell(name, row, usages, prompts) for name in head] for row in rows]
    return output.table(head, lines, right="USED PROMPTS COST SIZE", spare=spare)


def _marked_title(session: Session, prompt: str | None) -> str:
    marks = (session.relation, "archived" if session.time_archived else None)
    title = title_of(session)
    if prompt is not None:
        title = f"{cut(title, _REPEATED_WIDTH)} · {prompt}"
    return "".join(f"({mark}) " for mark in marks if mark) + title


_COLUMNS = "ID USED SOURCE PROJECT PROMPTS COST SIZE TITLE".split()


def _cell(column: str, row: Row, usages: Usages, prompts: Mapping[str, str]) -> str:
    session, number = row
    match column:
        case "ID":
            return short_id(session.id)
        case "USED":
            return last_used(session.time_updated)
        case "SOURCE":
            return session.source
        case "PROJECT":
            directory = session.directory
            return "–" if directory is None else Path(directory).name[-16:]
        case "PROMPTS":
            return str(session.prompt_count)
        case "COST":
            return cost_cell(session, usages)
        case "SIZE":
            return size(number or 0)
        case _:
            return _marked_title(session, prompts.get(session.id))


@click.command("prompts")
@click.argument("words", metavar="[QUERY]", nargs=-1)
@shared.filters
@shared.paged(50)
@shared.as_json
@click.pass_obj
def prompts_command(
    options: Options,
    *,
    words: tuple[str, ...],
    filters: shared.FilterOptions,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """Prompts typed here, newest first (-a: everywhere); QUERY: those with all words.

    Written by each import, and by agents that call add_prompt. A prompt that was typed
    several times in a row is listed once.

    In a pipe each line is, tab-separated: time, source, session id, directory, text.
    """
    query = " ".join(words) or None
    with open_store(options) as store:
        read = partial(store.prompts, query, **filters.keywords(), limit=limit)
        page = shared.read_page(read, cursor)

    more = {"next_cursor": page.next_cursor}
    listing = output.Listing(
        "prompts", page.items, asdict, _prompt_values, _prompt_table, more
    )
    listing.write(as_json=as_json)

    if not page.items:
        say(f"no prompts{filters.wider}")
        say(_search_hint(words))
    shared.say_further(page, cursor, as_json=as_json)


def _search_hint(words: tuple[str, ...]) -> str:
    """Return the search for *words* in sessions, which finds more than prompts."""
    if 0 < len(" ".join(words)) <= MAX_TYPED:
        search = command("search", "-a", "--role", "user", "--", *words)
        return f"{search} finds it in sessions"
    return f"{command('search', '--help')} describes how to search sessions"


def _prompt_values(prompt: Prompt) -> list[Any]:
    return [
        iso(prompt.time_created),
        prompt.source,
        prompt.session_id,
        prompt.directory,
        prompt.text,
    ]


def _prompt_table(prompts: Sequence[Prompt]) -> Iterator[str]:
    rows = [[last_used(p.time_created), p.source, p.text] for p in prompts]
    return output.table(
        ["TYPED", "SOURCE", "PROMPT"], rows, right="TYPED", spare="SOURCE"
    )
