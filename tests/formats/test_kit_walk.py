"""Folders are walked by one set of rules, whichever search walks them."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import permissions_hold

from sessiondb.formats.discovery import find, in_projects, stamps
from sessiondb.formats.kit.logs import logs_below
from sessiondb.formats.kit.walk import Walk
from sessiondb.formats.unsupported import agents_at


def filled(top: Path, *files: str) -> Path:
    for name in files:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return top


def walked(walk: Walk, top: Path) -> list[str]:
    """The files in the order in which a walk comes to them."""
    return [
        (folder.path / entry.name).relative_to(top).as_posix()
        for folder in walk
        for entry in folder.files
    ]


def test_a_walk_is_sorted_and_goes_deep_first_unless_it_is_limited(
    tmp_path: Path,
) -> None:
    filled(tmp_path, "b/1", "a/deep/2", "a/3", "0", "a.x/4")
    assert walked(Walk(tmp_path), tmp_path) == ["0", "a/3", "a/deep/2", "a.x/4", "b/1"]
    near = walked(Walk(tmp_path, most=100), tmp_path)
    assert near == ["0", "a/3", "a.x/4", "b/1", "a/deep/2"]


def test_a_link_to_a_folder_is_not_followed_and_one_to_a_file_is_an_entry(
    tmp_path: Path,
) -> None:
    filled(tmp_path, "a/1", ".hidden/2")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "z").symlink_to(tmp_path / "a" / "1")
    files = walked(Walk(tmp_path), tmp_path)
    assert files == ["z", ".hidden/2", "a/1", "a/loop"]


def test_folders_without_sessions_are_not_walked(tmp_path: Path) -> None:
    names = [".git/1", "a/node_modules/2", "bare/objects/3", "bare/HEAD", "bare/refs/4"]
    filled(tmp_path, *names, "a/5")
    assert walked(Walk(tmp_path), tmp_path) == ["a/5"]


def test_the_caller_chooses_the_folders_and_how_deep_a_walk_goes(
    tmp_path: Path,
) -> None:
    filled(tmp_path, "a/1", "b/2", "b/c/3")
    walk = Walk(tmp_path, depth=1)
    seen = []
    for folder in walk:
        seen.append(folder.path.name)
        folder.folders = [name for name in folder.folders if name != "a"]
    assert seen == [tmp_path.name, "b"]


@pytest.mark.parametrize(
    ("most", "files", "complete"),
    [
        (2, [], False),
        (4, ["a/1", "b/2"], False),
        (7, ["a/1", "b/2", "b/c/3"], False),
        (8, ["a/1", "b/2", "b/c/3"], True),
    ],
)
def test_a_limited_walk_says_whether_it_came_to_everything(
    tmp_path: Path, most: int, files: list[str], complete: bool
) -> None:
    filled(tmp_path, "a/1", "b/2", "b/c/3")
    (tmp_path / "b" / "d").mkdir()
    walk = Walk(tmp_path, most=most)
    assert walked(walk, tmp_path) == files
    assert walk.is_complete is complete


@pytest.mark.parametrize("mode", [0o000, 0o600])
def test_a_folder_that_cannot_be_read_or_searched_is_reported(
    tmp_path: Path, mode: int
) -> None:
    filled(tmp_path, "a/1.jsonl", "b/.cursor/2.jsonl", "b/.aider.chat.history.md")
    (tmp_path / "a").chmod(mode)
    try:
        with permissions_hold():
            odd = [(f.path.name, f.odd) for f in Walk(tmp_path) if f.odd]
            problem, log = logs_below(tmp_path, lambda path: path.suffix == ".jsonl")
            stores = [s.path.name for s in find(tmp_path) if s.source == "unreadable"]
            quiet = in_projects(tmp_path), agents_at(tmp_path), len(stamps(tmp_path))
    finally:
        (tmp_path / "a").chmod(0o700)

    ((name, reason),) = odd
    assert name == "a"
    assert reason.startswith("cannot be")
    assert problem.why == f"the folder {reason}"
    assert (log.name, stores) == ("2.jsonl", ["a"])
    assert quiet == (([tmp_path / "b/.aider.chat.history.md"], True), ["Cursor"], 2)


def test_a_walk_of_no_folder_is_empty(tmp_path: Path) -> None:
    file = filled(tmp_path, "1") / "1"
    assert walked(Walk(file), tmp_path) == walked(Walk(tmp_path / "x"), tmp_path) == []
