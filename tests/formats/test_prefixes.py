"""A session that was imported too early is, after the next import, what it should be."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import prefixes
import pytest
from samples import SAMPLES

#: Real stores of logs.
REAL = ("claude-code-2.1.329", "codex-0.169.0", "pi-0.87.1", "qwen-code-0.24.4")


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_any_prefix_of_a_store_and_then_all_of_it_is_all_of_it(
    name: str, tmp_path: Path
) -> None:
    prefixes.any_prefix_and_then_all_of_it_is_all_of_it(SAMPLES[name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_any_prefix_of_a_real_store_and_then_all_of_it_is_all_of_it(
    name: str, real_store: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(real_store(name) / "data", folder)
    assert prefixes.differences(folder, prefixes.TRIED // 3) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_a_log_that_shrinks_and_grows_again_counts_no_answer_twice(
    name: str, tmp_path: Path
) -> None:
    prefixes.a_log_that_shrinks_counts_no_answer_twice(SAMPLES[name], tmp_path)


@pytest.mark.slow
def test_the_usage_of_an_answer_that_its_log_lost_again_is_counted_once(
    real_store: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(real_store("qwen-code-0.24.4") / "data", folder)
    assert prefixes.overcounted(folder, 12, seed=5) == []
