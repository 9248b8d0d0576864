"""The structure of a database: tables and views. No queries.

What an engine adds (its search index, triggers) is in its own folder; SQLite's
`statements` is the complete schema of this release, in the order in which a fresh
file is made. The migrations must arrive at the same objects; a test compares
the two, object by object.
"""

from sessiondb.schema.tables import (
    LIVING_LEASE,
    UNSETTLED,
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
    "LIVING_LEASE",
    "UNSETTLED",
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
    "terminal",
    "todo",
    "tombstone",
]
