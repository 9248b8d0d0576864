"""The chain of migrations of an engine, with the declarations of each.

Each migration declares ``VERSION`` (that of the schema it leads to), ``ADDITIVE``
(older releases continue to read and write) and ``CHANGED`` (tables whose number of
rows it may change; default none). ``DERIVED`` (the views, search tables and triggers,
in the order they are made), ``MIN_READER`` and ``MIN_WRITER`` hold from the migration
that declares them to the next that does. Before the first revision the version is 0,
and there are no objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.script import ScriptDirectory

from sessiondb.engine.upkeep import Pending

Derived = tuple[str, ...]


def folder() -> Path:
    """Return the folder of SQLite's migrations: of the package, or the repository.

    Another engine has a folder in it.
    """
    package = Path(__file__).resolve().parents[1]
    shipped = package / "_migrations"
    return shipped if shipped.is_dir() else package.parents[1] / "migrations"


def configuration(versions: Iterable[Path] = (), *, home: Path | None = None) -> Config:
    """Return the alembic configuration of the migrations in *home* (default: SQLite's).

    *versions* are further folders of migrations.
    """
    config = Config()
    home = folder() if home is None else home
    folders = [home / "versions", *versions]

    # One folder per line, and % doubled: a path may have every other character.
    for name, value in (
        ("script_location", str(home)),
        ("path_separator", "newline"),
        ("version_locations", "\n".join(map(str, folders))),
    ):
        config.set_main_option(name, value.replace("%", "%%"))

    return config


class Chain:
    """The migrations of one folder, by revision (None: before the first)."""

    def __init__(self, scripts: ScriptDirectory) -> None:
        self._scripts = scripts

    @classmethod
    def of(cls, versions: Iterable[Path] = (), *, home: Path | None = None) -> Chain:
        """Return the chain of this release and of further folders of migrations.

        See `configuration`.
        """
        return cls(ScriptDirectory.from_config(configuration(versions, home=home)))

    def knows(self, revision: str | None) -> bool:
        """Return whether *revision* is one of the chain."""
        revisions = {script.revision for script in self._scripts.walk_revisions()}
        return revision is None or revision in revisions

    def after(self, revision: str | None) -> list[Pending]:
        """Return the migrations that follow *revision*, in order."""
        scripts = self._scripts.iterate_revisions("head", revision or "base")
        return [
            Pending(s.revision, (s.doc or "").rstrip("."), bool(s.module.ADDITIVE))
            for s in reversed(list(scripts))
        ]

    def version(self, revision: str | None) -> int:
        """Return the version of the schema of *revision*."""
        return int(self._nearest_declared(revision, "VERSION", 0))

    def derived(self, revision: str | None) -> Derived:
        """Return the statements that make what *revision* derives."""
        return tuple(self._nearest_declared(revision, "DERIVED", ()))

    def oldest(self, revision: str | None) -> dict[str, str]:
        """Return the oldest releases for a file of *revision*, as in ``meta``."""
        keys = ("min_reader", "min_writer")
        return {key: self._nearest_declared(revision, key.upper(), "") for key in keys}

    def _nearest_declared(self, revision: str | None, name: str, default: Any) -> Any:
        """Return what the nearest migration up to *revision* declares under *name*."""
        for script in self._scripts.iterate_revisions(revision or "base", "base"):
            if hasattr(script.module, name):
                return getattr(script.module, name)
        return default
