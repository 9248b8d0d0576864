"""Which database is used, and which is not although it is there."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sessiondb import Store
from sessiondb.engine.address import without_passwords
from sessiondb.engine.sqlite.files import prepare
from sessiondb.errors import (
    InvalidInputError,
    NotFoundError,
    ReadOnlyError,
    UnsupportedError,
)
from sessiondb.location import (
    Database,
    Price,
    config_directory,
    data_directory,
    init_local,
    load_config,
    resolve,
    trust,
)

LOCAL = Path(".sessiondb", "sessions.db")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def git_in(folder: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def project(tmp_path: Path, git: str) -> Path:
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    subprocess.run([git, "init", "-q", str(folder)], check=True)
    return folder


def config(text: str) -> Path:
    path = config_directory() / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_explicit_comes_before_environment_before_local_before_config_before_global(
    project: Path,
) -> None:
    config('database = "~/mine.db"')
    init_local(project)
    env = {"SESSIONDB_PATH": "env.db"}
    assert resolve("x.db", cwd=project, env=env) == Database(
        project / "x.db", "explicit"
    )
    assert resolve(cwd=project, env=env) == Database(project / "env.db", "environment")
    assert resolve(cwd=project) == Database(project / LOCAL, "local", project)
    assert resolve(cwd=project.parent).path == Path.home() / "mine.db"
    config("")
    assert resolve(cwd=project.parent) == Database(
        data_directory() / "sessions.db", "global"
    )


def test_a_scope_selects_exactly_one_database(project: Path) -> None:
    env = {"SESSIONDB_PATH": "env.db"}
    init_local(project)
    assert resolve(scope="local", cwd=project, env=env).path == project / LOCAL
    assert (
        resolve(scope="global", cwd=project, env=env).path
        == data_directory() / "sessions.db"
    )
    with pytest.raises(InvalidInputError):
        resolve("x.db", scope="global")
    with pytest.raises(InvalidInputError):
        resolve(scope="somewhere")  # type: ignore[arg-type]


def test_without_a_local_database_the_local_scope_says_how_to_make_one(
    project: Path,
) -> None:
    with pytest.raises(NotFoundError) as caught:
        resolve(scope="local", cwd=project)
    assert caught.value.hint == "`sessiondb init --local` creates one"


def test_an_empty_environment_variable_is_none(tmp_path: Path) -> None:
    assert resolve(cwd=tmp_path, env={"SESSIONDB_PATH": ""}).kind == "global"


@pytest.mark.parametrize(
    ("where", "path"),
    [
        ("a b.db", "a b.db"),
        ("sub/../a.db", "a.db"),
        ("sqlite:///a%20b.db", "a b.db"),
        ("sqlite+aiosqlite:///sub/a.db", "sub/a.db"),
        ("SQLite:////abs/a.db", "/abs/a.db"),
        ("~/a.db", "~/a.db"),
    ],
)
def test_a_path_or_an_sqlite_url_names_a_file(
    tmp_path: Path, where: str, path: str
) -> None:
    (tmp_path / "sub").mkdir()
    expected = tmp_path / Path(path).expanduser()
    assert resolve(where, cwd=tmp_path) == Database(expected, "explicit")


def test_a_url_may_say_that_a_file_is_only_read_or_not_created(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'a.db'}"
    for mode in ("ro", "rw"):
        with pytest.raises(NotFoundError):
            Store.open(f"{url}?mode={mode}")
    with Store.open(f"{url}?mode=rwc") as store:
        session = store.create_session()
    with Store.open(f"{url}?mode=rw") as store:
        store.set_title(session, "T")
    with Store.open(f"{url}?mode=ro") as store:
        assert store.session(session).title == "T"
        with pytest.raises(ReadOnlyError):
            store.set_title(session, "U")


@pytest.mark.parametrize(
    "where", [":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:"]
)
def test_memory_is_not_a_path(where: str) -> None:
    assert resolve(where) == Database(None, "memory")
    assert resolve(env={"SESSIONDB_PATH": where}) == Database(None, "memory")


@pytest.mark.parametrize(
    "where",
    [
        "",
        "/",
        "a\0b",
        "file:a.db",
        "sqlite://host/a.db",
        "sqlite:///a.db?mode=rx",
        "sqlite:///a.db?cache=shared",
        "sqlite:///a.db?mode=ro&cache=shared",
        "sqlite:///a.db?mode=",
    ],
)
def test_a_place_that_names_no_database_is_refused(
    where: str,
) -> None:
    with pytest.raises(InvalidInputError):
        resolve(where)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://host/sessions", "postgresql://host/sessions"),
        ("postgres://ada:se:c@ret@host:5433/s?sslmode=require",
         "postgres://ada:***@host:5433/s?sslmode=require"),
        ("postgresql:///s?host=/run/pg&password=secret&user=ada",
         "postgresql:///s?host=/run/pg&password=***&user=ada"),
        ("POSTGRESQL://ada@[::1]/s", "POSTGRESQL://ada@[::1]/s"),
    ],
)  # fmt: skip
def test_a_database_of_a_server_is_named_by_its_url_and_shown_without_a_password(
    url: str, shown: str
) -> None:
    database = resolve(url)
    assert (database.kind, database.path, database.root) == ("explicit", None, None)
    assert database.server is not None
    assert database.server.url == url
    assert str(database) == str(database.server) == shown
    assert url not in repr(database) or url == shown


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("--db=postgresql://ada:secret@host/s", "--db=postgresql://ada:***@host/s"),
        ("https://ada:secret@host/s", "https://ada:secret@host/s"),
        (
            "what about postgres://ada:secret@host",
            "what about postgres://ada:secret@host",
        ),
    ],
)
def test_only_arguments_that_name_a_server_lose_what_looks_like_a_password(
    argument: str, shown: str
) -> None:
    assert without_passwords(argument) == shown


def test_the_environment_and_the_config_may_name_a_server(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSIONDB_PATH", "postgresql://host/s")
    database = resolve(cwd=project)
    assert (database.kind, str(database)) == ("environment", "postgresql://host/s")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:secret@host",
        "postgresql://ada:secret@host/",
        "postgres://ada:secret@h/a\0b",
        "postgresql://ada:sec?secret@host/s",
    ],
)
def test_a_url_without_a_database_is_refused_without_showing_its_password(
    url: str,
) -> None:
    with pytest.raises(InvalidInputError, match="names no database") as caught:
        resolve(url)
    assert "secret" not in str(caught.value)


def test_another_kind_of_server_is_unsupported_without_showing_a_password() -> None:
    with pytest.raises(UnsupportedError, match="mysql is not supported") as caught:
        resolve("mysql://ada:secret@host/db")
    assert "secret" not in str(caught.value)
    assert caught.value.hint == (
        "give a path, sqlite:///PATH or postgresql://HOST/DATABASE"
    )


def test_a_removed_current_directory_leaves_absolute_paths_and_the_global_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert resolve().kind == "global"
    assert resolve(tmp_path / "a.db").path == tmp_path / "a.db"
    with pytest.raises(NotFoundError):
        resolve("a.db")
    with pytest.raises(NotFoundError):
        init_local()


# Local


def test_a_local_database_serves_every_directory_below_its_project(
    project: Path,
) -> None:
    assert resolve(cwd=project / "src").kind == "global"
    init_local(project / "src")
    assert resolve(cwd=project / "src") == Database(project / LOCAL, "local", project)
    prepare(project / LOCAL, root=project)
    assert resolve(cwd=project / "src") == Database(project / LOCAL, "local", project)


def test_init_makes_a_private_folder_that_git_ignores_but_for_the_sessions(
    project: Path,
) -> None:
    assert (
        init_local(project)
        == init_local(project)
        == Database(project / LOCAL, "local", project)
    )
    folder = project / ".sessiondb"
    assert mode(folder) == 0o700
    assert [path.name for path in folder.iterdir()] == [".gitignore"]
    (folder / "sessions").mkdir()
    names = "sessions.db sessions.db-wal sessions.db-shm sessions.db-journal sessions.db.lock"
    for name in [*names.split(), "sessions/ses_1.jsonl"]:
        (folder / name).write_text("x")
    git_in(project, "add", ".")
    assert git_in(project, "ls-files").split() == [
        ".sessiondb/.gitignore",
        ".sessiondb/sessions/ses_1.jsonl",
    ]


def test_init_keeps_what_a_cloned_gitignore_says_and_follows_no_link(
    project: Path,
) -> None:
    folder, target = project / ".sessiondb", project / "target"
    folder.mkdir()
    target.write_text("untouched")
    (folder / ".gitignore").write_text("*.tmp")
    init_local(project)
    assert (folder / ".gitignore").read_text() == "*.tmp\n/sessions.db*\n"
    (folder / ".gitignore").unlink()
    (folder / ".gitignore").symlink_to(target)
    init_local(project)
    assert target.read_text() == "untouched"
    assert (folder / ".gitignore").read_text() == "/sessions.db*\n"


def test_a_linked_worktree_uses_the_database_of_the_main_one(project: Path) -> None:
    git_in(project, "commit", "-q", "--allow-empty", "-m", "first")
    linked = project.parent / "linked"
    git_in(project, "worktree", "add", "-q", str(linked))
    (linked / ".sessiondb" / "sessions").mkdir(parents=True)
    assert init_local(linked).path == project / LOCAL
    assert resolve(cwd=linked).path == project / LOCAL


def test_nothing_above_the_repository_is_looked_at(project: Path) -> None:
    init_local(project.parent)
    assert resolve(cwd=project.parent).kind == "local"
    assert resolve(cwd=project).kind == "global"


def test_outside_of_a_repository_the_nearest_folder_above_counts(
    tmp_path: Path,
) -> None:
    init_local(tmp_path)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert resolve(cwd=deep).root == tmp_path
    init_local(deep)
    assert resolve(cwd=deep).root == deep


def test_the_home_directory_is_never_a_project(home: Path) -> None:
    with pytest.raises(InvalidInputError):
        init_local(home)
    (home / "app").mkdir()
    git_in(home, "init", "-q")
    (home / ".sessiondb").mkdir()
    trust.accept(home / LOCAL)
    assert resolve(cwd=home).kind == "global"
    assert resolve(cwd=home / "app").kind == "global"
    assert init_local(home / "app").root == home / "app"
    assert resolve(cwd=home / "app").kind == "local"


def test_the_root_is_known_however_a_local_database_is_named(project: Path) -> None:
    link = project.parent / "link"
    link.symlink_to(project)
    named = Database(project / LOCAL, "explicit", project)
    assert resolve(link / LOCAL) == resolve(LOCAL, cwd=project) == named


# Config


def test_without_a_config_everything_has_its_default() -> None:
    settings = load_config()
    assert (settings.database, settings.durability, settings.import_paths) == (
        None,
        "full",
        (),
    )
    assert settings.prices == {}


def test_a_config_is_read_with_its_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "my.toml"
    path.write_text(
        'database = "agents.db"\ndurability = "normal"\nimport_paths = ["~/x", "y"]\n'
        '[prices."gpt-5.2"]\ninput = 2\ncache_read = 0.25\n'
    )
    monkeypatch.setenv("SESSIONDB_CONFIG", str(path))
    settings = load_config()
    assert settings.durability == "normal"
    assert settings.import_paths == (Path.home() / "x", tmp_path / "y")
    assert settings.prices == {"gpt-5.2": Price(input=2.0, cache_read=0.25)}
    assert resolve(cwd=tmp_path).path == tmp_path / "agents.db"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("databse = 1", "databse is unknown"),
        ("database = 1", "database must"),
        ('durability = "off"', "durability must"),
        ('import_paths = "x"', "import_paths must"),
        ("import_paths = [1]", "import_paths must"),
        ("prices = 1", "prices must"),
        ("prices.m = 1", "prices.m must"),
        ("prices.m.input = true", "prices.m.input must"),
        ("prices.m.input = nan", "prices.m.input must"),
        ("prices.m.output = -1", "prices.m.output must"),
        ("prices.m.inptu = 1", "prices.m.inptu is unknown"),
        ("a\nb", "line 1"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(text: str, key: str) -> None:
    path = config(text)
    with pytest.raises(InvalidInputError) as caught:
        load_config()
    assert str(path) in str(caught.value)
    assert key in str(caught.value)


def test_an_invalid_database_in_the_config_is_named_with_the_config(
    tmp_path: Path,
) -> None:
    path = config('database = "mysql://host/db"')
    with pytest.raises(InvalidInputError, match=f"{path}: database: mysql"):
        resolve(cwd=tmp_path)


def test_looking_for_the_database_loads_no_database_library() -> None:
    code = """
import sys
from sessiondb.location import resolve
resolve()
print(*{"sqlite3", "sqlalchemy", "subprocess", "alembic"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
