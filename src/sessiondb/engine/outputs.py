"""The one rule for every file that a command or a function of the library writes.

A file is written beside its place and renamed, so that it appears complete or not at
all, even if the disk is full or the program is interrupted. The place is checked first
(`placing`): never a database or a file that belongs to one, never a link or anything
else that is not a regular file; an existing file only if the caller permits it.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Self

from sessiondb.engine import disk, placing
from sessiondb.engine.placing import absolute, check_folders, part_of, taken
from sessiondb.errors import InvalidInputError, abridged

__all__ = [
    "Folder",
    "check_name",
    "check_place",
    "packed",
    "part_of",
    "settle",
    "taken",
    "write_text",
    "writing",
]

if TYPE_CHECKING:
    from sessiondb.engine.file_engine import FileEngine


def check_place(path: Path) -> bool:
    """Return whether a file exists at *path*, which a rename may replace.

    Raises what `placing.check_place` does.
    """
    return placing.check_place(path, _load_engine())


def check_name(path: Path) -> None:
    """Raise `InvalidInputError` for a name that is used beside a database."""
    placing.check_name(path, _load_engine())


def settle(part: Path, path: Path, *, replace: bool = False) -> None:
    """Give the complete file *part* its name; raises what `writing` does."""
    placing.settle(part, path, _load_engine(), replace=replace)


@contextlib.contextmanager
def writing(path: Path, *, replace: bool = False) -> Iterator[IO[bytes]]:
    """Write the file at *path*, complete and on disk when the block is left.

    A new file has mode 0600, a replaced one keeps its mode. Left by an exception,
    nothing has changed. Raises `ConflictError` if a file is there and not *replace*,
    and the errors of `check_place`.
    """
    path = absolute(path)
    placing.check_free(path, _load_engine(), replace=replace)
    part = part_of(path)

    with disk.translated(path):
        try:
            with _create_part(part) as file:
                yield file
            settle(part, path, replace=replace)
        finally:
            # After the rename it no longer exists.
            with contextlib.suppress(OSError):
                part.unlink()


@contextlib.contextmanager
def packed(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """Compress what is written to *file* if *path* ends with ``.gz``."""
    if path.suffix != ".gz":
        yield file
        return

    import gzip

    # Without a name and a time in it: the same content is the same bytes.
    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as zipped:
        yield zipped  # type: ignore[misc]


def write_text(path: Path, text: str, *, replace: bool = False) -> None:
    """Write a small text file; raises the errors of `writing`."""
    with writing(path, replace=replace) as file:
        file.write(text.encode("utf-8", "surrogateescape"))


class Folder:
    """Files for one folder, collected inside it and renamed together at the end.

    So a name that is taken is known before anything is replaced, and an interrupt
    leaves the folder as it was. Used as a ``with`` block.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = absolute(folder)
        self._parts = self._folder / part_of(self._folder).name
        self._staged: dict[str, Path] = {}
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        with disk.translated(self._folder):
            self._check_folder(self._folder)
            self._make_folder(self._folder)
            self._parts.mkdir(0o700)
        return self

    def __exit__(self, *_: object) -> None:
        import shutil

        shutil.rmtree(self._parts, ignore_errors=True)
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):  # it is used
                folder.rmdir()

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """Write the file *name*, relative to the folder and with ``/``.

        Raises `InvalidInputError` for a name that leaves the folder, and for one
        that was given before with other content.
        """
        self.path(name)
        part = self._parts / str(len(self._staged))

        with disk.translated(part):
            with _create_part(part) as file:
                yield file
            earlier = self._staged.get(name)
            if earlier is not None and not filecmp.cmp(earlier, part, shallow=False):
                raise InvalidInputError(
                    f"two files would have the name {abridged(name)}"
                )

        self._staged[name] = part

    def path(self, name: str) -> Path:
        """Return where the file *name* goes; raises `InvalidInputError`."""
        relative = PurePosixPath(name)
        if (
            relative.is_absolute()
            or ".." in relative.parts
            or "\0" in name
            or not relative.name
        ):
            raise InvalidInputError(f"not a name of a file: {abridged(name)}")

        path = self._folder / relative
        check_name(path)
        return path

    def taken(self) -> list[Path]:
        """Return the files that `settle` would replace.

        Raises what `check_place` does.
        """
        names = []
        for name in self._staged:
            path = self.path(name)
            self._check_folder(path.parent)
            if path.parent.is_dir() and check_place(path):
                names.append(path)

        return names

    def settle(self, *, replace: bool = False) -> int:
        """Give each file its name; return how many.

        Raises what `outputs.writing` does.
        """
        if not replace and (taken_names := self.taken()):
            raise taken(taken_names[0])
        for name, part in self._staged.items():
            path = self.path(name)
            self._check_folder(path.parent)
            with disk.translated(path):
                self._make_folder(path.parent)
            settle(part, path, replace=replace)

        return len(self._staged)

    def _check_folder(self, folder: Path) -> None:
        """Raise `InvalidInputError` if *folder* cannot be made, or is behind a link."""
        for place in (folder, *folder.parents):
            inside = self._folder in place.parents
            if inside and place.is_symlink():
                raise InvalidInputError(
                    f"{place} is a link", hint="name another folder"
                )
            if os.path.lexists(place) and not place.is_dir():
                raise InvalidInputError(
                    f"{place} is not a folder", hint="name another folder"
                )
        check_folders(folder / "_", must_exist=False)

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make_folder(folder.parent)
            folder.mkdir()
            self._made.append(folder)


def _load_engine() -> FileEngine:
    """Return the engine, loaded only now: looking for a database needs none."""
    from sessiondb.engine.default import ENGINE

    return ENGINE


@contextlib.contextmanager
def _create_part(part: Path) -> Iterator[IO[bytes]]:
    """Open a new private file, and sync it when the block is left."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
