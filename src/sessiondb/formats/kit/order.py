"""The order in which a reader yields its sessions: parents and originals first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import filterfalse
from typing import NamedTuple

from sessiondb.errors import abridged
from sessiondb.model import Problem, SourceSession


class Placed(NamedTuple):
    """A session in its place; ``cut`` says that its parent is its own descendant."""

    name: str
    cut: bool


def parents_first(
    names: Iterable[str], parent_of: Callable[[str], str | None]
) -> Iterator[Placed]:
    """Yield each of *names* once, after its parent if that is one of them.

    Siblings keep their order. A cycle begins with the session that is ``cut``.
    Chains may be of any length.
    """
    order = dict.fromkeys(names)
    done: set[str] = set()

    # Those that are done as the parents of others are left out.
    for name in filterfalse(done.__contains__, order):
        chain = [name]
        seen = {name}
        cut = None

        # Not recursive: a hostile store nests deeper than the stack of Python.
        while (above := parent_of(chain[-1])) in order and above not in done:
            assert above is not None
            if above in seen:
                cut = chain[-1]
                break
            seen.add(above)
            chain.append(above)

        for link in reversed(chain):
            done.add(link)
            yield Placed(link, link == cut)


def in_order(
    names: Iterable[str],
    parent_of: Callable[[str], str | None],
    read: Callable[[str, bool], Iterable[SourceSession | Problem]],
    where: Callable[[str], object],
) -> Iterator[SourceSession | Problem]:
    """Yield the sessions *names*, each once, after its parent if that is one of them.

    ``read(name, cut)`` yields a session, without its parent if it is *cut*: it is its
    own ancestor, and the problem of that names the file ``where(name)``.
    """
    for name, cut in parents_first(names, parent_of):
        if cut:
            why = f"session {abridged(name)} is its own ancestor"
            yield Problem(str(where(name)), why)
        yield from read(name, cut)
