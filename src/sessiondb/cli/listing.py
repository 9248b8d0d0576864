"""``list`` and ``prompts``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.emptiness import no_sessions
from sessiondb.cli.opening import MAX_TYPED, Options, open_store, say
from sessiondb.cli.text import ago, count, iso, money, short_id, size
from sessiondb.hints import command

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
    messages, cost, title, directory; with --sort size also the bytes.
    """
    with open_store(options) as store:
        page = store.sessions(
            **where.filters(), order=sort, limit=limit or 50, cursor=cursor
        )
        nothing = None if page.items else no_sessions(store, where)
    if as_json:
        output.write_json({"sessions": _as_json(page), "next_cursor": page.next_cursor})
    elif as_jsonl:
        output.write_jsonl(_as_json(page))
    elif not output.screen().terminal:
        for s, number in zip_longest(page, page.sizes):
            more = [] if number is None else [number]
            output.write_tsv(
                s.id, iso(s.time_updated), s.source, s.agent, s.message_count, s.cost, s.title,
                s.directory, *more,
            )  # fmt: skip
    elif page.items:
        output.page(_table(page, where.everywhere, sort))
    if nothing is not None:
        say(nothing)
    else:
        _say_what_is_left(page, where, as_json)


def _as_json(page: Page[Session]) -> list[dict[str, Any]]:
    from sessiondb.model import session_json

    found = map(session_json, page)
    if not page.sizes:
        return list(found)
    return [
        {**item, "bytes": number}
        for item, number in zip(found, page.sizes, strict=True)
    ]


def _table(page: Page[Session], projects: bool, sort: str) -> Iterator[str]:
    columns: dict[str, list[str]] = {
        "ID": [short_id(s.id) for s in page],
        "USED": [ago(s.time_updated) for s in page],
        "SOURCE": [s.source for s in page],
        "PROJECT": [Path(s.directory).name[-16:] for s in page] if projects else [],
        "MSGS": [str(s.message_count) for s in page],
        "COST": [money(s.cost) for s in page],
        "SIZE": [size(number) for number in page.sizes],
        "TITLE": [_title(s) for s in page],
    }
    columns = {name: values for name, values in columns.items() if values}
    spare = "SOURCE PROJECT MSGS COST" if sort == "cost" else "SOURCE PROJECT COST MSGS"
    rows = zip(*columns.values(), strict=True)
    return output.table(list(columns), rows, right="USED MSGS COST SIZE", spare=spare)


def _title(session: Session) -> str:
    marks = f"({session.relation}) " if session.relation else ""
    return (
        marks
        + ("(archived) " if session.time_archived else "")
        + (session.title or "–")
    )


def _say_what_is_left(page: Page[Session], where: shared.Where, as_json: bool) -> None:
    if page.next_cursor and not as_json:
        say(f"{count(len(page), 'session')} · more: {shared.further(page.next_cursor)}")
    elif output.screen().terminal:
        here = "" if where.everywhere else " here · -a for every project"
        say(count(len(page), "session") + here)


@click.command("prompts")
@click.argument("words", metavar="[QUERY]", nargs=-1)
@shared.filters()
@shared.paged
@shared.as_json
@click.pass_obj
def prompts_command(
    options: Options,
    *,
    words: tuple[str, ...],
    where: shared.Where,
    limit: int | None,
    cursor: str | None,
    as_json: bool,
) -> None:
    """Prompts typed here, newest first (-a: everywhere); with QUERY, what holds its words.

    Kept by agents that write here with add_prompt; an import does not fill it.

    In a pipe each line is, tab-separated: time, source, session id, directory, text.
    """
    query = " ".join(words) or None
    with open_store(options) as store:
        page = store.prompts(query, **where.filters(), limit=limit or 50, cursor=cursor)
    if as_json:
        output.write_json(
            {"prompts": list(map(asdict, page)), "next_cursor": page.next_cursor}
        )
    elif output.screen().terminal and page.items:
        output.page(_prompt_table(page))
    else:
        for p in page:
            output.write_tsv(
                iso(p.time_created), p.source, p.session_id, p.directory, p.text
            )
    if not page.items:
        more = "" if where.everywhere else " here · -a for every project"
        say(f"no prompts{more}")
        finds, what = command("search", "--help"), "describes how to search sessions"
        if query is not None and len(query) <= MAX_TYPED:
            finds = command("search", "-a", "--role", "user", "--", *words)
            what = "finds it in sessions"
        say(f"an import does not fill the prompt history: {finds} {what}")
    elif page.next_cursor and not as_json:
        say(f"more: {shared.further(page.next_cursor)}")


def _prompt_table(page: Page[Prompt]) -> Iterator[str]:
    rows = [[ago(p.time_created), p.source, p.text] for p in page]
    return output.table(
        ["TYPED", "SOURCE", "PROMPT"], rows, right="TYPED", spare="SOURCE"
    )
