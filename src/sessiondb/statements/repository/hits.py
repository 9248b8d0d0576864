"""The statements of `repository.hits`."""

from __future__ import annotations

from sessiondb.engine.expressions import texts
from sessiondb.schema.tables import session
from sessiondb.statements.repository.decode import select_session

#: The sessions of the list parameter ``ids``, as lists have them.
SESSIONS_BY_ID = select_session.where(session.c.id.in_(texts("ids")))
