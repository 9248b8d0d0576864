"""Codex: rollouts, each a log of what a model was sent and of what a person saw.

Each turn is in a rollout twice: messages are made of the items that the model sees
(``response_item``), and the events beside them say when, at which cost and how it
ended. `logs` finds the rollouts, and which of them continue others; `names` knows what
lies beside them; `reader` yields their sessions, `course` follows one from record to
record, `drafts` makes messages of records, and `records` makes records of them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.codex.logs import FOLDERS, is_home, is_rollout, look_at
from sessiondb.formats.codex.reader import read_home, read_rollout
from sessiondb.formats.kit.files import is_file, is_folder
from sessiondb.formats.kit.logs import unpacked_name
from sessiondb.formats.protocol import ForeignStore, Format

__all__ = ["FORMAT"]


def _at(path: Path) -> Iterator[ForeignStore]:
    if is_folder(path):
        # The folder inside is looked at with what lies beside it.
        if is_home(path) or (path.name in FOLDERS and is_home(path.parent)):
            yield ForeignStore("codex", path, read_home)
    elif is_file(path) and _is_readable(path):
        yield ForeignStore("codex", path, read_rollout)


def _is_readable(path: Path) -> bool:
    plain = unpacked_name(path)
    if plain.suffix != ".jsonl" or (plain != path and is_file(plain)):
        return False
    if plain != path and not is_rollout(plain):
        return False

    try:
        return look_at(path) is not None
    except SourceError:
        # Its reader says why: what packed it may not be installed.
        return plain != path


def _default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return the home of Codex: where it is told to be, else in the user's own."""
    if env.get("CODEX_HOME"):
        return [Path(env["CODEX_HOME"]).expanduser()]

    return [Path(env["HOME"], ".codex")] if env.get("HOME") else []


FORMAT = Format(frozenset({".jsonl", ".zst"}), _at, _default_locations)
