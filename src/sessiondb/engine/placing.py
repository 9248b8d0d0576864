"""The places of files: checked before anything is written, and named at the end.

A place is never a database or a file that belongs to one, and never a link or anything
else that is not a regular file. An engine knows which files belong to its databases
(`Claims`): `outputs` uses the engine in use, an engine itself.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Protocol

from sessiondb.engine import disk
from sessiondb.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
)

_PROJECT_MARKS = (".git", ".sessiondb")
_OWN_NAME = "name a file of its own"
#: Things that are not regular files, by the type in their mode, and the hint for it.
_KINDS = {
    stat.S_IFLNK: ("a link", "name the file that it points to"),
    stat.S_IFDIR: ("a folder", _OWN_NAME),
    stat.S_IFIFO: ("a pipe", _OWN_NAME),
    stat.S_IFSOCK: ("a socket", _OWN_NAME),
}
_NEVER = "sessiondb never replaces a database; name another file"


class Claims(Protocol):
    """The part of `engine.base.Engine` that knows the files of its databases."""

    def owns(self, path: Path, facts: os.stat_result | None) -> bool:
        """Return whether what is at *path* is a database or belongs to one."""

    def reserved_ending(self, path: Path) -> str | None:
        """Return the ending of *path* that is used beside a database, if it has one."""


def check_place(path: Path, claims: Claims) -> bool:
    """Return whether a file exists at *path*, which a rename may replace.

    Raises `InvalidInputError` for a place that is never written: a name that is used
    beside a database, a database, a link, a folder, a pipe or a device;
    `NotFoundError` if its folder is missing; `StorageError`.
    """
    path = absolute(path)
    check_name(path, claims)
    check_folders(path)

    with disk.translated(path):
        try:
            facts = path.lstat()
        except FileNotFoundError:
            facts = None

    if facts is not None:
        _check_regular(path, facts.st_mode)
    if claims.owns(path, facts):
        raise InvalidInputError(f"{path} is a database or belongs to one", hint=_NEVER)
    return facts is not None


def check_name(path: Path, claims: Claims) -> None:
    """Raise `InvalidInputError` for a name that is used beside a database."""
    ending = claims.reserved_ending(path)
    if ending is not None:
        raise InvalidInputError(
            f"{path} is a name for a file beside a database, which may be deleted",
            hint=f"name a file that does not end with {ending}",
        )


def part_of(path: Path) -> Path:
    """Return a new hidden name beside *path*, for a file that is not complete yet."""
    return path.with_name(f".sessiondb-{os.urandom(8).hex()}.part")


def settle(part: Path, path: Path, claims: Claims, *, replace: bool = False) -> None:
    """Give the complete file *part* its name.

    Raises `ConflictError` if a file exists there and not *replace*, and the errors of
    `check_place`.
    """
    exists = check_free(path, claims, replace=replace)
    with disk.translated(path):
        while not exists and not _link_part(part, path):
            # Another process was faster; its file is checked like any other.
            exists = check_free(path, claims, replace=replace)
        if exists:
            part.chmod(stat.S_IMODE(path.lstat().st_mode))
            part.replace(path)
        _sync_folder(path.parent)


def absolute(path: Path) -> Path:
    """Return *path* made absolute; raises `InvalidInputError` unless it is a path."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise InvalidInputError(f"not a path: {str(path)!r}") from None

    if "\0" in str(path) or not path.name:
        raise InvalidInputError(f"not a path of a file: {str(path)!r}", hint=_OWN_NAME)
    return path.absolute()


def check_free(path: Path, claims: Claims, *, replace: bool) -> bool:
    """Return whether a file exists at *path*.

    Raises `ConflictError` for one if not *replace*, and the errors of `check_place`.
    """
    exists = check_place(path, claims)
    if exists and not replace:
        raise taken(path)
    return exists


def taken(path: Path) -> ConflictError:
    """Return the error for a file that exists and is not to be replaced."""
    return ConflictError(f"{path} already exists", hint="name a new file")


def check_folders(path: Path, *, must_exist: bool = True) -> None:
    """Refuse links inside of a project: a clone must not redirect a write."""
    if must_exist and not path.parent.is_dir():
        raise NotFoundError(f"there is no folder {path.parent}", hint="make it first")
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  also without a home

    for folder in path.parents:
        parents = (place for place in folder.parents if place != home)
        if folder.is_symlink() and any(
            os.path.lexists(place / mark)
            for place in parents
            for mark in _PROJECT_MARKS
        ):
            raise InvalidInputError(
                f"{folder} is a link inside of a project",
                hint="name the folder it points to",
            )


def _check_regular(path: Path, mode: int) -> None:
    """Raise `InvalidInputError` if *mode* is not that of a regular file."""
    kind = stat.S_IFMT(mode)
    if kind != stat.S_IFREG:
        kind_name, hint = _KINDS.get(kind, ("a device", _OWN_NAME))
        raise InvalidInputError(f"{path} is {kind_name}", hint=hint)


def _link_part(part: Path, path: Path) -> bool:
    """Give *part* the name *path*, and return True, if nothing has that name."""
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    except (OSError, AttributeError):  # a file system without hard links
        part.replace(path)
    return True


def _sync_folder(folder: Path) -> None:
    """Make a rename durable, where a folder can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
