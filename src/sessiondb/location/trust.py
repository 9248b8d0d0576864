"""Which project-local databases were made or accepted on this machine.

A cloned repository must not decide where transcripts go, so a database in a project
is used only if a record in the state directory allows it. The record is found by the
real path of the ``.sessiondb`` folder. It holds inode and mode that the folder and
the database had when they were made or accepted here:

* The path alone would not do: another repository may be cloned to the same place.
  Nor would a secret in the folder: it stays when git replaces the database beside
  it, and is included when the folder is copied or committed.
* Git cannot write such a file: it makes a new inode, and one that others may read
  unless the umask forbids it. The mode also serves on file systems that reuse a
  freed inode. The device is left out: its number changes between boots.
* A moved or copied folder has another path: `accept` it there.

One file for each folder, replaced atomically, so that two processes never undo each
other's record.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

from sessiondb.dataclass import asdict, dataclass
from sessiondb.engine.disk import make_folder, translated
from sessiondb.errors import InvalidInputError, NotADatabaseError, NotFoundError
from sessiondb.hints import command
from sessiondb.location.directories import state_directory

FOLDER, FILE = ".sessiondb", "sessions.db"


@dataclass(frozen=True, slots=True)
class _Record:
    """The accepted folder and file; ``file`` is None until the database is made."""

    path: str
    folder: list[int]
    file: list[int] | None


def accept(path: Path) -> None:
    """Accept the project-local database at *path* as it is now, or before it is made.

    Folder and file become private (0700, 0600). Raises `InvalidInputError` for
    a path that is not ``.sessiondb/sessions.db``, `NotFoundError` without the
    folder, `NotADatabaseError` for links and files of another user,
    `StorageError` when the record cannot be written.
    """
    with translated(path):
        if _record_now(path) is None:
            raise NotFoundError(
                f"no folder {path.parent}",
                hint=f"{command('init', '--local')} creates it",
            )
        path.parent.chmod(0o700)
        with contextlib.suppress(FileNotFoundError):
            path.chmod(0o600)
        _write_record(path)


def is_accepted(path: Path) -> bool:
    """Return whether the project-local database at *path* may be used.

    True also before it is made, if its folder was accepted. The record follows the
    file: a database that was made here is added to it, a removed one dropped.
    """
    try:
        now = _record_now(path)
    except (OSError, ValueError):
        return False
    if now is None:
        return False
    record = _read_record(path)
    if record is None or record.folder != now.folder:
        return False
    if record == now:
        return True
    # The file changed since: it was removed, or made, or replaced.
    if now.file is not None and not _is_made_here(now.file, record):
        return False

    with contextlib.suppress(OSError):
        _write_record(path)
    return True


def _is_made_here(file: list[int], record: _Record) -> bool:
    """Return whether *file* was made in the accepted folder after it was accepted.

    A file that others may read was not: sessiondb makes no such file. On a file system
    without modes every folder appears open to all; there the file's mode means nothing.
    """
    opened = file[1] & 0o077 & ~record.folder[1]
    return record.file is None and not opened


def revoke(path: Path) -> bool:
    """Stop using the project-local database at *path*; the file stays.

    False if it was not used.
    """
    record = _record_path(path)
    with translated(path):
        was_used = record.exists()
        record.unlink(missing_ok=True)
    return was_used


def _record_now(path: Path) -> _Record | None:
    """Return what is at *path* now; None without the folder."""
    if path.parts[-2:] != (FOLDER, FILE):
        raise InvalidInputError(f"not a project-local database: {path}")

    folder = _file_mark(path.parent, stat.S_ISDIR, "folder")
    if folder is None:
        return None
    return _Record(
        os.path.realpath(path), folder, _file_mark(path, stat.S_ISREG, "file")
    )


def _file_mark(
    path: Path, is_kind: Callable[[int], bool], kind: str
) -> list[int] | None:
    try:
        facts = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None

    if not is_kind(facts.st_mode):
        raise NotADatabaseError(
            f"{path} is not a {kind}", hint="links are not followed here"
        )
    if not is_own(facts):
        raise NotADatabaseError(f"{path} belongs to another user")
    return [facts.st_ino, stat.S_IMODE(facts.st_mode)]


def is_own(facts: os.stat_result) -> bool:
    """Return whether a file belongs to this user; True on systems without users."""
    return not hasattr(os, "geteuid") or facts.st_uid == os.geteuid()


def _record_path(path: Path) -> Path:
    import hashlib  # loads OpenSSL; most projects have no database of their own

    key = hashlib.sha256(os.fsencode(os.path.realpath(path.parent))).hexdigest()
    return state_directory() / "trust" / f"{key}.json"


def _read_record(path: Path) -> _Record | None:
    try:
        return _Record(**json.loads(_record_path(path).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _write_record(path: Path) -> None:
    record, place = _record_now(path), _record_path(path)
    if record is not None:
        from sessiondb.engine import outputs  # few commands write, all come here

        make_folder(place.parent)
        outputs.write_text(place, json.dumps(asdict(record)), replace=True)
