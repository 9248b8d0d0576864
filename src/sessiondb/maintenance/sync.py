"""Sessions of a project exchanged through files that a team commits.

Each session is one log in ``.sessiondb/sessions``, as `portable` writes it. A sync
reads first, so that it writes the changes of both sides. Missing records are appended
to a file; it is rewritten only if one of its records is no longer true, and never if a
part of it could not be read. No file is removed: a session that is deleted in one
clone, and then in the others, remains in its log.

The last seen state of each file and session is noted beside the database, so a session
that changed on neither side costs one look at its file. If the notes are lost,
everything is compared again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import IO

from sessiondb.dataclass import dataclass
from sessiondb.effects.versions import NoteVersions
from sessiondb.engine import outputs
from sessiondb.engine.default import ENGINE
from sessiondb.errors import UNREADABLE, InvalidInputError
from sessiondb.formats import find, jsonl
from sessiondb.hints import command
from sessiondb.maintenance.deletions import Logged, delete_logged, deleted_here
from sessiondb.maintenance.portable import FOLDER, portable
from sessiondb.maintenance.removal import AT_ONCE, every
from sessiondb.model import Imported, Problem, Session, SourceItem, SourceSession
from sessiondb.model.versions import Version
from sessiondb.repository.sessions import ALL
from sessiondb.store import Store

#: Git ignores it with the database, by the beginning of its name.
NOTES = ".sessiondb/sessions.db-synced"
#: Both sides' lines are kept; the reader joins them.
ATTRIBUTES = "*.jsonl -text merge=union\n"
_EVERYTHING = {"project": ALL, "archived": True, "subagents": True, "empty": True}

#: Bytes and mtime in ns of each file, by name.
Files = dict[str, tuple[int, int]]
#: The state of an entry that is not a file: a link, a folder.
NO_FILE = (-1, 0)
#: By name: the bytes and mtime in ns of a file, and a digest of its session's state.
Notes = dict[str, tuple[int, int, str]]


@dataclass(slots=True)
class Synced:
    """The result of a sync.

    ``read`` has the outcome of each session in the files. ``written``, ``missing`` and
    ``removed`` are ids of sessions: those whose file was written, those whose file
    was removed, and those deleted here because others had deleted them.
    """

    folder: Path
    read: list[Imported] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def sync(store: Store) -> Synced:
    """Read the sessions that other users changed, then write those changed here.

    Raises `InvalidInputError` for a database that does not belong to a project, or
    where the folder is a symbolic link.
    """
    if store.location.root is None:
        raise InvalidInputError(
            "sync needs a project-local database",
            hint=f"{command('init', '--local')} creates one",
        )

    root = Path(store.location.root)
    folder = root / FOLDER
    if any(path.is_symlink() for path in (folder, folder.parent)):
        raise InvalidInputError(f"{folder} is a symbolic link", hint="make it a folder")
    folder.mkdir(parents=True, exist_ok=True)
    attributes = folder / ".gitattributes"
    if not os.path.lexists(attributes):
        outputs.write_text(attributes, ATTRIBUTES)
    done, notes = Synced(folder), _read_notes(root / NOTES)
    files = {path.name: _file_stamp(path.lstat()) for path in folder.glob("*.jsonl")}
    logged = _read_files(store, done, files, notes)
    _settle_deletions(store, done, files, logged)
    new_notes = _write_files(store, done, files, notes)
    if new_notes != notes:
        _replace(root / NOTES, [json.dumps(new_notes)])
    return done


def _read_notes(path: Path) -> Notes:
    try:
        notes = json.loads(path.read_bytes())
        return {
            name: (size, time, state) for name, (size, time, state) in notes.items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _file_stamp(stat: os.stat_result) -> tuple[int, int]:
    # To open and close a hard link to an open database would release its locks.
    is_open = stat.st_nlink > 1 and (stat.st_dev, stat.st_ino) in ENGINE.open_files()
    if is_open or not S_ISREG(stat.st_mode):
        return NO_FILE

    return stat.st_size, stat.st_mtime_ns


def _sessions_to_write(store: Store) -> Iterator[tuple[str, str, Session]]:
    """Yield the file name, a digest of the state, and the session, of each session."""
    projects = {project.id: project for project in store.projects()}
    for session in every(store, **_EVERYTHING, order="created"):
        state = repr((session, projects.get(session.project_id or ""))).encode(
            "utf-8", "surrogatepass"
        )
        yield jsonl.file_name(session.id), hashlib.sha256(state).hexdigest(), session


def _read_files(store: Store, done: Synced, files: Files, notes: Notes) -> list[Logged]:
    """Import the files that changed; return the sessions that were in them."""
    waiting = _changed_files(store, done, files, notes)
    logged: list[Logged] = []
    placed: set[tuple[str, str]] = set()

    for result in store.ingest(_items_of_files(waiting, files, logged)):
        if isinstance(result, Problem):
            done.problems.append(result)
        else:
            done.read.append(result)
            placed.add((result.source, result.source_id))

    # An import skips sessions of other directories without a problem.
    reported = {problem.source for problem in done.problems}
    for item in logged:
        is_placed = (item.source, item.source_id) in placed
        if not is_placed and str(item.path) not in reported:
            reason = "is of a directory outside the project, so it is not read"
            done.problems.append(
                Problem(str(item.path), f"session {item.source_id} {reason}")
            )

    return logged


def _changed_files(
    store: Store, done: Synced, files: Files, notes: Notes
) -> list[Path]:
    """Return the files that changed since the last sync; the others count as read."""
    sessions = {
        name: session for name, _, session in _sessions_to_write(store) if name in files
    }
    waiting: list[Path] = []

    for name in sorted(files, reverse=True):
        session = sessions.get(name)
        if session is None or notes.get(name, ())[:2] != files[name]:
            waiting.append(done.folder / name)
            continue
        names = session.id, session.source, session.source_id or session.id
        done.read.append(Imported("unchanged", *names, session.message_count))

    return waiting


def _settle_deletions(
    store: Store, done: Synced, files: Files, logged: list[Logged]
) -> None:
    """Carry out deletions of others, record ours, and restore continued sessions."""
    done.removed = delete_logged(store, logged)
    alive: list[Logged] = []

    for item, version, is_alive in deleted_here(store, logged):
        if is_alive:
            alive.append(item)
        else:
            _record_deletion(item, version, files)

    for result in store.ingest(_returned_sessions(alive, files), undelete=True):
        if isinstance(result, Imported):
            done.read = [x for x in done.read if x.id != result.id]
            done.read.append(result)


def _record_deletion(item: Logged, version: Version, files: Files) -> None:
    """Add to the log of a session that it was deleted here."""
    record = json.dumps(
        jsonl.deletion_record(item.stored.id, version), separators=(",", ":")
    )
    with item.path.open("r+b") as file:
        # A file that changed since it was read is left to the next sync.
        if _file_stamp(item.path.lstat()) == files[item.path.name]:
            files[item.path.name] = _append_lines(file, [record + "\n"])


def _returned_sessions(alive: list[Logged], files: Files) -> Iterator[SourceSession]:
    """Yield sessions that were deleted here and continued by others."""
    names = {item.name for item in alive}
    paths = list(dict.fromkeys(item.path for item in alive))
    for item in _items_of_files(paths, files, []):
        if isinstance(item, SourceSession) and _session_name(item) in names:
            yield item


def _session_name(item: SourceSession) -> tuple[str, str, str]:
    return item.source, item.source_id, item.namespace


def _items_of_files(
    paths: Iterable[Path], files: Files, logged: list[Logged]
) -> Iterator[SourceItem]:
    """Yield the sessions and problems of files; add each session to *logged*."""
    for path in paths:
        for item in _items_of_file(path, files[path.name]):
            if isinstance(item, SourceSession) and item.stored is not None:
                logged.append(Logged(path, *_session_name(item), item.stored))

            yield item


def _items_of_file(path: Path, seen: tuple[int, int]) -> Iterator[SourceItem]:
    """Yield the sessions and problems of one file."""
    if seen == NO_FILE:
        yield Problem(str(path), "not a file, so it is not read")
        return

    logs = list(find(path, formats=["jsonl"]))
    size, _ = seen
    if size and not logs:
        yield Problem(str(path), "not a log of sessiondb")

    for store in logs:
        yield from store.read()


def _write_files(store: Store, done: Synced, files: Files, notes: Notes) -> Notes:
    """Write the changes that the files do not have; return the new notes."""
    damaged = {problem.source for problem in done.problems}
    new_notes: Notes = {}
    _note_versions(store, files, notes)

    for name, state, session in _sessions_to_write(store):
        path, seen, noted = done.folder / name, files.get(name), notes.get(name)
        if noted is not None:
            # A file that was removed is not written again: a user wanted that.
            if seen is None:
                done.missing.append(session.id)
            if seen is None or noted == (*seen, state):
                new_notes[name] = noted
                continue

        is_intact = str(path) not in damaged
        try:
            left = _update_file(store, session, path, seen, is_intact)
        except UNREADABLE as error:
            done.problems.append(Problem(str(path), f"session {session.id}: {error}"))
            continue

        if left not in (None, seen):
            done.written.append(session.id)
        # Without a note, the next sync reads a damaged file again.
        if left is not None and is_intact:
            new_notes[name] = (*left, state)

    return new_notes


def _update_file(
    store: Store,
    session: Session,
    path: Path,
    seen: tuple[int, int] | None,
    is_intact: bool,
) -> tuple[int, int] | None:
    """Write a session's file, or its missing records; return its new state."""
    root = str(store.location.root)

    def lines() -> Iterator[str]:
        return jsonl.session_lines(portable(store.export(session, **jsonl.READ), root))

    if seen is None:
        return _replace(path, lines())
    return _complete_file(path, seen, lines, is_intact)


