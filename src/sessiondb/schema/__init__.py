"""The structure of the file: tables, search index, views. No queries.

`statements` is the complete schema of this release, in the order in which a fresh
file is made. The migrations must arrive at the same objects; a test compares
the two, object by object.
"""

from sessiondb.schema.ddl import APPLICATION_ID, HEAD, VERSION, statements
from sessiondb.schema.tables import (
    LIVING_LEASE,
    blob,
    deletion,
    file_diff,
    import_ledger,
    label,
    lease,
    merge_base,
    message,
    meta,
    metadata,
    part,
    project,
    project_directory,
    prompt,
    session,
    terminal,
    todo,
    tombstone,
)

__all__ = [
    "APPLICATION_ID",
    "HEAD",
    "LIVING_LEASE",
    "VERSION",
    "blob",
    "deletion",
    "file_diff",
    "import_ledger",
    "label",
    "lease",
    "merge_base",
    "message",
    "meta",
    "metadata",
    "part",
    "project",
    "project_directory",
    "prompt",
    "session",
    "statements",
    "terminal",
    "todo",
    "tombstone",
]
