"""pi, oh-my-pi and xcsh: a log of linked records for each session, versions 1 to 3.

`logs` finds the logs and their sessions, `reader` reads them, `tree` decides what each
record is linked to, `drafts` makes messages of records by the tables of `fields`, and
`records` makes records of them again. `places` has the folders of the programs,
`experiments` names stores that are not read.
"""

from __future__ import annotations

from pathlib import Path

from sessiondb.formats.kit.files import is_file, is_folder
from sessiondb.formats.pi import experiments
from sessiondb.formats.pi.logs import SUFFIX, is_home, log_at, owners_of
from sessiondb.formats.pi.places import default_locations
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

__all__ = ["FORMAT"]

_READER = "sessiondb.formats.pi.reader"
_read_home = late_reader(_READER, "read_home")
_read_log = late_reader(_READER, "read_log")


def _pi_store_at(path: Path) -> ForeignStore | None:
    if is_folder(path):
        return _home_at(path)
    if not is_file(path):
        return None
    if path.suffix == SUFFIX:
        log = log_at(path)
        return None if log is None else ForeignStore(log.source, path, _read_log)
    if path.suffix == experiments.SUFFIX and experiments.is_database(path):
        return ForeignStore("pi", path, experiments.read_database)
    return None


def _home_at(folder: Path) -> ForeignStore | None:
    if not is_home(folder):
        return None
    first, *others = owners_of(folder)
    return ForeignStore(first, folder, _read_home, frozenset(others))


FORMAT = Format(
    frozenset({SUFFIX, experiments.SUFFIX}), _pi_store_at, default_locations
)
