"""pi, oh-my-pi and xcsh: a log of linked records for each session, versions 1 to 3.

`logs` finds the logs and their sessions, `reader` reads them, `tree` decides what each
record is linked to, `drafts` makes messages of records by the tables of `fields`, and
`records` makes records of them again. `experiments` names stores that are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sessiondb.formats.kit.files import is_file, is_folder, locations
from sessiondb.formats.kit.logs import is_readable
from sessiondb.formats.pi import experiments
from sessiondb.formats.pi.logs import is_home, is_log, look_at, owners_of
from sessiondb.formats.pi.reader import read_home, read_log
from sessiondb.formats.protocol import ForeignStore, Format

__all__ = ["FORMAT"]


def _at(path: Path) -> Iterator[ForeignStore]:
    if is_folder(path):
        if is_home(path):
            first, *others = owners_of(path)
            yield ForeignStore(first, path, read_home, frozenset(others))
        return

    if is_log(path) and is_file(path) and is_readable(look_at, path):
        (owner,) = owners_of(path)
        yield ForeignStore(owner, path, read_log)
    if path.suffix == experiments.SUFFIX and experiments.is_database(path):
        yield ForeignStore("pi", path, experiments.read_database)


FORMAT = Format(
    frozenset({".jsonl", experiments.SUFFIX}),
    _at,
    locations(
        ("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"),
        (".pi/agent", ".omp/agent", ".xcsh/agent"),
    ),
)
