"""``show``: one session, exact as JSON or readable as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, find, open_store
from sessiondb.cli.paint import painted

if TYPE_CHECKING:
    from sessiondb.formats.transcript.terminal import TerminalLine
    from sessiondb.model import Message, Session
    from sessiondb.store import Store


@click.command("show")
@click.argument("ref", type=shared.REF, required=False)
@click.option(
    "--last", type=click.IntRange(1), metavar="N", help="The last N messages."
)
@click.option("--branches", is_flag=True, help="Messages off the live path too.")
@click.option(
    "--full", is_flag=True, help="Tool calls and bookkeeping in full, not folded."
)
@shared.as_json_or_jsonl
@click.pass_obj
def show_command(
    options: Options,
    *,
    ref: str | None,
    last: int | None,
    branches: bool,
    full: bool,
    as_json: bool,
    as_jsonl: bool,
) -> None:
    """One session as text (default: the last one used here).

    Tool calls are folded to a few lines, and events with nothing to read are only
    counted; --full shows all of them. JSON is never folded.
    """
    from sessiondb.model import message_json, session_json

    with open_store(options) as store:
        session = find(store, ref)
        messages: Iterable[Message]
        if last is None:
            messages = store.walk(session, branches=branches)
        else:
            messages = store.messages(session, last=last, branches=branches)

        if as_json:
            fields = {"session": session_json(session)}
            records = (message_json(message) for message in messages)
            output.write_json_stream(fields, "messages", records)
        elif as_jsonl:
            records = (message_json(message) for message in messages)
            output.write_jsonl(chain([session_json(session)], records))
        else:
            output.page(_shown_rows(_shown_lines(store, session, messages, full=full)))


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
    store: Store, session: Session, messages: Iterable[Message], *, full: bool
) -> Iterator[list[TerminalLine]]:
    """Yield the lines of the head, then those of each message."""
    from sessiondb.formats.transcript.terminal import Terminal

    labels: dict[int, list[str]] = {}
    for label in store.labels(session):
        labels.setdefault(label.seq, []).append(label.label)

    look = Terminal(full=full)
    yield look.head(session)
    for message in messages:
        yield look.message(message, labels.get(message.seq, ()))
    yield look.tail()
