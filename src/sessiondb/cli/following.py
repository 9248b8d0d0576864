"""``tail``: a session while it is being written, as text or as our own log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, find_place, open_store
from sessiondb.cli.paint import painted
from sessiondb.cli.usage import exclusive
from sessiondb.errors import NotFoundError

if TYPE_CHECKING:
    from sessiondb.model import Change, Message, Session
    from sessiondb.store import Store

#: The messages that it begins with.
LAST = 10
#: The records of a session's state that are news to a reader.
_STATES = frozenset({"session_renamed", "archived"})


@click.command("tail")
@click.argument("ref", type=shared.ADDRESS, required=False)
@click.option(
    "--last",
    type=click.IntRange(1),
    metavar="N",
    help=f"Begin with the last N messages (default: {LAST}).",
)
@click.option(
    "--jsonl",
    "--json",
    "as_jsonl",
    is_flag=True,
    help="Records of our own log, one a line.",
)
@click.pass_obj
def tail_command(
    options: Options, *, ref: str | None, last: int | None, as_jsonl: bool
) -> None:
    """Follow a session (default: the last used here) until it is removed, or Ctrl-C.

    A message is shown when it is finished; --jsonl reports each step. REF#M begins
    with message M.
    """
    with open_store(options) as store:
        session, place = find_place(store, ref)
        if place is not None:
            exclusive({"REF#M": ref, "--last": last})

        lines = follow(
            store, session, last=last or LAST, first=place, as_jsonl=as_jsonl
        )
        for text in lines:
            output.write(text)
            sys.stdout.flush()


def follow(
    store: Store,
    session: Session,
    *,
    last: int = LAST,
    first: Message | None = None,
    as_jsonl: bool = False,
    stop: threading.Event | None = None,
) -> Iterator[str]:
    """Yield what is new in a session, in lines, until it is removed or *stop* is set.

    It begins with the message *first*, else with the *last* messages, fewer if there
    are not as many.
    """
    ended = threading.Event() if stop is None else stop
    # The feed begins before the first read: a change in between is seen twice, and
    # reported once, instead of being missed.
    since = store.newest_change()
    if first is None:
        messages = store.messages(session, last=last)
    else:
        messages = [first, *store.messages(session, after=first.seq)]
    kind = _FollowedLog if as_jsonl else _Text
    feed = kind(store, session, messages[0].seq if messages else 0)
    yield from feed.begin(messages)
    for change in store.changes(session, since=since, stop=ended):
        if change.deleted:
            return
        yield from feed.follow(change)


def _touched_messages(store: Store, change: Change, first: int) -> list[Message]:
    """Return the messages that a change may have touched, from seq *first* on."""
    last_seq = change.since_seq or None
    try:
        messages = store.messages(change.session_id, branches=True, after=last_seq)
    except NotFoundError:  # There was no message yet, or that one is gone.
        messages = store.messages(change.session_id, branches=True)
    return [message for message in messages if message.seq >= first]


class _Text:
    """Messages as people read them, each once and complete."""

    def __init__(self, store: Store, session: Session, first: int) -> None:
        from sessiondb.formats.transcript.terminal import Terminal

        self._store, self._id = store, session.id
        self._first = first
        self._shown: set[str] = set()
        self._look = Terminal(directory=session.directory or "")
        self._screen = output.screen()

    def begin(self, messages: list[Message]) -> Iterator[str]:
        """Yield the lines of the first messages."""
        yield from self._message_lines(messages)

    def follow(self, change: Change) -> Iterator[str]:
        """Yield the lines of the messages that a change completed."""
        yield from self._message_lines(
            _touched_messages(self._store, change, self._first)
        )

    def _message_lines(self, messages: list[Message]) -> Iterator[str]:
        for message in messages:
            if message.id in self._shown or message.time_completed is None:
                continue
            self._shown.add(message.id)
            for row in painted(self._look.message(message), self._screen):
                yield row + "\n"


class _FollowedLog:
    """Records of the log, each once."""

    def __init__(self, store: Store, session: Session, first: int) -> None:
        self._store, self._id = store, session.id
        self._first = first
        self._written: set[tuple[str, str]] = set()
        self._blobs: set[str] = set()
        self._ids: dict[int, str] = {}

    def begin(self, messages: list[Message]) -> Iterator[str]:
        """Yield the head of the log, its state, and the first messages."""
        from sessiondb.formats.jsonl import record_lines, records

        for record in records.head_records(self._store.export(self._id)):
            yield from record_lines(record, self._blobs)
        yield from self._state_lines()
        yield from self._message_lines(messages)

    def follow(self, change: Change) -> Iterator[str]:
        """Yield the records that a change added."""
        yield from self._message_lines(
            _touched_messages(self._store, change, self._first)
        )
        yield from self._state_lines()

    def _message_lines(self, messages: list[Message]) -> Iterator[str]:
        from sessiondb.formats.jsonl import records

        for message in messages:
            self._ids[message.seq] = message.id
            parent = self._parent_id(message)
            for record in records.message_records(message, parent):
                if _is_final(record, message):
                    name = str(record.get("part_id", record["message_id"]))
                    yield from self._line_once(record, name)

    def _parent_id(self, message: Message) -> str | None:
        """Return the id of the message above, which may be older than the first one."""
        parent_seq = message.parent_seq
        if parent_seq is None:
            return None
        if parent_seq not in self._ids:
            self._ids[parent_seq] = self._store.message(self._id, parent_seq).id
        return self._ids[parent_seq]

    def _state_lines(self) -> Iterator[str]:
        from sessiondb.formats.jsonl import records

        for record in records.state_records(self._store.export(self._id), {}):
            if record["type"] in _STATES:
                # A revision grows with each message, and would be news each time.
                del record["revision"]
                yield from self._line_once(
                    record, str(record.get("title", record["time"]))
                )

    def _line_once(self, record: dict[str, Any], name: str) -> Iterator[str]:
        from sessiondb.formats.jsonl import record_lines

        key = record["type"], name
        if key not in self._written:
            self._written.add(key)
            yield from record_lines(record, self._blobs)


def _is_final(record: dict[str, Any], message: Message) -> bool:
    """Return whether a record will not change: open answers begin, their parts grow."""
    if message.time_completed is not None:
        return True
    return record["type"] != "part" and message.role == "assistant"
