"""Sessions as transcripts of Claude Code, which it resumes.

A transcript of its own is written line for line as it was. A session of another
program becomes its live path, with everything that the program checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from heapq import heappop, heappush
from itertools import groupby
from pathlib import Path
from typing import Any

from sessiondb.errors import InvalidInputError
from sessiondb.formats.claude.agents import (
    PLACES_KEY,
    merge_records,
    number_records,
)
from sessiondb.formats.claude.records import last_uuid, lines_of
from sessiondb.formats.claude.writer import ClaudeWriter, has_lines
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    as_json,
    continued_path,
    is_from,
    is_native,
)
from sessiondb.formats.kit.fields import is_object
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.naming import file_name, further_name, uuid_of
from sessiondb.formats.kit.texts import json_line
from sessiondb.formats.kit.turns import as_usage, with_usage
from sessiondb.formats.protocol import Exporter, Handover, Outline, Written
from sessiondb.model import Document, Export, Loss, Message, Session
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
#: The characters of a directory that its folder does not have: dashes there.
_FOREIGN = late_pattern(r"[^A-Za-z0-9]")
#: Any line with a message, as it is written here.
_MESSAGE = '"message":{'
#: Characters of the name of a folder that are not shortened to a hash.
_LONGEST, _UNSIGNED = 200, 0xFFFFFFFF


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a transcript for each session, and its losses."""
    del detail, together  # a session is a file, and nothing can be left out of it

    for export, *subagents in _transcripts(sessions):
        losses = Losses()
        session = export.session
        name = _path_of(session)
        inner = [number_records(s.session.data, records(s, losses)) for s in subagents]
        lines = merge_records(records(export, losses), inner)
        yield Document(f"{name}.jsonl", (f"{_json_of(line)}\n" for line in lines))

        sidecar = session.data.get("meta")
        if is_from(session, "claude") and is_object(sidecar):
            yield Document(f"{name}.meta.json", [_json_of(sidecar)])
        yield from losses


def _transcripts(sessions: Iterable[Export]) -> Iterator[list[Export]]:
    """Yield each session, with the subagents after it that were in its transcript.

    A session is held until those of its family have come. A subagent whose parent is
    not among them has a transcript of its own.
    """
    for _, family in groupby(sessions, lambda export: export.session.root_id):
        transcripts: dict[str, list[Export]] = {}
        for export in family:
            session = export.session
            is_inside = is_from(session, "claude") and PLACES_KEY in session.data
            if is_inside and session.parent_id in transcripts:
                transcripts[session.parent_id].append(export)
            else:
                transcripts[session.id] = [export]
        yield from transcripts.values()


def _path_of(session: Session) -> str:
    """Return the path of a transcript without its ending, as in a project's folder."""
    parent, slash, agent = _name_of(session).rpartition("/")
    if not slash:
        return file_name(agent)
    return f"{file_name(parent)}/subagents/{file_name(agent)}"


def _name_of(session: Session) -> str:
    """Return the id of a session there; one from elsewhere is found by it again."""
    if is_from(session, "claude"):
        return str(session.source_id)
    return uuid_of(session.id)


def _session_keys(session: Session) -> Record:
    """Return the keys of each line that name the session, or the subagent in it."""
    name = _name_of(session)
    parent, slash, agent = name.rpartition("/")
    if not slash:
        return {"sessionId": name}
    agent_id = agent.removeprefix("agent-")
    return {"sessionId": parent, "isSidechain": True, "agentId": agent_id}


def records(export: Export, losses: Losses) -> Iterator[Record]:
    """Yield the lines of a session; *losses* grow while they are read."""
    if is_from(export.session, "claude"):
        return _original_records(export, losses)
    return _converted_records(export, losses)


def _json_of(record: Mapping[str, Any]) -> str:
    try:
        return json_line(record)
    except (TypeError, ValueError):
        return json_line(as_json(record))


# -- sessions of Claude Code -------------------------------------------------------


