"""Sessions as logs of pi, version 3, which pi, oh-my-pi and xcsh open.

A log of theirs is written as it was. A session of another program becomes linked
records with complete answers, because pi reads their usage and model without a check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.conversion import is_from, is_native
from sessiondb.formats.kit.naming import file_name, uuid_of
from sessiondb.formats.kit.texts import text_of_time
from sessiondb.formats.kit.turns import with_usage
from sessiondb.formats.pi.records import record_of
from sessiondb.formats.pi.writer import Writer
from sessiondb.formats.protocol import Exporter, Handover, Written
from sessiondb.model import Document, Export, Loss, Session

Record = dict[str, Any]
#: Their own logs are written with the branches that are not continued.
SOURCES = ("pi", "oh-my-pi", "xcsh")
#: The characters of a directory that are a dash in the name of its folder.
_SEPARATOR = re.compile(r"[/\\:]")


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a log for each session, and what it does not hold."""
    del detail, together  # a session is a file, and nothing can be left out of it
    return documents(sessions, titled=False)


def documents(sessions: Iterable[Export], *, titled: bool) -> Iterator[Document | Loss]:
    """Yield a log for each session; a *titled* one may begin with its title.

    pi opens no log that does not begin with its header.
    """
    for export in sessions:
        losses: list[Loss] = []
        session = export.session
        began = text_of_time(session.time_created).replace(":", "-").replace(".", "-")
        name = f"{began}_{file_name(_name(session))}.jsonl"
        lines = (f"{_line(record)}\n" for record in records(export, losses, titled))
        yield Document(name, lines)
        yield from losses


def _is_theirs(session: Session) -> bool:
    return any(map(partial(is_from, session), SOURCES))


def _name(session: Session) -> str:
    """Return the id of a session in pi; one from elsewhere is found by it again."""
    own = session.source_id if _is_theirs(session) else None
    return own or uuid_of(session.id)


def records(export: Export, losses: list[Loss], titled: bool) -> Iterator[Record]:
    """Yield the records of a session; *losses* grow while they are read."""
    session = export.session
    theirs = _is_theirs(session)
    yield from _heads(session, theirs, titled)

    # Whether a call has a result of its own is known once all messages are.
    messages = export.messages if theirs else with_usage(export.messages)
    writer = Writer(export, losses, () if theirs else messages)
    for message in messages:
        above = writer.above(message)
        if theirs and not is_native(message.id):
            record = record_of(message, above)
            writer.copied(message, record)
            yield record
        else:
            yield from writer.records(message, above)
    if not theirs:
        writer.lose_lists()
    has_title = _has_title(session, theirs, titled)
    yield from writer.end("" if has_title else session.title)


def _has_title(session: Session, theirs: bool, titled: bool) -> bool:
    """Return whether the records of a session name it: those of pi do."""
    slot = theirs and "title_record" in session.data
    return titled if slot else theirs


def _heads(session: Session, theirs: bool, titled: bool) -> Iterator[Record]:
    if theirs:
        slot = session.data.get("title_record") if titled else None
        yield from (dict(head) for head in (slot, session.data.get("header")) if head)
        return

    yield {
        "type": "session",
        "version": 3,
        "id": _name(session),
        "timestamp": text_of_time(session.time_created),
        "cwd": session.directory,
    }


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def take_in(written: Written, env: Mapping[str, str]) -> Handover:
    """Return the place of a log in the store of pi, by ``session-manager.ts``."""
    header = json.loads(written.text.partition("\n")[0])
    place = _folder(written.directory, env) / written.name
    return Handover([], ["pi", "--session", header["id"]], place)


def _folder(directory: str, env: Mapping[str, str]) -> Path:
    """Return the folder in which pi keeps the sessions of *directory*."""
    if env.get("PI_CODING_AGENT_SESSION_DIR"):
        # The logs of all directories are in this one.
        return Path(env["PI_CODING_AGENT_SESSION_DIR"]).expanduser()

    told = env.get("PI_CODING_AGENT_DIR")
    home = Path(told or "~/.pi/agent").expanduser()
    below = _SEPARATOR.sub("-", directory[1:] if directory[:1] in "/\\" else directory)
    return home / "sessions" / f"--{below}--"


EXPORTER = Exporter(write, read={"branches": True}, take_in=take_in)
