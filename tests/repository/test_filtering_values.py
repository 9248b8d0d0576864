"""Filters of values: SQL narrows, and the answer is the one that Python gives."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from backends import Backend
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sessiondb import Store
from sessiondb.engine.base import Connection
from sessiondb.engine.conditions import meets, parse_conditions
from sessiondb.errors import CodecError, InvalidInputError

VALUES: dict[str, Any] = {
    "plain": {"kind": "note", "n": 1, "ok": True, "author": {"name": "Ada", "age": 36}},
    "other": {"kind": "fact", "n": 2.5, "ok": False, "author": {"name": "Bob"}},
    "ones": {"kind": 1, "n": "1", "ok": 1, "author": None},
    "float": {"kind": "note", "n": 1.0, "ok": None},
    "lists": {"kind": ["note"], "n": [1, 2], "tags": ["a", "b"], "author": []},
    "large": {"n": 2**70, "kind": "a\0b"},
    "half": {"n": -1, "kind": "\ud800", "ü": 'quote " and \\'},
    "number": 1,
    "list": [{"kind": "note"}],
    "text": "note",
    "null": None,
    "bytes": b'{"kind":"note"}',
}


@pytest.fixture(scope="module")
def filled(backend: Backend) -> Iterator[Store]:
    with Store.open(backend.fresh(), durability="normal") as store:
        with store.effects() as fx:
            for key, content in VALUES.items():
                fx.set_value("n", key, content)
        yield store


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (None, set(VALUES)),
        ({}, set(VALUES)),
        ({"kind": "note"}, {"plain", "float"}),
        ({"kind": {"$eq": "note"}}, {"plain", "float"}),
        ({"kind": "a\0b"}, {"large"}),
        ({"kind": "a"}, set()),
        ({"kind": "\ud800"}, {"half"}),
        ({"ü": 'quote " and \\'}, {"half"}),
        ({"n": 1}, {"plain", "float"}),
        ({"n": 1.0}, {"plain", "float"}),
        ({"n": "1"}, {"ones"}),
        ({"n": 2**70}, {"large"}),
        ({"n": 2.0**70}, {"large"}),
        ({"n": 2**70 + 1}, set()),
        ({"ok": True}, {"plain"}),
        ({"ok": False}, {"other"}),
        ({"ok": 1}, {"ones"}),
        # A key that is not there is null.
        ({"ok": None}, {"float", "lists", "large", "half"}),
        ({"ok": {"$ne": None}}, {"plain", "other", "ones"}),
        ({"kind": {"$ne": "note"}}, {"other", "ones", "lists", "large", "half"}),
        ({"tags": {"$ne": "a"}}, {"plain", "other", "ones", "float", "lists", "large", "half"}),
        ({"n": {"$ne": 1}}, {"other", "ones", "lists", "large", "half"}),
        ({"n": {"$gt": 1}}, {"other", "large"}),
        ({"n": {"$gte": 1}}, {"plain", "other", "float", "large"}),
        ({"n": {"$lt": 1}}, {"half"}),
        ({"n": {"$lte": 1, "$gt": -1}}, {"plain", "float"}),
        ({"n": {"$gt": math.inf}}, set()),
        ({"n": {"$lt": math.inf}}, {"plain", "other", "float", "large", "half"}),
        ({"n": {"$gt": -math.inf}}, {"plain", "other", "float", "large", "half"}),
        ({"n": {"$eq": math.nan}}, set()),
        ({"n": {"$lt": 10**400}}, {"plain", "other", "float", "large", "half"}),
        ({"kind": {"$gt": "g"}}, {"plain", "float", "half"}),
        ({"kind": {"$lte": "fact"}}, {"other", "large"}),
        ({"tags": ["a", "b"]}, {"lists"}),
        ({"tags": ("a", "b")}, {"lists"}),
        ({"tags": ["a"]}, set()),
        ({"n": [1.0, 2]}, {"lists"}),
        ({"n": [True, 2]}, set()),
        ({"author": {"name": "Ada"}}, {"plain"}),
        ({"author": {"age": {"$gte": 36}}}, {"plain"}),
        ({"author": {"age": None}}, {"other"}),
        ({"author": {}}, {"plain", "other"}),
        ({"author": {"$eq": {"name": "Bob"}}}, {"other"}),
        ({"author": {"$ne": {"name": "Bob"}}}, {"plain", "ones", "float", "lists", "large", "half"}),
        ({"author": None}, {"ones", "float", "large", "half"}),
        ({"kind": "note", "n": 1, "ok": True}, {"plain"}),
        ({"author.name": "Ada"}, set()),
        ({"0": {"kind": "note"}}, set()),
        ({"kind') = 'note' OR ('": "x"}, set()),
        ({'a"b': None, "kind": "fact"}, {"other"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["key", "updated"])
def test_a_filter_finds_what_it_says(
    filled: Store, where: Any, expected: set[str], order: str
) -> None:
    found = filled.values("n", where=where, order=order)
    assert {value.key for value in found} == expected
    for value in found:
        assert value.value == VALUES[value.key]


@pytest.mark.parametrize(
    "where",
    [
        [], "kind", 3, {3: 1}, {"$gt": 1}, {"kind": {"$like": "a"}}, {"kind": {"$gt": None}},
        {"kind": {"$gt": True}}, {"kind": {"$lt": [1]}}, {"kind": {"$gt": 1, "x": 2}},
        {"kind": {"x": 2, "$eq": 1}}, {"kind": {"$eq": {1}}}, {"kind": object()},
        {"kind": b"a"}, {"kind": {"$eq": {1: 2}}}, {"kind": [b"a"]}, {"a": {"b": {4: 5}}},
        {"kind": {"$": 1}}, {"$": 1}, {"$eq": 1, "$ne": 2},
    ],
)  # fmt: skip
def test_any_other_condition_is_refused(filled: Store, where: Any) -> None:
    with pytest.raises(InvalidInputError, match="where"):
        filled.values(where=where)


def test_a_filter_has_a_depth(filled: Store) -> None:
    deep: Any = 1
    for _ in range(120):
        deep = {"a": deep}
    with pytest.raises(InvalidInputError, match="nested"):
        filled.values(where=deep)
    with pytest.raises(InvalidInputError, match="nested"):
        filled.values(where={"a": {"$eq": deep}})


def test_a_filter_of_many_keys_is_no_strain(filled: Store) -> None:
    where = {f"key {number}": None for number in range(5_000)}
    assert {v.key for v in filled.values(where={**where, "n": 2.5})} == {"other"}


def test_a_value_that_a_shell_wrote_is_compared_by_its_meaning(
    store: Store, backend: Backend
) -> None:
    backend.run(
        store,
        "INSERT INTO key_value (namespace, key, revision, time_created, "
        "time_updated, value) VALUES ('[\"n\"]', 'k', 1, 1, 1, ?)",
        r'{ "\u006bind" : "n\u006fte", "n": 1e0 }',
    )
    assert len(store.values(where={"kind": "note", "n": 1}).items) == 1
    assert len(store.values(where={"kind": {"$ne": "note"}}).items) == 0


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_page_is_full_although_sql_cannot_decide(
    store: Store, limit: int, reverse: bool
) -> None:
    with store.effects() as fx:
        for number in range(300):
            fx.set_value("n", f"{number:03}", {"list": [number % 10], "n": number})
    keys: list[str] = []
    cursor = None
    while True:
        page = store.values(
            where={"list": [3]}, limit=limit, reverse=reverse, cursor=cursor
        )
        keys += [value.key for value in page]
        cursor = page.next_cursor
        if cursor is None:
            break
        assert len(page.items) == limit
    expected = [f"{number:03}" for number in range(3, 300, 10)]
    assert keys == (expected[::-1] if reverse else expected)


# -- properties --------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", 'q"', "\\", "ü", "\ud800", "\n", "", "$x", "a.b"])
NUMBERS = (
    st.integers()
    | st.sampled_from([0, 1, -1, 2**53, 2**53 + 1, 2**63, 2**64 + 1, -(2**63), 10**30])
    | st.floats()
    | st.sampled_from([0.1, 0.3, 1e22, 5e-324, 1.7976931348623157e308, math.inf, -math.inf])
)  # fmt: skip
TEXTS = st.text(st.sampled_from('ab"\\\n\0\ud800\udc00üÿ😀'), max_size=3)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
OPERANDS = st.recursive(
    SCALARS,
    lambda items: st.lists(items, max_size=3) | st.dictionaries(NAMES, items, max_size=3),
    max_leaves=5,
)  # fmt: skip
ORDERED = st.dictionaries(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte"]),
    NUMBERS | TEXTS,
    min_size=1,
    max_size=2,
)
EQUAL = st.dictionaries(
    st.sampled_from(["$eq", "$ne"]), OPERANDS, min_size=1, max_size=2
)
WANTED = SCALARS | ORDERED | EQUAL | st.lists(SCALARS, max_size=2)
PLAIN_NAMES = NAMES.filter(lambda name: not name.startswith("$"))
FILTERS = st.dictionaries(
    PLAIN_NAMES,
    st.recursive(WANTED, lambda items: st.dictionaries(PLAIN_NAMES, items, max_size=2), max_leaves=3),
    min_size=1, max_size=2,
)  # fmt: skip
CONTENTS = st.dictionaries(NAMES, OPERANDS, max_size=3) | OPERANDS


def nearby(where: Any) -> Any:
    """Return a value that a filter might mean: by chance few would be found."""
    if isinstance(where, dict):
        operators = [name for name in where if name.startswith("$")]
        if operators:
            return where[operators[0]]
        return {name: nearby(item) for name, item in where.items()}
    return where


@pytest.fixture(scope="module")
def one_value(backend: Backend) -> Iterator[Connection]:
    """A connection to a database of one value, in a transaction that writes."""
    with Store.open(backend.fresh()) as store:
        store.set_value("n", "k", None)
        with closing(store._core.target.connect()) as connection:
            connection.engine.begin_write(connection)
            yield connection


@pytest.mark.slow
@settings(max_examples=1_500)
@given(content=CONTENTS, where=FILTERS, is_near=st.booleans(), indent=st.booleans())
@example({"a": 0.1 + 0.2}, {"a": 0.1 + 0.2}, False, False)
@example(
    {"a": 1.7976931348623157e308}, {"a": {"$gte": 1.7976931348623157e308}}, False, False
)
def test_no_value_that_meets_a_filter_is_passed_over(
    one_value: Connection,
    content: Any,
    where: Any,
    is_near: bool,
    indent: bool,
) -> None:
    if is_near:
        content = nearby(where)
    try:
        text = json.dumps(content, ensure_ascii=indent, allow_nan=False)
        text.encode()
    except ValueError:
        return
    conditions = parse_conditions(where)
    sql, params = one_value.engine.dialect.candidates("value", conditions)
    one_value.execute("UPDATE key_value SET value = ?", (text,))
    rows = one_value.execute(f"SELECT 1 FROM key_value WHERE {sql}", params).fetchall()
    if meets(json.loads(text), conditions):
        assert rows


def in_python(value: Any, where: Any) -> bool:
    """Return what a filter means, written another time from its description."""
    if not isinstance(value, dict):
        return False
    return all(_meant(value.get(name), wanted) for name, wanted in where.items())


def _meant(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and any(name[0] == "$" for name in wanted if name):
        return all(_compared(value, name, item) for name, item in wanted.items())
    if isinstance(wanted, dict):
        return in_python(value, wanted)
    return _canonical(value) == _canonical(wanted)


def _compared(value: Any, operator: str, operand: Any) -> bool:
    is_same = _canonical(value) == _canonical(operand)
    if operator in ("$eq", "$ne"):
        return is_same == (operator == "$eq")
    kinds = (str,) if isinstance(operand, str) else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        return False
    below, above = value < operand, value > operand
    return {
        "$lt": below, "$gt": above, "$lte": below or is_same, "$gte": above or is_same,
    }[operator]  # fmt: skip


def _canonical(value: Any) -> Any:
    """Return a value that equals another one exactly if both are the same JSON."""
    if isinstance(value, bool) or value is None:
        return ("constant", str(value))
    if isinstance(value, list | tuple):
        return ("list", [_canonical(item) for item in value])
    if isinstance(value, dict):
        return ("object", {name: _canonical(item) for name, item in value.items()})
    return value


@pytest.mark.slow
@settings(max_examples=400)
@given(contents=st.lists(CONTENTS, max_size=6), where=FILTERS, limit=st.integers(1, 3))
def test_a_filter_finds_what_python_finds(
    filled: Store, contents: list[Any], where: Any, limit: int
) -> None:
    filled.delete_values("p")
    stored: dict[str, Any] = {}
    with filled.effects() as fx:
        for number, content in enumerate([*contents, nearby(where)]):
            try:
                fx.set_value("p", str(number), content)
            except CodecError:
                continue
            stored[str(number)] = json.loads(json.dumps(content))
    expected = [key for key, value in stored.items() if in_python(value, where)]
    keys: list[str] = []
    cursor = None
    while True:
        page = filled.values("p", where=where, limit=limit, cursor=cursor)
        keys += [value.key for value in page]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert keys == expected
