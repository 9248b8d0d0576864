"""The benchmark measures what it says it does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.stores import STORES, Talk

from sessiondb import Store
from sessiondb.formats import find, readable
from sessiondb.model import Imported

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_the_bench_writes_the_rows_it_was_asked_for_as_json(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    result = subprocess.run(
        [
            sys.executable,
            ROOT / "scripts" / "bench",
            "--quick",
            "--only",
            "list",
            "--json",
            file,
        ],
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    rows = json.loads(result.stdout)
    assert rows == json.loads(file.read_text(encoding="utf-8"))
    assert len(rows) == len(result.stderr.splitlines()) - len(["head", "time"])
    for row in rows:
        assert row.keys() >= {"name", "floor", "ours", "ratio", "goal", "ok"}
        assert row["floor"] > 0
        assert abs(row["ratio"] - row["ours"] / row["floor"]) < 0.001
        assert row["ok"] == (row["ratio"] <= row["goal"])


def test_every_format_of_another_program_is_measured() -> None:
    assert set(STORES) == set(readable()) - {"jsonl", "sessiondb"}


@pytest.mark.parametrize("name", STORES)
def test_a_store_of_the_bench_is_read_completely(
    name: str, store: Store, tmp_path: Path
) -> None:
    STORES[name](tmp_path / "store", [Talk(1, 2), Talk(2, 3)])

    results = [x for f in find(tmp_path / "store") for x in store.ingest(f.read())]
    assert [x.outcome for x in results if isinstance(x, Imported)] == ["imported"] * 2
    assert len(results) == 2
    for item, turns in zip(results, (2, 3), strict=True):
        assert isinstance(item, Imported)
        messages = store.messages(item.id, branches=True)
        assert [m.role for m in messages].count("user") == turns
        calls = [part for m in messages for part in m.parts if part.type == "tool"]
        assert {call.status for call in calls} <= {"completed"}
        # Aider has no calls.
        assert len(calls) == (0 if name == "aider" else turns)
