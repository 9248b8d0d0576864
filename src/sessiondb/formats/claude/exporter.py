"""Sessions as transcripts of Claude Code, which it resumes.

A transcript of its own is written line for line as it was. A session of another
program becomes its live path, with everything that the program checks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from heapq import heappop, heappush
from itertools import groupby
from pathlib import Path
from typing import Any

from sessiondb.errors import InvalidInputError
from sessiondb.formats.claude.agents import PLACES_KEY, merge_records, number_records
from sessiondb.formats.claude.records import last_uuid, lines_of
from sessiondb.formats.claude.writer import Writer, has_lines
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    as_json,
    continued,
    is_from,
    is_native,
)
from sessiondb.formats.kit.fields import is_object
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.naming import file_name, further, uuid_of
from sessiondb.formats.kit.texts import json_line
from sessiondb.formats.kit.turns import as_usage, with_usage
from sessiondb.formats.protocol import Exporter, Handover, Outline, Written
from sessiondb.model import Document, Export, Loss, Message, Session

Record = dict[str, Any]
#: The characters of a directory that its folder has; others are dashes there.
_FOREIGN = re.compile(r"[^A-Za-z0-9]")
#: Any line with a message, as it is written here.
_MESSAGE = '"message":{'
#: Characters of the name of a folder that are not shortened to a hash.
_LONGEST, _UNSIGNED = 200, 0xFFFFFFFF


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a transcript for each session, and its losses."""
    del detail, together  # a session is a file, and nothing can be left out of it

    for export, *inside in _transcripts(sessions):
        losses = Losses()
        name = _place(export.session)
        within = [number_records(e.session.data, records(e, losses)) for e in inside]
        found = merge_records(records(export, losses), within)
        yield Document(f"{name}.jsonl", (f"{_line(record)}\n" for record in found))

        sidecar = export.session.data.get("meta")
        if is_from(export.session, "claude") and is_object(sidecar):
            yield Document(f"{name}.meta.json", [_line(sidecar)])
        yield from losses


def _transcripts(sessions: Iterable[Export]) -> Iterator[list[Export]]:
    """Yield each session, with the subagents after it that were in its transcript.

    A session is held until those of its family have come. A subagent whose parent is
    not among them has a transcript of its own.
    """
    for _, family in groupby(sessions, lambda export: export.session.root_id):
        held: dict[str, list[Export]] = {}
        for export in family:
            session = export.session
            above = held.get(session.parent_id or "")
            if above is not None and _is_inside(session):
                above.append(export)
            else:
                held[session.id] = [export]
        yield from held.values()


def _is_inside(session: Session) -> bool:
    return is_from(session, "claude") and PLACES_KEY in session.data


def _place(session: Session) -> str:
    """Return the path of a transcript without its ending, as in a project's folder."""
    parent, slash, agent = _name(session).rpartition("/")
    if not slash:
        return file_name(agent)
    return f"{file_name(parent)}/subagents/{file_name(agent)}"


def _name(session: Session) -> str:
    """Return the id of a session there; one from elsewhere is found by it again."""
    if is_from(session, "claude"):
        return str(session.source_id)
    return uuid_of(session.id)


def _keys(session: Session) -> Record:
    """Return the keys of each line that name the session, or the subagent in it."""
    name = _name(session)
    parent, slash, agent = name.rpartition("/")
    if not slash:
        return {"sessionId": name}
    named = agent.removeprefix("agent-")
    return {"sessionId": parent, "isSidechain": True, "agentId": named}


def records(export: Export, losses: Losses) -> Iterator[Record]:
    """Yield the lines of a session; *losses* grow while they are read."""
    if is_from(export.session, "claude"):
        yield from _own(export, losses)
        return

    path = continued(export, export.messages, losses)
    empty = {m.seq: m for m in path if m.role == "assistant" and not has_lines(m)}
    # What such an answer used is on the nearest one that has a line.
    path = with_usage(as_usage(m) if m.seq in empty else m for m in path)
    writer = Writer(export, _keys(export.session), losses, path)
    yield from writer.title()
    order = _in_order(path)
    placed_seqs = {message.seq for message in order}
    for message in path:
        # A request for a compaction has no line.
        if message.seq not in placed_seqs:
            writer.convert(message)
    for message in order:
        if message.seq in empty:
            why = "an answer without a text or a call"
            writer.lose(why, empty[message.seq])
        yield from writer.lines(message)
    yield from writer.unanswered()
    if writer.began != export.session.time_created:
        # A session begins with its first line.
        writer.lose(field="time_created")
    writer.lose_rest()


# -- sessions of Claude Code -------------------------------------------------------


