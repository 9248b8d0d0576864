"""Codex: rollouts, each a log of what a model was sent and of what a person saw.

Each turn is in a rollout twice: messages are made of the items that the model sees
(``response_item``), and the events beside them say when, at which cost and how it
ended. `logs` finds the rollouts, and which of them continue others; `names` knows what
lies beside them; `reader` yields their sessions, and `course` follows one from record
to record, with its `usage`, `outcomes` and `sources`. `drafts` makes messages of
records by the tables of `fields`; `records` makes the same records again, `writer`
records of any other session, and `exporter` rollouts of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sessiondb.formats.codex.logs import home_at, is_home, is_rollout, look_at
from sessiondb.formats.kit.files import is_file, is_folder, locations_function
from sessiondb.formats.kit.logs import is_readable, unpacked_name
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

__all__ = ["FORMAT"]

_READER = "sessiondb.formats.codex.reader"
_read_home = late_reader(_READER, "read_home")
_read_rollout = late_reader(_READER, "read_rollout")


def _store_at(path: Path) -> ForeignStore | None:
    # A folder inside a home is read with the files beside it.
    if is_folder(path) and is_home(home_at(path)):
        return ForeignStore("codex", path, _read_home)
    if is_file(path) and _has_name_of_log(path) and is_readable(look_at, path):
        return ForeignStore("codex", path, _read_rollout)
    return None


def _has_name_of_log(path: Path) -> bool:
    plain = unpacked_name(path)
    if plain == path:
        return path.suffix == ".jsonl"
    # Packed logs of other programs have no name to know them by, so that of a rollout
    # is required; one that also exists unpacked is read under that name.
    return is_rollout(plain) and not is_file(plain)


_configured = locations_function(("CODEX_HOME",), ())
_below_home = locations_function((), (".codex",))


def _default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return the home of Codex: that of its setting, else that of the user."""
    return _configured(env) or _below_home(env)


FORMAT = Format(
    frozenset({".jsonl", ".zst"}),
    _store_at,
    _default_locations,
    # The package that unpacks it may be missing.
    names=frozenset({"rollout-*.jsonl.zst"}),
)
