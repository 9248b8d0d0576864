"""How a plain log differs from our own and from those of programs: its first lines."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.event_log import fields
from sessiondb.formats.kit.heads import first_objects
from sessiondb.formats.kit.packed import SUFFIXES as PACKED
from sessiondb.formats.kit.remembered import known_fact
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


def is_log(path: Path) -> bool:
    """Return whether the file at *path* is a plain log; False if it cannot be read."""

    def begins_like_plain_log(path: Path) -> bool:
        return is_plain(first_objects(path, HEAD_LINES))

    with suppress(SourceError):
        return bool(known_fact(path, "event-log", begins_like_plain_log))
    return False


def is_plain(records: Iterable[Record]) -> bool:
    """Return whether *records*, the first of a file, are those of a plain log.

    Our own log has the session on each line, and the program in ``session_meta``.
    Codex has a ``session_meta``, too, but no version and no ``seq``.
    """
    enveloped = [record for record in records if _has_envelope(record)]
    messages = [record for record in enveloped if record["type"] != META]
    # A log may have no message yet.
    if not messages:
        return bool(enveloped) and "source" not in enveloped[0]

    if _TYPES.isdisjoint([record["type"] for record in enveloped]):
        return False
    # A few lines of another program's log may name their session, too.
    naming = [record for record in messages if "session_id" in record]
    return len(naming) * 2 < len(messages)


def _has_envelope(record: Record) -> bool:
    """Return whether a record has the keys of every record of a plain log."""
    # A version may be a name.
    return (
        type(record.get("schema_version")) in (int, str)
        and type(record.get("seq")) is int
        and type(record.get("type")) is str
        and bool(keys_in(record, fields.TIME))
    )
