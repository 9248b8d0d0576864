"""Claude Code: a transcript for each session, with one line for each block of content.

`logs` finds the transcripts and their sessions, `forks` recognises copies, `tree` makes
messages of lines and decides what each is linked to, `reader` reads them, `drafts`
makes drafts of records by the tables of `fields`, and `records` makes records of them
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.claude.logs import is_home, is_project, look_at
from sessiondb.formats.claude.reader import read_home, read_log, read_project
from sessiondb.formats.kit.files import is_file, is_folder
from sessiondb.formats.protocol import ForeignStore, Format

__all__ = ["FORMAT"]


def _at(path: Path) -> Iterator[ForeignStore]:
    if is_folder(path):
        if is_home(path):
            yield ForeignStore("claude", path, read_home)
        elif is_project(path):
            yield ForeignStore("claude", path, read_project)
    elif path.suffix == ".jsonl" and is_file(path) and _is_readable(path):
        yield ForeignStore("claude", path, read_log)


def _is_readable(path: Path) -> bool:
    try:
        return look_at(path) is not None
    except SourceError:
        return False


def _default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return the home that the environment names, and the usual ones."""
    named = env.get("CLAUDE_CONFIG_DIR")
    places = [Path(named).expanduser()] if named else []
    if env.get("HOME"):
        places += [Path(env["HOME"], name) for name in (".claude", ".config/claude")]
    return places


FORMAT = Format(frozenset({".jsonl"}), _at, _default_locations)
