"""``show``: one session, exact as JSON or readable as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, find, find_default, open_store
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

    Tool calls are folded to a few lines; JSON is never folded.
    """
    from sessiondb.model import message_json, session_json

    with open_store(options) as store:
        session = find_default(store) if ref is None else find(store, ref)
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
            lines = _lines(store, session, messages, full=full)
            output.page(painted(lines, output.screen()))


def _lines(
    store: Store, session: Session, messages: Iterable[Message], *, full: bool
) -> Iterator[Line]:
    from sessiondb.formats.transcript.terminal import Terminal

    labels: dict[int, list[str]] = {}
    for label in store.labels(session):
        labels.setdefault(label.seq, []).append(label.label)

    look = Terminal(full=full)
    yield from look.head(session)
    for message in messages:
        yield from look.message(message, labels.get(message.seq, ()))
