"""The statements of `repository.extensions`."""

from __future__ import annotations

from sqlalchemy import select

from sessiondb.engine.expressions import p, texts
from sessiondb.schema import tables

e = tables.extension.c

VERSION = select(e.name, e.version).where(e.name == p("name"))
VERSIONS = select(e.name, e.version).where(e.name.in_(texts("names")))
