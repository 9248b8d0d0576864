"""``search``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.around import messages_around
from sessiondb.cli.counting import hits_by_session, write_counts
from sessiondb.cli.emptiness import unknown_names
from sessiondb.cli.opening import Options, current, open_store, say
from sessiondb.cli.paint import painted
from sessiondb.cli.text import ago, cut, iso, one_line, short_id, title_of
from sessiondb.cli.usage import exclusive
from sessiondb.hints import command

if TYPE_CHECKING:
    from sessiondb.model import Hit, Message


@click.command("search")
@click.argument("words", metavar="[QUERY]", nargs=-1)
@shared.filters
@click.option(
    "--role",
    type=click.Choice(["user", "assistant", "tool", "system", "event"]),
    help="Only in messages of this role.",
)
@click.option(
    "--tool",
    metavar="NAME",
    help="Only in calls of it: a name, or edit, shell, read, find, task, todo.",
)
@click.option(
    "--file",
    metavar="PATH",
    help="Only what changed this file, also without a QUERY.",
)
@click.option(
    "--order",
    type=click.Choice(["newest", "time", "rank"]),
    default="newest",
    show_default=True,
    help="Newest written, newest said, or best match first.",
)
@click.option(
    "--context",
    type=click.IntRange(0),
    metavar="N",
    help="Show each hit with N prompts and answers before and after it.",
)
@click.option(
    "--count", "counts", is_flag=True, help="The number of hits in each session."
)
@click.option("--all-hits", is_flag=True, help="Every hit, not one per session.")
@shared.paged(20)
@shared.as_json_or_jsonl
@click.pass_obj
def search_command(
    options: Options,
    *,
    words: tuple[str, ...],
    filters: shared.FilterOptions,
    role: str | None,
    tool: str | None,
    file: str | None,
    order: str,
    context: int | None,
    counts: bool,
    all_hits: bool,
    limit: int,
    cursor: str | None,
    as_json: bool,
    as_jsonl: bool,
) -> None:
    """Find words in texts, reasoning, calls, titles of this project (-a: everywhere).

    \b
    half export            both words, in one message (with --tool: in one call)
    '"half export"'        in a row; with symbols literally: '"foo("', lib/csv.mjs
    'trim* OR split'       either; trim* is every word that begins with it
    'Osaka -villes'        in messages without villes; parentheses group
    '*illes*'              inside of words, too; reads texts, the newest first
    old                    also oldString, old_string; 字 anywhere; 🧵; an agent's id

    In a pipe each line is, tab-separated: session id, seq, message id, time
    of last use, source, title, snippet with the words in ‹ ›.
    """
    if not words and file is None:
        raise click.UsageError("a search needs a QUERY, or --file PATH")

    query = " ".join(words)
    with open_store(options) as store:
        read = partial(
            store.search,
            query if words or file is None else None,
            **filters.keywords(),
            role=role,
            tool=tool,
            file=file,
            order=order,
        )
        if counts:
            exclusive({"--count": counts, "--context": context, "--cursor": cursor})
            found = hits_by_session(partial(read, all_hits=True), limit)
            write_counts(found, as_json=as_json, as_jsonl=as_jsonl)
            if not found:
                say(unknown_names(store, filters) or _nothing_found(query, filters))
            return

        read = partial(read, all_hits=all_hits, limit=limit)
        page = shared.read_page(read, cursor)
        unknown = "" if page.items else unknown_names(store, filters)
        around: dict[str | None, list[Message]] = {}
        if context is not None:
            for hit in page.items:
                if hit.seq is not None:
                    messages = messages_around(store, hit.session, hit.seq, context)
                    around[hit.message_id] = messages

    if around and not as_json and not as_jsonl:
        output.page(_lines_with_context(page.items, around))
    else:
        more = {"next_cursor": page.next_cursor, "searched_to": page.searched_to}
        as_object = partial(_hit_json, around=around)
        listing = output.Listing(
            "hits", page.items, as_object, _values_of_hit, _hit_lines, more
        )
        listing.write(as_json=as_json, as_jsonl=as_jsonl)

    if not page.items and page.next_cursor is None:
        say(unknown or _nothing_found(query, filters))
    shared.say_further(page, cursor, as_json=as_json, as_jsonl=as_jsonl)


def _hit_json(hit: Hit, *, around: dict[str | None, list[Message]]) -> dict[str, Any]:
    from sessiondb.model import hit_json, message_json

    record = hit_json(hit)
    if around:
        record["context"] = [
            message_json(message) for message in around.get(hit.message_id, [])
        ]
    return record


def _lines_with_context(
    hits: Sequence[Hit], around: dict[str | None, list[Message]]
) -> Iterator[str]:
    """Yield each hit, and the conversation around it as ``show`` prints it."""
    from sessiondb.formats.transcript.terminal import Terminal

    for hit in hits:
        yield from _hit_lines([hit])
        look = Terminal("brief")
        for message in around.get(hit.message_id, []):
            yield from painted(look.message(message), output.screen())
        yield ""


def _values_of_hit(hit: Hit) -> list[Any]:
    s = hit.session
    return [
        s.id,
        hit.seq,
        hit.message_id,
        iso(s.time_updated),
        s.source,
        s.title,
        hit.snippet,
    ]


def _hit_lines(hits: Sequence[Hit]) -> Iterator[str]:
    shown = output.screen()
    for hit in hits:
        s = hit.session
        place = "" if hit.seq is None else f"#{hit.seq}"
        facts = (
            f"{short_id(s.id)}{place}  {ago(s.time_updated)} · {one_line(s.source)}  "
        )
        room = max(shown.width - len(facts), output.MIN_COLUMN)
        yield facts + shown.style(cut(title_of(s), room), bold=True)

        # Two columns are taken by the indent.
        text = cut(one_line(hit.snippet), shown.width - 2)
        yield f"  {_mark_words(text)}"


def _mark_words(snippet: str) -> str:
    """Return a snippet with its words between ‹ and › in colour, if possible."""
    if not output.screen().color:
        return snippet
    on, off = click.style("|", fg="yellow", bold=True).split("|")
    return snippet.replace("\u2039", on).replace("\u203a", off) + off


def _nothing_found(query: str, filters: shared.FilterOptions) -> str:
    """Return one line with the next search to try."""
    wider = {
        "every project (-a)": filters.everywhere,
        "--subagents": filters.subagents,
        "--archived": filters.archived,
    }
    further = ", ".join(name for name, chosen in wider.items() if not chosen)
    more = f" · look further: {further}" if further else ""
    return f"nothing found{_wider_query(query)}{more}"


def _wider_query(query: str) -> str:
    from sessiondb.engine.query import OPERATORS

    words = query.split()
    is_plain = all(word.isalnum() and word not in OPERATORS for word in words)
    if not words or not is_plain:
        return ""
    if len(words) == 1:
        inside = [f"*{word}*" if word == query else word for word in current().argv]
        return f" · {command(*inside)} finds it inside of words"
    return f" · '{' OR '.join(words)}' finds either"
