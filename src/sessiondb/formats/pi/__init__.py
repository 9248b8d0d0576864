"""pi, oh-my-pi and xcsh: a log of linked records for each session, versions 1 to 3.

`logs` finds the logs and their sessions, `reader` reads them, `tree` decides what each
record is linked to, `drafts` makes messages of records by the tables of `fields`, and
`records` makes records of them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.kit.files import is_file, is_folder
from sessiondb.formats.pi.logs import is_home, is_log, look_at, program_of
from sessiondb.formats.pi.reader import read_home, read_log
from sessiondb.formats.protocol import ForeignStore, Format

__all__ = ["FORMAT"]


def _at(path: Path) -> Iterator[ForeignStore]:
    if is_folder(path):
        if is_home(path):
            yield ForeignStore(program_of(path), path, read_home)
    elif is_log(path) and is_file(path) and _is_readable(path):
        yield ForeignStore("pi", path, read_log)


def _is_readable(path: Path) -> bool:
    try:
        return look_at(path) is not None
    except SourceError:
        return False


def _default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return where the programs keep their sessions, and where pi is told to."""
    told = ("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR")
    places = [Path(env[name]).expanduser() for name in told if env.get(name)]
    if env.get("HOME"):
        homes = (Path(env["HOME"], name, "agent") for name in (".pi", ".omp", ".xcsh"))
        places += homes
    return places


FORMAT = Format(frozenset({".jsonl"}), _at, _default_locations)
