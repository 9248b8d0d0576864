"""How the fences of a text fit together, for a fence that may have been left open.

Fences fit if all are closed at the end and none begins inside of another one. The lines
that follow are read once for many fences: each state between two of them, outside of
any fence or inside of the one just begun, is linked to the next state outside. The
state at the end is found along these links, which are shortened on the way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from heapq import heappop, heappush

from sessiondb.formats.aider.conventions import BOM, ENDS, FENCE, HEADER, HEADER_START
from sessiondb.formats.kit.lines import Lines
from sessiondb.patterns import late_pattern

#: Bytes that are read ahead to judge a line.
AHEAD = 1 << 20
#: Lines that may be a fence or a header; a line with a mark of byte order only begins
#: a fence.
_TELLING = late_pattern(
    rb"\n((?:%b)?[ \t]*(?:```|~~~)[^\n]*|%b[^\n]*)" % (BOM, HEADER_START)
).finditer


class Fences:
    """The fences from the offset *begin* on, inside of the one *opened* before it."""

    def __init__(
        self, lines: Lines, fence: bytes, opened: int, begin: int, end: int
    ) -> None:
        self._until = min(end, begin + 2 * AHEAD)
        self._end = end
        self._telling = self._read(lines, begin)
        self._next = next(self._telling, None)

        #: The next state of each state, itself for the last, and how many fences with
        #: a language begin between the two.
        self._links, self._begun = [0, 1], [0, 0]
        #: The state inside of each fence, by the offset of its line.
        self._inside = {opened: 0}
        #: The offsets of the fences, and the state outside before each and at the end.
        self._offsets: list[int] = []
        self._outside = [1]
        #: The states inside of fences that no line has closed, the shortest first.
        self._open: dict[bytes, list[tuple[int, int]]] = {b"`": [], b"~": []}
        self._wait(fence, 0)

    def reach(self, offset: int) -> bool:
        """Return whether all lines that count for one at *offset* can be read here."""
        return min(self._end, offset + AHEAD) <= self._until

    def is_left_open(self, opened: int, offset: int) -> bool:
        """Return whether the fence *opened* there was left open before *offset*.

        It was if the fences that follow fit together better outside of it than inside.
        """
        self._advance(offset)
        outside = self._outside[bisect_left(self._offsets, offset)]
        return self._oddness(outside) < self._oddness(self._inside[opened])

    def _oddness(self, state: int) -> tuple[bool, int]:
        """Return whether a fence is open at the end, and how many do not begin one.

        The latter are fences with a language, less all those that follow.
        """
        begun, way = 0, [state]
        while self._links[way[-1]] != way[-1]:
            way.append(self._links[way[-1]])

        last = way.pop()
        for passed in reversed(way):
            begun += self._begun[passed]
            self._links[passed], self._begun[passed] = last, begun
        return last != self._outside[-1], -begun

    # -- reading -------------------------------------------------------------------

    def _read(self, lines: Lines, offset: int) -> Iterator[tuple[int, bytes]]:
        """Yield the lines from *offset* on that tell, and their offsets."""
        for batch in lines.line_batches(offset, self._end):
            for match in _TELLING(b"\n" + batch):
                yield offset + match.start(), match[1].rstrip(ENDS)

            offset += len(batch)
            if offset >= self._until:
                return

    def _advance(self, offset: int) -> None:
        """Add the lines that count for one at *offset*; those before it are among them.

        A later run has fences of its own, but its header may be content, too.
        """
        most = min(self._end, offset + AHEAD)
        while self._next is not None and self._next[0] < most:
            place, bare = self._next
            is_reached = bool(self._offsets) and self._offsets[-1] >= offset
            if is_reached and HEADER.fullmatch(bare):
                return

            self._add(place, bare)
            self._next = next(self._telling, None)

    def _add(self, offset: int, bare: bytes) -> None:
        match = FENCE.fullmatch(bare.removeprefix(BOM))
        if match is None:
            return

        inside = self._inside[offset] = self._state()
        if bare.startswith(BOM):
            self._wait(match[1], inside)
            return

        outside = self._outside[-1]
        is_named = bool(match[2].strip())
        self._links[outside], self._begun[outside] = inside, is_named
        self._offsets.append(offset)
        self._outside.append(self._state())

        # A fence inside of one is content, unless it names a language.
        if not is_named:
            self._close(match[1])
        self._wait(match[1], inside)

    def _state(self) -> int:
        """Return a new state, which is the last one of its way."""
        state = len(self._links)
        self._links.append(state)
        self._begun.append(0)
        return state

    def _wait(self, fence: bytes, inside: int) -> None:
        heappush(self._open[fence[:1]], (len(fence), inside))

    def _close(self, fence: bytes) -> None:
        """Close the fences of its kind that are not longer than *fence*."""
        waiting = self._open[fence[:1]]
        while waiting and waiting[0][0] <= len(fence):
            _, inside = heappop(waiting)
            self._links[inside] = self._outside[-1]
