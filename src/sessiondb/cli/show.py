"""``show``: one session, exact as JSON or readable as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.around import messages_around, origin_of
from sessiondb.cli.costs import cost_json, usages_of
from sessiondb.cli.opening import Options, find_place, open_store
from sessiondb.cli.paint import painted
from sessiondb.cli.usage import exclusive
from sessiondb.dataclass import asdict

if TYPE_CHECKING:
    from sessiondb.formats.transcript.terminal import TerminalLine
    from sessiondb.model import Message, Session
    from sessiondb.store import Store


@click.command("show")
@click.argument("ref", type=shared.ADDRESS, required=False)
@click.option(
    "--last", type=click.IntRange(1), metavar="N", help="The last N messages."
)
@click.option(
    "--around",
    type=click.IntRange(0),
    metavar="N",
    help="With REF#M: N prompts and answers before and after M (default: 3).",
)
@click.option("--branches", is_flag=True, help="Messages off the live path too.")
@click.option(
    "--detail",
    type=click.Choice(["brief", "normal", "full"]),
    default="normal",
    show_default=True,
    help=shared.DETAIL_HELP,
)
@click.option("--full", is_flag=True, help="The same as --detail full.")
@shared.as_json_or_jsonl
@click.pass_obj
def show_command(
    options: Options,
    *,
    ref: str | None,
    last: int | None,
    around: int | None,
    branches: bool,
    detail: str,
    full: bool,
    as_json: bool,
    as_jsonl: bool,
) -> None:
    """One session as a conversation (default: the last one used here).

    Prompts, answers, a line for what was thought and for each call, with its changes
    and why it failed. Texts of programs for the model and other records are
    counted in the last line; --detail full shows all of it. JSON is always
    complete.

    REF#M is the place of a message in a session, as search prints it: M is its number,
    its id or a label.
    """
    from sessiondb.model import message_json

    with open_store(options) as store:
        session, place = find_place(store, ref)
        messages: Iterable[Message]
        # How many there are, if the conversation is to be complete.
        prompts = 0
        if place is not None:
            exclusive({"REF#M": ref, "--last": last})
            distance = 3 if around is None else around
            messages = messages_around(store, session, place.seq, distance)
        elif around is not None:
            raise click.UsageError("--around needs the place of a message: REF#M")
        elif last is None:
            messages = store.walk(session, branches=branches)
            prompts = session.prompt_count
        else:
            messages = store.messages(session, last=last, branches=branches)

        if as_json:
            fields = {"session": _session_json(store, session)}
            records = (message_json(message) for message in messages)
            output.write_json_stream(fields, "messages", records)
        elif as_jsonl:
            records = (message_json(message) for message in messages)
            output.write_jsonl(chain([_session_json(store, session)], records))
        else:
            level = "full" if full else detail
            lines = _shown_lines(store, session, messages, level, prompts)
            output.page(_shown_rows(lines))


def _session_json(store: Store, session: Session) -> dict[str, Any]:
    from sessiondb.model import session_json

    return {
        **session_json(session),
        **cost_json(session, usages_of(store, [session])),
        "todos": [asdict(todo) for todo in store.todos(session)],
        "labels": [asdict(label) for label in store.labels(session)],
        "subagents": [subagent.id for subagent in store.subagents(session)],
    }


def _shown_rows(lines: Iterable[list[TerminalLine]]) -> Iterator[str]:
    """Yield rows; in a pipe those of a message together, as each write takes time."""
    screen = output.screen()
    for lines_of_message in lines:
        if lines_of_message:
            rows = painted(lines_of_message, screen)
            if screen.terminal:
                yield from rows
            else:
                yield "\n".join(rows)


def _shown_lines(
    store: Store,
    session: Session,
    messages: Iterable[Message],
    level: str,
    prompts: int = 0,
) -> Iterator[list[TerminalLine]]:
    """Yield the lines of the head, then those of each message."""
    from sessiondb.formats.transcript.terminal import Terminal
    from sessiondb.formats.transcript.terminal_head import head_lines

    labels = store.labels(session)
    names: dict[int, list[str]] = {}
    for label in labels:
        names.setdefault(label.seq, []).append(label.label)

    look = Terminal(level, session.directory or "")
    yield head_lines(
        session,
        usages_of(store, [session]).get(session.id),
        origin_of(store, session),
        todos=store.todos(session),
        labels=labels,
        subagents=store.subagents(session),
    )
    yield from look.conversation(messages, names, prompts)
