"""SQLite as an `engine.file_engine.FileUpkeep`, of which it has the names."""

from __future__ import annotations

from pathlib import Path

from sessiondb.engine import disk
from sessiondb.engine.sqlite import facts, integrity
from sessiondb.engine.sqlite import space as sizes
from sessiondb.engine.sqlite.admission import open_copy
from sessiondb.engine.sqlite.copying import copied


class SQLiteUpkeep:
    """The upkeep of database files."""

    damage = staticmethod(integrity.damage)
    broken_references = staticmethod(integrity.broken_references)
    references_to = staticmethod(integrity.references_to)
    connect_to_repair = staticmethod(integrity.connect_to_repair)
    reindex = staticmethod(integrity.reindex)

    space = staticmethod(sizes.space)
    rewrite = staticmethod(sizes.rewrite)
    bytes_by_table = staticmethod(sizes.bytes_by_table)
    copied = staticmethod(copied)
    open_copy = staticmethod(open_copy)

    versions = staticmethod(facts.versions)
    settings = staticmethod(facts.settings)
    advice = staticmethod(facts.advice)

    def is_of_an_index(self, line: str) -> bool:
        """Return whether a line of `damage` is about nothing but an index."""
        return integrity.OF_AN_INDEX.search(line) is not None

    def is_of_pages(self, line: str) -> bool:
        """Return whether a line of `damage` is about pages, not about their content."""
        return integrity.OF_PAGES.search(line) is not None

    def make_place(self, path: Path) -> None:
        """Make the folder of *path*, with mode 0700."""
        with disk.translated(path):
            disk.make_folder(path.parent)
