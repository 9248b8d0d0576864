"""The runs of a chat history, found without taking each line into a block.

A line with the shape of a header is one unless a fence is open before it. Few lines of
a run decide that, and most runs have them in a usual order; for any other the `Scanner`
reads its blocks. So a file that did not change is only searched, and a run has the same
bounds either way.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

from sessiondb.formats.aider import drafts
from sessiondb.formats.aider.conventions import (
    BOM,
    ENDS,
    HEADER,
    HEADER_START,
    TAG_FENCE,
    USAGE,
    may_announce,
    model_of,
    time_of,
    version_of,
)
from sessiondb.formats.aider.scanner import (
    TOP,
    Block,
    Scanner,
)
from sessiondb.formats.kit.lines import Line, Lines
from sessiondb.model import versions
from sessiondb.model.namespaces import Namespace

#: Bytes at the end of a file that are read first for its last line.
_TAIL = 1 << 10
#: How a line ends, and the end of a line before one that follows an empty one.
_END, _APART = rb"\r*(?:\n|\Z)", rb"(?:(?<=\n\n)|(?<=\n\r\n))"
#: The lines between two headers that decide whether the second one is content, each by
#: a letter: a header, a prompt, a report that follows an empty line, other output, the
#: end or the beginning of a fence, the beginning of one, and lines that are not usual.
_TELLING = re.compile(
    rb"\n(?=(?P<H>(?:%b)?%b.*)|(?P<P>%b#### .*  %b)|(?P<U>%b%b.*  %b)|(?P<o>> )"
    rb"|(?P<f>[ \t]*```[ \t]*%b)|(?P<g>[ \t]*```[^`\n]*\n)"
    rb"|(?P<x>[ \t]*(?:````|~~~)|%b|%b|\r\r))"
    % (BOM, HEADER_START, _APART, _END, _APART, USAGE, _END, _END, TAG_FENCE, BOM)
)
#: The letters of a run in which each fence is closed for certain: in the text after a
#: header or a prompt. Output may have fences of its own, and a prompt or report in an
#: open fence may show that an interruption left it open. Letters fit in one way alone,
#: so a mismatch is found without trying others. A possessive repetition of a group
#: would say so, but matches wrongly in Python before 3.11.5.
_CLOSED = re.compile("(?:[fg][go]*f)*(?:[oU]|P(?:[fg][go]*f)*)*").fullmatch
#: Empty lines, and how many bytes before a line show one of them.
_EMPTY, _CONTEXT = (b"\n", b"\r\n"), 3


@dataclass(slots=True)
class Facts:
    """The facts in the blocks of a run.

    ``head`` is the text before its first message, ``opening`` the first line of that,
    ``first`` a digest of its first prompt. ``end`` is where the last block ends.
    """

    end: int = 0
    head: bytes = b""
    opening: str | None = None
    first: str = ""
    version: str | None = None
    model: str | None = None

    def add(self, block: Block) -> None:
        """Take over the facts in the next block."""
        raw = block.raw
        self.end = block.line.offset + len(raw)
        if block.kind == "head":
            self.head += raw
            return

        if self.opening is None:
            self.opening = drafts.text_of(block).strip().partition("\n")[0]
        if block.kind == "prompt" and not self.first:
            self.first = versions.digest(drafts.text_of(block))
        # Most output announces nothing, and is not taken apart.
        if block.kind == "output" and may_announce(raw):
            for text, _ in block.outputs:
                self.version = self.version or version_of(text)
                self.model = model_of(text) or self.model

    def noted(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield the *blocks* and take over the facts in each."""
        for block in blocks:
            self.add(block)
            yield block


@dataclass
class AiderRun:
    """A run: its place in the file, and the facts before the end of its first prompt.

    ``started`` is the time of its header, None without one. ``torn`` is the beginning
    of a header that the file ends with.
    """

    folder: Path
    line: Line
    end: int
    started: str | None = None
    ordinal: int = 0
    digest: str = ""
    facts: Facts = field(default_factory=Facts)
    torn: bytes = b""

    @cached_property
    def name(self) -> str:
        """The id of its session."""
        # The last component alone: a project that is moved keeps its ids.
        begin = self.started or f"before the first: {self.facts.opening}"
        facts = f"{self.folder.name}\n{begin}\n{self.ordinal}"
        key = facts.encode("utf-8", "surrogatepass")
        return hashlib.sha256(key).hexdigest()[:20]

    @property
    def namespace(self) -> str:
        """The mark that differs for a run that began in another folder of that name."""
        return str(Namespace(self.started or "", self.facts.first))

    @property
    def time(self) -> int | None:
        """When it began, in Unix ms."""
        return None if self.started is None else time_of(self.started)


