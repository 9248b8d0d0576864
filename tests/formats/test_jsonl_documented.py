from __future__ import annotations

import re
from pathlib import Path

from jsonl_tables import log, outcomes, read_into

from sessiondb import Store
from sessiondb.formats.jsonl import records
from sessiondb.maintenance import check

PAGE = Path(__file__).resolve().parents[2] / "docs" / "JSONL.md"


def test_the_example_of_the_page_is_read_and_written_to_the_letter(
    tmp_path: Path,
) -> None:
    example = re.search(r"```jsonl\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert example is not None
    path = tmp_path / "example.jsonl"
    path.write_text(example[1])
    with Store.open(tmp_path / "a.db") as store:
        assert outcomes(read_into(store, path)) == ["imported"]
        (session,) = store.sessions(project="/home/ada/parser")
        assert (session.title, session.cost) == ("Parser off-by-one", 0.02)
        assert log(store, session.id) == example[1]
        assert check(store) == []


def test_the_page_names_every_type() -> None:
    page = PAGE.read_text()
    types = {
        *records.HEAD_TYPES, *records.MESSAGE_TYPES, *records.PART_TYPES, *records.ENDING_TYPES,
        *records.STATE_TYPES, records.PROMPT, "blob",
    }  # fmt: skip
    assert {name for name in types if f"`{name}`" not in page} == set()
