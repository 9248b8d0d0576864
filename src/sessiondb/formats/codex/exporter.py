"""Sessions as rollouts of Codex, each where its home has it.

A rollout by Codex is written as it was: what it continues is in another one. At the
detail `COMPLETE` it has all of that itself, so that Codex can continue it alone. A
session of another program becomes a complete rollout as of 2025, which each release
continues; Codex makes the rest of its home from that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from sessiondb.formats.codex.logs import FOLDERS, ids_in, rollouts_of
from sessiondb.formats.codex.records import record_of
from sessiondb.formats.codex.writer import Writer, title_of
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import Names, continued, is_from, is_native
from sessiondb.formats.kit.fields import (
    as_object,
    as_text,
    fitting,
    integer,
    is_object,
    text,
    within,
    without,
)
from sessiondb.formats.kit.naming import MARK, file_name, uuid_of
from sessiondb.formats.kit.texts import json_line, text_of_time
from sessiondb.formats.protocol import Exporter, Handover, Written
from sessiondb.model import Document, Export, Loss, Message, Session

Record = dict[str, Any]
#: The detail of a rollout that Codex continues: it needs no other one.
COMPLETE = "complete"
#: Keys of a record and of a header that only rollouts with ordinals have.
_NUMBERED = ("ordinal",)
_REFERRING = (
    "forked_from_id",
    "forked_from_ordinal_exclusive",
    "history_base",
    "history_mode",
)
_DATED = re.compile(r"rollout-(\d{4})-(\d\d)-(\d\d)T")


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield the rollouts of each session, and what they do not hold."""
    del together  # a session is a file
    given = map(_unarchived, sessions) if detail == COMPLETE else sessions
    for export in given:
        losses = Losses()
        if not is_from(export.session, "codex"):
            make = _ours
        elif detail == COMPLETE:
            make = _complete
        else:
            make = _theirs
        yield from make(export, losses)
        yield from losses


# -- their own -------------------------------------------------------------------


def _theirs(export: Export, losses: Losses) -> Iterator[Document]:
    """Yield the rollouts of a session that Codex wrote, one more for each revert."""
    session = export.session
    if _is_named(session):
        why = "its name: Codex keeps it beside the rollout"
        losses.add(session.id, "session", "title", why=why)

    records = _numbered(export, losses)
    for file, found in groupby(records, lambda record: record[0]):
        yield Document(_place(session, file), (_text(record) for _, record in found))


def _numbered(export: Export, losses: Losses) -> Iterator[tuple[str, Record]]:
    """Yield the records of a session that Codex wrote, each with its rollout.

    Those of messages that were added here have ordinals if those before them do.
    """
    last: int | None = None
    for file, is_ours, records in _batches(export, losses):
        for record in records:
            if is_ours and last is not None:
                record["ordinal"] = last + 1
            last = fitting(record.get("ordinal"), integer, last)
            yield file, record


def _batches(
    export: Export, losses: Losses
) -> Iterator[tuple[str, bool, Iterable[Record]]]:
    """Yield the records of each message: their rollout, and whether they are ours."""
    session = export.session
    ours = Writer(export, [], losses, Names(session.source_id or session.id))
    file = _file_of(session)
    header = as_object(session.data.get("header"))
    if header:
        yield file, False, [dict(header)]

    for message in filter(_is_own, export.messages):
        file = fitting(message.data.get("segment"), text, file)
        is_ours = is_native(message.id)
        yield file, is_ours, ours.add(message) if is_ours else [record_of(message)]

    yield file, True, ours.end()
    ours.lose_rest(is_own=True)


def _is_own(message: Message) -> bool:
    """Return whether a record is in a rollout of its session, and not copied."""
    return "copied_from" not in message.data


# -- rollouts that need no other one -----------------------------------------------


def _complete(export: Export, losses: Losses) -> Iterator[Document]:
    """Yield a session as one rollout that continues no other."""
    held = replace(export, messages=list(export.messages))
    if _is_part(held):
        session = held.session
        thread = session.source_id or session.id
        header = _header_of(held) or _header(session, thread)
        facts = without(_REFERRING, as_object(header.get("payload")))
        # Its records have no ordinals, so an import must know what it is a copy of.
        head = without(_NUMBERED, header) | {"payload": facts, MARK: session.id}
        records = _flat(held, losses, Names(thread))
        file = _place(session, _file_of(session))
        yield Document(file, map(_text, chain([head], records)))
    else:
        yield from _theirs(held, losses)


def _unarchived(export: Export) -> Export:
    # Codex continues no session that is archived.
    return replace(export, session=replace(export.session, time_archived=None))