def _original_records(export: Export, losses: Losses) -> Iterator[Record]:
    """Yield the lines as they were, and then those of messages that were added here."""
    writer = ClaudeWriter(export, _session_keys(export.session), losses)
    order = _LineOrder()
    #: The last lines of the messages.
    uuids: dict[int | None, str | None] = {}

    for message in export.messages:
        parent_uuid = uuids.get(message.parent_seq)
        if is_native(message.id):
            yield from order.rest()
            writer.last_uuid = parent_uuid
            yield from writer.lines(message)
            uuids[message.seq] = writer.last_uuid
        else:
            writer.lose_added_files(message)
            lines = list(lines_of(message))
            uuids[message.seq] = last_uuid(line for _, line in lines) or parent_uuid
            yield from order.add(lines)

    yield from order.rest()
    writer.lose_rest(is_own=True)


class _LineOrder:
    """The lines of a transcript in their order; further ones of an answer wait."""

    def __init__(self) -> None:
        #: The lines that wait, each with its place and how many were added before.
        self._waiting: list[tuple[int, int, Record]] = []
        self._added = 0
        self._written = 0

    def add(self, lines: Iterable[tuple[int, Record]]) -> Iterator[Record]:
        """Yield the lines that come next; those added have distances from here."""
        for distance, line in lines:
            heappush(self._waiting, (self._written + distance, self._added, line))
            self._added += 1

        while self._waiting and self._waiting[0][0] <= self._written:
            yield heappop(self._waiting)[2]
            self._written += 1

    def rest(self) -> Iterator[Record]:
        """Yield all lines that wait, also for others that are missing."""
        while self._waiting:
            yield heappop(self._waiting)[2]


# -- sessions of other programs ----------------------------------------------------


def _converted_records(export: Export, losses: Losses) -> Iterator[Record]:
    """Yield lines for the live path."""
    path = continued_path(export, export.messages, losses)
    empty = {m.seq: m for m in path if m.role == "assistant" and not has_lines(m)}
    # The usage of such an answer is on the nearest one that has a line.
    path = with_usage(as_usage(m) if m.seq in empty else m for m in path)
    writer = ClaudeWriter(export, _session_keys(export.session), losses, path)
    yield from writer.title()

    order = _compactions_first(path)
    seqs = {message.seq for message in order}
    for message in path:
        # A request for a compaction has no line.
        if message.seq not in seqs:
            writer.convert(message)
    for message in order:
        if message.seq in empty:
            writer.lose("an answer without a text or a call", empty[message.seq])
        yield from writer.lines(message)
    yield from writer.unanswered()

    if writer.first_time is None:
        # Claude Code knows no session without a line of a message.
        writer.lose("a session without a message that has a line")
    elif writer.first_time != export.session.time_created:
        # A session begins with its first line.
        writer.lose(field="time_created")
    writer.lose_rest()


def _compactions_first(path: list[Message]) -> list[Message]:
    """Return the path with each compaction before the messages that it keeps.

    A request for one, which may say what it is to keep, is left out.
    """
    order: list[Message] = []
    requested = None
    for message in path:
        if {part.type for part in message.parts} == {"compaction"}:
            requested = message.parts[0].data.get("tail_start_id")
            continue

        place = len(order)
        if message.kind == "compaction" and message.error is None:
            data = message.data
            first = data.get("first_kept_id") or data.get("tail_start_id") or requested
            names = [other.id for other in order]
            if first in names:
                place = names.index(first)
        order.insert(place, message)

    return order


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
    text = ""
    while number or not text:
        number, digit = divmod(number, 36)
        text = digits[digit] + text
    return text


def names_of(_: Session, message: Outline) -> Iterator[str]:
    """Yield the uuids of the lines that a message becomes, for `Exporter`."""
    yield uuid_of(message.id)
    # A line for each block, and one for each result that only its call has.
    for index in range(2 * message.parts + 1):
        yield uuid_of(further_name(message.id, index))


EXPORTER = Exporter(
    write, read={"branches": True}, take_in=take_in, names_of=names_of, holds=holds
)