def _own(export: Export, losses: Losses) -> Iterator[Record]:
    """Yield the lines as they were, and then those of messages that were added here."""
    writer = Writer(export, _keys(export.session), losses)
    lines = _Lines()
    last: dict[int | None, str | None] = {}

    for message in export.messages:
        if is_native(message.id):
            yield from lines.rest()
            writer.last = last.get(message.parent_seq)
            yield from writer.lines(message)
            last[message.seq] = writer.last
            continue

        own = list(lines_of(message))
        above = last.get(message.parent_seq)
        last[message.seq] = last_uuid(record for _, record in own) or above
        yield from lines.added(own)

    yield from lines.rest()
    writer.lose_rest(is_own=True)


class _Lines:
    """The lines of a transcript in their order; further ones of an answer wait."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Record]] = []
        self._numbers = itertools.count()
        self._count = 0

    def added(self, lines: Iterable[tuple[int, Record]]) -> Iterator[Record]:
        """Yield the lines that come next; those given have distances from here."""
        for after, record in lines:
            place = self._count + after, next(self._numbers), record
            heappush(self._waiting, place)

        while self._waiting and self._waiting[0][0] <= self._count:
            yield heappop(self._waiting)[2]
            self._count += 1

    def rest(self) -> Iterator[Record]:
        """Yield all lines that wait, also for others that are missing."""
        while self._waiting:
            yield heappop(self._waiting)[2]


# -- sessions of other programs ----------------------------------------------------


def _in_order(path: list[Message]) -> list[Message]:
    """Return the path with each compaction before the messages that it keeps.

    A request for one, which may say what it is to keep, is left out.
    """
    order: list[Message] = []
    tail = None

    for message in path:
        if {part.type for part in message.parts} == {"compaction"}:
            tail = message.parts[0].data.get("tail_start_id")
            continue

        place = len(order)
        if message.kind == "compaction" and message.error is None:
            kept = message.data.get("first_kept_id"), message.data.get("tail_start_id")
            place = _place_of(next(filter(None, (*kept, tail)), None), order)
        order.insert(place, message)

    return order


def _place_of(name: Any, messages: list[Message]) -> int:
    """Return the place of the message with that *name*; without one, the end."""
    names = [message.id for message in messages]
    return names.index(name) if name in names else len(names)


def _line(record: Mapping[str, Any]) -> str:
    try:
        return json_line(record)
    except (TypeError, ValueError):
        return json_line(as_json(record))


# -- the store of Claude Code ------------------------------------------------------


def take_in(written: Written, env: Mapping[str, str]) -> Handover:
    """Return the place of a transcript in the store of Claude Code.

    Raises `InvalidInputError` for a session without messages.
    """
    if _MESSAGE not in written.text:
        raise InvalidInputError("Claude Code continues no session without messages")

    place = _projects(env) / folder_of(written.directory) / written.name
    name = written.name.removesuffix(".jsonl")
    return Handover([], ["claude", "--resume", name], place)


def holds(session: str, env: Mapping[str, str]) -> bool:
    """Return whether the store of Claude Code has a transcript of a session.

    A subagent, which is never continued, counts as held by its session.
    """
    if "/" in session:
        return True
    with suppress(OSError):
        folders = _projects(env).iterdir()
        return any(is_file(folder / f"{session}.jsonl") for folder in folders)
    return False


def _projects(env: Mapping[str, str]) -> Path:
    home = env.get("CLAUDE_CONFIG_DIR") or "~/.claude"
    return Path(home).expanduser() / "projects"


def folder_of(directory: str) -> str:
    """Return the name of the folder for *directory*, as ``claude-agent-sdk`` has it."""
    name = _FOREIGN.sub("-", directory)
    if len(name) <= _LONGEST:
        return name
    # Of a 32-bit hash with a sign, over the units that JavaScript has of a text.
    number = 0
    units = memoryview(directory.encode("utf-16-le", "surrogatepass")).cast("H")
    for unit in units:
        number = (number * 31 + unit) & _UNSIGNED
    return f"{name[:_LONGEST]}-{_base36(min(number, _UNSIGNED + 1 - number))}"


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    found = ""
    while number or not found:
        number, digit = divmod(number, 36)
        found = digits[digit] + found
    return found


def names_of(_: Session, message: Outline) -> Iterator[str]:
    """Yield the uuids of the lines that a message becomes, for `Exporter`."""
    yield uuid_of(message.id)
    # A line for each block, and one for each result that only its call has.
    for index in range(2 * message.parts + 1):
        yield uuid_of(further(message.id, index))


EXPORTER = Exporter(
    write, read={"branches": True}, take_in=take_in, names_of=names_of, holds=holds
)
