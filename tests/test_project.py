"""Which project a directory belongs to, on repositories made by the real git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sessiondb.errors import InvalidInputError, NotFoundError
from sessiondb.location import (
    project_at,
    remote_of,
    root_commit_of,
)
from sessiondb.location.git import normalised
from sessiondb.places import absolute, stored

Git = Callable[..., str]


@pytest.fixture
def run(git: str) -> Git:
    def run(folder: Path, *arguments: str) -> str:
        command = [git, "-c", "protocol.file.allow=always", *arguments]
        done = subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    return run


@pytest.fixture
def repository(tmp_path: Path, run: Git) -> Path:
    folder = tmp_path / "work" / "app"
    folder.mkdir(parents=True)
    run(folder, "init", "-q")
    (folder / "src").mkdir()
    (folder / "src" / "app.py").write_text("x = 1\n")
    run(folder, "add", ".")
    run(folder, "commit", "-q", "-m", "first")
    return folder


def test_a_directory_of_a_repository_belongs_to_its_root(repository: Path) -> None:
    place = project_at(repository / "src")
    assert place.root == place.checkout == str(repository)
    assert (place.directory, place.kind, place.vcs) == (
        str(repository / "src"),
        "worktree",
        "git",
    )


def test_outside_of_a_repository_a_directory_is_its_own_project(tmp_path: Path) -> None:
    place = project_at(tmp_path)
    assert (place.root, place.directory, place.vcs) == (
        str(tmp_path),
        str(tmp_path),
        None,
    )


def test_git_is_not_asked_when_it_should_not_be(repository: Path) -> None:
    place = project_at(repository / "src", resolve_git=False)
    assert (place.root, place.vcs) == (str(repository / "src"), None)


def test_a_linked_worktree_is_a_sandbox_of_the_main_one(
    repository: Path, run: Git
) -> None:
    linked = repository.parent / "feature"
    run(repository, "worktree", "add", "-q", str(linked))
    place = project_at(linked / "src")
    assert (place.root, place.checkout) == (str(repository), str(linked))
    assert (place.directory, place.kind) == (str(linked / "src"), "sandbox")


def test_worktrees_of_a_bare_repository_share_one_project(
    repository: Path, run: Git
) -> None:
    bare = repository.parent / "app.git"
    run(repository, "clone", "-q", "--bare", str(repository), str(bare))
    one, two = repository.parent / "one", repository.parent / "two"
    run(bare, "worktree", "add", "-q", str(one))
    run(bare, "worktree", "add", "-q", "-b", "two", str(two))
    assert (
        project_at(one).root
        == project_at(two).root
        == project_at(bare).root
        == str(bare)
    )
    assert project_at(bare / "refs").root == str(bare)
    assert project_at(one).kind == "sandbox"


def test_a_bare_repository_behind_a_pointer_is_the_folder_of_the_pointer(
    repository: Path, run: Git
) -> None:
    folder = repository.parent / "layout"
    folder.mkdir()
    run(folder, "clone", "-q", "--bare", str(repository), ".bare")
    (folder / ".git").write_text("gitdir: ./.bare\n")
    run(folder, "worktree", "add", "-q", "-b", "one", "one")
    assert project_at(folder / "one").root == project_at(folder).root == str(folder)


def test_a_submodule_and_its_worktrees_are_a_project_of_their_own(
    repository: Path, run: Git
) -> None:
    outer, linked = repository.parent / "outer", repository.parent / "linked"
    outer.mkdir()
    run(outer, "init", "-q")
    run(outer, "submodule", "add", "-q", str(repository), "inner")
    run(outer / "inner", "worktree", "add", "-q", "-b", "linked", str(linked))
    assert project_at(outer / "inner" / "src").root == str(outer / "inner")
    assert project_at(outer / "inner").kind == "worktree"
    assert project_at(linked).root == str(outer / "inner")
    assert project_at(outer).root == str(outer)


def test_a_repository_kept_elsewhere_belongs_to_where_its_pointer_is(
    tmp_path: Path, run: Git
) -> None:
    folder = tmp_path / "app"
    run(
        tmp_path,
        "init",
        "-q",
        "--separate-git-dir",
        str(tmp_path / "kept"),
        str(folder),
    )
    assert (project_at(folder).root, project_at(folder).kind) == (
        str(folder),
        "worktree",
    )


def test_inside_of_the_git_directory_the_project_is_the_worktree(
    repository: Path,
) -> None:
    assert project_at(repository / ".git" / "refs").root == str(repository)


@pytest.mark.parametrize(
    "pointer",
    [
        "",
        "gitdir:",
        "gitdir: /nowhere/.git/worktrees/x",
        "gitdir: .",
        "\0\xff",
        "x" * 99,
    ],
)
def test_a_broken_pointer_ends_the_search_and_nothing_else(
    tmp_path: Path, pointer: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").write_text(pointer, encoding="latin-1")
    place = project_at(tmp_path / "sub")
    assert (place.root, place.kind, place.vcs) == (str(tmp_path), "worktree", "git")
    assert remote_of(place.root) is None
    assert root_commit_of(place.root) is None


def test_a_git_directory_without_contents_is_skipped(repository: Path) -> None:
    (repository / "src" / ".git").mkdir()
    os.mkfifo(repository / "src" / "config")
    assert project_at(repository / "src").root == str(repository)


def test_a_pipe_in_place_of_a_git_file_does_not_block(repository: Path) -> None:
    os.mkfifo(repository / "src" / ".git")
    (repository / ".git" / "config").unlink()
    os.mkfifo(repository / ".git" / "config")
    assert project_at(repository / "src").root == str(repository)
    assert remote_of(str(repository)) is None


def test_a_directory_reached_by_a_link_is_taken_by_its_real_path(
    repository: Path,
) -> None:
    link = repository.parent / "link"
    link.symlink_to(repository / "src")
    assert project_at(link).directory == str(repository / "src")
    assert project_at(link / "..").directory == str(repository)


def test_a_directory_that_is_not_here_is_kept_as_written(repository: Path) -> None:
    gone = f"{repository}/gone/../away"
    place = project_at(gone)
    assert (place.root, place.directory, place.vcs) == (f"{repository}/away",) * 2 + (
        None,
    )
    assert project_at("C:\\Users\\ada\\app").root == "C:\\Users\\ada\\app"
    assert remote_of(place.root) is None
    assert root_commit_of(place.root) is None


@pytest.mark.parametrize("directory", ["", "a\0b"])
def test_an_invalid_directory_is_refused(directory: str) -> None:
    with pytest.raises(InvalidInputError):
        project_at(directory)


@pytest.mark.parametrize("directory", ["/" + "x" * 5000, "/\ud800", "/a\nb"])
def test_a_strange_directory_is_only_a_name(directory: str) -> None:
    assert project_at(directory).root == directory


def test_a_removed_current_directory_is_reported_as_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(NotFoundError):
        project_at(".")


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/Ada/app.git",
        "https://ada:secret@GitHub.com:443/Ada/app/",
        "https://github.com/Ada/app.git?token=secret#x",
        "ssh://git@github.com/Ada/app.git",
        "ssh://git@github.com:22/Ada/app",
        "git@github.com:Ada/app.git",
        "git@github.com:/Ada/app.git/",
        "github.com:Ada/app",
    ],
)
def test_every_way_to_write_a_remote_is_one_remote(
    repository: Path, run: Git, url: str
) -> None:
    run(repository, "remote", "add", "origin", url)
    assert remote_of(str(repository)) == "github.com/Ada/app"


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("ssh://git@host:7999/team/app.git", "host:7999/team/app"),
        ("https://[::1]:8080/app.git", "[::1]:8080/app"),
        ("ada@[::1]:app.git", "[::1]/app"),
        ("/srv/git/app.git", None),
        ("./a:b", None),
        ("C:\\git\\app", None),
        ("file:///srv/git/app.git", None),
        ("ext::sh -c 'git %S'", None),
        ("https://host:port/app", None),
        ("https://[broken/app", None),
        ("https://github.com/", None),
        ("", None),
    ],
)
def test_a_remote_is_a_host_and_a_path_or_unknown(url: str, remote: str | None) -> None:
    assert normalised(url) == remote


def test_origin_comes_first_and_a_local_path_is_not_a_remote(
    repository: Path, run: Git
) -> None:
    assert remote_of(str(repository)) is None
    run(repository, "remote", "add", "backup", "/srv/git/app.git")
    assert remote_of(str(repository)) is None
    run(repository, "remote", "add", "fork", "https://example.org/fork.git")
    assert remote_of(str(repository)) == "example.org/fork"
    run(repository, "remote", "add", "origin", "https://example.org/main.git")
    assert remote_of(str(repository)) == "example.org/main"


def test_a_config_written_by_hand_is_read_as_git_reads_it(
    repository: Path, run: Git
) -> None:
    (repository / ".git" / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n"
        '# [remote "origin"] url = https://example.org/no\n'
        '[Remote "a\\"b"] URL = "https://example.org/q;#.git" ; why\n'
    )
    assert run(repository, "config", 'remote.a"b.url') == "https://example.org/q;#.git"
    assert remote_of(str(repository)) == "example.org/q;"
    assert run(repository, "rev-parse", "--show-toplevel") == str(repository)


def test_worktrees_and_clones_agree_on_remote_and_root_commit(
    repository: Path, run: Git
) -> None:
    first = run(repository, "rev-parse", "HEAD")
    run(repository, "commit", "-q", "--allow-empty", "-m", "second")
    run(repository, "remote", "add", "origin", "https://example.org/app.git")
    linked, clone = repository.parent / "linked", repository.parent / "clone"
    run(repository, "worktree", "add", "-q", str(linked))
    run(repository, "clone", "-q", str(repository), str(clone))
    assert {root_commit_of(str(path)) for path in (repository, linked, clone)} == {
        first
    }
    assert remote_of(str(linked)) == "example.org/app"


def test_the_root_commit_follows_the_repository_when_its_folder_moves(
    repository: Path, run: Git
) -> None:
    first = run(repository, "rev-parse", "HEAD")
    moved = repository.rename(repository.parent / "moved")
    assert root_commit_of(str(moved)) == first
    assert root_commit_of(str(repository)) is None


def test_of_several_roots_the_smallest_counts(repository: Path, run: Git) -> None:
    first = run(repository, "rev-parse", "HEAD")
    branch = run(repository, "branch", "--show-current")
    run(repository, "checkout", "-q", "--orphan", "other")
    run(repository, "commit", "-q", "-m", "another root")
    other = run(repository, "rev-parse", "HEAD")
    run(repository, "merge", "-q", "--allow-unrelated-histories", "-m", "both", branch)
    assert root_commit_of(str(repository)) == min(first, other)


def test_a_root_commit_that_cannot_be_known_is_none(
    repository: Path, tmp_path: Path, run: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(repository, "commit", "-q", "--allow-empty", "-m", "second")
    run(tmp_path, "clone", "-q", "--depth", "1", repository.as_uri(), "shallow")
    run(tmp_path, "init", "-q", "fresh")
    assert root_commit_of(str(tmp_path / "shallow")) is None
    assert root_commit_of(str(tmp_path / "fresh")) is None
    assert root_commit_of(str(tmp_path)) is None
    assert root_commit_of(str(repository), timeout=0.0) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert root_commit_of(str(repository)) is None


def test_a_git_hook_does_not_change_which_repository_is_asked(
    repository: Path, tmp_path: Path, run: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(repository, "rev-parse", "HEAD")
    run(tmp_path, "init", "-q", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert root_commit_of(str(repository)) == first


@pytest.mark.parametrize(
    ("directory", "kept"),
    [
        ("/srv/app", "."),
        ("/srv/app/src/x", "src/x"),
        ("/srv/app/./src/", "src"),
        ("/srv/app2", "/srv/app2"),
        ("/srv", "/srv"),
        ("/srv/app/../other", "/srv/app/../other"),
        ("C:\\app", "C:\\app"),
    ],
)
def test_directories_inside_of_a_project_are_stored_relative_to_it(
    directory: str, kept: str
) -> None:
    assert stored(directory, "/srv/app") == kept


def test_a_project_that_moved_takes_its_directories_along() -> None:
    assert absolute(stored("/old/src", "/old"), "/new") == "/new/src"
    assert absolute(stored("/old", "/old"), "/new") == "/new"
    assert absolute(stored("/elsewhere", "/old"), "/new") == "/elsewhere"
    assert absolute("C:\\app", "/new") == "C:\\app"
    assert absolute(stored("/src", "/"), "/") == "/src"
