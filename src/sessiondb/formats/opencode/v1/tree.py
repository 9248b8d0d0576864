"""The JSON trees of OpenCode before 1.2: one file per session, message and part.

Version 1.x keeps all projects in one tree, 0.5 one tree per project. A tree has no
index: names link the files, and the order of a message is in its record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeVar

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import (
    as_text,
    is_object,
    value_at,
)
from sessiondb.formats.kit.files import (
    file_stamp,
    is_folder,
    read_file,
    sorted_entries,
    unreadable_error,
)
from sessiondb.formats.kit.json import OddRecordError, check_id, load_object, usable_id
from sessiondb.formats.opencode.ids import in_creation_order
from sessiondb.formats.opencode.projects import facts_of
from sessiondb.formats.opencode.raw import (
    Head,
    Opened,
    RawPart,
    SessionRecord,
    ownerless_problem,
)
from sessiondb.formats.opencode.sidefiles import SHARES, read_json, read_share
from sessiondb.model import Problem

_T = TypeVar("_T")


class TreeLayout(NamedTuple):
    """The folders of a tree, below its root."""

    #: The folder of the sessions, and the files below the root that may be one.
    sessions: str
    patterns: tuple[str, ...]
    #: Whether sessions lie in folders of their projects.
    has_projects: bool
    #: The folder of the parts of a message.
    parts: str
    #: Folders with the secrets of shares, the one that counts first.
    shares: tuple[str, ...]
    #: How many directories above its root the data directory is.
    depth: int


TREE_V1 = TreeLayout(
    sessions="session",
    patterns=("session/*/*.json", "session/*.json"),
    has_projects=True,
    parts="part/{message}",
    shares=SHARES,
    depth=1,
)
#: Version 0.5, in ``project/<name>/storage/session``.
TREE_V0 = TreeLayout(
    sessions="info",
    patterns=("info/*.json",),
    has_projects=False,
    parts="part/{session}/{message}",
    shares=SHARES[1:],
    depth=4,
)


class _TreeFile(NamedTuple):
    """A JSON file of a tree."""

    path: Path
    size: int
    mtime_ns: int

    @property
    def stamp(self) -> tuple[int, int]:
        """A value that changes when the file does."""
        return self.size, self.mtime_ns


def layout_of(root: Path) -> TreeLayout | None:
    """Return which tree the directory *root* is, by its content; None for no tree.

    Names are enough beside a folder of messages. Sessions without any have none: there,
    the record in a file must be that of a session.
    """
    # A tree of 0.5 beside one of 1.x would be taken for a project of that one.
    is_above = is_folder(root / "session" / "info")
    layouts = [TREE_V0] if is_above else [TREE_V0, TREE_V1]
    has_messages = is_folder(root / "message")
    for layout in layouts:
        for path in _session_files(root, layout):
            if has_messages or _has_session_record(path):
                return layout
    return None


def _session_files(root: Path, layout: TreeLayout) -> Iterator[Path]:
    """Yield the files below *root* that are named like those of sessions."""
    with contextlib.suppress(OSError):
        for pattern in layout.patterns:
            for path in root.glob(pattern):
                if path.name.startswith("ses"):
                    yield path


def _has_session_record(path: Path) -> bool:
    """Return whether a file has the record of the session that it is named after."""
    try:
        record = load_object(read_file(path) or b"")
    except OddRecordError:
        return False
    return record.get("id") == path.stem and is_object(record.get("time"))


class OpenCodeTree:
    """One tree, read once; see `raw.Records`."""

    def __init__(self, root: Path, layout: TreeLayout) -> None:
        self.path = root
        self._layout = layout
        folders = [root.absolute(), *root.absolute().parents]
        self.home = folders[min(layout.depth, len(folders) - 1)]
        #: The record of each project, and the permissions given in it.
        self._projects: dict[str, tuple[dict[str, Any], Any]] = {}
        self._problems: list[Problem] = []

    def path_of(self, session: str, message: str = "", part: str = "") -> Path:
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

    # -- folders --------------------------------------------------------------

    def _listed(
        self, list_folder: Callable[[Path], dict[str, _T]], folder: Path
    ) -> dict[str, _T]:
        """Return what is in *folder*; nothing in one that cannot be read: a problem."""
        try:
            return list_folder(folder)
        except OddRecordError as error:
            problem = Problem(str(folder), f"{folder.name} {error}")

        if problem not in self._problems:
            self._problems.append(problem)
        return {}

    # -- sessions -------------------------------------------------------------

    @cached_property
    def _sessions(self) -> dict[str, _TreeFile]:
        """The files of the sessions by id, the oldest first."""
        folder = self.path / self._layout.sessions
        folders = [folder]
        if self._layout.has_projects:
            folders += self._listed(_folders_in, folder).values()

        files: list[tuple[str, _TreeFile]] = []
        for place in folders:
            files += self._listed(_files_in, place).items()
        # A session that moved to another project may have left its old file, which
        # the newest one replaces here; of two as old the first one does.
        files.reverse()
        return dict(sorted(files, key=lambda item: item[1].mtime_ns))

    def read_heads(self) -> Iterator[Head | Problem]:
        """All sessions, in any order."""
        for name, file in self._sessions.items():
            try:
                check_id(name)
                info = load_object(read_file(file.path))
            except OddRecordError as error:
                yield Problem(str(file.path), f"session {abridged(name)} {error}")
                continue
            yield Head.of(
                name, info.get("parentID"), _time_created(info), info.get("title")
            )

        yield from self._problems

    def read_session(self, head: Head) -> SessionRecord:
        """Read one session; raises `OddRecordError`."""
        file = self._sessions[head.id]
        todo, diff, *shares = [
            self.path / folder / f"{head.id}.json"
            for folder in ("todo", "session_diff", *self._layout.shares)
        ]
        stamps = [file_stamp(path) for path in (todo, diff, *shares)]
        facts = [file.stamp, *stamps, self._contents_of(head.id)]
        info = load_object(read_file(file.path))
        record = SessionRecord(info, facts, file.path, file.size, file.mtime_ns)

        record.todo = read_json(todo, list, record.problems)
        record.diff = read_json(diff, list, record.problems)
        record.share, record.share_folder = read_share(
            self.path, self._layout.shares, head.id, record.problems
        )

        if self._layout.has_projects:
            self._put_project(record, file.path.parent)
        return record

    def _put_project(self, record: SessionRecord, folder: Path) -> None:
        # Versions before 0.6 did not record it, nor did the migrations after them.
        if folder != self.path / self._layout.sessions:
            record.info.setdefault("projectID", folder.name)
            name: str | None = folder.name
        else:
            name = record.info.get("projectID") or self._find_project(record.info)

        if name is None or not usable_id(name):
            return

        if name not in self._projects:
            # The name alone: an id in a record may be a path.
            file = Path(f"{name}.json").name
            project = read_json(self.path / "project" / file, dict, record.problems)
            rules = read_json(self.path / "permission" / file, list, record.problems)
            self._projects[name] = project or {}, rules

        record.project, record.approved = self._projects[name]
        record.worktree = record.project.get("worktree")
        record.vcs = record.project.get("vcs")
        record.root_commit = name
        record.facts.append([facts_of(record.project), record.approved])

    def _find_project(self, info: dict[str, Any]) -> str | None:
        """Return the project whose worktree a session is in, the innermost one."""
        directory = as_text(info.get("directory"))
        if directory is None:
            return None
        for folder in (directory, *PurePath(directory).parents):
            if str(folder) in self._worktrees:
                return self._worktrees[str(folder)]
        return None

    @cached_property
    def _worktrees(self) -> dict[str, str]:
        """The projects by their worktrees; "/" is that of no project."""
        worktrees = {}
        for name, file in self._listed(_files_in, self.path / "project").items():
            # One that cannot be read is reported with a session that names it.
            record = read_json(file.path, dict, []) or {}
            worktree = as_text(record.get("worktree"))
            if worktree and worktree != "/":
                worktrees[worktree] = name
        return worktrees

    def _contents_of(self, session: str) -> Any:
        """Return what changes when anything in the files of a session does."""
        # A record that cannot be read is reported when its turn comes.
        try:
            files = _named_files(self._message_folder(session))
        except OddRecordError as error:
            return str(error)

        contents = []
        for message, file in sorted(files.items()):
            try:
                parts = self._part_files(session, message)
            except OddRecordError as error:
                stamps: Any = str(error)
            else:
                stamps = sorted((part.path.name, *part.stamp) for part in parts)
            contents.append([message, file.stamp, stamps])
        return contents

    # -- messages -------------------------------------------------------------

    def _message_folder(self, session: str) -> Path:
        return self.path / "message" / session

    def _part_folder(self, session: str, message: str) -> Path:
        return self.path / self._layout.parts.format(session=session, message=message)

    def _part_files(self, session: str, message: str) -> list[_TreeFile]:
        return _in_order(_named_files(self._part_folder(session, message)))

    def first_times(self) -> dict[str, int]:
        """When the first message of each session was created, first by its name."""
        times = {}
        for session in self._sessions:
            try:
                files = _in_order(_named_files(self._message_folder(session)))
                record = load_object(read_file(files[0].path)) if files else {}
            except OddRecordError:
                continue
            time = _time_created(record)
            if time is not None:
                times[session] = time
        return times

    def list_messages(self, session: str) -> list[Opened]:
        """Name the messages of a session in order.

        One without a time has that of its neighbour.
        """
        messages = []
        time = 0
        for file in _in_order(_named_files(self._message_folder(session))):
            with contextlib.suppress(OddRecordError):
                created = _time_created(load_object(read_file(file.path)))
                if created is not None:
                    time = created
            messages.append(Opened(time, file.path.stem))

        return sorted(messages)

    def read_message(self, session: str, message: str) -> bytes | None:
        """Read one message as stored; raises `OddRecordError`."""
        return read_file(self.path_of(session, message))

    def read_parts(self, session: str, message: str) -> Iterator[RawPart]:
        """Read the parts of a message as stored, by name."""
        for file in self._part_files(session, message):
            try:
                raw = read_file(file.path)
            except OddRecordError:
                raw = None
            yield RawPart(file.path.stem, [raw])

    def starting_calls(self, session: str) -> Iterator[tuple[Any, ...]]:
        """Message id and stored form of the parts that may name a child session."""
        for _, message in self.list_messages(session):
            for part in self.read_parts(session, message):
                raw = part.raw[0] or b""
                # A look at the bytes spares decoding all other parts.
                if b'"sessionId"' in raw or b'"summary"' in raw:
                    yield message, raw

    # -- what belongs to nothing ----------------------------------------------

    def find_orphans(self) -> Iterator[Problem]:
        """Whatever belongs to a session or message that does not exist."""
        reported = len(self._problems)
        folders = self._listed(_folders_in, self.path / "message")
        yield from _ownerless(folders, "messages", "session", self._sessions)

        parts = self._part_folders()
        # A folder of messages that cannot be read is reported with its session.
        with contextlib.suppress(OddRecordError):
            messages = {
                name for folder in folders.values() for name in _files_in(folder)
            }
            for paths in parts:
                yield from _ownerless(paths, "parts", "message", messages)

        # A share holds a secret: it must not be passed over without a word.
        for kind in self._layout.shares:
            files = self._listed(_files_in, self.path / kind)
            shares = {name: file.path for name, file in files.items()}
            yield from _ownerless(shares, "a share", "session", self._sessions)

        # Lists of tasks and diffs are what a removal by OpenCode leaves.
        yield from self._problems[reported:]

    def _part_folders(self) -> list[dict[str, Path]]:
        """Return the folders of parts by message, in 0.5 those of each session."""
        folder = self.path / "part"
        if self._layout is not TREE_V0:
            return [self._listed(_folders_in, folder)]
        sessions = self._listed(_folders_in, folder).values()
        return [self._listed(_folders_in, session) for session in sessions]


def _ownerless(
    paths: Mapping[str, Path], records: str, owner: str, owners: Collection[str]
) -> Iterator[Problem]:
    """Yield a problem for each of *paths* whose *owner* is not one of the *owners*."""
    for name, path in paths.items():
        # OpenCode removes the files of a session, and leaves their folders.
        if name not in owners and not _is_empty_folder(path):
            yield ownerless_problem(path, records, owner, name)


def _is_empty_folder(path: Path) -> bool:
    try:
        return is_folder(path) and not list(sorted_entries(path))
    except OddRecordError:  # it may hold something
        return False


def _time_created(info: dict[str, Any]) -> int | None:
    time = value_at(info, "time", "created")
    return time if type(time) is int else None


def _in_order(files: dict[str, _TreeFile]) -> list[_TreeFile]:
    """Return files in the order in which their names were made."""
    return [files[name] for name in in_creation_order(sorted(files))]


def _folders_in(folder: Path) -> dict[str, Path]:
    """Return the directories in a directory by name; no symlinks.

    None in one that does not exist; raises `OddRecordError` as `_files_in` does.
    """
    return {
        entry.name: Path(entry)
        for entry in sorted_entries(folder)
        if entry.is_dir(follow_symlinks=False)
    }


def _files_in(folder: Path) -> dict[str, _TreeFile]:
    """Return the JSON files of a directory by name without ending; no symlinks.

    A directory that does not exist is empty; raises `OddRecordError` for one that
    cannot be read.
    """
    files = {}
    for entry in sorted_entries(folder):
        if not entry.name.endswith(".json") or not entry.is_file(follow_symlinks=False):
            continue
        try:
            stat = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # removed in this moment
            continue
        except OSError as error:
            raise unreadable_error(error) from None
        path = Path(entry)
        files[path.stem] = _TreeFile(path, stat.st_size, stat.st_mtime_ns)

    return files


def _named_files(folder: Path) -> dict[str, _TreeFile]:
    """Return the JSON files of a directory; an error names the directory."""
    try:
        return _files_in(folder)
    except OddRecordError as error:
        raise OddRecordError(f"{folder} {error}") from None