def _note_versions(store: Store, files: Files, notes: Notes) -> None:
    """Note the versions that the logs of changed sessions will have."""
    changed = (
        session.id
        for name, state, session in _sessions_to_write(store)
        if notes.get(name) != (*files.get(name, NO_FILE), state)
    )
    while some := list(islice(changed, AT_ONCE)):
        with store.effects(durability="normal") as fx:
            fx.add(*(NoteVersions(session_id) for session_id in some))


def _complete_file(
    path: Path,
    seen: tuple[int, int],
    lines: Callable[[], Iterator[str]],
    is_intact: bool,
) -> tuple[int, int] | None:
    """Give a file the content of *lines*; return its new state.

    None if it is not a file, or has changed since it was *seen*: the next sync reads
    it.
    """
    if seen == NO_FILE:
        return None
    with path.open("r+b") as file:
        if _file_stamp(path.lstat()) != seen:
            return None
        missing = jsonl.missing_lines(file, lines(), intact=is_intact)
        if missing is not None:
            return _append_lines(file, missing) if missing else seen

    # One of its records is no longer true, and cannot be withdrawn by another.
    return _replace(path, lines())


def _append_lines(file: IO[bytes], lines: list[str]) -> tuple[int, int]:
    """Append lines in one write, for concurrent readers; return the new state."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(end - 1, 0))
    content = "".join(lines).encode()

    try:
        file.write(content if file.read(1) in (b"", b"\n") else b"\n" + content)
        file.flush()
    except OSError:
        file.truncate(end)
        raise

    return _file_stamp(os.fstat(file.fileno()))


def _replace(path: Path, lines: Iterable[str]) -> tuple[int, int]:
    """Write a file, which appears complete or not at all; return its new state."""
    with outputs.writing(path, replace=True) as file:
        for line in lines:
            file.write(line.encode())
    return _file_stamp(path.lstat())
