"""``search``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.emptiness import unknown_names
from sessiondb.cli.opening import Options, open_store, say
from sessiondb.cli.output import MIN_COLUMN
from sessiondb.cli.text import ago, cut, iso, one_line, short_id

if TYPE_CHECKING:
    from sessiondb.model import Hit, Page


@click.command("search")
@click.argument("words", metavar="QUERY", nargs=-1, required=True)
@shared.filters()
@click.option(
    "--role", type=click.Choice(["user", "assistant", "tool", "system", "event"]),
    help="Said by this role.",
)  # fmt: skip
@click.option("--tool", metavar="NAME", help="In the calls of this tool.")
@click.option(
    "--order", type=click.Choice(["newest", "time", "rank"]), default="newest", show_default=True,
    help="Newest written, newest said, or best match first.",
)  # fmt: skip
@click.option("--all-hits", is_flag=True, help="Every hit, not one a session.")
@shared.paged
@shared.as_json_or_jsonl
@click.pass_obj
def search_command(
    options: Options,
    *,
    words: tuple[str, ...],
    where: shared.Where,
    role: str | None,
    tool: str | None,
    order: str,
    all_hits: bool,
    limit: int | None,
    cursor: str | None,
    as_json: bool,
    as_jsonl: bool,
) -> None:
    """Find words in this project's sessions (-a: everywhere): texts, reasoning, tools, titles.

    All words of QUERY must occur together; a trailing * finds words that begin
    so. In a pipe each line is, tab-separated: session id, seq, message id, time
    of last use, source, title, snippet with the words in ‹ ›.
    """
    from sessiondb.model import hit_json

    with open_store(options) as store:
        page = store.search(
            " ".join(words), **where.filters(), role=role, tool=tool, order=order,
            all_hits=all_hits, limit=limit or 20, cursor=cursor,
        )  # fmt: skip
        unknown = [] if page.items else list(unknown_names(store, where))
    if as_json:
        output.write_json(
            {"hits": list(map(hit_json, page)), "next_cursor": page.next_cursor}
        )
    elif as_jsonl:
        output.write_jsonl(map(hit_json, page))
    elif output.screen().terminal:
        output.page(_hits(page))
    else:
        for hit in page:
            s = hit.session
            output.write_tsv(
                s.id,
                hit.seq,
                hit.message_id,
                iso(s.time_updated),
                s.source,
                s.title,
                hit.snippet,
            )
    if unknown:
        say(" · ".join(unknown))
    else:
        _say_what_is_left(page, where, as_json)


def _hits(page: Page[Hit]) -> Iterator[str]:
    shown = output.screen()
    for hit in page:
        s = hit.session
        facts = f"{short_id(s.id)}  {ago(s.time_updated)} · {one_line(s.source)}  "
        title = cut(one_line(s.title) or "–", max(shown.width - len(facts), MIN_COLUMN))
        yield facts + shown.style(title, bold=True)
        text = cut(one_line(hit.snippet), shown.width - 10)
        yield f"  #{hit.seq if hit.seq is not None else '–':<6} {_marked(text)}"


def _marked(snippet: str) -> str:
    """Return a snippet with what stands in ‹ › in colour; without colour the marks stay."""
    if not output.screen().color:
        return snippet
    on, off = click.style("|", fg="yellow", bold=True).split("|")
    return snippet.replace("\u2039", on).replace("\u203a", off) + off


def _say_what_is_left(page: Page[Hit], where: shared.Where, as_json: bool) -> None:
    if not page.items:
        further = ["every project (-a)"] if not where.everywhere else []
        further += ["--subagents"] if not where.subagents else []
        further += ["--archived"] if not where.archived else []
        more = f" · look further: {', '.join(further)}" if further else ""
        say(f"nothing found · word* finds what begins with word{more}")
    elif page.next_cursor and not as_json:
        say(f"more: {shared.further(page.next_cursor)}")
