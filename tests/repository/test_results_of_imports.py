"""A result ends its call, whether both come in one batch of an import or apart."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foreign_sessions import said, session_of, take_in
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import PartDraft, Store, text, tool, tool_result
from sessiondb.maintenance import check
from sessiondb.model import SourceMessage

#: Short and large, exact and with characters that a text cannot hold.
OUTPUTS = ("fine", "better", "fine " * 300, "a\0b", "a\0b" * 800, "lone \ud800" * 300)
#: When a row was changed here, and what an update of a row leaves as it was.
OF_THE_IMPORT = ("rid", "time_updated", "time_ended")
CALLS = st.sampled_from(("c1", "c2"))


@st.composite
def calls_and_results(draw: st.DrawFn) -> list[SourceMessage]:
    """Messages with calls and results, on one path or on several."""
    messages: list[SourceMessage] = []
    for number in range(draw(st.integers(2, 7))):
        parts: list[PartDraft] = []
        for _ in range(draw(st.integers(1, 2))):
            name, output = draw(CALLS), draw(st.sampled_from(OUTPUTS))
            parts.append(
                draw(
                    st.sampled_from(
                        (
                            text(output),
                            tool("bash", {"n": number}, call_id=name),
                            tool("bash", {"n": number}, call_id=name, size=number),
                            tool_result(name, output),
                            replace(tool_result(name, output), outcome="denied"),
                            tool_result(name, output, raw="r" * 1500),
                        )
                    )
                )
            )
        earlier = [f"m{index}" for index in range(number)]
        parent: Any = draw(st.sampled_from((..., ..., ..., None, *earlier)))
        messages.append(
            said(f"m{number}", at=number, parts=tuple(parts), parent=parent)
        )
    return messages


def stored_rows(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Return the messages, parts and blobs of a database."""
    rows = {}
    with closing(sqlite3.connect(store.path)) as connection:
        connection.row_factory = sqlite3.Row
        for table, order in (
            ("message", "seq"),
            ("part", "seq, idx"),
            ("blob", "hash"),
        ):
            found = connection.execute(f"SELECT * FROM {table} ORDER BY {order}")
            rows[table] = [
                {
                    name: value
                    for name, value in dict(row).items()
                    if name not in OF_THE_IMPORT
                }
                for row in found
            ]
    return rows


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(messages=calls_and_results())
def test_a_session_imported_at_once_has_the_rows_of_one_that_grew(
    tmp_path_factory: pytest.TempPathFactory, messages: list[SourceMessage]
) -> None:
    folder: Path = tmp_path_factory.mktemp("results")
    with (
        Store.open(folder / "whole.db", durability="normal") as whole,
        Store.open(folder / "grown.db", durability="normal") as grown,
    ):
        take_in(whole, session_of("s", *messages))
        for count in range(1, len(messages) + 1):
            take_in(grown, session_of("s", *messages[:count]))
        assert stored_rows(whole) == stored_rows(grown)
        assert check(whole) == []
        assert check(grown) == []
