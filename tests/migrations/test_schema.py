"""A file made by the migrations and a fresh one are the same."""

from __future__ import annotations

import difflib
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from alembic.config import main
from later_releases import LAST, NEXT

from sessiondb import ALL, Store
from sessiondb.engine.sqlite import migrations
from sessiondb.location import state_directory
from sessiondb.schema.version import (
    APPLICATION_ID,
    HEAD,
    MIN_READER,
    MIN_WRITER,
    VERSION,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FREEZE = (
    "0001 is out of date: run `.venv/bin/python scripts/freeze_schema.py`, "
    "then `scripts/golden --replace`"
)

Schema = Callable[[Path], list[str]]


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    with Store.open(tmp_path / "fresh.db") as store:
        return store.path


def difference(fresh: list[str], migrated: list[str]) -> str:
    return "\n".join(
        difflib.unified_diff(fresh, migrated, "fresh", "migrated", lineterm="", n=0)
    )


def alembic(path: Path, *command: str) -> None:
    """Run the alembic command, as at the root of the repository."""
    main(["-c", str(ROOT / "alembic.ini"), "-x", f"db={path}", *command])


def facts(path: Path) -> dict[str, object]:
    with closing(sqlite3.connect(path)) as connection:
        pragmas = (
            "application_id",
            "user_version",
            "journal_mode",
            "page_size",
            "auto_vacuum",
        )
        found = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas
        }
        meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        revision = connection.execute(
            "SELECT version_num FROM alembic_version"
        ).fetchone()[0]
    assert len(str(meta.pop("database_uuid"))) == 36
    mode = stat.S_IMODE(path.stat().st_mode)
    return {**found, "meta": meta, "revision": revision, "mode": mode}


def test_alembic_upgrade_head_and_opening_a_store_make_the_same_schema(
    fresh: Path, tmp_path: Path, schema: Schema
) -> None:
    migrated = tmp_path / "folder" / "migrated.db"
    command = [sys.executable, "-W", "error", "-m", "alembic", "-x", f"db={migrated}"]
    subprocess.run([*command, "upgrade", "head"], cwd=ROOT, check=True)
    different = difference(schema(fresh), schema(migrated))
    assert not different, f"{FREEZE}\n{different}"
    assert facts(migrated) == facts(fresh)
    assert facts(fresh) == {
        "application_id": APPLICATION_ID,
        "user_version": VERSION,
        "journal_mode": "wal",
        "page_size": 4096,
        "auto_vacuum": 0,
        "meta": {
            "min_reader": MIN_READER,
            "min_writer": MIN_WRITER,
            "indexed_to": "0",
            "usage_to": "0",
        },
        "revision": HEAD,
        "mode": 0o600,
    }


def test_the_library_makes_the_same_schema_as_the_alembic_command(
    fresh: Path, tmp_path: Path, schema: Schema
) -> None:
    path = tmp_path / "migrated.db"
    assert migrations.upgrade(path) is None
    assert difference(schema(fresh), schema(path)) == ""
    assert facts(path) == facts(fresh)
    with Store.open(path) as store:
        assert list(store.sessions()) == []


@pytest.mark.parametrize("revision", [NEXT, LAST])
def test_a_later_release_makes_the_same_schema_in_all_three_ways(
    revision: str,
    release: Callable[[str], object],
    old: Path,
    tmp_path: Path,
    schema: Schema,
) -> None:
    fresh, migrated = tmp_path / "fresh.db", tmp_path / "migrated.db"
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from sessiondb import Store\nfrom sessiondb.engine.sqlite.migrations import upgrade\n"
        "fresh, migrated, old = map(Path, sys.argv[1:])\n"
        "Store.open(fresh).close()\nupgrade(migrated)\nupgrade(old)\nStore.open(old).close()"
    )
    result = release(revision).run(code, fresh, migrated, old)
    assert result.returncode == 0, result.stderr
    assert difference(schema(fresh), schema(migrated)) == ""
    assert difference(schema(fresh), schema(old)) == ""
    assert facts(fresh) == facts(migrated)


def test_the_alembic_command_says_in_one_line_what_it_does_not_do(
    tmp_path: Path, old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing, other = tmp_path / "nothing.db", tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE mine (a)")
    for path, command, said in (
        (nothing, ["current"], "no database at"),
        (nothing, ["upgrade", "head", "--sql"], "migrations are not a script"),
        (other, ["upgrade", "head"], "is not a sessiondb database"),
        (old, ["stamp", "base"], "written by its migrations only"),
        (old, ["downgrade", "base"], "6 sessions would be lost"),
    ):
        with pytest.raises(SystemExit):
            alembic(path, *command)
        assert said in capsys.readouterr().out
    assert not nothing.exists()
    with Store.open(old) as store:
        assert len(store.sessions(project=ALL)) == 4


@pytest.mark.parametrize(
    "scheme", ["db={}", "url=sqlite:///{}", "url=sqlite+aiosqlite:///{}"]
)
def test_a_path_and_a_url_name_the_same_database(tmp_path: Path, scheme: str) -> None:
    path = tmp_path / "named.db"
    main(
        ["-c", str(ROOT / "alembic.ini"), "-x", scheme.format(path), "upgrade", "head"]
    )
    assert migrations.current(path) == HEAD


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (["database=a.db"], "-x database is unknown"),
        (["URL=a.db"], "-x URL is unknown"),
        (["db=a.db", "url=sqlite:///a.db"], "-x db and -x url exclude each other"),
        (["url=mysql://host/a"], "mysql is not supported"),
        (["url=postgresql://host/a"], "postgresql://host/a is a database of a server"),
        (["db=:memory:"], ":memory: holds nothing to migrate"),
    ],
)
def test_an_unknown_or_contradictory_option_makes_no_database(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    named: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    options = [word for name in named for word in ("-x", name)]
    with pytest.raises(SystemExit):
        main(["-c", str(ROOT / "alembic.ini"), *options, "upgrade", "head"])
    assert said in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert not list(Path.home().rglob("*.db"))


def test_without_a_database_the_alembic_command_uses_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "named.db"
    monkeypatch.setenv("SESSIONDB_PATH", str(path))
    main(["-c", str(ROOT / "alembic.ini"), "upgrade", "head"])
    assert migrations.current(path) == HEAD
    assert capsys.readouterr().err == f"database: {path}\n"
    main(["-c", str(ROOT / "alembic.ini"), "downgrade", "base"])
    assert migrations.current(path) is None
    assert len(list((state_directory() / "backups").glob("named.db.*"))) == 1