def _is_part(export: Export) -> bool:
    """Return whether a rollout has no header, or is one of several: Codex needs all."""
    header = _header_of(export)
    base = within(header, "payload", "history_base")
    segments = (of.data.get("segment") for of in export.messages)
    return not header or any((base, *segments))


def _header_of(export: Export) -> Record:
    """Return the header of the first rollout; empty if it is lost."""
    kept = as_object(export.session.data.get("header"))
    # One with the context of a model is a message.
    headers = filter(_is_header, export.messages)
    return kept or next(map(record_of, headers), {})


def _is_header(message: Message) -> bool:
    of_others = ("copied_from", "segment")
    return message.kind == "session_meta" and message.data.keys().isdisjoint(of_others)


def _flat(export: Export, losses: Losses, names: Names) -> Iterator[Record]:
    """Yield the records of the live path, after the header of a rollout."""
    path = continued(export, export.messages, losses)
    writer = Writer(export, path, losses, names)
    is_theirs = is_from(export.session, "codex")

    for index, message in enumerate(path):
        if is_native(message.id) or not (is_theirs or _is_record(message)):
            yield from writer.of(message, index)
        # The headers of other rollouts name what this one does not continue.
        elif message.kind != "session_meta":
            # Its place was its id, so an import needs another one to find it again.
            yield without(_NUMBERED, record_of(message)) | {MARK: message.id}

    yield from writer.end()
    writer.lose_rest(is_own=is_theirs)


def _is_record(message: Message) -> bool:
    """Return whether a message is a record of Codex; a fork made here has those."""
    envelope = message.data
    return "timestamp" in envelope and is_object(envelope.get("payload"))


# -- of other programs -------------------------------------------------------------


def _ours(export: Export, losses: Losses) -> Iterator[Document]:
    session = export.session
    # Codex finds a session by a UUID alone, and an import finds ours by it again.
    thread = uuid_of(session.id)
    head = [_header(session, thread)]
    # Codex derives a title itself, which changes with the first prompt.
    if _is_named(session):
        title = title_of(thread, session.time_created, session.title)
        head.append({**title, MARK: session.id})

    records = _flat(export, losses, Names(thread))
    file = _place(session, _name(session, thread))
    yield Document(file, map(_text, chain(head, records)))


def _header(session: Session, thread: str) -> Record:
    began = text_of_time(session.time_created)
    facts = {
        "id": thread,
        "timestamp": began,
        "cwd": session.directory,
        "originator": "sessiondb",
        "cli_version": "0.0.0",
        "source": "cli",
        "model_provider": "openai",
    }
    return {"timestamp": began, "type": "session_meta", "payload": facts}


def _is_named(session: Session) -> bool:
    return bool(session.title) and session.title_source != "derived"


# -- files -----------------------------------------------------------------------


def _name(session: Session, thread: str | None) -> str:
    began = text_of_time(session.time_created)[:19].replace(":", "-")
    return f"rollout-{began}-{thread or session.id}.jsonl"


def _file_of(session: Session) -> str:
    """Return the name of the first rollout of a session that Codex wrote."""
    return as_text(session.data.get("rollout")) or _name(session, session.source_id)


def _place(session: Session, name: str) -> str:
    """Return where a home has a rollout; Codex dates the folders by its name."""
    safe = file_name(name)
    if session.time_archived is not None:
        return f"{FOLDERS[1]}/{safe}"

    dated = _DATED.match(name)
    date = (
        dated.groups() if dated else text_of_time(session.time_created)[:10].split("-")
    )
    return "/".join([FOLDERS[0], *date, safe])


def _text(record: Record) -> str:
    return f"{json_line(record)}\n"


def take_in(written: Written, env: Mapping[str, str]) -> Handover:
    """Return the place of a rollout in the home of Codex."""
    header = json.loads(written.text.partition("\n")[0])
    thread = str(within(header, "payload", "id"))
    return Handover([], ["codex", "resume", thread], _home(env) / written.name)


def holds(thread: str, env: Mapping[str, str]) -> bool:
    """Return whether the home of Codex has a rollout of a session."""
    found = (item for item in rollouts_of(_home(env)) if isinstance(item, Path))
    return any(thread in ids for ids in filter(None, map(ids_in, found)))


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("CODEX_HOME") or "~/.codex").expanduser()


EXPORTER = Exporter(
    write,
    read={"branches": True},
    details=("full", COMPLETE),
    take_in=take_in,
    taken=COMPLETE,
    holds=holds,
)
