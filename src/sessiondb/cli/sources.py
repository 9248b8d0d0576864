"""Where an import looks, and what it finds there: whatever cannot be read is a problem.

No place affects another one. Only a mistake in the command itself is an error, raised
before anything is written: an unknown format, no path where anything exists, the
database as its own source.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sessiondb.cli.opening import say
from sessiondb.dataclass import dataclass, field
from sessiondb.errors import InvalidInputError, NotFoundError, SourceError, abridged
from sessiondb.formats.kit.files import DATABASES, current_directory, is_file
from sessiondb.formats.registry import REGISTRY, agent_name, readable
from sessiondb.hints import command
from sessiondb.location import load_config
from sessiondb.model import Problem

if TYPE_CHECKING:
    from sessiondb.formats import ForeignStore
    from sessiondb.model import SourceItem

#: Not a path: a log on stdin.
STDIN = Path("-")
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})


@dataclass(slots=True)
class Sources:
    """The sessions of the stores at *places*.

    *formats* are names, None for all; *wanted* chooses stores by their path. If the
    places are *named*, one where nothing is found is a problem. ``stores`` counts
    what was read, ``unread`` are the stores that could not be opened, ``owners`` the
    programs of the stores by their paths.
    """

    places: list[Path]
    formats: tuple[str, ...] | None = None
    named: bool = False
    wanted: Callable[[Path], bool] = lambda _: True
    stores: int = 0
    unread: list[Path] = field(default_factory=list)
    owners: dict[Path, str] = field(default_factory=dict)
    _stores: dict[Path, list[ForeignStore]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[SourceItem]:
        for place in self.places:
            try:
                yield from self._items_at(place)
            except (SourceError, OSError) as error:
                yield _unread_problem(place, error)

    def look(self) -> list[ForeignStore]:
        """Return the stores that an import is going to read, to announce them."""
        from sessiondb.formats import find

        announced = []
        for place in self.places:
            if is_there(place):
                # The import itself reports a place that cannot be read.
                with suppress(SourceError, OSError):
                    self._stores[place] = list(find(place, formats=self.formats))
        for stores in self._stores.values():
            announced += [store for store in stores if store.source in REGISTRY]
        return announced

    def owner(self, path: str) -> str | None:
        """Return the program of the store that *path* is part of, None if unknown."""
        for place in (Path(path), *Path(path).parents):
            if self.owners.get(place):
                return self.owners[place]
        return None

    def _items_at(self, place: Path) -> Iterator[SourceItem]:
        from sessiondb.formats import find

        if place == STDIN:
            yield from self._read_store(_stdin_store())
            return
        if not is_there(place):
            if self.named:
                yield Problem(str(place), "there is nothing here")
            return

        earlier = self.stores
        looked = self._stores.pop(place, None)
        for store in looked or find(place, formats=self.formats):
            if self.wanted(store.path):
                yield from self._read_store(store)
        if self.named and self.stores == earlier:
            yield Problem(str(place), _why_nothing(place, self.formats))

    def _read_store(self, store: ForeignStore) -> Iterator[SourceItem]:
        self.stores += 1
        # One that cannot be read belongs to the agent whose place it is in.
        if store.source in REGISTRY:
            self.owners[store.path] = store.source
        try:
            yield from store.read()
        except (SourceError, OSError) as error:
            self.unread.append(store.path)
            yield _unread_problem(store.path, error)


def _unread_problem(place: Path, error: Exception) -> Problem:
    """Return the problem of a place that cannot be read, with the error's hint."""
    reason, hint = str(error), getattr(error, "hint", None)
    # Some errors say it themselves, for a program that shows no hints.
    return Problem(
        str(place), reason if hint is None or hint in reason else f"{reason}; {hint}"
    )


def _stdin_store() -> ForeignStore:
    from sessiondb.formats import ForeignStore, jsonl

    def read(path: Path) -> Iterator[SourceItem]:
        return jsonl.read_stream(sys.stdin.buffer, path)

    return ForeignStore("jsonl", STDIN, read)


