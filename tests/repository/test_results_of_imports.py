"""A result ends its call, whether both come in one batch of an import or apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from backends import Backend
from foreign_sessions import said, session_of, take_in
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import PartDraft, Store, text, tool, tool_result
from sessiondb.maintenance import check
from sessiondb.model import SourceMessage

#: Short and large, exact and with characters that a text cannot hold.
OUTPUTS = ("fine", "better", "fine " * 300, "a\0b", "a\0b" * 800, "lone \ud800" * 300)
#: When a row was changed here, and what an update of a row leaves as it was.
OF_THE_IMPORT = {"rid", "time_updated", "time_ended"}
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


def stored_rows(backend: Backend, store: Store) -> dict[str, list[dict[str, Any]]]:
    """Return the messages, parts and blobs of a database."""
    stored = {}
    for table, order in (("message", "seq"), ("part", "seq, idx"), ("blob", "hash")):
        rows = backend.records(store, f"SELECT * FROM {table} ORDER BY {order}")
        stored[table] = [
            {name: row[name] for name in row.keys() - OF_THE_IMPORT} for row in rows
        ]
    return stored


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(messages=calls_and_results())
def test_a_session_imported_at_once_has_the_rows_of_one_that_grew(
    backend: Backend, messages: list[SourceMessage]
) -> None:
    with (
        Store.open(backend.fresh(), durability="normal") as whole,
        Store.open(backend.fresh(), durability="normal") as grown,
    ):
        take_in(whole, session_of("s", *messages))
        for count in range(1, len(messages) + 1):
            take_in(grown, session_of("s", *messages[:count]))
        assert stored_rows(backend, whole) == stored_rows(backend, grown)
        assert check(whole) == []
        assert check(grown) == []
