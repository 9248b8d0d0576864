"""jsonl, our own log: one record a line, lossless both ways; see docs/JSONL.md.

`records` says what a session is made of, `values` writes a record as a line and
reads it, `writer` makes files and bundles, `scan` and `reader` read them,
`growing` finds the records missing from a file, `relay` makes a source of a session
of another database.
"""

from sessiondb.formats.jsonl.growing import additions
from sessiondb.formats.jsonl.reader import FORMAT, SYNC_FOLDER, read, read_stream
from sessiondb.formats.jsonl.records import deleted
from sessiondb.formats.jsonl.relay import relayed
from sessiondb.formats.jsonl.writer import (
    EXPORTER,
    READ,
    file_name,
    lines,
    record_lines,
    write,
)

__all__ = [
    "EXPORTER",
    "FORMAT",
    "READ",
    "SYNC_FOLDER",
    "additions",
    "deleted",
    "file_name",
    "lines",
    "read",
    "read_stream",
    "record_lines",
    "relayed",
    "write",
]
