"""Sessions as files: a subagent inside its parent if that is among them, others alone.

One family is held at a time, without its messages. The head of a session is known
only when its messages were read, so those wait in a temporary file.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, groupby

from sessiondb.dataclass import dataclass, field, replace
from sessiondb.errors import SessionDBError, StorageError, StorageFullError
from sessiondb.formats.transcript.detail import LEVELS, Detail
from sessiondb.formats.transcript.facts import session_title
from sessiondb.formats.transcript.look import Look
from sessiondb.formats.transcript.naming import transcript_name
from sessiondb.formats.transcript.pictures import Album
from sessiondb.formats.transcript.session import Transcript
from sessiondb.model import Document, Export, Loss

#: Subagents of subagents are nested up to here; deeper ones are siblings.
DEEPEST = 4
#: Characters of a transcript that wait in memory, and that are read again at once.
_SPOOL, _BLOCK = 4 << 20, 1 << 16
_FULL = (errno.ENOSPC, errno.EDQUOT)


def transcript_documents(
    sessions: Iterable[Export], look: Look, detail: str, together: bool
) -> Iterator[Document | Loss]:
    """Yield a file for each session that is not nested; *together* they are one file.

    The last of several files is the index of them, if the look has one. *detail* is one
    of `detail.LEVELS`. The losses of a file follow it.
    """
    level = LEVELS[detail]
    losses: list[Loss] = []
    families = groupby(sessions, key=lambda export: export.session.root_id)
    members = (member for _, exports in families for member in _join_family(exports))
    if together:
        chunks = _file_pieces(members, look, level, losses)
        yield Document(f"sessions{look.SUFFIX}", chunks)
        yield from losses
        return

    pages: list[tuple[str, Export]] = []
    used = {"index"}
    for member in members:
        losses.clear()
        session = member.export.session
        name = f"{transcript_name(session, used)}{look.SUFFIX}"
        pages.append((name, replace(member.export, messages=())))
        chunks = _file_pieces(iter([member]), look, level, losses)
        yield Document(name, chunks)
        yield from losses

    index = look.index(pages) if len(pages) > 1 else ""
    if index:
        yield Document(f"index{look.SUFFIX}", [index])


@dataclass(eq=False, slots=True)
class _Member:
    """A session of a family, with the subagents that are nested in it."""

    export: Export
    depth: int = 0
    children: list[_Member] = field(default_factory=list)

    def make_transcript(
        self, detail: Detail, album: Album, numbers: Iterator[int]
    ) -> Transcript:
        """Return its transcript, and those inside it; each has a number of its own."""
        number = next(numbers)
        children = [
            child.make_transcript(detail, album, numbers) for child in self.children
        ]
        return Transcript(
            self.export,
            detail,
            album,
            number=number,
            depth=self.depth,
            children=children,
        )


def _join_family(exports: Iterable[Export]) -> list[_Member]:
    """Return those that are not nested; parents come first."""
    members: dict[str | None, _Member] = {}
    alone = []
    for export in exports:
        session = export.session
        member = members[session.id] = _Member(export)
        parent = members.get(session.parent_id)
        if session.relation != "subagent" or parent is None or parent.depth >= DEEPEST:
            alone.append(member)
        else:
            member.depth = parent.depth + 1
            parent.children.append(member)
    return alone


def _file_pieces(
    members: Iterator[_Member], look: Look, detail: Detail, losses: list[Loss]
) -> Iterator[str]:
    album = Album(takes=look.PICTURES)
    numbers = count(1)
    is_open = False
    for member in members:
        if not is_open:
            yield look.opening(session_title(member.export.session))
            is_open = True
        transcript = member.make_transcript(detail, album, numbers)
        yield from look.article(transcript)
        losses += transcript.losses()
        losses += [Loss(member.export.session.id, loss) for loss in album.losses]
        album.losses.clear()

    if is_open:
        yield look.closing()


def spool_pieces(pieces: Iterable[str], head: Callable[[], str]) -> Iterator[str]:
    """Yield *head* and then *pieces*, which are made first.

    Raises `StorageError` if there is no space for those that wait on the disk.
    """
    # Closing the file writes too, so its errors are translated around all of its use.
    with (
        _translate_errors(),
        tempfile.SpooledTemporaryFile(
            _SPOOL, "w+", encoding="utf-8", newline=""
        ) as spool,
    ):
        for piece in pieces:
            spool.write(piece)

        yield head()
        spool.seek(0)
        yield from iter(partial(spool.read, _BLOCK), "")


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise an error of the system about the temporary file as a `StorageError`."""
    try:
        yield
    except SessionDBError:
        raise
    except OSError as error:
        kind = StorageFullError if error.errno in _FULL else StorageError
        raise kind(
            f"temporary directory: {error.strerror or error}",
            hint="free some disk space, or set TMPDIR to a larger directory",
        ) from error
