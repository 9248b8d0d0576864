"""The statements of `importing.known_files`."""

from __future__ import annotations

from sqlalchemy import delete, select

from sessiondb.engine.expressions import p
from sessiondb.schema.tables import import_file

IN_FOLDER = select(import_file.c.name, import_file.c.stamp, import_file.c.facts).where(
    import_file.c.folder == p("folder")
)
FORGET = delete(import_file).where(
    import_file.c.folder == p("folder"), import_file.c.name == p("name")
)
