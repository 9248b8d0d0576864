"""jsonl, our own log: one record a line, lossless both ways; see docs/JSONL.md.

`records` says what a session is made of, `values` writes a record as a line and
reads it, `writer` makes files and bundles, `scan` and `reader` read them,
`growing` finds the records missing from a file.
"""

from sessiondb.formats.jsonl.growing import additions
from sessiondb.formats.jsonl.reader import (
    SUFFIXES,
    SYNC_FOLDER,
    at,
    default_locations,
    read,
)
from sessiondb.formats.jsonl.records import deleted
from sessiondb.formats.jsonl.writer import (
    DETAILS,
    READ,
    TOGETHER,
    file_name,
    lines,
    record_lines,
    write,
)

__all__ = [
    "DETAILS", "READ", "SUFFIXES", "SYNC_FOLDER", "TOGETHER", "additions", "at",
    "default_locations", "deleted", "file_name", "lines", "read", "record_lines", "write",
]  # fmt: skip
