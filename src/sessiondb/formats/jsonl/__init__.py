"""jsonl, our own log: one record a line, lossless both ways; see docs/JSONL.md.

`records` says what a session is made of, `values` writes a record as a line and
reads it, `logs` recognises a file, `writer` makes files and bundles, `scan` and
`reader` read them, `growing` finds the records missing from a file, `relay` makes a
source of a session of another database.

Names are imported when they are first used: a search for stores needs `logs` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessiondb.formats.jsonl.growing import missing_lines
    from sessiondb.formats.jsonl.logs import FORMAT
    from sessiondb.formats.jsonl.reader import SYNC_FOLDER, read_log_file, read_stream
    from sessiondb.formats.jsonl.records import deletion_record
    from sessiondb.formats.jsonl.relay import relay_session
    from sessiondb.formats.jsonl.writer import (
        EXPORTER,
        READ,
        file_name,
        record_lines,
        session_lines,
        write_logs,
    )

__all__ = [
    "EXPORTER",
    "FORMAT",
    "READ",
    "SYNC_FOLDER",
    "deletion_record",
    "file_name",
    "missing_lines",
    "read_log_file",
    "read_stream",
    "record_lines",
    "relay_session",
    "session_lines",
    "write_logs",
]

_HOMES = {
    "sessiondb.formats.jsonl.growing": ("missing_lines",),
    "sessiondb.formats.jsonl.logs": ("FORMAT",),
    "sessiondb.formats.jsonl.reader": ("SYNC_FOLDER", "read_log_file", "read_stream"),
    "sessiondb.formats.jsonl.records": ("deletion_record",),
    "sessiondb.formats.jsonl.relay": ("relay_session",),
    "sessiondb.formats.jsonl.writer": (
        "EXPORTER",
        "READ",
        "file_name",
        "record_lines",
        "session_lines",
        "write_logs",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker would take any name for one of the package

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
