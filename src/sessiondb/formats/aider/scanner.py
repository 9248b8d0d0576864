"""The blocks of a chat history: headers, prompts, answers, and aider's own output.

Blocks follow each other without a gap, so that together they are the file. A line is
judged by its shape, by the empty line before it and by the fence that is open: inside
of one everything is content. An answer that was interrupted leaves its fence open, so
a line that could begin something new is judged by what follows; see `_is_left_open`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sessiondb.formats.aider.conventions import (
    FENCE,
    HEADER,
    HEADER_START,
    USAGE,
    is_output,
    is_prompt,
)
from sessiondb.formats.kit.lines import Line, Lines

#: Bytes that are read ahead to judge an open fence, or an output of several lines.
_AHEAD = 1 << 20
_ENDS = b"\r\n"
#: How a line begins that may be more than text.
_MEANT = frozenset(b"#>`~ \t\r\n")
#: The first line of a file.
TOP = Line(1, 0)
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Block:
    """Some lines; ``kind`` is head, prompt, answer or output.

    ``line`` is its first one. ``marks`` are the numbers of its lines, from 0, that
    continue an output, and ``doubts`` says why it may be something else.
    """

    kind: str
    line: Line
    lines: list[bytes] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    @property
    def raw(self) -> bytes:
        """Its bytes."""
        return b"".join(self.lines)

    @property
    def end(self) -> int:
        """The offset after it."""
        return self.line.offset + sum(map(len, self.lines))

    @property
    def started(self) -> str | None:
        """The time of its header; None if it has none."""
        found = filter(None, (HEADER.fullmatch(_bare(line)) for line in self.lines))
        match = next(found, None)
        return None if match is None or self.kind != "head" else match[1].decode()


def _bare(line: bytes) -> bytes:
    return line.removeprefix(_BOM).rstrip(_ENDS)


class Scanner:
    """The blocks from *start* on; until *end*, or to the end of the file.

    Memory holds one of them. ``torn`` is a header that the file ends inside of.
    """

    def __init__(self, lines: Lines, start: Line = TOP, end: int | None = None) -> None:
        self._lines = lines
        self._start, self._end = start, end
        self.torn = b""
        self._block = Block("head", start)
        #: The empty line before the next one, which may belong to either block.
        self._empty: tuple[Line, bytes] | None = None
        self._fence: bytes | None = None
        self._is_content = self._is_torn = False

    def __iter__(self) -> Iterator[Block]:
        for line, raw in self._read(self._start):
            if raw[0] not in _MEANT and self._block.kind == "answer":
                # Most lines of most files: text of an answer, whatever is open.
                self._keep_empty()
                self._block.lines.append(raw)
                continue

            if not raw.rstrip(_ENDS):
                self._keep_empty()
                self._empty = line, raw
                continue

            self._is_torn = not raw.endswith(b"\n")
            if self._is_torn and _is_torn_header(raw):
                self.torn = raw
                break

            kind = self._kind(line, _bare(raw))
            if kind is not None:
                yield from self._begin(kind, line)
            else:
                self._keep_empty()
            self._block.lines.append(raw)

        self._keep_empty()
        if self._block.lines:
            yield self._block

    def _read(self, line: Line) -> Iterator[tuple[Line, bytes]]:
        while self._end is None or line.offset < self._end:
            raw = self._lines.at(line)
            if not raw:
                return
            yield line, raw
            line = Line(line.number + 1, line.offset + len(raw))

    def _keep_empty(self) -> None:
        if self._empty is not None:
            self._block.lines.append(self._empty[1])
            self._empty = None

    def _begin(self, kind: str, line: Line) -> Iterator[Block]:
        """Begin a block; an empty line before it is its own, but for output."""
        if kind == "output" or self._empty is None:
            self._keep_empty()
            first = Block(kind, line)
        else:
            first = Block(kind, self._empty[0], [self._empty[1]])
            self._empty = None

        if self._block.lines:
            yield self._block
        self._block = first
        if kind != "answer":
            self._fence = None

    # -- one line ------------------------------------------------------------------

    def _kind(self, line: Line, bare: bytes) -> str | None:
        """Return the kind of the block that a line begins; None if it begins none."""
        is_apart = self._empty is not None or not line.offset
        if self._fence is not None and not self._leaves_fence(line, bare, is_apart):
            return None

        if is_apart and HEADER.fullmatch(bare):
            return "head"
        if bare.startswith(b"####") and is_prompt(bare):
            if is_apart:
                return "prompt"
            if self._block.kind == "prompt":
                return None
        if bare.startswith(b"> "):
            return self._output(line, bare, is_apart)
        return self._text(line, bare, is_apart)

    def _output(self, line: Line, bare: bytes, is_apart: bool) -> str | None:
        """Return whether a line with a mark begins output, or an answer quotes it."""
        kind = self._block.kind
        if kind == "output":
            return None
        is_own = bare.endswith(b"  ") or bare.startswith(USAGE)
        if kind != "answer" or (is_apart and is_own):
            return "output"
        return self._text(line, bare, is_apart)

    def _text(self, line: Line, bare: bytes, is_apart: bool) -> str | None:
        """Return whether text begins an answer, or continues what comes before it."""
        block = self._block
        if block.kind == "output" and self._continues(line, is_apart):
            # After an empty line that is about to be added, if there is one.
            block.marks.append(len(block.lines) + (self._empty is not None))
            return None

        # The rest of it may say that it is one more line of the prompt.
        if block.kind == "prompt" and self._is_torn and not is_apart:
            return None

        match = FENCE.fullmatch(bare)
        begins = None if block.kind == "answer" else "answer"
        self._fence = match[1] if match else None
        self._is_content = False
        return begins

    # -- fences --------------------------------------------------------------------

    def _leaves_fence(self, line: Line, bare: bytes, is_apart: bool) -> bool:
        """Return whether a line inside a fence is not content."""
        assert self._fence is not None
        if _closes(self._fence, bare):
            self._fence = None
            return False
        if self._is_content or not is_apart or not _may_begin(bare):
            return False

        if self._is_left_open(line):
            self._block.doubts.append("its fence was never closed")
            self._fence = None
            return True
        self._is_content = True
        return False

    def _is_left_open(self, line: Line) -> bool:
        """Return whether the fence at *line* is one that an interruption left open.

        The fences that follow fit together if it was, or if it was not: closed at the
        end, and none begun inside another one. Content is what both are as good for.
        """
        assert self._fence is not None
        inside, outside = _Fences(self._fence), _Fences(None)
        for bare in self._ahead(line):
            is_end = inside.count and HEADER.fullmatch(bare)
            if is_end:
                break
            inside.add(bare)
            outside.add(bare)
        return outside.oddness < inside.oddness

    def _ahead(self, line: Line) -> Iterator[bytes]:
        for at, raw in self._read(line):
            if at.offset - line.offset > _AHEAD:
                return
            yield raw.rstrip(_ENDS)

    # -- output of several lines -----------------------------------------------------

    def _continues(self, line: Line, is_apart: bool) -> bool:
        """Return whether a line without a mark continues aider's own output.

        It does if there is no empty line before it, or if the last line of the output
        does not end as one, and a later one does.
        """
        if not is_apart:
            return True
        last = next(x for x in reversed(self._block.lines) if x.rstrip(_ENDS))
        if _bare(last).endswith(b"  "):
            return False
        for bare in self._ahead(line):
            if _may_begin(bare) or bare.startswith(b"> "):
                return False
            if bare.endswith(b"  "):
                return True
        return False


class _Fences:
    """The fences of some lines, the first of which may be inside of one."""

    def __init__(self, fence: bytes | None) -> None:
        self._open = fence
        self._inner = 0
        self.count = 0

    def add(self, bare: bytes) -> None:
        match = FENCE.fullmatch(bare)
        if match is None:
            return
        self.count += 1
        if self._open is None:
            self._open = match[1]
        elif _closes(self._open, bare):
            self._open = None
        elif match[2].strip():
            self._inner += 1

    @property
    def oddness(self) -> tuple[bool, int]:
        return self._open is not None, self._inner


def _closes(fence: bytes, bare: bytes) -> bool:
    match = FENCE.fullmatch(bare)
    return match is not None and match[1].startswith(fence) and not match[2].strip()


def _may_begin(bare: bytes) -> bool:
    """Return whether a line after an empty one is never a line of an answer."""
    is_usage = bare.startswith(USAGE) and is_output(bare)
    return is_usage or is_prompt(bare) or HEADER.fullmatch(bare) is not None


def _is_torn_header(raw: bytes) -> bool:
    """Return whether the last line of a file is the beginning of a header."""
    start = HEADER_START
    is_shorter = len(raw) > 1 and start.startswith(raw)
    return is_shorter or (raw.startswith(start) and not HEADER.fullmatch(raw))
