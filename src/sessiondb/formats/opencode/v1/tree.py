"""The JSON trees of OpenCode before 1.2: one file per session, message and part.

Version 1.x keeps all projects in one tree, 0.5 one tree per project. There is no
index: names say what belongs to what, and a message's order is in its record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeVar

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import (
    as_text,
    is_object,
    within,
    without,
    without_none,
)
from sessiondb.formats.kit.files import entries, is_folder, read_file, stamp, unreadable
from sessiondb.formats.kit.json import OddRecordError, check_id, load_object, usable_id
from sessiondb.formats.opencode.ids import unwrapped
from sessiondb.formats.opencode.projects import facts_of
from sessiondb.formats.opencode.raw import (
    Head,
    Opened,
    RawPart,
    SessionRecord,
    missing,
)
from sessiondb.formats.opencode.sidefiles import SHARES, read_json, read_share
from sessiondb.model import Problem

_T = TypeVar("_T")


class Layout(NamedTuple):
    """Where a tree keeps what, below its root."""

    #: The folder of the sessions, and the files below the root that may be one.
    sessions: str
    patterns: tuple[str, ...]
    #: Whether sessions lie in folders of their projects.
    has_projects: bool
    parts: str
    #: Folders with the secrets of shares, the one that counts first.
    shares: tuple[str, ...]
    #: How many directories above its root the data directory is.
    depth: int


TREE_V1 = Layout(
    sessions="session",
    patterns=("session/*/*.json", "session/*.json"),
    has_projects=True,
    parts="part/{message}",
    shares=SHARES,
    depth=1,
)
#: Version 0.5, in ``project/<name>/storage/session``.
TREE_V0 = Layout(
    sessions="info",
    patterns=("info/*.json",),
    has_projects=False,
    parts="part/{session}/{message}",
    shares=SHARES[1:],
    depth=4,
)


class _File(NamedTuple):
    path: Path
    size: int
    mtime_ns: int


def layout_of(root: Path) -> Layout | None:
    """Return which tree the directory *root* is, by its content; None for no tree.

    Names are enough beside a folder of messages. Sessions without any have none: there,
    the record in a file must be that of a session.
    """
    # A tree of 0.5 beside one of 1.x would be taken for a project of that one.
    is_above = is_folder(root / "session" / "info")
    layouts = [TREE_V0] if is_above else [TREE_V0, TREE_V1]
    is_one = _is_named if is_folder(root / "message") else _is_session
    found = (of for of in layouts if any(map(is_one, _sessions_in(root, of))))
    return next(found, None)


def _sessions_in(root: Path, layout: Layout) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from chain.from_iterable(map(root.glob, layout.patterns))


def _is_named(path: Path) -> bool:
    return path.name.startswith("ses")


def _is_session(path: Path) -> bool:
    """Return whether a file has the record of the session that it is named after."""
    with contextlib.suppress(OddRecordError):
        record = load_object(read_file(path) or b"") if _is_named(path) else {}
        return record.get("id") == path.stem and is_object(record.get("time"))
    return False


class Tree:
    """One tree, read once; see `raw.Records`."""

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

    # -- folders --------------------------------------------------------------

    def _listed(
        self, listing: Callable[[Path], dict[str, _T]], folder: Path
    ) -> dict[str, _T]:
        """Return the *listing* of *folder*; one that cannot be read is a problem."""
        try:
            return listing(folder)
        except OddRecordError as error:
            problem = Problem(str(folder), f"{folder.name} {error}")

        if problem not in self._problems:
            self._problems.append(problem)
        return {}

    # -- sessions -------------------------------------------------------------

    @cached_property
    def _sessions(self) -> dict[str, _File]:
        folder = self.path / self._layout.sessions
        places = [folder]
        if self._layout.has_projects:
            places += self._listed(_folders, folder).values()

        found = chain.from_iterable(self._listed(_files, p).items() for p in places)
        newest_first = sorted(found, key=lambda item: item[1].mtime_ns, reverse=True)
        # A session that moved to another project may have left its old file, which
        # the newest one replaces here.
        return dict(newest_first[::-1])

    def heads(self) -> Iterator[Head | Problem]:
        """All sessions, in any order."""
        for name, file in self._sessions.items():
            try:
                check_id(name)
                info = load_object(read_file(file.path))
            except OddRecordError as error:
                yield Problem(str(file.path), f"session {abridged(name)} {error}")
                continue
            yield Head.of(name, info.get("parentID"), _created(info), info.get("title"))

        yield from self._problems

    def session(self, head: Head) -> SessionRecord:
        """Read one session; raises `OddRecordError`."""
        file = self._sessions[head.id]
        beside = {
            kind: self.path / kind / f"{head.id}.json"
            for kind in ("todo", "session_diff", *self._layout.shares)
        }
        stamps = map(stamp, beside.values())
        facts = [file[1:], *stamps, self._contents(head.id)]
        info = load_object(read_file(file.path))
        record = SessionRecord(info, facts, *file)

        record.todo = read_json(beside["todo"], list, record.problems)
        record.diff = read_json(beside["session_diff"], list, record.problems)

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
            name = record.info.get("projectID") or self._project_of(record.info)

        if name is None or not usable_id(name):
            return

        if name not in self._projects:
            # The name alone: an id in a record may be a path to somewhere else.
            file = Path(f"{name}.json").name
            project = read_json(self.path / "project" / file, dict, record.problems)
            given = read_json(self.path / "permission" / file, list, record.problems)
            self._projects[name] = project or {}, given

        record.project, record.approved = self._projects[name]
        record.worktree, record.vcs = map(record.project.get, ("worktree", "vcs"))
        record.root_commit = name
        record.facts.append([facts_of(record.project), record.approved])

    def _project_of(self, info: dict[str, Any]) -> str | None:
        """Return the project whose worktree a session is in, the innermost one."""
        where = as_text(info.get("directory"))
        if where is None:
            return None
        above = [where, *map(str, PurePath(where).parents)]
        found = (self._worktrees[path] for path in above if path in self._worktrees)
        return next(found, None)

    @cached_property
    def _worktrees(self) -> dict[str, str]:
        """The projects by their worktrees; "/" is that of no project."""
        files = self._listed(_files, self.path / "project")
        found = {}
        for name, file in files.items():
            # One that cannot be read is reported with a session that names it.
            record = read_json(file.path, dict, []) or {}
            found[as_text(record.get("worktree")) or "/"] = name
        return without(["/"], found)

    def _contents(self, session: str) -> Any:
        """Return what changes when anything in the files of a session does."""
        # A record that cannot be read is reported when its turn comes.
        try:
            messages = _named_files(self._message_folder(session))
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

    # -- messages -------------------------------------------------------------

    def _message_folder(self, session: str) -> Path:
        return self.path / "message" / session

    def _part_folder(self, session: str, message: str) -> Path:
        return self.path / self._layout.parts.format(session=session, message=message)

    def _parts(self, session: str, message: str) -> list[_File]:
        return _in_order(_named_files(self._part_folder(session, message)))

    def first_times(self) -> dict[str, int]:
        """When the first message of each session was created, first by its name."""
        found = {session: self._first_time(session) for session in self._sessions}
        return without_none(found)

    def _first_time(self, session: str) -> int | None:
        with contextlib.suppress(OddRecordError):
            files = _in_order(_named_files(self._message_folder(session)))
            return _created(load_object(read_file(files[0].path))) if files else None
        return None

    def messages(self, session: str) -> list[Opened]:
        """Name the messages of a session in order.

        One without a time has that of its neighbour.
        """
        files = _named_files(self._message_folder(session))
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
                raw = part.raw or b""
                # A look at the bytes spares decoding all other parts.
                if b'"sessionId"' in raw or b'"summary"' in raw:
                    yield message, raw

    # -- what belongs to nothing ----------------------------------------------

    def orphans(self) -> Iterator[Problem]:
        """Whatever belongs to a session or message that does not exist."""
        known = len(self._problems)
        folders = self._listed(_folders, self.path / "message")
        yield from _ownerless(folders.items(), "messages", "session", self._sessions)

        parts = self._part_folders()
        # A folder of messages that cannot be read is reported with its session.
        with contextlib.suppress(OddRecordError):
            messages = set(chain.from_iterable(map(_files, folders.values())))
            yield from _ownerless(parts, "parts", "message", messages)

        # A share holds a secret: it must not be passed over without a word.
        for kind in self._layout.shares:
            files = self._listed(_files, self.path / kind).items()
            shares = [(name, file.path) for name, file in files]
            yield from _ownerless(shares, "a share", "session", self._sessions)

        # Lists of tasks and diffs are what a removal by OpenCode leaves.
        yield from self._problems[known:]

    def _part_folders(self) -> list[tuple[str, Path]]:
        """Return the folders of parts, by message."""
        places = [self.path / "part"]
        if self._layout is TREE_V0:
            places = list(self._listed(_folders, places[0]).values())
        found = (self._listed(_folders, place).items() for place in places)
        return list(chain.from_iterable(found))


def _ownerless(
    places: Iterable[tuple[str, Path]],
    what: str,
    owner: str,
    known: Collection[str],
) -> Iterator[Problem]:
    """Yield a problem for each of *places* whose *owner* is not among the *known*."""
    for name, path in places:
        # OpenCode removes the files of a session, and leaves their folders.
        if name not in known and not _is_empty_folder(path):
            yield missing(path, what, owner, name)


def _is_empty_folder(path: Path) -> bool:
    try:
        return is_folder(path) and not list(entries(path))
    except OddRecordError:  # it may hold something
        return False


def _created(info: dict[str, Any]) -> int | None:
    time = within(info, "time", "created")
    return time if type(time) is int else None


def _in_order(files: dict[str, _File]) -> list[_File]:
    """Return files in the order in which their names were made."""
    return list(map(files.__getitem__, unwrapped(sorted(files))))


def _folders(folder: Path) -> dict[str, Path]:
    """Return the directories in a directory by name; no symlinks.

    None in one that does not exist; raises `OddRecordError` as `_files` does.
    """
    found = entries(folder)
    return {e.name: Path(e) for e in found if e.is_dir(follow_symlinks=False)}


def _files(folder: Path) -> dict[str, _File]:
    """Return the JSON files of a directory by name without ending; no symlinks.

    A directory that does not exist is empty; raises `OddRecordError` for one that
    cannot be read.
    """
    found = {}
    for entry in entries(folder):
        if not entry.name.endswith(".json") or not entry.is_file(follow_symlinks=False):
            continue
        try:
            stat = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # removed in this moment
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
