"""How a plain log differs from our own and from those of programs: its first lines."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.event_log import fields
from sessiondb.formats.kit.heads import first_objects
from sessiondb.formats.kit.packed import SUFFIXES as PACKED
from sessiondb.formats.kit.spelled import keys_in

Record = dict[str, Any]
#: Lines that are looked at.
HEAD_LINES = 20
SUFFIXES = PACKED | {".jsonl"}
#: The name of the source.
SOURCE = "event-log"
META = "session_meta"
#: Types by which a log is recognised: many programs have logs with numbers.
_TYPES = fields.TYPES | {META}
#: The keys of every record, and the types of their values: a version may be a name.
_ENVELOPES = [
    {"schema_version": version, "seq": int, "type": str} for version in (int, str)
]


def is_log(path: Path) -> bool:
    """Return whether the file at *path* is a plain log; False if it cannot be read."""
    try:
        return is_plain(first_objects(path, HEAD_LINES))
    except SourceError:
        return False


def is_plain(records: Iterable[Record]) -> bool:
    """Return whether *records*, the first of a file, are those of a plain log.

    Our own log has the session on each line, and the program in ``session_meta``.
    Codex has a ``session_meta``, too, but no version and no ``seq``.
    """
    enveloped = list(filter(_has_envelope, records))
    messages = [record for record in enveloped if record["type"] != META]
    # A log may have no message yet.
    if not messages:
        return bool(enveloped) and "source" not in enveloped[0]

    count = sum("session_id" in record for record in messages)
    is_known = not _TYPES.isdisjoint(map(itemgetter("type"), enveloped))
    # A few lines of another program's log may name their session, too.
    return is_known and count * 2 < len(messages)


def _has_envelope(record: Record) -> bool:
    types = {key: type(record.get(key)) for key in _ENVELOPES[0]}
    return types in _ENVELOPES and bool(keys_in(record, fields.TIME))
