"""The statements of `importing.beside.values`."""

from __future__ import annotations

from sqlalchemy import or_

from sessiondb.engine.expressions import insert_or_update, p
from sessiondb.importing.beside.values import STATED
from sessiondb.schema.tables import key_value
from sessiondb.statements.effects.values import FIRST_REVISION, NEXT_REVISION

_stated = {name: p(name) for name in STATED}
MERGE = insert_or_update(
    key_value,
    "namespace key",
    only=or_(
        key_value.c.time_updated < p("time_updated"),
        key_value.c.time_expires <= p("now"),
    ),
    revision=NEXT_REVISION,
    **_stated,
).values(namespace=p("namespace"), key=p("key"), revision=FIRST_REVISION, **_stated)
