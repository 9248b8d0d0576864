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
