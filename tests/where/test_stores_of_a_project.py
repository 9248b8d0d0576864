"""A project-local database at the level of the store: who may use it, and how it moves along."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from sessiondb import ALL, HERE, Store, user
from sessiondb.cli.app import app
from sessiondb.errors import NotADatabaseError, NotFoundError
from sessiondb.location import init_local, trust


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository, the current directory, that sessiondb has not been used in yet."""
    root = tmp_path / "project"
    (root / ".git" / "objects").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / "src").mkdir()
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def shipped(project: Path, tmp_path: Path) -> Path:
    """Return a database that came with the repository: made elsewhere, with a session in it."""
    made = tmp_path / "made" / "sessions.db"
    with Store.open(made, parents=True) as store:
        store.append(store.create_session(title="shipped"), user("planted words"))
    path = project / ".sessiondb" / "sessions.db"
    path.parent.mkdir()
    shutil.copyfile(made, path)
    return path


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _titles(store: Store, project: object = ALL) -> list[str]:
    return [session.title for session in store.sessions(project=project, empty=True)]


def test_a_database_that_was_not_accepted_is_neither_read_nor_written(
    shipped: Path,
) -> None:
    before = _files(shipped.parent)
    with Store.open() as store:
        assert store.location.kind == "global"
        assert str(shipped) in store.location.notice
        assert _titles(store) == []
        store.append(store.create_session(title="private"), user("mine"))
        assert store.search("planted").items == ()
    with pytest.raises(NotFoundError, match="not used"):
        Store.open(scope="local")
    assert _files(shipped.parent) == before


@pytest.mark.parametrize(
    "words", [["list"], ["search", "planted"], ["list", "--json"], ["path"]]
)
def test_a_command_reports_an_unaccepted_database_in_one_line_on_stderr(
    shipped: Path, words: list[str]
) -> None:
    before = _files(shipped.parent)
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0
    notices = [line for line in ran.stderr.splitlines() if "not used" in line]
    assert len(notices) == 1
    assert str(shipped) in notices[0]
    assert "sessiondb trust" in notices[0]
    assert "shipped" not in ran.stdout
    assert _files(shipped.parent) == before


def test_an_accepted_one_is_used_and_a_planted_trigger_is_refused_all_the_same(
    shipped: Path,
) -> None:
    trust.accept(shipped)
    with Store.open() as store:
        assert _titles(store) == ["shipped"]
    with closing(sqlite3.connect(shipped)) as connection:
        connection.execute(
            "CREATE TRIGGER planted AFTER INSERT ON message BEGIN DELETE FROM part; END"
        )
    with pytest.raises(NotADatabaseError, match="planted"):
        Store.open()


