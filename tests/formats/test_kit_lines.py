"""Logs line by line: packed, damaged, torn, growing, and never all in memory."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessiondb.errors import SourceError
from sessiondb.formats.kit import packed
from sessiondb.formats.kit.json import load_object
from sessiondb.formats.kit.lines import opened, read_beginning
from sessiondb.model.source import MOST_PROBLEMS

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".jsonl": bytes,
    ".gz": gzip.compress,
}
zstandard: Any = pytest.importorskip("zstandard")
PACK[".zst"] = zstandard.compress
RECORDS = [{"n": n, "text": "word " * 40} for n in range(2_000)]
LOG = b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS)


def read(path: Path) -> tuple[list[object], list[tuple[int | None, str]]]:
    with opened(path) as lines:
        records: list[object] = []
        for line, raw, record in lines.records(load_object):
            assert lines.read_line(line) == raw
            records.append(record)
        return records, [(problem.line, problem.why) for problem in lines.problems]


@pytest.mark.parametrize("suffix", PACK)
def test_a_log_is_the_same_however_it_is_packed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log{suffix}"
    path.write_bytes(PACK[suffix](LOG))
    assert read(path) == (RECORDS, [])
    assert read_beginning(path, 100) == LOG[:100]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_files_packed_one_behind_the_other_are_one_log(
    tmp_path: Path, suffix: str
) -> None:
    pack = PACK[suffix]
    middle = LOG.index(b"\n", len(LOG) // 2) + 1
    path = tmp_path / f"log{suffix}"
    path.write_bytes(pack(LOG[:middle]) + pack(LOG[middle:]))
    assert read(path) == (RECORDS, [])


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_packed_log_that_breaks_off_is_read_up_to_there(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"log{suffix}"
    complete = PACK[suffix](
        b"".join(bytes(f'{{"n":{n}}}\n', "ascii") for n in range(99_999))
    )
    path.write_bytes(complete[: len(complete) * 2 // 3])
    records, problems = read(path)
    assert records[:2] == [{"n": 0}, {"n": 1}]
    assert len(records) > 10_000
    assert any("damaged: it breaks off" in reason for _, reason in problems)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_plain_file_with_a_suffix_of_packed_files_is_an_error(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"log{suffix}"
    path.write_bytes(LOG)
    records, problems = read(path)
    assert records == []
    assert len(problems) == 1
    with pytest.raises(SourceError):
        read_beginning(path, 100)


@pytest.mark.slow
def test_a_packed_file_that_would_fill_the_memory_or_the_disk_does_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "FREE_BYTES", 1 << 20)
    path = tmp_path / "bomb.zst"
    path.write_bytes(zstandard.compress(LOG + b"x" * (256 << 20)))
    tracemalloc.start()
    try:
        _, problems = read(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert any("times its size" in reason for _, reason in problems)
    assert most < 200 << 20


def test_without_anything_that_unpacks_it_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(zstandard.compress(LOG))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    with pytest.raises(SourceError) as raised:
        read(path)
    assert "sessiondb[zstd]" in str(raised.value.hint)


def test_a_bad_line_is_reported_with_its_number_and_the_next_one_is_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"n":1}\n\nnot json\n[1]\n{"n":\xff}\n{"n":2}\r\n{"n":')
    records, problems = read(path)
    assert records == [{"n": 1}, {"n": 2}]
    assert [number for number, _ in problems] == [3, 4, 5, 7]
    assert problems[1][1] == "line skipped: it is not a JSON object"
    assert problems[-1][1].endswith("; the file ends inside of it")


def test_a_log_that_grows_while_it_is_read_gives_what_was_added(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2}\n')
    with opened(path) as lines, path.open("ab") as writing:
        records = []
        for _, _, record in lines.records(load_object):
            records.append(record)
            if len(records) == 1:
                writing.write(b'{"n":3}\n')
                writing.flush()
        assert records == [{"n": 1}, {"n": 2}, {"n": 3}]
        assert lines.problems == []


@pytest.mark.slow
def test_lines_after_a_place_are_those_of_the_file_whatever_is_read_between(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(LOG + b"torn")
    every = (LOG + b"torn").splitlines(keepends=True)

    with opened(path) as lines:
        places = [line for line, _ in lines]
        lines_read = []
        for number, raw in enumerate(lines.lines_from(places[3].offset)):
            assert lines.read_line(places[number]) == every[number]
            assert next(lines.lines_from(places[-1].offset)) == b"torn"
            lines_read.append(raw)
        assert lines_read == every[3:]
        assert list(lines.lines_from(len(LOG) + 4)) == []


def test_a_long_log_is_read_in_the_memory_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    line = json.dumps({"text": "x" * (1 << 20)}).encode() + b"\n"
    with path.open("wb") as file:
        for _ in range(64):
            file.write(line)
    tracemalloc.start()
    try:
        with opened(path) as lines:
            count = sum(1 for _ in lines.records(load_object))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (count, most < 8 << 20) == (64, True)


def test_of_many_bad_lines_the_first_ones_are_named_and_the_others_counted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("x\n" * (MOST_PROBLEMS + 1_234), encoding="utf-8")
    with opened(path) as lines:
        assert list(lines.records(load_object)) == []
        *first, last = lines.problems
    assert [problem.line for problem in first] == list(range(1, MOST_PROBLEMS + 1))
    assert (last.source, last.line, last.why) == (
        str(path),
        None,
        "1,234 further problems",
    )
