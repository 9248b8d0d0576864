"""A hundred mutants of the small stores, each time the same; `scripts/fuzz` runs any number."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import conformance
import pytest

ROOT = Path(__file__).resolve().parents[2]
MUTANTS, SEED = 100, 20_240_601
#: So many in one test, which a loaded machine still runs before it counts as hanging.
EACH = 50


@pytest.fixture
def fuzzing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


@pytest.mark.slow
@pytest.mark.usefixtures("fuzzing")
@pytest.mark.parametrize("first", range(0, MUTANTS, EACH))
def test_no_mutant_of_a_store_ends_an_import_or_harms_a_neighbour(
    first: int, tmp_path: Path
) -> None:
    from fuzzing.trial import prepare, samples, trial

    made = prepare(samples(), tmp_path / "samples")
    names = list(made)
    folder = tmp_path / "trial"
    for number in range(first, first + EACH):
        folder.mkdir()
        name = names[number % len(names)]
        done, failed = trial(f"{SEED}/{number}", name, made[name], folder)
        shutil.rmtree(folder)
        assert not failed, f"mutant {number} of {name}: {done}"


@pytest.mark.slow
def test_the_fuzzer_says_how_to_repeat_a_run_and_finds_a_reader_that_fails(
    tmp_path: Path,
) -> None:
    command = [
        sys.executable,
        str(ROOT / "scripts" / "fuzz"),
        "--seed",
        "5",
        "--mutants",
        "3",
    ]
    done = subprocess.run(
        [*command, "--format", "jsonl"], capture_output=True, text=True, check=False,
        env={"PATH": "", "HOME": str(tmp_path), "SESSIONDB_FIXTURES": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "scripts/fuzz --seed 5" in done.stdout
    assert "3 mutants of 2 stores, 0 failed" in done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("fuzzing")
def test_a_reader_that_fails_on_a_mutant_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuzzing.trial import prepare, samples, trial

    from sessiondb.formats.jsonl import scan

    def broken(*_: object) -> None:
        raise TypeError("a defect")

    made = prepare(samples(("jsonl",)), tmp_path / "samples")
    monkeypatch.setattr(scan, "record_at", broken)
    (tmp_path / "trial").mkdir()
    _, failed = trial("1/1", "jsonl", made["jsonl"], tmp_path / "trial")
    assert any("a defect" in line for line in failed)


@pytest.mark.slow
@pytest.mark.usefixtures("fuzzing")
def test_a_property_is_tried_with_other_choices_and_on_mutated_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SEED", "TRIED"):  # they are back after this test
        monkeypatch.setattr(conformance, name, getattr(conformance, name))
    from fuzzing.properties import properties, samples, try_property

    assert {check.__name__ for check in conformance.CHECKS} <= properties().keys()
    name, sample = next(iter(samples(("event-log",)).items()))
    seeds: list[int] = []
    was_mutated: list[bool] = []

    def fails(_: object, folder: Path) -> None:
        seeds.append(conformance.SEED)
        raise AssertionError(f"not so in {folder}")

    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        done, failed = try_property(fails, f"1/{number}", sample, folder)
        was_mutated.append((folder / "mutant").exists())
        assert failed == [] or "not so in" in failed[0], (name, done)
        assert bool(failed) == (seeds[-1:] == [conformance.SEED])
    assert set(was_mutated) == {True, False}
    assert len(set(seeds)) == len(seeds) > 1
