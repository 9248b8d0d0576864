"""The order in which a reader yields its sessions: parents and originals first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from sessiondb.errors import abridged
from sessiondb.model import Problem, SourceSession


class PlacedSession(NamedTuple):
    """A session in its place."""

    name: str
    #: Whether its parent is its own descendant.
    cut: bool


def parents_first(
    names: Iterable[str], parent_of: Callable[[str], str | None]
) -> Iterator[PlacedSession]:
    """Yield each of *names* once, after its parent if that is one of them.

    Siblings keep their order. A cycle begins with the session that is ``cut``.
    Chains may be of any length.
    """
    order = dict.fromkeys(names)
    done: set[str] = set()

    for name in order:
        # It was yielded as the parent of another one.
        if name in done:
            continue

        chain = [name]
        seen = {name}
        cut = None
        # Not recursive: a hostile store nests deeper than the stack of Python.
        parent = parent_of(name)
        while parent is not None and parent in order and parent not in done:
            if parent in seen:
                cut = chain[-1]
                break
            seen.add(parent)
            chain.append(parent)
            parent = parent_of(parent)

        for link in reversed(chain):
            done.add(link)
            yield PlacedSession(link, link == cut)


def in_order(
    names: Iterable[str],
    parent_of: Callable[[str], str | None],
    read: Callable[[str, bool], Iterable[SourceSession | Problem]],
    path_of: Callable[[str], object],
) -> Iterator[SourceSession | Problem]:
    """Yield the sessions *names*, each once, after its parent if that is one of them.

    ``read(name, cut)`` yields a session, without its parent if it is *cut*: it is its
    own ancestor, and the problem of that names the file ``path_of(name)``.
    """
    for name, cut in parents_first(names, parent_of):
        if cut:
            reason = f"session {abridged(name)} is its own ancestor"
            yield Problem(str(path_of(name)), reason)
        yield from read(name, cut)
