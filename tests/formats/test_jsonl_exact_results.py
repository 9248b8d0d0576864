"""Results whose text SQLite cannot show, large enough for a blob of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonl_tables import bundle, differences, outcomes, read_into

from sessiondb import Store, assistant, tool, tool_result, user

#: As they are, the text is in the row; as blobs, neither text nor data is.
TEXTS = ["a\0b", "a\0b" * 800, "x\ud83d" * 800, "\0" * 1024]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["log", "file"])
@pytest.mark.parametrize("text", TEXTS, ids=["short", "nul", "surrogate", "bare"])
@pytest.mark.parametrize("more", [{}, {"n": "m" * 2000}], ids=["alone", "data"])
def test_a_result_that_filled_its_call_comes_without_its_text(
    tmp_path: Path, by: str, text: str, more: dict[str, str]
) -> None:
    here, there = tmp_path / "a.db", tmp_path / "b.db"
    with Store.open(here) as store, Store.open(there) as other:
        name = store.create_session(title="t").id
        store.append(name, user("go"))
        store.append(name, assistant(tool("bash", {}, call_id="c")))
        store.append(name, user(tool_result("c", text, **more)))
        log = bundle(store, [name])

        path = tmp_path / "log.jsonl"
        path.write_bytes(log.encode())
        source = path if by == "log" else here
        assert outcomes(read_into(other, source)) == ["imported"]
        assert differences(here, there) == []
        assert bundle(other, [name]) == log

        copy = tmp_path / "copy.jsonl"
        copy.write_bytes(log.encode())
        assert outcomes(read_into(other, copy)) == ["unchanged"]
        assert outcomes(read_into(store, copy)) == ["unchanged"]
        assert differences(here, there) == []
