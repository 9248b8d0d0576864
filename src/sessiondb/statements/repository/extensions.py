"""The statements of `repository.extensions`."""

from __future__ import annotations

from sqlalchemy import select

from sessiondb.engine.expressions import texts
from sessiondb.schema import tables

e = tables.extension.c

VERSIONS = select(e.name, e.version).where(e.name.in_(texts("names")))
