"""The schema of a file: one question, and one answer of every command and of the library."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sessiondb import Store, user
from sessiondb.cli.app import app
from sessiondb.engine.sqlite import migrations
from sessiondb.errors import (
    NotADatabaseError,
    SchemaVersionError,
    SessionDBError,
    UntrustedDatabaseError,
)

#: Kind of file → the statements that make one, and the error of each use.
_KINDS: dict[str, tuple[tuple[str, ...], type[SessionDBError]]] = {
    "newer": (
        (
            "PRAGMA user_version = 9",
            "UPDATE meta SET value = '99' WHERE key LIKE 'min%'",
            "UPDATE alembic_version SET version_num = '0009'",
        ),
        SchemaVersionError,
    ),
    "newer, of our revision": (
        ("PRAGMA user_version = 9", "UPDATE meta SET value = '99'"),
        SchemaVersionError,
    ),
    "older, of our revision": (("PRAGMA user_version = 0",), SchemaVersionError),
    "older, of an unknown revision": (
        ("PRAGMA user_version = 0", "UPDATE alembic_version SET version_num = 'x'"),
        SchemaVersionError,
    ),
    "without a column": (
        ("ALTER TABLE session DROP COLUMN share_url",),
        SchemaVersionError,
    ),
    "with a further column": (
        ("ALTER TABLE session ADD COLUMN mood TEXT",),
        SchemaVersionError,
    ),
    "without a table": (("DROP TABLE lease",), SchemaVersionError),
    "without a view": (("DROP VIEW transcript",), SchemaVersionError),
    "with a trigger": (
        ("CREATE TRIGGER spy AFTER INSERT ON part BEGIN SELECT 1; END",),
        UntrustedDatabaseError,
    ),
    "of another program": (("PRAGMA application_id = 5",), NotADatabaseError),
}
_COMMANDS = [
    "list -a",
    "stats",
    "search hello",
    "show @",
    "export -a --to jsonl",
    "check",
    "check --repair --yes",
    "migrate",
    "migrate --dry-run",
    "doctor",
    "backup copy.db",
    "vacuum --yes",
    "prune --older-than 1d --yes",
    "sql SELECT",
]


#: Those that open the file in different ways; the others with ``SESSIONDB_LONG``.
_MOST_UNLIKE = ["list -a", "migrate", "migrate --dry-run", "doctor", "sql SELECT"]
_WITH_EVERY_COMMAND = ("newer", "without a column")


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("current") / "sessions.db"
    with Store.open(path, durability="normal", cwd=path.parent) as store:
        store.append(store.create_session(title="hello"), user("hello"))
    return path


@pytest.fixture
def kind(
    current: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[Path, type[SessionDBError]]]:
    """Make a file of a kind; return its path, and the error of each use."""
    monkeypatch.chdir(tmp_path)

    def make(name: str) -> tuple[Path, type[SessionDBError]]:
        statements, error = _KINDS[name]
        path = Path(shutil.copy(current, tmp_path / "sessions.db"))
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        return path, error

    return make


def _run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


@pytest.mark.slow
@pytest.mark.parametrize("name", _KINDS)
def test_every_command_gives_the_same_answer_about_a_schema(
    kind: Callable[[str], tuple[Path, type[SessionDBError]]], name: str
) -> None:
    path, error = kind(name)
    before = path.read_bytes()
    is_long = name in _WITH_EVERY_COMMAND or os.environ.get("SESSIONDB_LONG")
    for command in _COMMANDS if is_long else _MOST_UNLIKE:
        ran = _run("--db", str(path), *command.split())
        assert ran.exit_code == error.exit_code, (command, ran.output)
        assert "up to date" not in ran.output, command
        assert str(path) in ran.output, command
    assert path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("name", _KINDS)
def test_the_library_raises_one_error_about_a_schema(
    kind: Callable[[str], tuple[Path, type[SessionDBError]]], name: str
) -> None:
    path, error = kind(name)
    for use in (
        Store.open,
        lambda path: Store.open(path, read_only=True),
        lambda path: Store.open(path, create=False),
        migrations.pending,
        migrations.upgrade,
    ):
        with pytest.raises(error) as raised:
            use(path)
        assert type(raised.value) is error
        assert raised.value.hint

    report = json.loads(_run("--db", str(path), "doctor", "--json").stdout)
    assert report["error"]["type"] == error.__name__


@pytest.mark.slow
@pytest.mark.parametrize("name", _KINDS)
def test_an_import_reports_a_file_whose_schema_it_cannot_read(
    kind: Callable[[str], tuple[Path, type[SessionDBError]]], name: str
) -> None:
    path, _ = kind(name)
    ran = _run("--db", "other.db", "import", str(path))
    assert ran.exit_code == 4, ran.output
    assert f"{path}: " in ran.output


def test_a_current_file_is_up_to_date(current: Path) -> None:
    assert _run("--db", str(current), "doctor").exit_code == 0
    ran = _run("--db", str(current), "migrate")
    assert (ran.exit_code, "up to date" in ran.output) == (0, True)
