"""A populated file of the first schema, and the releases that come after this one."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import later_releases
import pytest
from later_releases import LAST, LAST_RELEASE, NEXT, NEXT_RELEASE

from sessiondb.engine.sqlite.ddl import tidy
from sessiondb.schema.version import VERSION

Lost = Callable[[dict[str, Any], Path], list[str]]
Schema = Callable[[Path], list[str]]

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"

#: Additions of later releases to the tables.
PINNED = """
session.append_column(int_column("pinned"))
Index("ix_session_pinned", session.c.pinned, sqlite_where=text("pinned IS NOT NULL"))
"""
SHOWN = f"""
VIEWS = (SESSION_LIST.replace("{later_releases.SHOWN}", "{later_releases.PINNED}"), *VIEWS[1:])
"""
NAMED = """
project.c.name.nullable = False
project.c.name.server_default = DefaultClause(text("''"))
"""


@pytest.fixture(scope="session")
def later(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folder of the migrations that this release does not have."""
    return [later_releases.write(tmp_path_factory.mktemp("later"))]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of the golden file of the present schema, which later releases find old."""
    return Path(shutil.copy(GOLDEN / f"schema-{VERSION}.db", tmp_path / "sessions.db"))


@pytest.fixture(scope="session")
def golden() -> dict[str, Any]:
    """Return the names of the script that writes golden files."""
    return runpy.run_path(str(ROOT / "scripts" / "golden.py"))


@pytest.fixture(scope="session")
def lost(golden: dict[str, Any]) -> Callable[[dict[str, Any], Path], list[str]]:
    """Name the tables of a file that do not have some rows any more, to the last value.

    Columns may have come. What a file says of itself is left out.
    """

    def find(before: dict[str, Any], path: Path) -> list[str]:
        after, missing = golden["rows"](path), []
        for table in before.keys() - {"meta", "alembic_version"}:
            places = [
                after[table]["columns"].index(name) for name in before[table]["columns"]
            ]
            if [[row[i] for i in places] for row in after[table]["rows"]] != before[
                table
            ]["rows"]:
                missing.append(table)
        return missing

    return find


@pytest.fixture(scope="session")
def remember(
    golden: dict[str, Any], lost: Lost
) -> Callable[[Path], Callable[[Path], list[str]]]:
    """Record every row of a file; return a function that names tables of another file with losses."""
    return lambda path: partial(lost, golden["rows"](path))


@pytest.fixture(scope="session")
def contents(golden: dict[str, Any], schema: Schema) -> Callable[[Path], object]:
    """Return the complete contents of a file, for comparison."""
    return lambda path: (golden["rows"](path), schema(path))


@pytest.fixture(scope="session")
def schema() -> Schema:
    """A schema as lines of text: every object, column, foreign key and index, white space aside."""

    def describe(path: Path) -> list[str]:
        with closing(sqlite3.connect(path)) as connection:
            return list(_lines(connection))

    return describe


def _lines(connection: sqlite3.Connection) -> Iterator[str]:
    asked = {
        "table": ("table_xinfo", "foreign_key_list"),
        "view": ("table_xinfo",),
        "index": ("index_xinfo",),
    }
    objects = "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
    for kind, name, sql in connection.execute(objects).fetchall():
        yield f"{kind} {name}: {tidy(sql or '')}"
        for pragma in asked.get(kind, ()):
            for row in connection.execute(f"PRAGMA {pragma}({name})"):
                yield f"{kind} {name} {pragma} {row}"


@dataclass(frozen=True)
class Release:
    """A release of sessiondb in a folder of its own, used in processes of its own."""

    folder: Path

    def run(self, code: str, *args: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", code, *map(str, args)],
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            check=False,
            capture_output=True,
            text=True,
        )


@pytest.fixture(scope="session")
def release(
    tmp_path_factory: pytest.TempPathFactory, later: list[Path]
) -> Callable[[str], Release]:
    """Return the release of revision NEXT (adds a column) or LAST (builds a table again)."""
    made: dict[str, Release] = {}

    def make(revision: str) -> Release:
        if revision not in made:
            folder = tmp_path_factory.mktemp(f"release-{revision}")
            made[revision] = _build(folder, revision, *later)
        return made[revision]

    return make


def _build(folder: Path, revision: str, migrations: Path) -> Release:
    package = folder / "sessiondb"
    shutil.copytree(ROOT / "src" / "sessiondb", package)
    shutil.copytree(ROOT / "migrations", package / "_migrations")
    for script in migrations.glob("*.py"):
        if script.name[:4] <= revision:
            shutil.copy(script, package / "_migrations" / "versions")

    stated = package / "schema" / "version.py"
    released = {NEXT: NEXT_RELEASE, LAST: LAST_RELEASE}[revision]
    _edit(package / "__init__.py", "^__version__ = .*", f'__version__ = "{released}"')
    _edit(stated, "^VERSION = .*", f"VERSION = {int(revision)}")
    _edit(stated, "^HEAD = .*", f'HEAD = "{revision}"')
    _append(package / "schema" / "tables.py", PINNED)
    _append(package / "engine" / "sqlite" / "views.py", SHOWN)

    if revision == LAST:
        _append(
            package / "schema" / "tables.py",
            f"from sqlalchemy import DefaultClause\n{NAMED}",
        )
        _edit(stated, "^MIN_(READER|WRITER) = .*", rf'MIN_\1 = "{released}"')
    subprocess.run(
        [sys.executable, ROOT / "scripts" / "freeze_statements.py"],
        env={**os.environ, "PYTHONPATH": str(folder)}, check=True,
    )  # fmt: skip
    return Release(folder)


def _edit(file: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, file.read_text(), flags=re.MULTILINE)
    assert count, f"{pattern} is not in {file}"
    file.write_text(text)


def _append(file: Path, text: str) -> None:
    file.write_text(file.read_text() + text)
