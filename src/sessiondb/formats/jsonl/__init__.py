"""jsonl, our own log: one record a line, lossless both ways; see docs/JSONL.md.

`records` says what a session is made of, `values` writes a record as a line and
reads it, `writer` makes files and bundles, `scan` and `reader` read them,
`growing` finds the records missing from a file, `relay` makes a source of a session
of another database.
"""

from sessiondb.formats.jsonl.growing import missing_lines
from sessiondb.formats.jsonl.reader import (
    FORMAT,
    SYNC_FOLDER,
    read_log_file,
    read_stream,
)
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
