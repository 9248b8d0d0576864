"""Logs in a folder: which are found, when they changed, and what they begin with."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from samples import permissions_hold

from sessiondb.errors import SourceError
from sessiondb.formats import find
from sessiondb.formats.content import embedded_file, file_of
from sessiondb.formats.kit.heads import beginning_of, first_records, forget_heads
from sessiondb.formats.kit.logs import (
    add_logs,
    keep_longer,
    log_digest,
    logs_below,
    read_in_order,
)
from sessiondb.model import Problem, SourceSession


def is_log(path: Path) -> bool:
    return path.suffix == ".jsonl"


def names(folder: Path) -> list[str]:
    paths = [item for item in logs_below(folder, is_log) if isinstance(item, Path)]
    return [str(path.relative_to(folder)) for path in paths]


def write(path: Path, content: str = "{}\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


# -- which are found ---------------------------------------------------------------


def test_logs_are_found_at_any_depth_in_the_order_of_their_names(
    tmp_path: Path,
) -> None:
    for name in ("b/2.jsonl", "b/1.jsonl", "a/deep/3.jsonl", "0.jsonl", "a/notes.md"):
        write(tmp_path / name)
    assert names(tmp_path) == ["0.jsonl", "a/deep/3.jsonl", "b/1.jsonl", "b/2.jsonl"]


def test_a_log_that_is_there_plain_and_packed_is_found_once(tmp_path: Path) -> None:
    write(tmp_path / "both.jsonl")
    for name in ("both.jsonl.zst", "packed.jsonl.gz"):
        write(tmp_path / name)
    assert names(tmp_path) == ["both.jsonl", "packed.jsonl.gz"]


def test_links_and_folders_are_no_logs(tmp_path: Path) -> None:
    write(tmp_path / "outside" / "1.jsonl")
    inside = tmp_path / "inside"
    (inside / "folder.jsonl").mkdir(parents=True)
    (inside / "link.jsonl").symlink_to(tmp_path / "outside" / "1.jsonl")
    (inside / "linked").symlink_to(tmp_path / "outside")
    assert names(inside) == []


def test_a_folder_without_logs_or_no_folder_has_none(tmp_path: Path) -> None:
    assert names(tmp_path) == names(tmp_path / "missing") == []


def test_a_folder_that_may_not_be_read_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path / "a" / "1.jsonl")
    write(tmp_path / "b" / "2.jsonl")
    (tmp_path / "a").chmod(0)
    try:
        with permissions_hold():
            problem, path = logs_below(tmp_path, is_log)
    finally:
        (tmp_path / "a").chmod(0o700)
    assert isinstance(problem, Problem)
    assert "Permission denied" in problem.why
    assert path == tmp_path / "b" / "2.jsonl"


# -- when they changed -------------------------------------------------------------


def test_a_digest_changes_with_size_and_time_of_each_file(tmp_path: Path) -> None:
    first, second = write(tmp_path / "1"), write(tmp_path / "2")
    digest = log_digest(first, second)
    assert log_digest(first, second) == digest

    os.utime(second, ns=(1, 1))
    moved = log_digest(first, second)
    second.write_text("{}\n{}\n")
    os.utime(second, ns=(1, 1))
    assert len({digest, moved, log_digest(first, second)}) == 3


def test_a_file_that_is_not_there_has_a_digest(tmp_path: Path) -> None:
    missing = log_digest(tmp_path / "1")
    assert missing != log_digest(write(tmp_path / "1"))


# -- what they begin with ----------------------------------------------------------


def test_the_first_records_are_the_objects_among_the_first_lines(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "1.jsonl", '{"a":1}\n[]\nno JSON\n{"b":2}\n{"c":3}\n')
    assert first_records(path, 4) == [{"a": 1}, {"b": 2}]
    assert first_records(path) == [{"a": 1}]


def test_a_log_is_opened_once_for_all_formats_and_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = {"schema_version": 1, "seq": 0, "time": 1, "type": "session_meta", "session_id": "s1"}  # fmt: skip
    path = write(tmp_path / "1.jsonl", json.dumps(record))
    opened: list[str] = []
    real_open = os.open

    def recording_open(path: Any, *more: Any, **options: Any) -> int:
        opened.append(str(path))
        return real_open(path, *more, **options)

    # For the search alone: what pytest and the library of Python open is not of interest.
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", recording_open)
        for _ in range(2):
            opened.clear()
            (session,) = [item for store in find(tmp_path) for item in store.read()]
            assert session.source_id == "s1"
            assert opened == [str(path)]


def test_a_head_is_read_again_when_the_file_changed_or_in_another_search(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "1.jsonl", '{"a":1}')
    assert first_records(path, 2) == [{"a": 1}]
    write(path, '{"a":1}\n{"b":2}')
    assert first_records(path, 2) == [{"a": 1}, {"b": 2}]
    # The same size and time, as a coarse clock may have them.
    status = path.stat()
    write(path, '{"a":1}\n{"b":3}')
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    forget_heads()
    assert first_records(path, 2) == [{"a": 1}, {"b": 3}]


@pytest.mark.parametrize("size", [10, 70_000, 300_000, 2 << 20])
def test_a_head_is_as_long_as_each_look_at_it_wants(size: int, tmp_path: Path) -> None:
    lines = [json.dumps({"n": n, "x": "x" * size}) for n in range(4)]
    path = write(tmp_path / "1.jsonl", "\n".join(lines))
    for most, longest in ((4, 16 << 20), (1, 16 << 20), (2, 1 << 18), (3, 16 << 20)):
        numbers = [record["n"] for record in first_records(path, most, longest=longest)]
        expected = [
            n
            for n in range(most)
            if (n + 1) * len(lines[0]) + n <= max(longest, 1 << 16)
        ]
        assert numbers == expected
    assert beginning_of(path, 20) == path.read_bytes()[:20]


def test_a_first_line_may_be_longer_than_a_glance(tmp_path: Path) -> None:
    record = {"instructions": "x" * 200_000}
    path = tmp_path / "1.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(record).encode() + b"\n{}\n"))
    assert first_records(path) == [record]


def test_a_torn_line_is_not_a_record(tmp_path: Path) -> None:
    assert first_records(write(tmp_path / "1.jsonl", '{"a":1}\n{"b":'), 2) == [{"a": 1}]
    assert first_records(write(tmp_path / "2.jsonl", "")) == []


def test_a_log_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "1.jsonl", "No such file or directory"),
        (tmp_path, "Is a directory|not a regular file"),
    ):
        with pytest.raises(SourceError, match=rf"^cannot read {path}: ({reason})$"):
            first_records(path)


# -- files inside of records -------------------------------------------------------


@pytest.mark.parametrize(
    ("mime", "encoded", "data"),
    [
        ("image/png", "iVBORw==", {"mime": "image/png", "content": b"\x89PNG"}),
        ("image/png", "", {"mime": "image/png", "content": b""}),
        # Not as an encoder writes it: the last bits of "h" are not zero.
        ("image/png", "iVBORh==", {"mime": "image/png", "url": "data:image/png;base64,iVBORh=="}),
        (None, "no base64", {"url": "data:;base64,no base64"}),
        (7, "AAAA", {"content": b"\0\0\0"}),
    ],
)  # fmt: skip
def test_an_embedded_file_becomes_bytes_if_they_give_the_same_text_again(
    mime: object, encoded: str, data: dict[str, object]
) -> None:
    assert embedded_file(mime, encoded) == data


def test_an_embedded_file_is_found_by_exporters() -> None:
    part = type("Part", (), {"data": embedded_file("image/png", "iVBORw==")})()
    assert file_of(part).data == "iVBORw=="


# -- one log for each session ------------------------------------------------------


class Log(NamedTuple):
    path: Path
    session: str


@pytest.mark.parametrize(
    ("sizes", "longest"),
    [
        ((5,), 0),
        ((5, 9), 1),
        ((9, 5), 0),
        ((7, 7), 0),
        ((5, 9, 7), 1),
        ((5, 7, 9), 2),
        # Removed after its head was read.
        ((None, 5), 1),
        ((5, None), 0),
    ],
)
def test_of_logs_of_one_session_the_longest_is_read(
    tmp_path: Path, sizes: tuple[int | None, ...], longest: int
) -> None:
    copies = [Log(tmp_path / str(index), "ses_1") for index in range(len(sizes))]
    for log, size in zip(copies, sizes, strict=True):
        if size is not None:
            write(log.path, "x" * size)

    logs: dict[str, Log] = {}
    problems = [problem for log in copies for problem in keep_longer(log, logs)]
    assert logs == {"ses_1": copies[longest]}
    left_out = {str(log.path) for log in copies} - {str(copies[longest].path)}
    assert {problem.source for problem in problems} == left_out
    assert all("session ses_1 is also in" in problem.why for problem in problems)


def test_logs_that_cannot_be_read_and_problems_among_them_cost_themselves(
    tmp_path: Path,
) -> None:
    def look_at(path: Path) -> Log | None:
        if path.name == "bad":
            raise SourceError("cannot read it")
        return None if path.name == "other" else Log(path, path.name)

    folder = Problem(str(tmp_path), "the folder cannot be read")
    paths = [tmp_path / name for name in ("bad", "other", "good")]
    logs: dict[str, Log] = {}
    problems = list(
        add_logs([folder, *paths], look_at, logs, without_session="has no session")
    )
    assert logs == {"good": Log(tmp_path / "good", "good")}
    assert [(Path(p.source).name, p.why) for p in problems] == [
        (tmp_path.name, "the folder cannot be read"),
        ("bad", "cannot read it"),
        ("other", "has no session"),
    ]


# -- in which order they are read ----------------------------------------------------


class Linked(NamedTuple):
    path: Path
    session: str
    parent: str | None = None
    relation: str | None = "fork"


def test_logs_are_read_after_their_parents_and_a_cycle_is_cut_once(
    tmp_path: Path,
) -> None:
    logs = {
        name: Linked(tmp_path / name, name, parent)
        for name, parent in [("c", "b"), ("b", "a"), ("a", "c"), ("d", "gone")]
    }

    def read(log: Linked) -> list[SourceSession]:
        family = {"parent_source_id": log.parent, "relation": log.relation}
        return [SourceSession("x", log.session, str(log.path), "", **family)]

    problem, *items = read_in_order(logs, read)

    assert isinstance(problem, Problem)
    assert problem.source == str(tmp_path / "a")
    assert problem.why == "session 'a' is its own ancestor"
    sessions = [item for item in items if isinstance(item, SourceSession)]
    assert [(it.source_id, it.parent_source_id, it.relation) for it in sessions] == [
        ("a", None, None),
        ("b", "a", "fork"),
        ("c", "b", "fork"),
        ("d", "gone", "fork"),
    ]
