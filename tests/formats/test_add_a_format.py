"""The example of docs/ADD_A_FORMAT.md is a format: it passes what every format passes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import conformance
import ownership_of_files
import pytest
from samples import LARGE, PIECE, Sample, new_store, read_into

from sessiondb import ALL
from sessiondb.formats import default_locations
from sessiondb.formats.registry import REGISTRY, Entry
from sessiondb.model import Imported

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ADD_A_FORMAT.md"


def block(language: str) -> str:
    """Return the first block of code of a language on the page."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def store_of_three(folder: Path) -> None:
    """Write the session of the page, a fork of it, and another one."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, parent in ((1, None), (2, "k1"), (3, None)):
        head, *rest = map(json.loads, block("json").splitlines())
        head |= {"id": f"k{number}", **({"parent": parent} if parent else {})}
        for record in rest:
            record["id"] += f"-{number}"
        write(folder / f"{number}.jsonl", [head, *rest])


def large_store(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    head, asked, *_ = map(json.loads, block("json").splitlines())
    text = "x" * PIECE
    more = [{**asked, "id": f"m{n}", "text": text} for n in range(LARGE // PIECE + 1)]
    write(folder / "large.jsonl", [head, *more])


def write(path: Path, records: list[dict[str, Any]]) -> None:
    lines = [json.dumps(record, separators=(",", ":")) for record in records]
    path.write_text("\n".join([*lines, ""]))


KETTLE = Sample("kettle", store_of_three, large=large_store)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the example as if it was a package here."""
    module = ModuleType("kettle")
    exec(compile(block("python"), str(PAGE), "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "kettle", module)
    monkeypatch.setitem(REGISTRY, "kettle", Entry("Kettle", reads="kettle"))


def test_the_reader_is_short() -> None:
    assert sum(1 for line in block("python").splitlines() if line.strip()) <= 110


@pytest.mark.slow
def test_the_reader_passes_the_gate_of_the_project(tmp_path: Path) -> None:
    # Named as a file of the package: the rules for our own code apply to it.
    stdin = ("--stdin-filename", "src/sessiondb/formats/kettle.py", "-")
    assert run("ruff", "check", *stdin) == "All checks passed!\n"
    assert run("ruff", "format", "--diff", *stdin) == ""
    (tmp_path / "kettle.py").write_text(block("python"))
    assert run("mypy", "--strict", str(tmp_path / "kettle.py")).startswith("Success")


def run(*command: str) -> str:
    """Run a module on the code of the page, in the project; return its output."""
    return subprocess.run(
        [sys.executable, "-m", *command],
        input=block("python"), cwd=ROOT, check=False, capture_output=True, text=True,
    ).stdout  # fmt: skip


def test_it_imports_all_that_a_file_says(tmp_path: Path) -> None:
    store_of_three(tmp_path / "theirs")
    with new_store() as store:
        results = read_into(store, tmp_path / "theirs")
        assert [r.outcome for r in results if isinstance(r, Imported)] == [
            "imported"
        ] * 3
        (first,) = (s for s in store.sessions(project=ALL) if s.source_id == "k1")
        assert (first.source, first.title, first.cost) == ("kettle", "A timer", 0.01)
        asked, answer, steam = store.messages(first)
        assert asked.parts[0].text == "How long does green tea take?"
        assert answer.tokens is not None
        assert (answer.model_id, answer.tokens.input) == ("large", 10)
        said, call = answer.parts
        assert (said.text, call.tool, call.input, call.text) == (
            "Two minutes.", "clock", {"minutes": 2}, "set",
        )  # fmt: skip
        assert (steam.kind, steam.data["degrees"]) == ("steam", 80)
        assert [tree.session.source_id for tree in store.tree(first).children] == ["k2"]


def test_a_registered_format_has_default_locations_and_is_readable(
    tmp_path: Path,
) -> None:
    env = {"HOME": str(tmp_path)}
    assert tmp_path / ".kettle" in default_locations(env)
    from sessiondb.formats import readable

    assert "kettle" in readable()


@pytest.mark.slow
@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
def test_it_passes_what_every_format_passes(
    check: conformance.Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conformance, "TRIED", 10)
    check(KETTLE, tmp_path)


@pytest.mark.slow
def test_its_files_are_of_no_other_format(tmp_path: Path) -> None:
    ownership_of_files.has_one_reader_for_each_file(KETTLE, tmp_path)


@pytest.mark.slow
def test_it_reads_a_large_file_piece_by_piece(tmp_path: Path) -> None:
    conformance.holds_little_of_a_large_store(KETTLE, tmp_path)
