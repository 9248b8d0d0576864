"""Rows and their tables: what is stated in Python is what the columns are."""

from __future__ import annotations

import inspect

from sessiondb.schema import rows
from sessiondb.schema.tables import message, part
from sessiondb.schema.terms import TOKENS

PART = rows.PartRow(*range(len(rows.PartRow._fields)))  # type: ignore[call-arg,arg-type]
MESSAGE = rows.MessageRow(*range(len(rows.MessageRow._fields)))  # type: ignore[call-arg,arg-type]


def place_of(row: type) -> dict[str, object]:
    """Return a value for each column of a place: its own name."""
    return {
        name: name
        for name in inspect.signature(row.values).parameters
        if name != "self"
    }


def first_of_each(
    names: tuple[str, ...], values: tuple[object, ...]
) -> dict[str, object]:
    """Return the values that an INSERT takes, by their columns."""
    return dict(reversed(list(zip(names, values, strict=True))))


def test_a_part_states_every_column_of_its_table() -> None:
    place = place_of(rows.PartRow)
    values = first_of_each(rows.PART_VALUES, PART.values(**place))

    assert set(values) == set(part.c.keys())
    assert values == {**PART._asdict(), **place}


def test_a_message_states_every_column_of_its_table() -> None:
    place, counts = place_of(rows.MessageRow), tuple(TOKENS)
    row = MESSAGE._replace(tokens=counts)
    values = rows.message_columns(row.values(**place))
    named = dict(zip(rows.MESSAGE, values, strict=True))
    stated = {**row._asdict(), **dict(zip(TOKENS, counts, strict=True)), **place}
    del stated["tokens"]

    assert set(named) == set(message.c.keys()) - {"rid"}
    assert named == stated


def test_a_stored_part_without_its_place_is_what_was_written() -> None:
    times = {"time_created": PART.time_created, "time_updated": PART.time_updated}
    values = PART.values(**{**place_of(rows.PartRow), **times})
    written = first_of_each(rows.PART_VALUES, values)

    assert rows.PartRow.of([written[name] for name in rows.PART]) == PART
