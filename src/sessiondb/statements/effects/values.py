"""The statements of `effects.values`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Integer,
    case,
    cast,
    delete,
    func,
    literal_column,
    select,
    text,
    tuple_,
)
from sqlalchemy import update as update_rows

from sessiondb.engine.expressions import insert_or_update, number, p, pairs
from sessiondb.schema.tables import key_value, meta
from sessiondb.schema.terms import UNEXPIRED

_k = key_value.c
_here = (_k.namespace == p("namespace"), _k.key == p("key"))
_unexpired = text(UNEXPIRED)

CURRENT = select(_k.revision, _k.ttl, _k.value, _k.content).where(*_here, _unexpired)
#: The greatest revision of a value that is gone.
REMOVED = select(cast(meta.c.value, Integer)).where(
    meta.c.key == text("'value_revision'")
)


_one: Any = literal_column("1")
FIRST_REVISION = func.coalesce(REMOVED.scalar_subquery(), text("0")) + _one
NEXT_REVISION = _k.revision + _one


def _put_statement() -> Any:
    expires = number("now") + number("ttl")
    created = case(
        (_k.time_expires <= p("now"), p("now")),
        else_=_k.time_created,
    )
    stated = {
        "ttl": number("ttl"),
        "time_updated": p("now"),
        "time_expires": expires,
        "value": p("value"),
        "content": p("content"),
    }
    return (
        insert_or_update(
            key_value,
            "namespace key",
            revision=NEXT_REVISION,
            time_created=created,
            **stated,
        )
        .values(
            namespace=p("namespace"),
            key=p("key"),
            revision=FIRST_REVISION,
            time_created=p("now"),
            **stated,
        )
        .returning(_k.revision)
    )


#: A value that expired counts as a new one, but for its revision.
PUT = _put_statement()
DROP = delete(key_value).where(*_here).returning(_k.revision)
_below = (_k.namespace >= p("low"), _k.namespace <= p("high"))
BELOW = select(func.count(case((_unexpired, _k.key))), func.max(_k.revision)).where(
    *_below
)
DROP_BELOW = delete(key_value).where(*_below)
REFRESH = (
    update_rows(key_value)
    .where(*_here, _k.time_expires > p("now"))
    .values(time_expires=p("now") + _k.ttl)
)
EXPIRED = (
    select(
        _k.namespace,
        _k.key,
        func.coalesce(func.length(_k.value), func.length(_k.content)),
    )
    .where(_k.time_expires <= p("now"))
    .order_by(_k.time_expires)
    .limit(p("rows"))
)
_address = pairs("addresses").c
DROP_EXPIRED = (
    delete(key_value)
    .where(
        tuple_(_k.namespace, _k.key).in_(select(_address.first, _address.second)),
        _k.time_expires <= p("now"),
    )
    .returning(_k.revision)
)
DROP_EXPIRED_BELOW = (
    delete(key_value).where(*_below, _k.time_expires <= p("now")).returning(_k.revision)
)
NEXT_EXPIRY = select(func.min(_k.time_expires)).where(_k.time_expires.is_not(None))
