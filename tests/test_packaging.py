"""The wheel, as a user installs it with nothing but pip."""

from __future__ import annotations

import importlib.metadata
import json
import os
import runpy
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path

import later_releases
import pytest
from packaging.requirements import Requirement

from sessiondb.schema.version import HEAD, VERSION

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        str(folder),
    ]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("sessiondb-*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of an environment with the wheel and its core dependencies, no extra.

    The dependencies are links to the packages of this environment: downloading
    the same files again would prove nothing more.
    """
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(folder / "bin" / "python"),
        "install",
    ]
    subprocess.run([*pip, "--no-deps", "--no-index", "--quiet", str(wheel)], check=True)
    (ours,) = importlib.metadata.distributions(path=[str(packages)])
    for path in set(tops_of(ours)):
        (packages / path.name).symlink_to(path)
    return folder / "bin"


def tops_of(distribution: Distribution) -> Iterator[Path]:
    """Yield what the dependencies of a distribution put into site-packages, theirs included."""
    for line in distribution.requires or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            needed = importlib.metadata.distribution(requirement.name)
            names = {file.parts[0] for file in needed.files or []} - {
                "..",
                "__pycache__",
            }
            yield from (Path(str(needed.locate_file(name))) for name in names)
            yield from tops_of(needed)


def run(bare: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{bare}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        command, cwd=bare, env=environment, check=False, capture_output=True, text=True
    )


def test_the_wheel_carries_the_migrations_and_the_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {
        f"sessiondb/_migrations/{file.relative_to(ROOT / 'migrations')}"
        for file in (ROOT / "migrations").rglob("*")
        if file.suffix in (".py", ".mako")
    }
    assert {n for n in names if n.startswith("sessiondb/_migrations/")} == shipped
    assert any("/versions/0001_" in name for name in shipped)
    assert "sessiondb/py.typed" in names
    assert {
        f"sessiondb/engine/sqlite/{n}.sql" for n in ("statements", "tables")
    } < names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_works_with_the_core_dependencies_alone(
    bare: Path, tmp_path: Path
) -> None:
    code = (
        "import sys, sessiondb\n"
        "with sessiondb.Store.open(sys.argv[1]) as store:\n"
        "    session = store.create_session(title='Hello')\n"
        "    store.append(session, sessiondb.user('Is anybody there?'))\n"
        "    print(sessiondb.__file__, [m.role for m in store.messages(session.id)])\n"
    )
    result = run(
        bare, "python", "-W", "error", "-c", code, str(tmp_path / "sessions.db")
    )
    assert result.returncode == 0, result.stderr
    path, roles = result.stdout.split(" ", 1)
    assert Path(path).is_relative_to(bare.parent)
    assert roles.strip() == "['user']"


def test_the_wheel_migrates_an_old_populated_file_row_by_row(
    bare: Path, tmp_path: Path
) -> None:
    """To a schema that only the tests know, and back."""
    golden = ROOT / "tests" / "golden" / f"schema-{VERSION}.db"
    path = Path(shutil.copy(golden, tmp_path / "sessions.db"))
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from sessiondb.engine import chain\n"
        "from sessiondb.engine.sqlite import migrations\n"
        "path, versions = Path(sys.argv[1]), [Path(sys.argv[2])]\n"
        "migrations.upgrade(path, versions=versions)\n"
        "print(chain.folder(), migrations.current(path))\n"
        "migrations.downgrade(path, sys.argv[3], versions=versions)\n"
    )
    versions = later_releases.write(tmp_path / "versions")
    command = ["python", "-W", "error", "-c", code, str(path), str(versions), HEAD]
    result = run(bare, *command)
    assert result.returncode == 0, result.stderr
    folder, above = result.stdout.split()
    assert Path(folder).is_relative_to(bare.parent)
    assert above == later_releases.LAST
    rows = runpy.run_path(str(ROOT / "scripts" / "golden.py"))["rows"]
    assert rows(path) == json.loads(golden.with_suffix(".json").read_text())["tables"]


def test_the_command_without_its_extra_says_how_to_get_it(bare: Path) -> None:
    assert run(bare, "python", "-c", "import click").returncode == 1
    result = run(bare, "sessiondb", "list")
    assert result.returncode == 1
    assert "sessiondb[cli]" in result.stderr
    assert "Traceback" not in result.stderr
