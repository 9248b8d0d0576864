"""The rules for every format, checked over a small store of each of its layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import conformance
import ownership_of_files
import pytest
import returning
from samples import REAL, SAMPLES, new_store, read_into

from sessiondb import Store
from sessiondb.formats import ForeignStore, readable
from sessiondb.model import (
    Imported,
    MessageDraft,
    Problem,
    SourceMessage,
    SourceSession,
)


def test_each_format_has_a_sample_and_a_large_one() -> None:
    assert {sample.format for sample in SAMPLES.values()} == set(readable())
    assert {sample.format for sample in SAMPLES.values() if sample.large} == set(
        readable()
    )
    assert set(REAL.values()) <= set(readable())


@pytest.mark.slow
@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_passes_each_check(
    name: str, check: conformance.Check, tmp_path: Path
) -> None:
    check(SAMPLES[name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ownership_of_files.CHECKED)
def test_a_file_is_of_one_format_and_an_export_leaves_its_original_alone(
    name: str, tmp_path: Path
) -> None:
    ownership_of_files.has_one_reader_for_each_file(SAMPLES[name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ownership_of_files.CHECKED)
def test_an_export_that_comes_home_adds_and_counts_nothing(
    name: str, tmp_path: Path
) -> None:
    returning.leaves_a_sample_as_it_is(SAMPLES[name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "claude-code-2.1.329",
        "codex-0.169.0",
        "goose-1.34.0",
        "oh-my-pi-18.2.3",
        "opencode-2.0.15",
    ],
)
def test_exports_of_a_real_store_that_come_home_add_and_count_nothing(
    name: str, real_store: Callable[[str], Path], tmp_path: Path
) -> None:
    with new_store() as store:
        read_into(store, real_store(name) / "data")
        returning.stays_as_it_is_when_its_exports_are_imported(store, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["claude-code-2.1.329", "codex-0.169.0", "qwen-code-0.24.4"]
)
def test_plain_logs_of_a_real_store_leave_its_sessions_alone(
    name: str, real_store: Callable[[str], Path], tmp_path: Path
) -> None:
    ownership_of_files.leaves_its_sessions_alone_when_plain_logs_of_them_are_imported(
        real_store(name) / "data", tmp_path
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_a_real_store_agrees_with_its_ground_truth(
    name: str, real_store: Callable[[str], Path]
) -> None:
    conformance.agrees_with_its_ground_truth(real_store(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SAMPLES if SAMPLES[name].large])
def test_a_large_store_is_read_piece_by_piece(name: str, tmp_path: Path) -> None:
    conformance.holds_little_of_a_large_store(SAMPLES[name], tmp_path)


def test_a_failing_reader_is_a_problem_and_does_not_end_the_import(
    tmp_path: Path,
) -> None:
    def messages() -> Iterator[SourceMessage]:
        yield SourceMessage(MessageDraft("user", id="m1", time_created=1))
        raise TypeError("a defect")

    def read(path: Path) -> Iterator[SourceSession]:
        yield SourceSession("odd", "s1", str(path), "d", messages())
        yield SourceSession("odd", "s2", str(path), "d", (), time_created=1)
        raise KeyError("another defect")

    with Store.open(tmp_path / "sessions.db", durability="normal") as store:
        results = list(store.ingest(ForeignStore("odd", Path("/odd"), read).read()))
    whys = [r.why for r in results if isinstance(r, Problem)]
    assert len(whys) == 2
    assert (
        "its other messages cannot be read: its reader failed: TypeError('a defect')"
        in "".join(whys)
    )
    assert "KeyError('another defect')" in "".join(whys)
    assert [r.messages for r in results if isinstance(r, Imported)] == [1, 0]
