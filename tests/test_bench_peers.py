"""`scripts/bench peers` measures other stores, and says which ones it could not measure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.compare.catalog import STORES, Store
from benchmarks.compare.driven import Driven
from benchmarks.compare.phases import Group, Measured
from benchmarks.compare.write_ahead_log import PagesWritten
from benchmarks.peers import turns

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "scripts" / "benchmarks" / "peers"
FRAME_BYTES = 24 + 4096
TURNS = 60


@pytest.mark.slow
def test_a_run_has_every_figure_and_says_why_a_store_has_none(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    no_index = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
        "PIP_CONFIG_FILE": os.devnull,
    }
    done = subprocess.run(
        [
            sys.executable, ROOT / "scripts" / "bench", "peers", "--no-starts",
            "--only", "raw", "--only", "openai_sqlite", "--only", "ours",
            "--turns", str(TURNS), "--rounds", "1",
            "--cache", tmp_path / "cache", "--json", file,
        ],
        check=True, capture_output=True, encoding="utf-8",
        env={**os.environ, **no_index},
    )  # fmt: skip
    result = json.loads(file.read_text(encoding="utf-8"))
    raw, other, ours = result["stores"]

    assert other["figures"] == {}
    assert other["why"].startswith("cannot be installed: ERROR: No matching")
    assert f"OpenAI SQLiteSession: {other['why']}" in done.stdout

    assert raw["why"] is ours["why"] is None
    assert raw["figures"].keys() == ours["figures"].keys()
    for store in (raw, ours):
        assert store["figures"].pop("errors") == 0
        assert min(store["figures"].values()) > 0
    assert 3 <= raw["figures"]["pages"] <= 5
    assert raw["figures"]["bytes_disk"] > 1500

    goals = {goal["name"]: goal for goal in result["goals"]}
    fork = goals["fork / raw"]
    assert fork["floor"] == raw["figures"]["fork_us"]
    assert fork["ours"] == ours["figures"]["fork_us"]
    assert "load / SQLiteSession" not in goals
    assert "load / SQLiteSession" in done.stdout


@pytest.mark.slow
def test_a_store_whose_process_ends_leaves_the_group_with_its_last_words(
    tmp_path: Path,
) -> None:
    broken = Measured(Store("not_here", "Not here"), Path(sys.executable), TURNS)
    intact = Measured(Store("jsonl", "JSON lines"), Path(sys.executable), TURNS)
    with Group([broken, intact], tmp_path / "homes") as group:
        group.open(tmp_path, lambda _: 0)
        answers = group.step("append", lambda _: (1,))
        group.close()

    assert broken.why == (
        "ModuleNotFoundError: No module named 'benchmarks.peers.not_here'"
    )
    assert list(answers) == list(group.running) == [intact]
    assert not intact.why


def test_every_store_of_the_catalog_has_a_driver_and_every_driver_is_in_it() -> None:
    drivers = {
        path.stem for path in PEERS.glob("*.py") if "class Peer:" in path.read_text()
    }
    assert {store.module for store in STORES} == drivers


def test_a_release_of_every_package_that_is_compared_is_pinned() -> None:
    for store in STORES:
        assert all("==" in package for package in store.packages[:1]), store.module


def test_turns_are_the_same_in_every_process_and_hold_1_5_kilobytes() -> None:
    seventh = turns.turn(7)
    texts = [
        seventh.prompt,
        seventh.answer,
        seventh.result,
        *seventh.arguments.values(),
    ]
    assert 1300 <= len("".join(texts)) <= 1500
    assert turns.turn(7) == seventh
    assert turns.turn(8).mark != seventh.mark


@pytest.mark.slow
def test_pages_are_counted_also_after_the_log_began_again(tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    folder.mkdir()
    process = Driven(Path(sys.executable), "raw", tmp_path / "home")
    process.step("open", str(folder), "session-0", 0)
    process.step("append", 1)
    counted = PagesWritten(folder)
    log = folder / "raw.db-wal"

    grown = log.stat().st_size
    for _ in range(50):
        process.step("append", 1)
        counted.end_turn()
    grown = log.stat().st_size - grown
    assert counted.turns == 50
    assert counted.frames == grown / FRAME_BYTES

    # SQLite's own checkpoint, after 1,000 pages.
    process.step("append", 300)
    counted.end_turn()
    full, frames = log.stat().st_size, counted.frames
    for _ in range(50):
        process.step("append", 1)
        counted.end_turn()
    size = log.stat().st_size
    process.end()
    assert size == full
    assert counted.turns == 100
    assert 2 <= (counted.frames - frames) / 50 <= 6


def test_a_store_without_a_write_ahead_log_has_no_pages(tmp_path: Path) -> None:
    counted = PagesWritten(tmp_path)
    (tmp_path / "a.jsonl").write_text("{}\n", encoding="utf-8")
    counted.end_turn()
    assert counted.per_turn is None
