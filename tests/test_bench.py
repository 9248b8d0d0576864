"""The benchmark measures what it says it does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent


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