@pytest.mark.parametrize("what", ["sessions.db", "sessions.db-wal", ".sessiondb"])
def test_no_link_leads_out_of_the_project(
    project: Path, tmp_path: Path, what: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    init_local(project)
    with Store.open() as store:
        store.create_session(title="mine")
    link = (
        project / ".sessiondb"
        if what == ".sessiondb"
        else project / ".sessiondb" / what
    )
    if link.exists():
        link.rename(elsewhere)
    else:
        elsewhere.write_bytes(b"precious")
    link.symlink_to(elsewhere)
    before = elsewhere.read_bytes() if elsewhere.is_file() else _files(elsewhere)
    with pytest.raises((NotADatabaseError, NotFoundError)):
        Store.open(scope="local")
    with pytest.raises(NotADatabaseError, match="link"):
        Store.open(project / ".sessiondb" / "sessions.db")
    assert before == (
        elsewhere.read_bytes() if elsewhere.is_file() else _files(elsewhere)
    )


def test_directories_are_stored_relative_and_come_along_when_the_folder_moves(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init_local(project)
    with Store.open(source="agent") as store:
        store.append(store.create_session(title="root"), user("at the root"))
        store.append(store.create_session(title="src", directory="src"), user("below"))
        store.append(
            store.create_session(title="out", directory=str(tmp_path)), user("outside")
        )
        store.add_prompt("a line", directory="src")
    with closing(sqlite3.connect(project / ".sessiondb" / "sessions.db")) as connection:
        stored = dict(connection.execute("SELECT title, directory FROM session"))
        assert stored == {"root": ".", "src": "src", "out": str(tmp_path)}
        worktree = connection.execute(
            "SELECT worktree FROM project ORDER BY rowid"
        ).fetchone()
        assert worktree == (".",)
        assert connection.execute("SELECT directory FROM prompt").fetchone() == ("src",)

    moved = tmp_path / "moved"
    monkeypatch.chdir(tmp_path)
    project.rename(moved)
    monkeypatch.chdir(moved)
    # Another place: this machine has to accept it again.
    assert Store.open().location.kind == "global"
    trust.accept(moved / ".sessiondb" / "sessions.db")
    with Store.open() as store:
        found = {
            session.title: session.directory for session in store.sessions(project=ALL)
        }
        assert found == {
            "root": str(moved),
            "src": str(moved / "src"),
            "out": str(tmp_path),
        }
        assert sorted(_titles(store, HERE)) == ["root", "src"]
        assert {item.worktree for item in store.projects()} >= {str(moved)}
        store.append(store.create_session(title="after"), user("the same project"))
        assert "after" in _titles(store, HERE)
        assert store.prompts().items[0].directory == str(moved / "src")


def test_sessions_are_found_through_a_link_to_the_project(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init_local(project)
    with Store.open() as store:
        store.append(store.create_session(title="mine"), user("Hello"))
    (tmp_path / "link").symlink_to(project)
    monkeypatch.chdir(tmp_path / "link" / "src")
    with Store.open() as store:
        assert store.location.kind == "local"
        assert _titles(store, HERE) == ["mine"]


# -- which project, in any database ------------------------------------------


Git = Callable[..., str]


@pytest.fixture
def run(git: str) -> Git:
    import subprocess

    def run(*words: str, at: Path) -> str:
        done = subprocess.run(
            [git, *words], cwd=at, check=True, capture_output=True, text=True
        )
        return done.stdout

    return run


@pytest.fixture
def repository(tmp_path: Path, run: Git) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    run("init", "-q", at=root)
    run("commit", "-q", "--allow-empty", "-m", "first", at=root)
    run("remote", "add", "origin", "git@example.org:ada/repository.git", at=root)
    return root


def _begin(store: Store, directory: Path, title: str) -> str:
    session = store.create_session(title=title, directory=str(directory))
    store.append(session, user("Hello"))
    return store.session(session).project_id


def test_worktrees_of_one_repository_share_a_project(
    store: Store, repository: Path, tmp_path: Path, run: Git
) -> None:
    linked = tmp_path / "linked"
    run("worktree", "add", "-q", str(linked), at=repository)
    assert _begin(store, repository, "main") == _begin(store, linked, "linked")
    assert sorted(_titles(store, str(linked))) == ["linked", "main"]
    assert sorted(_titles(store, str(repository))) == ["linked", "main"]
    (only,) = store.projects()
    assert only.worktree == str(repository)
    run("worktree", "remove", "--force", str(linked), at=repository)
    assert sorted(_titles(store, str(repository))) == ["linked", "main"]


def test_a_repository_that_moved_is_adopted_and_nothing_is_removed(
    store: Store, repository: Path, tmp_path: Path
) -> None:
    before = _begin(store, repository, "before")
    moved = repository.rename(tmp_path / "moved")
    assert _begin(store, moved, "after") == before
    assert sorted(_titles(store, str(moved))) == ["after", "before"]
    rows = store.connection()
    with rows:
        known = rows.exec_driver_sql(
            "SELECT directory, kind FROM project_directory"
        ).fetchall()
    assert set(known) == {(str(repository), "worktree"), (str(moved), "worktree")}


def test_a_second_clone_is_another_project_while_the_first_is_there(
    store: Store, repository: Path, tmp_path: Path
) -> None:
    first = _begin(store, repository, "first")
    copy = Path(shutil.copytree(repository, tmp_path / "copy"))
    assert _begin(store, copy, "copy") != first


@pytest.mark.parametrize("change", ["remote", "commit", "no commit"])
def test_a_folder_that_moved_and_is_not_the_same_is_not_adopted(
    store: Store, repository: Path, tmp_path: Path, run: Git, change: str
) -> None:
    before = _begin(store, repository, "before")
    moved = repository.rename(tmp_path / "moved")
    if change == "remote":
        run(
            "remote",
            "set-url",
            "origin",
            "https://example.org/eve/repository",
            at=moved,
        )
    elif change == "commit":
        run("checkout", "-q", "--orphan", "other", at=moved)
        run("commit", "-q", "--allow-empty", "-m", "another first", at=moved)
        run("branch", "-D", "master", at=moved) if "master" in run(
            "branch", at=moved
        ) else None
    else:
        shutil.rmtree(moved / ".git")
        run("init", "-q", at=moved)
    assert _begin(store, moved, "after") != before


def test_of_two_projects_that_are_gone_none_is_adopted(
    store: Store, repository: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(repository, tmp_path / "copy"))
    both = {_begin(store, repository, "one"), _begin(store, copy, "two")}
    assert len(both) == 2
    moved = repository.rename(tmp_path / "moved")
    shutil.rmtree(copy)
    assert _begin(store, moved, "after") not in both


def test_relink_moves_a_project_by_hand_with_all_that_is_below_it(
    store: Store, repository: Path, tmp_path: Path
) -> None:
    (repository / "src").mkdir()
    before = _begin(store, repository, "root")
    _begin(store, repository / "src", "src")
    _begin(store, tmp_path / "repository-2", "a neighbour by name")
    shutil.rmtree(repository)
    new = tmp_path / "new"
    (new / "src").mkdir(parents=True)
    assert store.relink(str(repository), str(new)).moved == 2
    assert sorted(_titles(store, str(new))) == ["root", "src"]
    places = {
        session.title: session.directory for session in store.sessions(project=ALL)
    }
    assert places["src"] == str(new / "src")
    assert places["a neighbour by name"] == str(tmp_path / "repository-2")
    assert _begin(store, new, "after") == before
    with pytest.raises(NotFoundError):
        store.relink(str(tmp_path / "never"), str(new))


def test_a_path_that_another_worktree_had_gets_a_project_of_its_own(
    store: Store, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    first.mkdir()
    one = _begin(store, first, "one")
    moved = first.rename(tmp_path / "moved")
    store.relink(str(first), str(moved))
    first.mkdir()
    two = _begin(store, first, "two")
    assert one != two
    assert _titles(store, str(first)) == ["two"]
    assert _titles(store, str(moved)) == ["one"]
    assert os.path.isdir(first)
