"""The kit's tables, order, names and conversions, apart from any format."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import pytest

from sessiondb.formats.kit.conversion import as_json, is_json, json_text
from sessiondb.formats.kit.fields import (
    Fields,
    Shape,
    amount,
    clean_text,
    columns_of,
    integer,
    nested_record,
    overlay,
    put_fields,
    take_fields,
    text,
    time,
    value_at,
    without_empty,
    without_none,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.naming import file_name
from sessiondb.formats.kit.order import parents_first

FIELDS: Fields = {
    "title": ("title", clean_text),
    "body": ("body", text),
    "stats": {"count": ("count", integer), "time": {"start": ("started", time)}},
}
SHAPE: Shape = {"id": "id", "stats": {"count": "count", "time": {"start": "started"}}}


class Row:
    """A holder of columns, as `put_fields` reads them."""

    def __init__(self, **columns: Any) -> None:
        self.title = self.body = self.count = self.started = None
        self.__dict__.update(columns)


@pytest.mark.parametrize(
    "record",
    [
        {"title": "A", "body": "b\0", "stats": {"count": 3, "time": {"start": 5}}},
        {"title": "a\0b", "stats": {"count": "3", "more": 1}},
        {"title": None, "body": 7, "stats": {"count": 1 << 64}},
        {"stats": {}, "other": {"title": "B"}},
        {"title": "\ud800", "stats": [1], "body": {"deep": []}},
    ],
)
def test_a_record_that_was_taken_apart_is_put_together_again(
    record: dict[str, Any],
) -> None:
    untaken: dict[str, Any] = json.loads(json.dumps(record))
    taken = take_fields(untaken, FIELDS)
    again: dict[str, Any] = {}
    put_fields(again, FIELDS, Row(**taken))
    assert overlay(again, untaken) == record


def test_values_that_fit_leave_the_record_and_odd_ones_stay() -> None:
    record: dict[str, Any] = {"title": "a\0b", "stats": {"count": 3, "x": 1}, "y": 2}
    assert take_fields(record, FIELDS) == {"title": "a\u2400b", "count": 3}
    assert record == {"title": "a\0b", "stats": {"x": 1}, "y": 2}


def test_a_row_becomes_a_record_without_what_is_unknown() -> None:
    assert nested_record({"id": "a", "count": 0, "started": None}, SHAPE) == {
        "id": "a",
        "stats": {"count": 0},
    }
    assert nested_record({"id": None}, SHAPE) == {}
    assert list(columns_of(SHAPE)) == ["id", "count", "started"]


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (0, True), (-(1 << 53), True), ((1 << 53) + 1, False), (0.5, True), (1e308, True),
        (float("inf"), False), (float("-inf"), False), (float("nan"), False),
        (True, False), ("1", False), (None, False), (10**400, False),
    ],
)  # fmt: skip
def test_an_amount_is_a_number_that_a_float_holds(value: object, fits: bool) -> None:
    assert amount(value) is fits


@pytest.mark.parametrize(
    ("value", "usable"),
    [
        ("a", True), ("x" * 256, True), ("é" * 128, True), ("a b/c", True),
        ("", False), ("x" * 257, False), ("é" * 129, False), ("a\n", False),
        ("\x7f", False), ("\x85", False), ("a\ud800", False), (7, False), (None, False),
    ],
)  # fmt: skip
def test_an_id_is_short_and_has_no_controls(value: object, usable: bool) -> None:
    assert usable_id(value) is usable


def test_only_what_is_unknown_or_empty_is_left_out() -> None:
    record = {"a": 0, "b": "", "c": None, "d": [], "e": {}, "f": False}
    assert without_none(record) == {"a": 0, "b": "", "d": [], "e": {}, "f": False}
    assert without_empty(record) == {"a": 0, "f": False}
    assert value_at({"a": {"b": 1}}, "a", "b") == 1
    assert value_at({"a": [1]}, "a", "b") is None


def test_parents_come_first_whatever_the_order() -> None:
    parents = {"c": "b", "b": "a", "d": "elsewhere"}
    placed = list(parents_first(["c", "d", "b", "a"], parents.get))
    assert placed == [("a", False), ("b", False), ("c", False), ("d", False)]


def test_a_cycle_is_cut_once_and_everything_is_yielded() -> None:
    parents = {"a": "c", "b": "a", "c": "b", "x": "x", "y": "a"}
    placed = list(parents_first(parents, parents.get))
    assert sorted(name for name, _ in placed) == sorted(parents)
    assert [name for name, cut in placed if cut] == ["b", "x"]
    names = [name for name, _ in placed]
    assert names.index("a") < names.index("y")


def test_a_long_chain_needs_no_deep_stack() -> None:
    names = [str(number) for number in range(20_000)]
    parents = dict(pairwise(names))
    assert [name for name, _ in parents_first(names, parents.get)] == names[::-1]


@pytest.mark.parametrize("name", ["..", ".", "a/b", "/etc", "a\\b", "a\0b", "\ud800"])
def test_a_file_name_leads_nowhere_else(name: str) -> None:
    file = file_name(name)
    assert PurePosixPath("/here", file).parent == PurePosixPath("/here")
    assert file not in (".", "..")
    assert "\\" not in file


def test_values_that_json_cannot_express_become_null() -> None:
    value = {"a": float("nan"), "b": [b"x", 1], 3: ("c",)}
    assert not is_json(value)
    assert as_json(value) == {"a": None, "b": [None, 1], "3": ["c"]}
    assert json.loads(json_text({"lone": "\ud800"})) == {"lone": "\ud800"}
