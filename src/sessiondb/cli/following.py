"""``tail``: a session while it is being written, as text or as our own log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, find, find_default, open_store
from sessiondb.cli.transcript import message_lines
from sessiondb.errors import NotFoundError

if TYPE_CHECKING:
    from sessiondb.model import Change, Message, Session
    from sessiondb.store import Store


@click.command("tail")
@click.argument("ref", type=shared.REF, required=False)
@click.option("--last", type=click.IntRange(1), default=10, show_default=True, metavar="N",
              help="Begin with the last N messages.")  # fmt: skip
@click.option("--jsonl", "--json", "as_jsonl", is_flag=True,
              help="Records of our own log, one a line.")  # fmt: skip
@click.pass_obj
def tail_command(
    options: Options, *, ref: str | None, last: int, as_jsonl: bool
) -> None:
    """Follow a session (default: the last one used here) until it is removed, or Ctrl-C.

    A message is shown when it is finished; --jsonl reports each step.
    """
    with open_store(options) as store:
        session = find_default(store) if ref is None else find(store, ref)
        for text in follow(store, session, last=last, as_jsonl=as_jsonl):
            output.write(text)
            sys.stdout.flush()


def follow(
    store: Store,
    session: Session,
    *,
    last: int = 10,
    as_jsonl: bool = False,
    stop: threading.Event | None = None,
) -> Iterator[str]:
    """Yield what is new in a session, in lines, until it is removed or *stop* is set."""
    ended = stop or threading.Event()
    # The watch begins before the first look: what is written in between is met twice, not missed.
    since = store.newest_change()
    told = _Log(store, session) if as_jsonl else _Text(store, session)
    yield from told.begin(store.messages(session, last=last))
    for change in store.changes(session, since=since, stop=ended):
        if change.deleted:
            return
        yield from told.of(change)


def _touched(store: Store, change: Change, first: int) -> list[Message]:
    """Return the messages that a change may have touched, from seq *first* on."""
    try:
        found = store.messages(
            change.session_id, branches=True, after=change.since_seq or None
        )
    except NotFoundError:  # nothing was there before, or it is gone
        found = store.messages(change.session_id, branches=True)
    return [message for message in found if message.seq >= first]


class _Text:
    """Messages as people read them, each once and complete."""

    def __init__(self, store: Store, session: Session) -> None:
        self._store, self._id = store, session.id
        self._shown: set[str] = set()
        self._results: dict[str, int] = {}
        self._screen = output.screen()

    def begin(self, messages: list[Message]) -> Iterator[str]:
        """Yield the first lines."""
        self._first = messages[0].seq if messages else 0
        yield from self._messages(messages)

    def of(self, change: Change) -> Iterator[str]:
        """Yield the lines of what a change brought."""
        yield from self._messages(_touched(self._store, change, self._first))

    def _messages(self, messages: list[Message]) -> Iterator[str]:
        for message in messages:
            if message.id in self._shown or message.time_completed is None:
                continue
            self._shown.add(message.id)
            for line in message_lines(
                message, self._screen, full=False, results=self._results
            ):
                yield line + "\n"


class _Log:
    """Records of the log, each once."""

    def __init__(self, store: Store, session: Session) -> None:
        self._store, self._id = store, session.id
        self._told: set[tuple[str, str]] = set()
        self._blobs: set[str] = set()
        self._ids: dict[int, str] = {}

    def begin(self, messages: list[Message]) -> Iterator[str]:
        """Yield the first lines."""
        from sessiondb.formats.jsonl import record_lines, records

        for record in records.head(self._store.export(self._id)):
            yield from record_lines(record, self._blobs)
        self._first = messages[0].seq if messages else 0
        yield from self._state()
        yield from self._messages(messages)

    def of(self, change: Change) -> Iterator[str]:
        """Yield the lines of what a change brought."""
        yield from self._messages(_touched(self._store, change, self._first))
        yield from self._state()

    def _messages(self, messages: list[Message]) -> Iterator[str]:
        from sessiondb.formats.jsonl import record_lines, records

        for message in messages:
            self._ids[message.seq] = message.id
            above = message.parent_seq
            if above is not None and above not in self._ids:
                self._ids[above] = self._store.message(self._id, above).id
            parent = None if above is None else self._ids[above]
            for record in records.message_records(message, parent):
                name = record["type"], str(record.get("part_id", record["message_id"]))
                growing = record["type"] == "part" and message.time_completed is None
                half = message.role != "assistant" and message.time_completed is None
                if name not in self._told and not growing and not half:
                    self._told.add(name)
                    yield from record_lines(record, self._blobs)

    def _state(self) -> Iterator[str]:
        from sessiondb.formats.jsonl import record_lines, records

        for record in records.state(self._store.export(self._id), {}):
            if record["type"] not in ("session_renamed", "archived"):
                continue
            del record["revision"]
            name = record["type"], str(record.get("title", record["time"]))
            if name not in self._told:
                self._told.add(name)
                yield from record_lines(record, self._blobs)
