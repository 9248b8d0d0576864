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


def test_a_part_states_every_column_of_its_table() -> None:
    place = place_of(rows.PartRow)
    values = dict(zip(rows.PART, PART.values(**place), strict=True))

    assert set(values) == set(part.c.keys())
    assert values == {**PART._asdict(), **place}


def test_a_message_states_every_column_of_its_table() -> None:
    place, counts = place_of(rows.MessageRow), tuple(TOKENS)
    row = MESSAGE._replace(tokens=counts)
    values = dict(zip(rows.MESSAGE, row.values(**place), strict=True))
    stated = {**row._asdict(), **dict(zip(TOKENS, counts, strict=True)), **place}
    del stated["tokens"]

    assert set(values) == set(message.c.keys()) - {"rid"}
    assert values == stated


def test_a_stored_part_without_its_place_is_what_was_written() -> None:
    times = {"time_created": PART.time_created, "time_updated": PART.time_updated}
    stored = PART.values(**{**place_of(rows.PartRow), **times})

    assert rows.PartRow.of(stored) == PART
