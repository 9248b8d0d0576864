"""Which format a file or folder belongs to: one at most, whatever a search is for.

Two readers of one file would make two sessions of one, or add to a session what one of
them misunderstands. So all formats look at each file, also in a search for some
of them, and a file that belongs to another format is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from sessiondb.dataclass import dataclass
from sessiondb.errors import SourceError
from sessiondb.formats import registry
from sessiondb.formats.kit.files import DATABASES, is_file, may_read
from sessiondb.formats.kit.heads import beginning_of, forget_heads
from sessiondb.formats.protocol import ForeignStore, Format, unreadable_store
from sessiondb.model import Problem, SourceItem


@dataclass(slots=True)
class FileClaims:
    """The formats that recognise a path."""

    #: The store that each of them has found, by the name of the format.
    stores: dict[str, ForeignStore] = field(default_factory=dict)
    #: A store with the reason for each format that failed to look at the path.
    failed: list[ForeignStore] = field(default_factory=list)


class Owners:
    """The owners of files and folders, in a search for the formats *wanted*."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        self._all = {name: registry.format_named(name) for name in registry.readable()}

    def of_file(self, path: Path, *, by_suffix: bool = False) -> list[ForeignStore]:
        """Return the store that a file is, and problems as stores.

        Nothing for a file of a format that is not wanted, and for one of no format.
        With *by_suffix* only formats that have the ending of the file look at it.
        """
        if not may_read(path):
            return [_denied_store(path)]

        every = self._all.items()
        usual = {name: form for name, form in every if path.suffix in form.suffixes}
        claims = claims_on(path, usual)
        if not by_suffix and not claims.stores:
            # A file that is named may have any ending, and its format none.
            others = {name: form for name, form in every if name not in usual}
            unusual = claims_on(path, others)
            claims = FileClaims(unusual.stores, claims.failed + unusual.failed)
        if claims.stores:
            return [*claims.failed, *self._store_of(path, claims.stores)]
        return claims.failed or self._unread_file(path)

    def _store_of(
        self, path: Path, claims: dict[str, ForeignStore]
    ) -> Iterator[ForeignStore]:
        # Of several formats the first one in the registry has the file: those that
        # number records in an envelope of their own precede those of programs, whose
        # records may be in such an envelope.
        owner, *others = claims
        store = claims[owner]
        if others:
            looks = " and ".join(
                registry.agent_name(claims[name].source) for name in others
            )
            agent = registry.agent_name(store.source)
            reason = f"read as {agent}; it looks like {looks}, too"
            reader = partial(_read_with_problem, Problem(str(path), reason), store)
            store = replace(store, reader=reader)
        if owner in self._wanted:
            yield store

    def of_folder(self, path: Path) -> FolderOwner:
        """Return whether a folder is a store, and of which format."""
        if not may_read(path):
            return FolderOwner([_denied_store(path)])

        claims = claims_on(path, self._all)
        if len(claims.stores) > 1:
            # The reader of each would pass over the logs of the others in silence. The
            # files have one owner each; only what is kept beside the logs is missing.
            stores = [*claims.failed]
            if not self._wanted.isdisjoint(claims.stores):
                agents = " and ".join(
                    registry.agent_name(name) for name in claims.stores
                )
                reason = (
                    f"the folder is of {agents}: its files are read one by one, "
                    "without those beside them"
                )
                stores.append(unreadable_store(path, reason))
            return FolderOwner(stores, is_mixed=True)

        stores = [*claims.failed]
        for name, store in claims.stores.items():
            if name in self._wanted:
                stores.append(store)
        return FolderOwner(stores, is_store=bool(claims.stores))

    def _unread_file(self, path: Path) -> list[ForeignStore]:
        """Return a file that no format recognises, if that is because of damage."""
        if not is_file(path) or _failure_of(path) is None:
            return []

        owner = self._owner_by_name(path.name)
        if owner is None and not _is_database(path):
            return []
        # Our own databases are imported only if they are named, and so is their damage.
        for form in self._all.values():
            if not form.suffixes and form.at(path) is not None:
                return []

        if owner is None:
            return [ForeignStore("unreadable", path, _read_again)]
        if owner in self._wanted:
            return [ForeignStore(owner, path, _read_again)]
        return []

    def _owner_by_name(self, file: str) -> str | None:
        """Return the format with the most specific pattern for a name, None if none."""
        longest, owner = "", None
        for name, form in self._all.items():
            for pattern in form.names:
                if fnmatchcase(file, pattern) and len(pattern) > len(longest):
                    longest, owner = pattern, name
        return owner


@dataclass(frozen=True, slots=True)
class FolderOwner:
    """Whether a folder is a store, and of which format."""

    #: The store if it is wanted, and problems as stores.
    stores: list[ForeignStore]
    is_store: bool = False
    #: Whether it has the stores of several formats.
    is_mixed: bool = False


def claims_on(path: Path, formats: dict[str, Format]) -> FileClaims:
    """Return which of *formats* recognise what is at *path*, in their order."""
    forget_heads()
    claims = FileClaims()
    for name, form in formats.items():
        try:
            store = form.at(path)
        # No format may hide the stores of others.
        except Exception as error:  # noqa: BLE001
            reason = f"cannot be looked at: its reader failed: {error!r:.300}"
            claims.failed.append(unreadable_store(path, reason))
        else:
            if store is not None:
                claims.stores[name] = store
    return claims


def _denied_store(path: Path) -> ForeignStore:
    return unreadable_store(path, "cannot be read (Permission denied)")


def _read_with_problem(
    problem: Problem, store: ForeignStore, path: Path
) -> Iterator[SourceItem]:
    yield problem
    yield from store.reader(path)


# -- files that cannot be read -----------------------------------------------------


def _failure_of(path: Path) -> SourceError | None:
    """Return why no format can look at a file; None if any could."""
    try:
        if path.suffix not in DATABASES:
            beginning_of(path, 1)
            return None

        # SQLite is loaded when a search comes to a database.
        from sessiondb.formats.kit.sqlite import ForeignDatabase

        with ForeignDatabase(path, glance=True).reading():
            return None
    except SourceError as error:
        return error


def _is_database(path: Path) -> bool:
    """Return whether a file is a database, damaged or not, as far as SQLite knows."""
    if path.suffix not in DATABASES:
        return False
    from sessiondb.formats.kit.sqlite import is_database

    return is_database(path)


def _read_again(path: Path) -> Iterator[SourceItem]:
    """Yield what a file has that could not be read when it was found.

    Raises `SourceError` if it still cannot, so that a watcher tries again.
    """
    error = _failure_of(path)
    if error is not None:
        raise error
    # It was mended, or completed, since it was found.
    for store in Owners(frozenset(registry.readable())).of_file(path):
        yield from store.reader(path)
