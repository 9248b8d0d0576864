"""Values by namespace and key.

A value that expired is never returned, whether its row is still there or not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sessiondb.arguments import one_of
from sessiondb.engine.conditions import Condition, meets
from sessiondb.engine.sql import ComposedStatement, Statement
from sessiondb.errors import InvalidInputError
from sessiondb.model import Page, bounds
from sessiondb.model.damage import damaged
from sessiondb.model.values import (
    KeyValue,
    ValueAddress,
    names_in,
    namespace_text,
    range_below,
    value_name,
)
from sessiondb.repository import Read, Rows, engine_in_use, time_now
from sessiondb.repository.sessions import check_limit, decode_cursor, encode_cursor
from sessiondb.schema.rows import columns
from sessiondb.schema.terms import UNEXPIRED

COLUMNS = (
    "namespace", "key", "revision", "time_created", "time_updated", "time_expires",
    "value", "content",
)  # fmt: skip
#: The columns of a value itself, wherever it is stored.
STORED = columns("key_value", without=("rid", "revision"))
ORDERS = ("key", "updated")
_decode_at = json.JSONDecoder().raw_decode
#: Any name, in a pattern of a namespace.
WILDCARD = "*"
#: Rows that are read at once where only Python can decide which of them are meant.
_FEW, _MANY = 100, 1_000

_ONE = Statement("repository.values.ONE")
_SEVERAL = Statement("repository.values.SEVERAL")
_ALL = Statement("repository.values.ALL")
_ROWS = Statement("repository.values.ROWS")
_NAMESPACES = Statement("repository.values.NAMESPACES")


def _key_value(row: Sequence[Any]) -> KeyValue:
    namespace, key, revision, created, updated, expires, value, content = row
    try:
        return KeyValue(
            names_in(namespace),
            key,
            content if value is None else _decoded(value),
            revision,
            created,
            updated,
            expires,
        )
    except (ValueError, RecursionError) as error:
        raise damaged(value_name((namespace, key)), error) from error


def _decoded(text: str) -> Any:
    """Return a JSON value; `json.loads` takes twice as long for a short one."""
    try:
        value, end = _decode_at(text, 0)
    except ValueError:
        return json.loads(text)
    # A shell may have written spaces around it.
    return value if end == len(text) else json.loads(text)


def value_at(address: ValueAddress) -> Read[KeyValue | None]:
    """Return one value; None if there is none."""
    namespace, key = address
    now = yield from time_now()
    rows = yield _ONE, {"namespace": namespace, "key": key, "now": now}
    return _key_value(rows[0]) if rows else None


def values_at(addresses: Sequence[ValueAddress]) -> Read[list[KeyValue | None]]:
    """Return the values of *addresses* in their order; None where there is none."""
    distinct = json.dumps(list(dict.fromkeys(addresses)))
    now = yield from time_now()
    rows = yield _SEVERAL, {"addresses": distinct, "now": now}
    by_address = {(row[0], row[1]): _key_value(row) for row in rows}
    return [by_address.get(address) for address in addresses]


def rows_after(address: ValueAddress, count: int) -> Read[Rows]:
    """Return up to *count* rows that have not expired, behind *address*, by address.

    Each has the columns `STORED`, for another database.
    """
    namespace, key = address
    place = {"namespace": namespace, "key": key}
    now = yield from time_now()
    return (yield _ROWS, {**place, "rows": count, "now": now})


# -- lists ---------------------------------------------------------------------

_RANGE = "namespace BETWEEN :low AND :high"
_AFTER, _BEFORE = (f"(namespace, key) {sign} (:namespace, :key)" for sign in (">", "<"))
#: Whether it is reversed → the order by key, and the condition of what follows a place.
#: The place is one bound of the range: beside a wider one SQLite would take that, and
#: step over the rows of all pages before.
_BY_KEY = {
    False: ("namespace, key", f"namespace <= :high AND {_AFTER}"),
    True: ("namespace DESC, key DESC", f"namespace >= :low AND {_BEFORE}"),
}
#: The same by the last update; reversed the oldest is first.
_BY_UPDATE = {
    False: (
        "time_updated DESC, namespace, key",
        f"{_RANGE} AND (time_updated < :updated OR time_updated = :updated "
        f"AND {_AFTER})",
    ),
    True: (
        "time_updated, namespace DESC, key DESC",
        f"{_RANGE} AND (time_updated > :updated OR time_updated = :updated "
        f"AND {_BEFORE})",
    ),
}


def list_values(
    prefix: tuple[str, ...],
    conditions: Sequence[Condition],
    *,
    order: str,
    reverse: bool,
    limit: int,
    offset: int,
    cursor: str | None,
) -> Read[Page[KeyValue]]:
    """Return one page of the values of a namespace and of all below it.

    Raises `InvalidInputError`.
    """
    one_of(order, ORDERS, "order")
    check_limit(limit)
    bounds.integer(offset, "offset", least=0)
    engine = yield from engine_in_use()
    candidates, params = engine.dialect.candidates("value", conditions)
    low, high = range_below(prefix)
    order_by, following = (_BY_KEY if order == "key" else _BY_UPDATE)[reverse]
    place = {} if cursor is None else _place_in(cursor, order)
    if place:
        _check_range(place["namespace"], low, high)

    items: list[KeyValue] = []
    # With conditions, only Python knows which of the rows before the page count.
    skipped_rows = 0 if conditions else offset
    first = offset - skipped_rows
    end = first + limit
    wanted = end + 1
    every = _ALL.text_on(engine)
    now = yield from time_now()
    while True:
        statement = ComposedStatement(
            f"{every} WHERE {following if place else _RANGE} AND {UNEXPIRED} "
            f"AND {candidates} ORDER BY {order_by} LIMIT :rows OFFSET :skipped"
        )
        rows = yield (
            statement,
            {**params, **place, "low": low, "high": high, "now": now,
             "rows": wanted, "skipped": skipped_rows},
        )  # fmt: skip
        skipped_rows = 0
        # Nearly always all of them: a second statement is for what SQL cannot compare.
        read = [_key_value(row) for row in rows]
        items += [
            item for item in read if not conditions or meets(item.value, conditions)
        ]
        if len(items) > end:
            last = _place_of(items[end - 1], order)
            return Page(tuple(items[first:end]), encode_cursor(*last.values()))
        if len(rows) < wanted:
            return Page(tuple(items[first:]))
        place = _place_of(read[-1], order)
        wanted = max(wanted, min(2 * wanted, _MANY))


def _place_of(item: KeyValue, order: str) -> dict[str, Any]:
    """Return the parameters of the place of a value in a list."""
    place: dict[str, Any] = {"updated": item.time_updated} if order != "key" else {}
    return {**place, "namespace": namespace_text(item.namespace), "key": item.key}


def _place_in(cursor: str, order: str) -> dict[str, Any]:
    if order == "key":
        namespace, key = decode_cursor(cursor, str, str)
        return {"namespace": namespace, "key": key}
    updated, namespace, key = decode_cursor(cursor, int, str, str)
    return {"updated": updated, "namespace": namespace, "key": key}


def _check_range(namespace: str, low: str, high: str) -> None:
    """Refuse the cursor of a list with another prefix."""
    if not low <= namespace <= high:
        raise InvalidInputError("the cursor is that of a list with another prefix")


# -- namespaces ------------------------------------------------------------------


def list_namespaces(
    prefix: tuple[str, ...],
    suffix: tuple[str, ...],
    *,
    depth: int | None,
    limit: int,
    cursor: str | None,
) -> Read[Page[tuple[str, ...]]]:
    """Return one page of the namespaces that have values, each once.

    They begin with *prefix* and end with *suffix*, in which `WILDCARD` is any name;
    they are shown up to *depth* names. Raises `InvalidInputError`.
    """
    check_limit(limit)
    place, high = range_below(_names_before_wildcard(prefix))
    if cursor is not None:
        low, (place,) = place, decode_cursor(cursor, str)
        _check_range(place, low, high)

    # Without a pattern the range is all that is meant.
    has_pattern = bool(suffix) or WILDCARD in prefix
    shown: list[tuple[str, ...]] = []
    batch = max(limit + 1, _FEW)
    now = yield from time_now()
    while True:
        params = {"after": place, "high": high, "now": now, "rows": batch}
        rows = yield _NAMESPACES, params
        for (text,) in rows:
            names = _names_of(text)
            if has_pattern and not _is_meant(names, prefix, suffix):
                continue
            if not shown or names[:depth] != shown[-1]:
                shown.append(names[:depth])
        if len(shown) > limit:
            last = namespace_text(shown[limit - 1])
            return Page(tuple(shown[:limit]), encode_cursor(last))
        if len(rows) < batch:
            return Page(tuple(shown))

        place = rows[-1][0]
        if shown and _names_of(place)[:depth] == shown[-1]:
            # The last one of those that are shown as this one.
            place = namespace_text(shown[-1])


def _names_of(text: str) -> tuple[str, ...]:
    try:
        return names_in(text)
    except ValueError as error:
        raise damaged(f"namespace {text}", error) from error


def _names_before_wildcard(prefix: tuple[str, ...]) -> tuple[str, ...]:
    if WILDCARD in prefix:
        return prefix[: prefix.index(WILDCARD)]
    return prefix


def _is_meant(
    names: tuple[str, ...], prefix: tuple[str, ...], suffix: tuple[str, ...]
) -> bool:
    if len(names) < max(len(prefix), len(suffix)):
        return False
    patterns = (*prefix, *suffix)
    ends = (*names[: len(prefix)], *names[len(names) - len(suffix) :])
    pairs = zip(patterns, ends, strict=True)
    return all(pattern in (WILDCARD, name) for pattern, name in pairs)
