"""Logs of a program that keeps each session in a file of its own, below a folder.

A second import of thousands of them costs little more than a look at their names: a
log has the digest of its size and time, and is found by its first lines alone. The
rest is read only if it changed, by `SourceSession.complete`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from sessiondb.errors import SourceError
from sessiondb.formats.kit.files import file_stamp, is_file
from sessiondb.formats.kit.heads import objects_of
from sessiondb.formats.kit.lines import ends_inside_of_a_line, opened
from sessiondb.formats.kit.order import in_order
from sessiondb.formats.kit.packed import is_packed
from sessiondb.formats.kit.walk import Walk
from sessiondb.model import Problem, SourceHistory, SourcePrompt, SourceSession


class SessionLog(Protocol):
    """The log of a session, as a reader found it by its head."""

    @property
    def path(self) -> Path:
        """The path of the log."""

    @property
    def session(self) -> str:
        """The id of its session."""


class LinkedLog(SessionLog, Protocol):
    """The log of a session that may have a parent: a named tuple with these fields."""

    @property
    def parent(self) -> str | None:
        """The id of the session that started this one or that it was forked from."""

    @property
    def relation(self) -> str | None:
        """How it is related to that session."""

    def _replace(self, *args: Any, **kwargs: Any) -> Self: ...


L = TypeVar("L", bound=SessionLog)
K = TypeVar("K", bound=LinkedLog)


def logs_below(
    folder: Path, is_log: Callable[[Path], bool]
) -> Iterator[Path | Problem]:
    """Yield the files below *folder* whose unpacked name *is_log* accepts, sorted.

    Of a log that exists both plain and packed, the plain one is yielded: a program
    that continues a packed log unpacks it first. Symbolic links are not followed; a
    folder that cannot be read is a problem.
    """
    for inside in Walk(folder):
        if inside.odd:
            yield Problem(str(inside.path), f"the folder {inside.odd}")

        files = [e.name for e in inside.files if e.is_file(follow_symlinks=False)]
        names = frozenset(files)
        for name in files:
            path = inside.path / name
            unpacked = unpacked_name(path)
            if is_packed(path) and unpacked.name in names:
                continue
            if is_log(unpacked):
                yield path


def unpacked_name(path: Path) -> Path:
    """Return *path* without the ending of a packed file."""
    return path.with_suffix("") if is_packed(path) else path


def add_logs(
    items: Iterable[Path | Problem],
    look_at: Callable[[Path], L | None],
    logs: dict[str, L],
    *,
    without_session: str = "the log has no header",
    is_spare: Callable[[L], bool] | None = None,
) -> Iterator[Problem]:
    """Add the logs among *items*, of a search, to *logs* by their sessions.

    Yields the problems among *items*, those of logs that *look_at* cannot read or that
    are *without_session*, and those of logs that `keep_longer` leaves out. An empty
    file is passed over: some programs create their log before its first record.
    """
    for item in items:
        if isinstance(item, Problem):
            yield item
            continue

        try:
            log = look_at(item)
        except SourceError as error:
            yield Problem(str(item), str(error))
            continue

        if log is not None:
            yield from keep_longer(log, logs, is_spare)
        elif _size_of_log(item):
            torn = ends_inside_of_a_line(item)
            yield Problem(str(item), without_session, is_torn=torn)


def keep_longer(
    log: L, logs: dict[str, L], is_spare: Callable[[L], bool] | None = None
) -> Iterator[Problem]:
    """Add a log to *logs*, which keeps the longer one of two logs of a session.

    A program that copied or moved a log continues one of the two, so that the other is
    a beginning of it. Of two logs of the same length the first one is kept. Yields a
    problem that names the log that is left out, unless that *is_spare*: no content of
    the session is lost with it.
    """
    other = logs.setdefault(log.session, log)
    if other is log:
        return

    longer, shorter = other, log
    if _size_of_log(log.path) > _size_of_log(other.path):
        longer, shorter = log, other
    logs[log.session] = longer
    if is_spare is None or not is_spare(shorter):
        reason = f"session {log.session} is also in {longer.path}, which is not shorter"
        yield Problem(str(shorter.path), reason)


def read_in_order(
    logs: Mapping[str, K], read: Callable[[K], Iterable[SourceSession | Problem]]
) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of *logs*, parents first; see `kit.order.in_order`."""

    def read_log(name: str, cut: bool) -> Iterable[SourceSession | Problem]:
        log = logs[name]
        return read(log._replace(parent=None, relation=None) if cut else log)

    return in_order(
        logs, lambda name: logs[name].parent, read_log, lambda name: logs[name].path
    )


def _size_of_log(path: Path) -> int:
    # A log may be removed at any time; the other one is then the longer one.
    size_and_time = file_stamp(path)
    return -1 if size_and_time is None else size_and_time[0]


def is_readable(
    look_at: Callable[[Path], object], path: Path, otherwise: bool = False
) -> bool:
    """Return whether *look_at* finds the log of a session at *path*.

    For a file that cannot be read, the answer is *otherwise*.
    """
    with suppress(SourceError):
        return look_at(path) is not None
    return otherwise


def log_digest(*paths: Path) -> str:
    """Return a digest that changes with any of the files at *paths*; none is opened.

    It also changes when a file is created or removed.
    """
    return " ".join([text_of_stamp(path) for path in paths])


def text_of_stamp(path: Path) -> str:
    """Return the size and time of a file as they are in its digest."""
    stamp = file_stamp(path)
    return "-" if stamp is None else f"{stamp[0]}:{stamp[1]}"


def records_naming(path: Path, name: str) -> Iterator[dict[str, Any]]:
    """Yield the objects on the lines of a log that contain *name*, a plain text.

    Other lines are not decoded. Nothing is yielded for a log that cannot be read.
    """
    wanted = name.encode()
    with suppress(SourceError), opened(path) as lines:
        yield from objects_of(raw for _, raw in lines if wanted in raw)


def history_at(
    source: str, path: Path, typed: Callable[[bytes], SourcePrompt]
) -> Iterator[SourceHistory]:
    """Yield the prompt history in a log, if there is one at *path*.

    *typed* returns the prompt on a line, and raises ValueError if there is none.
    """
    if is_file(path):
        prompts = _Prompts(path, typed)
        yield SourceHistory(source, str(path), log_digest(path), prompts)


class _Prompts:
    """The lines of a prompt history, read again each time."""

    def __init__(self, path: Path, typed: Callable[[bytes], SourcePrompt]) -> None:
        self._path = path
        self._typed = typed

    def __iter__(self) -> Iterator[SourcePrompt | Problem]:
        with opened(self._path) as lines:
            for _, _, prompt in lines.records(self._typed):
                yield prompt
            yield from lines.problems
