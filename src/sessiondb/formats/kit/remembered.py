"""Facts of files that an earlier import found: a file as it was is not opened.

A search reads from each log which session it has, and which other one it continues.
The answer follows from the path and the content of the file alone. So an importer keeps
it with the state of the file (`FileFacts`), and answers from there while a reader
searches (`answered_by`). Anywhere else, and once the file has changed, it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
#: A named tuple whose first field is the path of its file.
L = TypeVar("L", bound=tuple[Any, ...])
Look = Callable[[Path], Any]


class FileFacts(Protocol):
    """The facts of files that an importer keeps."""

    def fact_of(self, path: Path, question: str, look: Look) -> Any:
        """Return what *look* returns for the file at *path*, a value of JSON.

        That may be what it returned for *question* before, if the file is as it was.
        """

    def found_once(self, folder: Path, find: Callable[[Path], T]) -> T:
        """Return what *find* returns for a folder, which is asked once in a search."""


_FACTS: ContextVar[FileFacts | None] = ContextVar("facts", default=None)
_END = object()


def answered_by(facts: FileFacts, items: Iterable[T]) -> Iterator[T]:
    """Yield *items*, while *facts* answer the queries of their reader about files."""
    # Only until the next one: whoever takes it may be in another search.
    iterator = iter(items)
    while True:
        token = _FACTS.set(facts)
        try:
            item: Any = next(iterator, _END)
        finally:
            _FACTS.reset(token)
        if item is _END:
            return
        yield item


def known_fact(path: Path, question: str, look: Look) -> Any:
    """Return what *look* returns for a file, which may be known.

    That is a value of JSON which follows from the path and the content of this file
    alone. A failure is never known: *look* may raise anything.
    """
    facts = _FACTS.get()
    return look(path) if facts is None else facts.fact_of(path, question, look)


def found_once(folder: Path, find: Callable[[Path], T]) -> T:
    """Return what *find* returns for a folder: in one search for all files in it.

    Without an importer there is no search, and each call finds it again.
    """
    facts = _FACTS.get()
    return find(folder) if facts is None else facts.found_once(folder, find)


def remembered(
    question: str, kind: Callable[..., L]
) -> Callable[[Callable[[Path], L | None]], Callable[[Path], L | None]]:
    """Let a function that looks at a log return what is known of it.

    It returns a named tuple *kind*, whose fields after the path are values of JSON
    without lists, or None for a file that is not such a log.
    """

    def decorate(look_at: Callable[[Path], L | None]) -> Callable[[Path], L | None]:
        def fields_of(path: Path) -> list[Any] | None:
            log = look_at(path)
            return None if log is None else list(log[1:])

        @wraps(look_at)
        def look_or_recall(path: Path) -> L | None:
            fields = known_fact(path, question, fields_of)
            return None if fields is None else kind(path, *fields)

        return look_or_recall

    return decorate
