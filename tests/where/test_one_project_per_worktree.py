"""A worktree has one project, even if it moves or its facts in git change."""

from __future__ import annotations

import multiprocessing
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sessiondb import NotFoundError, Store, user
from sessiondb.maintenance import check
from sessiondb.repository.sessions import ALL

Git = Callable[..., None]


@pytest.fixture
def run(git: str) -> Git:
    def run(folder: Path, *args: str) -> None:
        subprocess.run([git, "-C", str(folder), *args], check=True, capture_output=True)

    return run


def begin(store: Store, directory: Path, title: str) -> str:
    session = store.create_session(title=title, directory=str(directory))
    store.append(session, user(title))
    return session.id


def titles(store: Store, directory: Path) -> list[str]:
    return sorted(session.title for session in store.sessions(project=str(directory)))


def worktrees(store: Store) -> list[str]:
    return [project.worktree for project in store.projects()]


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def test_relink_onto_a_directory_with_sessions_shows_those_of_both(
    store: Store, tmp_path: Path
) -> None:
    old, new = folder(tmp_path / "old"), folder(tmp_path / "new")
    for number in range(3):
        begin(store, old, f"old {number}")
        begin(store, new, f"new {number}")
    folder(old / "sub")
    below = begin(store, old / "sub", "below")
    store.add_prompt("typed there", directory=str(old))

    assert store.relink(str(old), str(new)).moved == 4
    shown = [*(f"new {n}" for n in range(3)), *(f"old {n}" for n in range(3))]
    assert titles(store, new) == titles(store, old) == shown
    assert titles(store, new / "sub") == ["below"]
    assert store.session(below).directory == str(new / "sub")
    assert sorted(worktrees(store)) == [str(new), str(new / "sub")]
    assert [x.text for x in store.prompts(project=str(new))] == ["typed there"]
    assert check(store) == []
    begin(store, new, "after")
    assert titles(store, new) == ["after", *shown]


def test_relink_moves_nothing_whose_path_only_looks_alike(
    store: Store, tmp_path: Path
) -> None:
    inside = begin(store, folder(tmp_path / "a_b" / "sub"), "inside")
    others = [
        begin(store, folder(tmp_path / name / "sub"), name)
        for name in ("A_B", "axb", "a_bc")
    ]
    store.relink(str(tmp_path / "a_b"), str(tmp_path / "new"))
    assert store.session(inside).directory == str(tmp_path / "new" / "sub")
    found = [store.session(other).directory for other in others]
    assert found == [str(tmp_path / name / "sub") for name in ("A_B", "axb", "a_bc")]
    with pytest.raises(NotFoundError, match="no project and no session"):
        store.relink("/" + "_" * 60_000, str(tmp_path / "new"))


def test_merged_projects_keep_unique_slugs_and_what_each_knew(
    store: Store, tmp_path: Path
) -> None:
    old, new = folder(tmp_path / "old"), folder(tmp_path / "new")
    one, two = begin(store, old, "one"), begin(store, new, "two")
    with closing(sqlite3.connect(store.path)) as shell, shell:
        shell.execute("UPDATE session SET slug = 'same-slug'")
        facts = [
            ("/old", '{"a": 1, "b": 1}', '["rule"]', 5),
            ("/new", '{"b": 2}', None, None),
        ]
        for (ending, metadata, rule, first), session in zip(
            facts, (one, two), strict=True
        ):
            shell.execute(
                "UPDATE project SET name = ?, metadata = ?, permission = ?, time_initialized = ? "
                "WHERE id = (SELECT project_id FROM session WHERE id = ?)",
                (ending, metadata, rule, first, session),
            )

    store.relink(str(old), str(new))
    slugs = [session.slug for session in store.sessions(project=str(new))]
    assert len(set(slugs)) == 2
    assert store.session(two).slug == "same-slug"
    (project,) = store.projects()
    assert (project.name, project.metadata) == ("/new", {"a": 1, "b": 2})
    with closing(sqlite3.connect(store.path)) as shell, shell:
        row = shell.execute(
            "SELECT permission, time_initialized FROM project"
        ).fetchone()
        kept = shell.execute(
            "SELECT directory, kind FROM project_directory ORDER BY 1"
        ).fetchall()
    assert row == ('["rule"]', 5)
    assert kept == [(str(new), "worktree"), (str(old), "former")]


