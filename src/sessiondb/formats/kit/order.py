"""The order in which a reader yields its sessions: parents and originals first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Placed(NamedTuple):
    """A session in its place; ``cut`` says that its parent is its own descendant."""

    name: str
    cut: bool


def parents_first(
    names: Iterable[str], parent_of: Callable[[str], str | None]
) -> Iterator[Placed]:
    """Yield each of *names* once, after its parent if that is one of them.

    Siblings keep their order. A cycle begins with the session that is ``cut``: the
    reader reports it, and yields it without its parent. Chains may be of any length.
    """
    order = dict.fromkeys(names)
    done: set[str] = set()

    for name in order:
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
            if link not in done:
                done.add(link)
                yield Placed(link, link == cut)
