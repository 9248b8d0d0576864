"""A session that was imported too early is, after the next import, what it should be."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from prefixes import copy_of, prefixes_of, shortened
from sample import Sample
from samples import SAMPLES, files_in, new_store, read_into

from sessiondb.maintenance import check
from sessiondb.model import Problem

#: Prefixes of each sample that are tried, always the same.
TRIED = 200 if os.environ.get("SESSIONDB_LONG") else 3
SEED = 11
#: Real stores of logs.
REAL = ("claude-code-2.1.329", "codex-0.169.0", "pi-0.87.1", "qwen-code-0.24.4")


def _differences(folder: Path, tried: int) -> list[str]:
    """Return how a prefix of a store, then all of it, differs from all of it alone."""
    with new_store() as store:
        read_into(store, folder)
        read_into(store, folder)
        expected = copy_of(store)

    differences = []
    for name, prefix in prefixes_of(folder, seed=SEED, most=tried):
        with new_store() as store:
            with shortened(folder, prefix):
                read_into(store, folder)
            # Twice: a child that does not change is read again by the next import.
            results = [*read_into(store, folder), *read_into(store, folder)]
            problems = [item for item in results if isinstance(item, Problem)]
            copied = copy_of(store)
            for table, rows in expected.items():
                if copied[table] != rows:
                    missing = [row for row in rows if row not in copied[table]]
                    further = [row for row in copied[table] if row not in rows]
                    differences.append(
                        f"{name}: {table}: {missing[:1]} is {further[:1]}"
                    )
            differences += [f"{name}: {finding}" for finding in check(store)]
            differences += [f"{name}: {problem.why}" for problem in problems]
    return differences


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_any_prefix_of_a_store_and_then_all_of_it_is_all_of_it(
    name: str, tmp_path: Path
) -> None:
    sample: Sample = SAMPLES[name]
    folder = tmp_path / "theirs"
    sample.write(folder)
    for path in files_in(folder):
        path.touch()
    assert _differences(folder, TRIED) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_any_prefix_of_a_real_store_and_then_all_of_it_is_all_of_it(
    name: str, real_store: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(real_store(name) / "data", folder)
    assert _differences(folder, TRIED // 3) == []