def test_relink_there_and_back_again_is_what_it_was(
    store: Store, tmp_path: Path
) -> None:
    old, new = folder(tmp_path / "old"), tmp_path / "new"
    before = begin(store, old, "one")
    store.relink(str(old), str(new))
    store.relink(str(new), str(old))
    assert (titles(store, old), worktrees(store)) == (["one"], [str(old)])
    assert store.session(before).directory == str(old)


def test_relink_of_a_folder_above_projects_keeps_them_apart(
    store: Store, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        begin(store, folder(tmp_path / "work" / name), name)
    begin(store, folder(tmp_path / "kept" / "b"), "was there")
    store.relink(str(tmp_path / "work"), str(tmp_path / "kept"))
    assert titles(store, tmp_path / "kept" / "a") == ["a"]
    assert titles(store, tmp_path / "kept" / "b") == ["b", "was there"]
    assert sorted(worktrees(store)) == [str(tmp_path / "kept" / name) for name in "ab"]


def test_relink_into_a_repository_joins_its_project(
    store: Store, tmp_path: Path, run: Git
) -> None:
    repository = folder(tmp_path / "repository")
    run(repository, "init", "-q")
    begin(store, folder(tmp_path / "old"), "old")
    begin(store, repository, "repository")
    store.relink(str(tmp_path / "old"), str(folder(repository / "sub")))
    assert (
        titles(store, repository)
        == titles(store, repository / "sub")
        == ["old", "repository"]
    )
    assert worktrees(store) == [str(repository)]


def shared_worktree(store: Store, tmp_path: Path) -> Path:
    """Make two projects of one worktree, which sessiondb itself never does."""
    one, two = folder(tmp_path / "one"), folder(tmp_path / "two")
    begin(store, one, "one")
    begin(store, two, "two")
    with closing(sqlite3.connect(store.path)) as shell, shell:
        for table, column in (
            ("project", "worktree"),
            ("project_directory", "directory"),
        ):
            shell.execute(f"UPDATE {table} SET {column} = ?", (str(one),))
    return one


def test_two_projects_of_one_worktree_are_reported_and_merged_by_relink(
    store: Store, tmp_path: Path
) -> None:
    one = shared_worktree(store, tmp_path)
    assert [(x.check, x.count) for x in check(store)] == [("projects", 1)]
    store.relink(str(one), str(one))
    assert (titles(store, one), check(store)) == (["one", "two"], [])


def relinking(database: str, old: str, new: str) -> None:
    with Store.open(database, durability="normal") as store:
        begin(store, Path(new), f"from {Path(old).name}")
        store.relink(old, new)


@pytest.mark.slow
def test_processes_that_move_folders_to_one_place_leave_one_project(
    store: Store, tmp_path: Path
) -> None:
    new = folder(tmp_path / "new")
    names = ["a", "b", "c", "d"]
    for name in names:
        begin(store, folder(tmp_path / name), name)
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(
            target=relinking, args=(str(store.path), str(tmp_path / n), str(new))
        )
        for n in names
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert worktrees(store) == [str(new)]
    assert titles(store, new) == sorted([*names, *(f"from {name}" for name in names)])
    assert check(store) == []


def test_one_worktree_spelled_in_two_ways_is_one_project(store: Store) -> None:
    from dataclasses import replace

    from sessiondb.model import SourceSession

    item = SourceSession(
        "other",
        "1",
        "x",
        "d",
        (),
        directory="/gone/app",
        worktree="/gone/app",
        time_created=1,
    )
    both = [item, replace(item, source_id="2", worktree="/gone/./app/")]
    assert [x.outcome for x in store.ingest(both)] == ["imported"] * 2  # type: ignore[union-attr]
    assert worktrees(store) == ["/gone/app"]


def repository_of(run: Git, path: Path) -> Path:
    run(folder(path), "init", "-q")
    return path


def commit(run: Git, path: Path) -> None:
    run(path, "commit", "-q", "--allow-empty", "-m", "first")
    run(path, "remote", "add", "origin", "https://example.org/app.git")


def test_changed_facts_of_git_are_recorded_at_the_next_write(
    store: Store, tmp_path: Path, run: Git
) -> None:
    app = repository_of(run, tmp_path / "app")
    begin(store, app, "before the first commit")
    (known,) = store.projects()
    assert (known.remote, known.root_commit) == (None, None)
    commit(run, app)
    begin(store, app, "after")
    (known,) = store.projects()
    assert known.remote == "example.org/app"
    assert len(known.root_commit or "") == 40
    run(app, "remote", "set-url", "origin", "https://example.org/renamed.git")
    begin(store, app, "renamed")
    assert store.projects()[0].remote == "example.org/renamed"
    run(app, "remote", "remove", "origin")
    begin(store, app, "without")
    assert store.projects()[0].remote == "example.org/renamed"
    moved = app.rename(tmp_path / "moved")
    run(moved, "remote", "add", "origin", "https://example.org/renamed.git")
    assert len(titles(store, moved)) == 4


def test_an_append_from_the_worktree_records_it_too(
    tmp_path: Path, run: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = repository_of(run, tmp_path / "app")
    database = tmp_path / "sessions.db"
    with Store.open(database, durability="normal") as store:
        name = begin(store, app, "T")
    commit(run, app)
    monkeypatch.chdir(app)
    with Store.open(database, durability="normal") as store:
        store.append(name, user("more"))
        assert store.projects()[0].root_commit is not None
    monkeypatch.chdir(tmp_path)
    moved = app.rename(tmp_path / "moved")
    with Store.open(database, durability="normal") as store:
        begin(store, moved, "after the move")
        assert titles(store, moved) == ["T", "after the move"]
        assert worktrees(store) == [str(moved)]


def test_git_is_started_once_for_a_worktree_and_not_for_each_write(
    store: Store, tmp_path: Path, run: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = repository_of(run, tmp_path / "app")
    asked: list[object] = []
    started = subprocess.run

    def counting(*args: object, **more: object) -> object:
        asked.append(args)
        return started(*args, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", counting)
    monkeypatch.chdir(app)
    for number in range(5):
        begin(store, app, str(number))
    assert len(asked) == 1  # there is no commit yet
    started(
        ["git", "-C", str(app), "commit", "-q", "--allow-empty", "-m", "1"], check=True
    )
    for number in range(5):
        begin(store, app, str(number))
        titles(store, app)
    assert len(asked) == 2


def test_a_moved_repository_shows_its_sessions_before_anything_is_written(
    store: Store, tmp_path: Path, run: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = repository_of(run, tmp_path / "app")
    commit(run, app)
    begin(store, app, "T")
    moved = app.rename(tmp_path / "moved")
    monkeypatch.chdir(moved)
    assert [session.title for session in store.sessions()] == ["T"]
    assert store.session("@").title == "T"
    assert [hit.session.title for hit in store.search("T", project=str(moved))] == ["T"]
    assert worktrees(store) == [str(app)]
    begin(store, moved, "next")
    assert titles(store, moved) == ["T", "next"]
    assert len(store.projects()) == 1


def test_a_clone_beside_its_original_is_not_taken_for_it(
    store: Store, tmp_path: Path, run: Git
) -> None:
    app = repository_of(run, tmp_path / "app")
    commit(run, app)
    begin(store, app, "T")
    for place in ("second", "third"):
        shutil.copytree(app, tmp_path / place)
        assert titles(store, tmp_path / place) == []
        begin(store, tmp_path / place, place)
    shutil.rmtree(app)
    shutil.copytree(tmp_path / "third", tmp_path / "fourth")
    assert titles(store, tmp_path / "fourth") == []
    assert [s.title for s in store.sessions(project=ALL)] == ["third", "second", "T"]
