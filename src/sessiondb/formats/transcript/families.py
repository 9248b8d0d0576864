"""Sessions as files: a subagent stands in its parent where that is among them, all else alone.

One family is held at a time, without its messages. What a session's head says is
known when its messages were read, so these wait in a temporary file meanwhile.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from typing import Protocol

from sessiondb.formats.jsonl.writer import file_name
from sessiondb.formats.transcript.pictures import Album
from sessiondb.formats.transcript.session import Transcript, title
from sessiondb.model import Document, Export, Loss

#: Subagents of subagents stand inside each other up to here, then beside each other.
DEEPEST = 4
#: Characters of a transcript that wait in memory.
_SPOOL = 4 << 20


class Look(Protocol):
    """How a format writes a file of transcripts."""

    SUFFIX: str
    PICTURES: bool

    def opening(self, title: str) -> str:
        """The beginning of a file."""

    def article(self, transcript: Transcript) -> Iterator[str]:
        """One session."""

    def closing(self) -> str:
        """The end of a file."""


def documents(
    sessions: Iterable[Export], look: Look, detail: str, together: bool
) -> Iterator[Document | Loss]:
    """Yield a file for each session that stands alone; *together* they are one."""
    losses: list[Loss] = []
    families = groupby(sessions, key=lambda export: export.session.root_id)
    groups = (_family(list(exports)) for _, exports in families)
    if together:
        members = chain.from_iterable(groups)
        yield Document(f"sessions{look.SUFFIX}", _file(members, look, detail, losses))
        yield from losses
        return
    for member in chain.from_iterable(groups):
        losses.clear()
        name = file_name(member.export.session.id).removesuffix(".jsonl") + look.SUFFIX
        yield Document(name, _file(iter([member]), look, detail, losses))
        yield from losses


class _Member:
    """A session of a family that stands alone, or in another one."""

    def __init__(self, export: Export) -> None:
        self.export, self.depth = export, 0
        self.children: list[_Member] = []

    def transcript(
        self, detail: str, album: Album, numbers: Iterator[int]
    ) -> Transcript:
        """Return it with the subagents that stand in it, each with a number of its own."""
        number = next(numbers)
        children = [child.transcript(detail, album, numbers) for child in self.children]
        return Transcript(
            self.export,
            detail,
            album,
            number=number,
            depth=self.depth,
            children=children,
        )


def _family(exports: list[Export]) -> list[_Member]:
    """Return those that stand alone; parents come first."""
    members: dict[str, _Member] = {}
    alone = []
    for export in exports:
        session = export.session
        member = members[session.id] = _Member(export)
        above = members.get(session.parent_id or "")
        if session.relation == "subagent" and above and above.depth < DEEPEST:
            member.depth = above.depth + 1
            above.children.append(member)
        else:
            alone.append(member)
    return alone


def _file(
    members: Iterator[_Member], look: Look, detail: str, losses: list[Loss]
) -> Iterator[str]:
    album = Album(takes=look.PICTURES)
    numbers = iter(range(1, 1 << 62))
    opened = False
    for member in members:
        if not opened:
            yield look.opening(title(member.export))
            opened = True
        transcript = member.transcript(detail, album, numbers)
        yield from look.article(transcript)
        losses += transcript.losses()
        losses += [Loss(member.export.session.id, why) for why in album.losses]
        album.losses.clear()
    if opened:
        yield look.closing()


def spooled(pieces: Iterable[str], head: Callable[[], str]) -> Iterator[str]:
    """Yield *head* and then *pieces*, which are made first."""
    with tempfile.SpooledTemporaryFile(
        _SPOOL, "w+", encoding="utf-8", newline=""
    ) as spool:
        for piece in pieces:
            spool.write(piece)
        yield head()
        spool.seek(0)
        while text := spool.read(1 << 16):
            yield text
