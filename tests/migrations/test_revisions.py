"""A change of the schema by the way that CONTRIBUTING describes, on a copy of the project."""

from __future__ import annotations

from pathlib import Path

import pytest
from contributing import ENGINE, SCHEMA, Project
from later_releases import NEXT

from sessiondb.schema.version import VERSION

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_schema_that_its_migrations_make_passes_the_check(project: Project) -> None:
    result = project.run("alembic", "check")
    assert result.stdout == "No new upgrade operations detected.\n", result.stderr


def test_a_change_without_a_migration_fails_the_check(project: Project) -> None:
    project.show_it_in_a_view()
    assert "differ from DERIVED of migration" in project.run("alembic", "check").stdout
    project.add_a_column()
    project.run("alembic", "revision", "--autogenerate", "-m", "a view only")
    (project.migrations()[-1]).unlink()
    project.edit(f"{ENGINE}/views.py", "s.priority, ", "")
    assert (
        "ALTER TABLE session ADD COLUMN priority"
        in project.run("alembic", "check").stdout
    )


def test_a_revision_is_numbered_after_its_schema_and_waits_for_its_version(
    project: Project,
) -> None:
    result = project.run("alembic", "revision", "-m", "sessions have a colour")
    assert result.returncode == 0, result.stderr
    script = project.migrations()[-1]
    assert script.name == f"{NEXT}_sessions_have_a_colour.py"
    text = script.read_text()
    assert f"VERSION = {VERSION + 1}\nADDITIVE = False\n" in text
    assert "DERIVED" not in text


def test_a_change_that_sqlite_cannot_make_is_refused_in_one_line(
    project: Project,
) -> None:
    project.edit(
        f"{SCHEMA}/tables.py",
        r'text_column\("title", required=True',
        r'text_column("title"',
    )
    result = project.run("alembic", "revision", "--autogenerate", "-m", "no titles")
    assert result.returncode != 0
    assert "cannot alter" in result.stdout
    assert "tests/later_releases.py" in result.stdout
    assert "Traceback" not in result.stderr
    assert project.migrations()[-1].name.startswith(f"{VERSION:04}_")


def test_a_second_migration_needs_no_change_of_another_test(project: Project) -> None:
    project.add_a_column()
    project.show_it_in_a_view()
    result = project.run(
        "alembic", "revision", "--autogenerate", "-m", "sessions have a priority"
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ADDITIVE = True" in project.migrations()[-1].read_text()

    project.edit(f"{SCHEMA}/version.py", "^VERSION = .*", f"VERSION = {VERSION + 1}")
    project.edit(f"{SCHEMA}/version.py", "^HEAD = .*", f'HEAD = "{NEXT}"')
    result = project.run("scripts/golden.py")
    assert f"schema-{VERSION + 1}.db" in result.stdout, result.stderr

    own = [f"tests/migrations/test_{name}.py" for name in ("golden", "schema")]
    tested = project.test("-k", "not later_release", *own)
    assert tested.returncode == 0, tested.stdout[-3000:]


def test_the_golden_file_of_a_schema_is_not_replaced_by_accident(
    project: Project,
) -> None:
    file = project.folder / "tests" / "golden" / f"schema-{VERSION}.db"
    before = file.read_bytes()
    result = project.run("scripts/golden.py")
    assert result.returncode == 2
    assert "--replace" in result.stderr
    assert file.read_bytes() == before
