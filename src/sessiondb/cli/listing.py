"""``list`` and ``prompts``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, open_store, say
from sessiondb.cli.text import ago, count, iso, money, short_id

if TYPE_CHECKING:
    from sessiondb.model import Page, Prompt, Session


@click.command("list")
@shared.filters()
@click.option(
    "--sort", type=click.Choice(["used", "created", "cost", "size"]), default="used",
    show_default=True, help="Newest first by last use or creation; or most costly, largest first.",
)  # fmt: skip
@shared.paged
@shared.as_json_or_jsonl
@click.pass_obj
def list_command(
    options: Options,
    *,
    where: shared.Where,
    sort: str,
    limit: int | None,
    cursor: str | None,
    as_json: bool,
    as_jsonl: bool,
) -> None:
    """Sessions of this project, newest first (-a: everywhere).

    In a pipe each line is, tab-separated: id, time of last use, source, agent,
    messages, cost, title, directory.
    """
    from sessiondb.model import session_json

    with open_store(options) as store:
        page = store.sessions(**where.filters(), order=sort, limit=limit or 50, cursor=cursor)
    if as_json:
        found = [session_json(item) for item in page]
        output.write_json({"sessions": found, "next_cursor": page.next_cursor})
    elif as_jsonl:
        output.write_jsonl(map(session_json, page))
    else:
        show_sessions(page.items, projects=where.everywhere)
    _say_what_is_left(page, where)


def show_sessions(sessions: Sequence[Session], *, projects: bool = False) -> None:
    """Write sessions as a table on a terminal, as tab-separated lines in a pipe."""
    if not output.screen().terminal:
        for s in sessions:
            output.write_tsv(
                s.id, iso(s.time_updated), s.source, s.agent, s.message_count, s.cost, s.title,
                s.directory,
            )  # fmt: skip
    elif sessions:
        output.page(_table(sessions, projects))


def _table(sessions: Sequence[Session], projects: bool) -> Iterator[str]:
    head = ["ID", "USED", "SOURCE", *(["PROJECT"] if projects else []), "MSGS", "COST", "TITLE"]
    rows = [
        [
            short_id(s.id),
            ago(s.time_updated),
            s.source,
            *([Path(s.directory).name[-16:]] if projects else []),
            str(s.message_count),
            money(s.cost),
            _title(s),
        ]
        for s in sessions
    ]
    return output.table(head, rows, right="USED MSGS COST")


def _title(session: Session) -> str:
    marks = f"({session.relation}) " if session.relation else ""
    return marks + ("(archived) " if session.time_archived else "") + (session.title or "–")


def _say_what_is_left(page: Page[Session], where: shared.Where) -> None:
    place = "everywhere" if where.everywhere else f"in {where.project or Path.cwd()}"
    if not page.items:
        more = "" if where.everywhere else "`sessiondb list -a` for every project, "
        say(f"no sessions {place} · {more}`sessiondb import` to bring them in")
    elif output.screen().terminal:
        hints = [count(len(page), "session") + (" here" if not where.everywhere else "")]
        if page.next_cursor:
            hints = [f"the first {hints[0]}", f"--cursor {page.next_cursor} for the next"]
        say(" · ".join([*hints, *([] if where.everywhere else ["-a for every project"])]))


@click.command("prompts")
@click.argument("query", required=False)
@shared.filters("everywhere", "project", "since", "until")
@shared.paged
@shared.as_json
@click.pass_obj
def prompts_command(
    options: Options,
    *,
    query: str | None,
    where: shared.Where,
    limit: int | None,
    cursor: str | None,
    as_json: bool,
) -> None:
    """What was typed here, newest first (-a: everywhere); with QUERY, what holds its words.

    In a pipe each line is, tab-separated: time, source, session id, directory, text.
    """
    chosen = where.filters("source", "agent", "title", "archived", "subagents")
    with open_store(options) as store:
        page = store.prompts(query, **chosen, limit=limit or 50, cursor=cursor)
    if as_json:
        output.write_json({"prompts": list(map(asdict, page)), "next_cursor": page.next_cursor})
    elif output.screen().terminal and page.items:
        output.page(_prompt_table(page))
    else:
        for p in page:
            output.write_tsv(iso(p.time_created), p.source, p.session_id, p.directory, p.text)
    if not page.items:
        say("no prompts" + ("" if where.everywhere else " here · -a for every project"))


def _prompt_table(page: Page[Prompt]) -> Iterator[str]:
    rows = [[ago(p.time_created), p.source, p.text] for p in page]
    return output.table(["TYPED", "SOURCE", "PROMPT"], rows, right="TYPED")