def runs_of(headers: Headers, folder: Path) -> list[AiderRun]:
    """Return the runs of a file; text before the first header is one, too."""
    lines = headers.lines
    runs: list[AiderRun] = []
    seen: Counter[str | None] = Counter()
    line, started = TOP, None
    for end, next_header in (*headers, Header(headers.end, None)):
        facts = _first_facts(Scanner(lines, line, end))
        # Empty lines at the beginning of a file belong to the first header.
        if started is not None or facts.opening is not None:
            digest, count = _summed(lines.line_batches(line.offset, end))
            run = AiderRun(folder, line, end, started, seen[started], digest, facts)
            runs.append(run)
            seen[started] += 1
            line = Line(line.number + count, end)
        started = next_header

    if runs:
        runs[-1].torn = headers.torn
    return runs


def _first_facts(blocks: Iterable[Block]) -> Facts:
    """Return the facts before the end of the first prompt."""
    facts = Facts()
    deque(takewhile(lambda _: not facts.first, facts.noted(blocks)), maxlen=0)
    return facts


def _summed(pieces: Iterable[bytes]) -> tuple[str, int]:
    """Return a digest of a text, and the number of its lines."""
    digest, count = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        count += piece.count(b"\n")
    return digest.hexdigest()[:32], count


# -- headers -------------------------------------------------------------------


class Header(NamedTuple):
    """A header: the offset at which its run begins, and its time."""

    offset: int
    started: str | None


class Headers:
    """The headers of a file, in its order.

    Its last run ends at ``end``; ``torn`` is the header that the file ends inside of.
    """

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        last = _last_line(lines)
        self.torn = last if _is_torn_header(last) else b""
        self.end = lines.stat.st_size - len(self.torn)

    def __iter__(self) -> Iterator[Header]:
        first = self._after(0, 0)
        while first is not None:
            yield first
            first = self._after(first.offset, 1)

    def _after(self, begin: int, passed: int) -> Header | None:
        """Return the first header from *begin* on, but for those *passed* already."""
        batches = self.lines.line_batches(begin + passed * len(HEADER_START), self.end)
        if not any(HEADER_START in batch for batch in batches):
            return None

        letters = ""
        for match, offset in islice(self._telling(begin), passed, None):
            letter = str(match.lastgroup)
            if letter != "H":
                letters += letter
                continue

            header = HEADER.fullmatch(match["H"].rstrip(ENDS))
            empty = _empty_before(match)
            if header and empty and _CLOSED(letters):
                return Header(max(offset - empty, 0), header[1].decode())
            return self._by_blocks(begin, passed)

        return None

    def _telling(self, begin: int) -> Iterator[tuple[re.Match[bytes], int]]:
        """Yield the telling lines from *begin* on, and their offsets."""
        # The beginning of a file is like an empty line.
        context = b"\n\n"
        for batch in self.lines.line_batches(begin, self.end):
            text = context + batch
            begin -= len(context)
            for match in _TELLING.finditer(text, len(context) - 1):
                yield match, begin + match.end()

            begin += len(text)
            context = text[-_CONTEXT:]

    def _by_blocks(self, begin: int, passed: int) -> Header | None:
        """Return the same header, as the blocks from *begin* on have it."""
        blocks = Scanner(self.lines, Line(1, begin), self.end)
        headers = (
            Header(block.line.offset, block.started)
            for block in blocks
            if block.started
        )
        return next(islice(headers, passed, None), None)


def _last_line(lines: Lines) -> bytes:
    """Return the end of a file that has no line feed; empty if there is none."""
    size, most = lines.stat.st_size, _TAIL
    while True:
        begin = max(0, size - most)
        _, feed, last = b"".join(lines.line_batches(begin, size)).rpartition(b"\n")
        if feed or not begin:
            return last
        most *= 4


def _empty_before(match: re.Match[bytes]) -> int:
    """Return the length of the empty line before a telling line; 0 if there is none."""
    empty = (
        end for end in _EMPTY if match.string.endswith(b"\n" + end, 0, match.end())
    )
    return len(next(empty, b""))


def _is_torn_header(raw: bytes) -> bool:
    """Return whether the last line of a file is the beginning of a header."""
    # A single # may begin anything.
    is_begun = len(raw) > 1 and HEADER_START.startswith(raw[: len(HEADER_START)])
    return is_begun and not HEADER.fullmatch(raw)
