"""The path through the tree of a session: the messages from its root to a leaf."""

from __future__ import annotations


def path_to(above: dict[int, int | None], leaf: int | None) -> list[int]:
    """Return the seqs from the root to *leaf*; a cycle in a damaged file ends it."""
    path: list[int] = []
    seen: set[int] = set()
    while leaf is not None and leaf in above and leaf not in seen:
        seen.add(leaf)
        path.append(leaf)
        leaf = above[leaf]

    return path[::-1]


def break_of(
    above: dict[int, int | None], path: list[int], leaf: int | None
) -> int | None:
    """Return the message that the *path* to *leaf* should go on with, but does not.

    It is not there, or is on the path already (a circle); None for a complete path.
    """
    return above[path[0]] if path else leaf
