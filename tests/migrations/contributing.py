"""A copy of the project, in which a contributor works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "src", "migrations", "scripts", "tests", "docs", "examples", "alembic.ini", "LICENSE",
    "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md",
)  # fmt: skip
SCHEMA = "src/sessiondb/schema"
ENGINE = "src/sessiondb/engine/sqlite"


class Project:
    """A copy of the repository, in which a contributor works."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in PARTS:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, folder / part)

    def edit(self, file: str, pattern: str, replacement: str) -> None:
        path = self.folder / file
        text, count = re.subn(
            pattern, replacement, path.read_text(), count=1, flags=re.MULTILINE
        )
        assert count, f"{pattern} is not in {file}"
        path.write_text(text)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        code = f"import sys; sys.path.insert(0, {str(self.folder / 'src')!r}); "
        code += "import runpy; sys.argv = sys.argv[1:]; "
        if command[0] == "alembic":
            code += "from alembic.config import main; main()"
        else:
            code += "runpy.run_path(sys.argv[0], run_name='__main__')"
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", code, *command],
            cwd=self.folder, check=False, capture_output=True, text=True,
        )  # fmt: skip

    def add_a_column(self) -> None:
        with (self.folder / "src/sessiondb/schema/tables.py").open("a") as tables:
            # After the columns that earlier releases have added.
            tables.write('session.append_column(int_column("priority"))\n')
            tables.write('Index("ix_session_priority", session.c.priority)\n')
        frozen = self.run("scripts/freeze_statements.py")
        assert frozen.returncode == 0, frozen.stderr

    def show_it_in_a_view(self) -> None:
        self.edit(
            f"{ENGINE}/views.py", "s.time_created, s.time_updated", r"s.priority, \g<0>"
        )

    def test(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run tests of the copy on the code of the copy."""
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n0", *arguments],
            cwd=self.folder, check=False, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(self.folder / "src")},
        )  # fmt: skip

    def changed(self) -> set[str]:
        """Return the files that differ from those of the project."""
        files = {
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if path.is_file() and not {"__pycache__", ".pytest_cache"} & {*path.parts}
        }
        return {
            name
            for name in files
            if not (ROOT / name).is_file()
            or (ROOT / name).read_bytes() != (self.folder / name).read_bytes()
        }

    def migrations(self) -> list[Path]:
        return sorted((self.folder / "migrations" / "versions").glob("*.py"))
