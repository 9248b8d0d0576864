"""The statements of `repository.scanning`."""

from __future__ import annotations

from sqlalchemy import func, select

from sessiondb.schema.tables import part

#: The place of the newest part; 0 without any.
NEWEST_PLACE = select(func.coalesce(func.max(part.c.rid), 0))
