"""A batch of a store: its reads, which come first, and its writes.

Upstream's rule: every read of a batch sees what was there before it, wherever it is in
the list, and of several writes of one key the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.store.base import (
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from sessiondb.adapters.langgraph.items import (
    ROOT,
    item_of,
    namespace_of,
    plain_json,
    search_item_of,
    stored_name,
    stored_namespace,
)
from sessiondb.database.queries import Queries
from sessiondb.effects import Unit
from sessiondb.engine.conditions import meets, parse_conditions
from sessiondb.errors import CodecError, InvalidInputError
from sessiondb.model.values import KeyValue
from sessiondb.repository import Read
from sessiondb.repository.sessions import MAX_LIMIT
from sessiondb.store import Store

#: A namespace of the table, and a key.
Address = tuple[tuple[str, ...], str]
#: Namespaces that are read at a time if only some of them are meant.
_CANDIDATES = 1_000
#: Seconds: a lifetime that has passed already, as upstream allows it.
_SHORTEST_TTL = 0.001


class OpBatch:
    """The operations of one call, checked before any of them is carried out.

    Raises `InvalidNamespaceError`, and `ValueError` for what is no operation.
    """

    def __init__(self, ops: Iterable[Op], ttl_config: TTLConfig | None) -> None:
        #: (position, operation) of each read.
        self.reads: list[tuple[int, GetOp | SearchOp | ListNamespacesOp]] = []
        self.puts: dict[Address, PutOp] = {}
        self._refreshes = ttl_config is not None
        self._length = 0
        for position, op in enumerate(ops):
            if isinstance(op, PutOp):
                self.puts[address_of(op)] = op
            elif isinstance(op, GetOp | SearchOp | ListNamespacesOp):
                validate_op_namespace(op)
                self.reads.append((position, op))
            else:
                raise InvalidInputError(f"unknown operation: {type(op).__name__}")
            self._length = position + 1

    def queue_writes(self, fx: Unit) -> None:
        """Queue the writes in a unit; raises `InvalidInputError` and `CodecError`."""
        for address, op in self.puts.items():
            write_item(fx, address, op)

    def answers(self, queries: Queries) -> Read[list[Any]]:
        """Read the values or namespaces of each read, in their order."""
        addresses = [address_of(op) for _, op in self.reads if isinstance(op, GetOp)]
        values = iter((yield from queries.values_of(addresses)) if addresses else ())
        answers: list[Any] = []
        for _, op in self.reads:
            match op:
                case GetOp():
                    answers.append(next(values))
                case SearchOp():
                    answers.append((yield from found_values(queries, op)))
                case ListNamespacesOp():
                    answers.append((yield from listed_namespaces(queries, op)))
        return answers

    def results(self, answers: list[Any]) -> list[Result]:
        """Return the result of each operation; that of a write is None."""
        results: list[Result] = [None] * self._length
        for (position, op), answer in zip(self.reads, answers, strict=True):
            match op:
                case GetOp() if answer is not None:
                    results[position] = item_of(answer)
                case SearchOp():
                    results[position] = [search_item_of(value) for value in answer]
                case ListNamespacesOp():
                    results[position] = answer
        return results

    def to_refresh(self, answers: list[Any]) -> list[Address]:
        """Return the values that were read and live longer because of that."""
        if not self._refreshes:
            return []
        values: list[KeyValue] = []
        for (_, op), answer in zip(self.reads, answers, strict=True):
            if isinstance(op, SearchOp) and op.refresh_ttl:
                values += answer
            elif isinstance(op, GetOp) and op.refresh_ttl and answer is not None:
                values.append(answer)
        return [
            (value.namespace, value.key)
            for value in values
            if value.time_expires is not None
        ]


def address_of(op: GetOp | PutOp) -> Address:
    """Return where an item is stored; raises `InvalidNamespaceError`."""
    validate_op_namespace(op)
    return stored_namespace(tuple(op.namespace)), stored_name(op.key)


def write_item(fx: Unit | Store, address: Address, op: PutOp) -> None:
    """Write or remove one item; raises `InvalidInputError` and `CodecError`."""
    namespace, key = address
    if op.value is None:
        fx.delete_value(namespace, key)
        return

    value = dict(op.value)
    ttl = None if op.ttl is None else max(60 * op.ttl, _SHORTEST_TTL)
    try:
        fx.set_value(namespace, key, value, ttl=ttl)
    except CodecError:
        fx.set_value(namespace, key, plain_json(value), ttl=ttl)


def found_values(queries: Queries, op: SearchOp) -> Read[list[KeyValue]]:
    """Read the values that a search finds, the last updated first."""
    end = _end_of(op)
    prefix = stored_namespace(tuple(op.namespace_prefix))
    # A key with a period is a path in some stores of LangGraph, and a key in others.
    conditions = op.filter or {}
    dotted = {key: value for key, value in conditions.items() if "." in str(key)}
    where = {key: value for key, value in conditions.items() if key not in dotted}
    if not dotted and 0 < op.limit <= MAX_LIMIT:
        page = yield from queries.values(
            prefix, where=where, order="updated", limit=op.limit, offset=op.offset
        )
        return list(page.items)

    values: list[KeyValue] = []
    cursor: str | None = None
    while len(values) < end:
        page = yield from queries.values(
            prefix,
            where=where,
            order="updated",
            limit=min(end - len(values), MAX_LIMIT),
            cursor=cursor,
        )
        values += [item for item in page.items if _meets_dotted(item.value, dotted)]
        cursor = page.next_cursor
        if cursor is None:
            break
    return values[op.offset : end]


def _end_of(op: SearchOp | ListNamespacesOp) -> int:
    """Return the end of the range that is wanted; raises `InvalidInputError`."""
    if op.limit < 0 or op.offset < 0:
        raise InvalidInputError(
            f"limit and offset are 0 or more, not {op.limit} and {op.offset}"
        )
    return op.offset + op.limit


def _meets_dotted(value: dict[str, Any], dotted: Mapping[str, Any]) -> bool:
    """Return whether a value meets conditions on keys with a period.

    Each is a key of the value if it has that, else a path.
    """
    for key, condition in dotted.items():
        *names, last = [key] if key in value else key.split(".")
        pattern = {last: condition}
        for name in reversed(names):
            pattern = {name: pattern}
        if not meets(value, parse_conditions(pattern)):
            return False
    return True


def listed_namespaces(
    queries: Queries, op: ListNamespacesOp
) -> Read[list[tuple[str, ...]]]:
    """Read the namespaces that meet all conditions, each once, in their order."""
    end, conditions = _end_of(op), op.match_conditions or ()
    for condition in conditions:
        if condition.match_type not in ("prefix", "suffix"):
            raise InvalidInputError(f"no such match type: {condition.match_type!r}")

    prefixes = [item.path for item in conditions if item.match_type == "prefix"]
    prefix = prefixes[0] if prefixes else ()
    # Cut by the database if it decides all: then each page is full.
    is_simple = list(conditions) == [("prefix", prefix)] or not conditions
    depth = op.max_depth + 1 if is_simple and op.max_depth is not None else None
    shown: list[tuple[str, ...]] = []
    cursor: str | None = None
    while len(shown) < end:
        most = end - len(shown) if is_simple else _CANDIDATES
        page = yield from queries.namespaces(
            (ROOT, *[name if name == "*" else stored_name(name) for name in prefix]),
            depth=depth,
            limit=min(most, MAX_LIMIT),
            cursor=cursor,
        )
        for stored in page.items:
            namespace = namespace_of(stored)
            # One that is cut may have fewer labels than what it was found by.
            if is_simple or all(_matches(item, namespace) for item in conditions):
                cut = namespace[: op.max_depth]
                if not shown or cut != shown[-1]:
                    shown.append(cut)
        cursor = page.next_cursor
        if cursor is None:
            break
    return shown[op.offset : end]


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Return whether a namespace begins or ends with a path; ``*`` is any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    end = len(namespace) if condition.match_type == "suffix" else len(path)
    labels = namespace[end - len(path) : end]
    return all(
        wanted in ("*", label) for wanted, label in zip(path, labels, strict=True)
    )
