"""The statements of `repository.values`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists, func, or_, select, text, true, tuple_

from sessiondb.engine.expressions import p, pairs
from sessiondb.repository.values import COLUMNS, STORED
from sessiondb.schema.tables import key_value
from sessiondb.schema.terms import UNEXPIRED

_columns = [key_value.c[name] for name in COLUMNS]
_k = key_value.c

ALL = select(*_columns)
ONE = ALL.where(_k.namespace == p("namespace"), _k.key == p("key"), text(UNEXPIRED))


def _several_statement() -> Any:
    wanted = pairs("addresses")
    return (
        select(*_columns)
        .select_from(wanted)
        .where(
            _k.namespace == wanted.c.first, _k.key == wanted.c.second, text(UNEXPIRED)
        )
    )


SEVERAL = _several_statement()
ROWS = (
    select(*[_k[name] for name in STORED])
    .where(
        tuple_(_k.namespace, _k.key) > tuple_(p("namespace"), p("key")), text(UNEXPIRED)
    )
    .order_by(_k.namespace, _k.key)
    .limit(p("rows"))
)


def _namespaces_statement() -> Any:
    """Look up one namespace after the other, whatever number of keys each has."""

    def next_after(place: Any) -> Any:
        return (
            select(func.min(_k.namespace))
            .where(_k.namespace > place, _k.namespace <= p("high"))
            .scalar_subquery()
        )

    found = select(next_after(p("after")).label("namespace")).cte(
        "found", recursive=True
    )
    found = found.union_all(
        select(next_after(found.c.namespace)).where(found.c.namespace.is_not(None))
    )
    # Nearly always no value has expired: then no row is read.
    first_expiry = select(func.min(_k.time_expires)).where(_k.time_expires.is_not(None))
    none_expired = func.coalesce(first_expiry.scalar_subquery() > p("now"), true())
    living = key_value.alias("living")
    is_used = or_(
        none_expired,
        exists().where(living.c.namespace == found.c.namespace, text(UNEXPIRED)),
    )
    return (
        select(found.c.namespace)
        .where(found.c.namespace.is_not(None), is_used)
        .limit(p("rows"))
    )


NAMESPACES = _namespaces_statement()
