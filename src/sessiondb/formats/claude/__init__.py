"""Claude Code: a transcript for each session, with one line for each block of content.

`logs` finds the transcripts and their sessions, `agents` those of subagents in them,
`forks` recognises copies, `tree` makes messages of lines and decides what each is
linked to, `index` collects the properties of a session, and `reader` reads both.
`drafts` makes drafts of records by the tables of `fields`, with the outputs that
`files` finds, and `history` reads the prompt history. `records` makes the same records
again, `writer` lines of any other session, and `exporter` transcripts of both.
"""

from __future__ import annotations

from pathlib import Path

from sessiondb.formats.claude.logs import is_home, is_project, is_transcript
from sessiondb.formats.kit.files import locations_function
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

__all__ = ["FORMAT"]

_READER = "sessiondb.formats.claude.reader"
_read_log = late_reader(_READER, "read_log")
_read_home = late_reader(_READER, "read_home")
_read_project = late_reader(_READER, "read_project")


def _at(path: Path) -> ForeignStore | None:
    if is_transcript(path):
        return ForeignStore("claude", path, _read_log)
    if is_home(path):
        return ForeignStore("claude", path, _read_home)
    if is_project(path):
        return ForeignStore("claude", path, _read_project)
    return None


FORMAT = Format(
    frozenset({".jsonl"}),
    _at,
    locations_function(("CLAUDE_CONFIG_DIR",), (".claude", ".config/claude")),
)
