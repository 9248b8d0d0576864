"""pi, oh-my-pi and xcsh: a log of linked records for each session, versions 1 to 3.

`logs` finds the logs and their sessions, `reader` reads them, `tree` decides what each
record is linked to, `drafts` makes messages of records by the tables of `fields`, and
`records` makes records of them again. `places` has the folders of the programs,
`experiments` names stores that are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sessiondb.formats.kit.files import is_file, is_folder
from sessiondb.formats.pi import experiments
from sessiondb.formats.pi.logs import SUFFIX, is_home, log_at, owners_of
from sessiondb.formats.pi.places import default_locations
from sessiondb.formats.pi.reader import read_home, read_log
from sessiondb.formats.protocol import ForeignStore, Format

__all__ = ["FORMAT"]


def _at(path: Path) -> Iterator[ForeignStore]:
    if is_folder(path):
        yield from _homes_at(path)
    elif path.suffix in _FILES and is_file(path):
        yield from _FILES[path.suffix](path)


def _homes_at(folder: Path) -> Iterator[ForeignStore]:
    if is_home(folder):
        first, *others = owners_of(folder)
        yield ForeignStore(first, folder, read_home, frozenset(others))


def _logs_at(path: Path) -> Iterator[ForeignStore]:
    log = log_at(path)
    if log is not None:
        yield ForeignStore(log.source, path, read_log)


def _databases_at(path: Path) -> Iterator[ForeignStore]:
    if experiments.is_database(path):
        yield ForeignStore("pi", path, experiments.read_database)


_FILES = {SUFFIX: _logs_at, experiments.SUFFIX: _databases_at}
FORMAT = Format(
    frozenset(_FILES),
    _at,
    default_locations,
)