def _why_nothing(place: Path, formats: tuple[str, ...] | None) -> str:
    """Return why no session of *formats* (None: any) was found at *place*.

    Names the agents that have sessions there: of other formats, or not yet supported.
    """
    from sessiondb.formats import find
    from sessiondb.formats.unsupported import agents_at

    if formats:
        others: dict[str, None] = {}
        for store in find(place):
            for name in sorted(store.sources):
                if name in REGISTRY:
                    others[agent_name(name)] = None
        asked = " or ".join(agent_name(name) for name in formats)
        if not others:
            return f"no sessions of {asked}"
        return (
            f"no sessions of {asked}; without --from, those of {', '.join(others)} "
            "are imported"
        )

    agents = agents_at(place)
    if agents:
        return f"{', '.join(agents)}: not supported yet"
    reason = "no sessions of a known agent"
    if place.suffix in DATABASES and is_file(place) and place.stat().st_size:
        from sessiondb.formats.kit.sqlite import is_database

        if not is_database(place):
            reason += ": not a SQLite database, or its beginning is damaged"
    return reason


def sources_at(paths: tuple[str, ...], formats: tuple[str, ...]) -> Sources:
    """Return the sources at *paths*, limited to *formats*.

    Without paths they are the usual places, without formats all are read.
    Raises `NotFoundError` if there is nothing at any of *paths*, and
    `InvalidInputError` for an unknown format.
    """
    chosen = formats or None
    # First of all: an unknown format is an error wherever it would be looked for.
    usual = _usual_places(formats or tuple(readable()))
    if str(STDIN) in paths and formats and "jsonl" not in formats:
        raise InvalidInputError(
            f"- is a log on stdin, not {' or '.join(formats)}",
            hint="use `--from jsonl`, or no --from",
        )
    if not paths:
        places = [*usual, *load_config().import_paths, *_in_projects(chosen)]
        return Sources(list(dict.fromkeys(places)), chosen, owners=usual)

    places = [Path(path) for path in dict.fromkeys(paths)]
    if not any(is_there(place) for place in places):
        missing = ", ".join(abridged(path) for path in paths)
        looks = f"{command('import')} looks where agents keep their sessions"
        raise NotFoundError(
            f"there is nothing at {missing}", hint=f"check the path; {looks}"
        )
    return Sources(places, chosen, named=True)


def _usual_places(formats: tuple[str, ...]) -> dict[Path, str]:
    """Return the places where agents keep their stores, each with its format."""
    from sessiondb.formats import default_locations

    return {
        place: name
        for name in formats
        for place in default_locations(os.environ, formats=[name])
    }


def _in_projects(formats: tuple[str, ...] | None) -> list[Path]:
    """Return the stores in projects at or below the current directory."""
    from sessiondb.formats import in_projects

    top = current_directory()
    if top is None:
        return []
    files, is_all = in_projects(top, formats=formats)
    if not is_all:
        say(f"{top} is large: not all of it was searched for stores of projects")
        say(f"  {command('import', 'DIR')} searches one of its folders")
    return files


def is_there(place: Path) -> bool:
    """Return whether anything is at *place*; raises `InvalidInputError`."""
    if place == STDIN:
        return True
    try:
        place.stat()
    except ValueError as error:
        reason = f"PATH is not a path: {abridged(str(place))}"
        raise InvalidInputError(reason) from error
    except OSError as error:
        return error.errno not in _ABSENT
    return True


def refuse_itself(sources: Sources, database: Path | None) -> None:
    """Raise `InvalidInputError` if one of the places is the *database* itself."""
    from sessiondb.formats.kit.files import device_and_inode

    database_file = None if database is None else device_and_inode(database)
    for place in sources.places:
        if database_file is not None and device_and_inode(place) == database_file:
            raise InvalidInputError(
                f"{place} is the database that is imported into",
                hint="name another file, or another database with --db",
            )
