"""The path through the tree of a session: the messages from its root to a leaf."""

from __future__ import annotations


def path_to(parents: dict[int, int | None], leaf: int | None) -> list[int]:
    """Return the seqs from the root to *leaf*; a cycle in a damaged file ends it."""
    path: list[int] = []
    seen: set[int] = set()
    while leaf is not None and leaf in parents and leaf not in seen:
        seen.add(leaf)
        path.append(leaf)
        leaf = parents[leaf]

    return path[::-1]


def break_of(
    parents: dict[int, int | None], path: list[int], leaf: int | None
) -> int | None:
    """Return the message that the *path* to *leaf* should go on with, but does not.

    It is not there, or is on the path already (a circle); None for a complete path.
    """
    return parents[path[0]] if path else leaf
