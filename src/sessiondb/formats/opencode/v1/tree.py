"""The JSON trees of OpenCode before 1.2: one file per session, message and part.

Version 1.x keeps all projects in one tree, 0.5 one tree per project. There is no
index: names say what belongs to what, and a message's order is in its record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import abridged
from sessiondb.formats.kit.files import entries, is_folder, read_file, stamp, unreadable
from sessiondb.formats.kit.json import OddRecordError, check_id, load_object, usable_id
from sessiondb.formats.opencode.projects import facts_of
from sessiondb.formats.opencode.raw import (
    Head,
    Opened,
    RawPart,
    SessionRecord,
    unwrapped,
)
from sessiondb.formats.opencode.sidefiles import SHARES, read_json
from sessiondb.model import Problem


class Layout(NamedTuple):
    """Where a tree keeps what, below its root."""

    sessions: tuple[str, ...]
    parts: str
    #: Folders with the secrets of shares, the one that counts first.
    shares: tuple[str, ...]
    #: How many directories above its root the data directory is.
    depth: int


TREE_V1 = Layout(("session/*/*.json", "session/*.json"), "part/{message}", SHARES, 1)
TREE_V0 = Layout(("info/*.json",), "part/{session}/{message}", SHARES[1:], 4)


class _File(NamedTuple):
    path: Path
    size: int
    mtime_ns: int


def layout_of(root: Path) -> Layout | None:
    """Return which tree the directory *root* is, by what is in it; None for no tree."""
    if not is_folder(root / "message"):
        return None
    if _has_sessions(root, TREE_V0):
        return TREE_V0
    if not is_folder(root / "session" / "info") and _has_sessions(root, TREE_V1):
        return TREE_V1
    return None


def _has_sessions(root: Path, layout: Layout) -> bool:
    with contextlib.suppress(OSError):
        found = (path for pattern in layout.sessions for path in root.glob(pattern))
        return any(path.name.startswith("ses") for path in found)
    return False


class Tree:
    """One tree, read once; see `records.Records`."""

    def __init__(self, root: Path, layout: Layout) -> None:
        self.path = root
        self._layout = layout
        above = [root.absolute(), *root.absolute().parents]
        self.home = above[min(layout.depth, len(above) - 1)]
        #: The record of each project, and the permissions given in it.
        self._projects: dict[str, tuple[dict[str, Any], Any]] = {}
        self._problems: list[Problem] = []

    def where(self, session: str, message: str = "", part: str = "") -> Path:
        """The file of a session, message or part."""
        if part:
            return self._part_folder(session, message) / f"{part}.json"
        if message:
            return self.path / "message" / session / f"{message}.json"
        file = self._sessions.get(session)
        return file.path if file else self.path

    def reading(self) -> AbstractContextManager[object]:
        """Nothing is held open: each file is read when its turn comes."""
        return contextlib.nullcontext()

    @cached_property
    def _sessions(self) -> dict[str, _File]:
        found: dict[str, _File] = {}
        folder = self.path / self._layout.sessions[0].partition("/")[0]
        for place in [
            folder,
            *(self._folders(folder) if self._layout is TREE_V1 else []),
        ]:
            try:
                files = _files(place)
            except OddRecordError as error:
                self._note(place, error)
                continue
            for name, file in files.items():
                # A session that moved to another project may have left its old file behind.
                if name not in found or file.mtime_ns > found[name].mtime_ns:
                    found[name] = file
        return found

    def heads(self) -> Iterator[Head | Problem]:
        """All sessions, in any order."""
        for name, file in self._sessions.items():
            try:
                check_id(name)
                info = load_object(read_file(file.path))
            except OddRecordError as error:
                yield Problem(str(file.path), f"session {abridged(name)} {error}")
                continue
            parent, title = info.get("parentID"), info.get("title")
            yield Head(
                name,
                parent if usable_id(parent) else None,
                _created(info) or 0,
                title if type(title) is str else "",
            )
        yield from self._problems

    def session(self, head: Head) -> SessionRecord:
        """Read one session; raises `OddRecordError`."""
        file = self._sessions[head.id]
        beside = {
            kind: self.path / kind / f"{head.id}.json"
            for kind in ("todo", "session_diff", *self._layout.shares)
        }
        facts: list[Any] = [
            file[1:],
            *map(stamp, beside.values()),
            self._contents(head.id),
        ]
        record = SessionRecord(
            load_object(read_file(file.path)),
            facts,
            file.path,
            file.size,
            file.mtime_ns,
        )
        record.todo = read_json(beside["todo"], list, record.problems)
        record.diff = read_json(beside["session_diff"], list, record.problems)
        for folder in self._layout.shares:
            if record.share is None:
                record.share = read_json(beside[folder], dict, record.problems)
                record.share_folder = folder
        if self._layout is TREE_V1:
            self._project(record, file.path.parent)
        return record

    def _project(self, record: SessionRecord, folder: Path) -> None:
        # Versions before 0.6 did not write it down, and the migrations that moved them did not.
        name = record.info.get("projectID")
        if folder != self.path / self._layout.sessions[0].partition("/")[0]:
            record.info.setdefault("projectID", folder.name)
            name = folder.name
        if type(name) is not str or not usable_id(name):
            return
        if name not in self._projects:
            # The name alone: an id in a record may be a path to somewhere else.
            file = Path(f"{name}.json").name
            self._projects[name] = (
                read_json(self.path / "project" / file, dict, record.problems) or {},
                read_json(self.path / "permission" / file, list, record.problems),
            )
        record.project, record.approved = self._projects[name]
        record.worktree, record.vcs = map(record.project.get, ("worktree", "vcs"))
        record.root_commit = name
        record.facts.append([facts_of(record.project), record.approved])

    def _note(self, folder: Path, error: OddRecordError) -> None:
        problem = Problem(str(folder), f"{folder.name} {error}")
        if problem not in self._problems:
            self._problems.append(problem)

    def _folders(self, folder: Path) -> list[Path]:
        """Return the folders in *folder*; one that cannot be read is a problem."""
        try:
            return [Path(e) for e in entries(folder) if e.is_dir(follow_symlinks=False)]
        except OddRecordError as error:
            self._note(folder, error)
            return []

    def _contents(self, session: str) -> Any:
        # A record that cannot be read is reported when its turn comes.
        try:
            messages = self._messages(session)
        except OddRecordError as error:
            return str(error)
        return [
            [name, file[1:], self._part_stamps(session, name)]
            for name, file in sorted(messages.items())
        ]

    def _part_stamps(self, session: str, message: str) -> Any:
        try:
            return sorted((f.path.name, *f[1:]) for f in self._parts(session, message))
        except OddRecordError as error:
            return str(error)

    def _messages(self, session: str) -> dict[str, _File]:
        return _named_files(self.path / "message" / session)

    def _part_folder(self, session: str, message: str) -> Path:
        return self.path / self._layout.parts.format(session=session, message=message)

    def _parts(self, session: str, message: str) -> list[_File]:
        files = _named_files(self._part_folder(session, message))
        return [files[name] for name in unwrapped(sorted(files))]

    def first_times(self) -> dict[str, int]:
        """When the first message of each session was created, by the order of their names."""
        found = {}
        for session in self._sessions:
            with contextlib.suppress(OddRecordError):
                files = self._messages(session)
                for name in unwrapped(sorted(files))[:1]:
                    time = _created(load_object(read_file(files[name].path)))
                    if time is not None:
                        found[session] = time
        return found

    def messages(self, session: str) -> list[Opened]:
        """Name the messages of a session in order; one without a time has that of its neighbour."""
        files = self._messages(session)
        found, time = [], 0
        for name in unwrapped(sorted(files)):
            with contextlib.suppress(OddRecordError):
                created = _created(load_object(read_file(files[name].path)))
                time = time if created is None else created
            found.append(Opened(time, name))
        return sorted(found)

    def message(self, session: str, message: str) -> bytes | None:
        """Read one message as stored; raises `OddRecordError`."""
        return read_file(self.where(session, message))

    def parts(self, session: str, message: str) -> Iterator[RawPart]:
        """Read the parts of a message as stored, by name."""
        for file in self._parts(session, message):
            yield RawPart(file.path.stem, _content_of(file))

    def calls(self, session: str) -> Iterator[tuple[Any, ...]]:
        """Message id and stored form of the parts that may name a child session."""
        for _, message in self.messages(session):
            for part in self.parts(session, message):
                if part.raw and (
                    b'"sessionId"' in part.raw or b'"summary"' in part.raw
                ):
                    yield message, part.raw

    def orphans(self) -> Iterator[Problem]:
        """Messages without their session, parts without their message."""
        messages: set[str] = set()
        known = len(self._problems)
        readable = True
        for folder in self._folders(self.path / "message"):
            try:
                messages.update(_files(folder))
            except OddRecordError:  # reported with its session
                readable = False
            if folder.name not in self._sessions:
                why = f"messages of session {abridged(folder.name)}, which is not there"
                yield Problem(str(folder), why)
        places = [self.path / "part"]
        if self._layout is TREE_V0:
            places = self._folders(places[0])
        for place in places:
            for folder in self._folders(place):
                if readable and folder.name not in messages:
                    why = (
                        f"parts of message {abridged(folder.name)}, which is not there"
                    )
                    yield Problem(str(folder), why)
        yield from self._problems[known:]


def _created(info: dict[str, Any]) -> int | None:
    times = info.get("time")
    time = times.get("created") if type(times) is dict else None
    return time if type(time) is int else None


def _files(folder: Path) -> dict[str, _File]:
    """Return the JSON files of a directory by name without ending; no symlinks.

    A directory that is not there is empty; raises `OddRecordError` for one that cannot be read.
    """
    found = {}
    for entry in entries(folder):
        if entry.name.endswith(".json") and entry.is_file(follow_symlinks=False):
            try:
                stat = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise unreadable(error) from None
            path = Path(entry)
            found[path.stem] = _File(path, stat.st_size, stat.st_mtime_ns)
    return found


def _content_of(file: _File) -> bytes | None:
    with contextlib.suppress(OddRecordError):
        return read_file(file.path)
    return None


def _named_files(folder: Path) -> dict[str, _File]:
    """Return the JSON files of a directory; an error says which one that is."""
    try:
        return _files(folder)
    except OddRecordError as error:
        raise OddRecordError(f"{folder} {error}") from None
