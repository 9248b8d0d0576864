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
    from sessiondb.formats.transcript.terminal import Line
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
            output.write_json_stream(fields, "messages", map(message_json, messages))
        elif as_jsonl:
            output.write_jsonl(
                chain([session_json(session)], map(message_json, messages))
            )
        else:
            output.page(_text(_lines(store, session, messages, full=full)))


def _text(lines: Iterable[list[Line]]) -> Iterator[str]:
    """Yield rows; in a pipe those of a message together, as each write takes time."""
    screen = output.screen()
    rows = (painted(of_message, screen) for of_message in filter(None, lines))
    return chain.from_iterable(rows) if screen.terminal else map("\n".join, rows)


def _lines(
    store: Store, session: Session, messages: Iterable[Message], *, full: bool
) -> Iterator[list[Line]]:
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
