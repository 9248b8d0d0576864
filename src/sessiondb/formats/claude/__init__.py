"""Claude Code: a transcript for each session, with one line for each block of content.

`logs` finds the transcripts and their sessions, `forks` recognises copies, `tree` makes
messages of lines and decides what each is linked to, `reader` reads them, `drafts`
makes drafts of records by the tables of `fields`, and `records` makes records of them
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from sessiondb.formats.claude.logs import is_home, is_project, is_transcript
from sessiondb.formats.claude.reader import read_home, read_log, read_project
from sessiondb.formats.kit.files import locations
from sessiondb.formats.protocol import ForeignStore, Format

__all__ = ["FORMAT"]

_READERS = {is_transcript: read_log, is_home: read_home, is_project: read_project}


def _at(path: Path) -> Iterator[ForeignStore]:
    found = (read for is_theirs, read in _READERS.items() if is_theirs(path))
    return (ForeignStore("claude", path, read) for read in islice(found, 1))


FORMAT = Format(
    frozenset({".jsonl"}),
    _at,
    locations(("CLAUDE_CONFIG_DIR",), (".claude", ".config/claude")),
)
