"""The blocks of a chat history: headers, prompts, answers, and aider's own output.

Blocks follow each other without a gap, so that together they are the file. A line is
judged by its shape, by the empty line before it and by the fence that is open: inside
of one everything is content. An answer that was interrupted leaves its fence open, so
a line that could begin something new is judged by what follows; see `fences`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from sessiondb.formats.aider.conventions import (
    BOM,
    BREAK,
    ENDS,
    FENCE,
    HEADER,
    TAG_FENCE,
    TAG_LINE,
    USAGE,
)
from sessiondb.formats.aider.fences import AHEAD, Fences
from sessiondb.formats.kit.lines import Line, Lines

#: How a line begins that may be more than text of an answer, and the end of a line
#: before such a line, or before the empty line that makes it one.
_IS_MEANT = re.compile(rb"[#>\r\n]|[ \t]*[`~]|%b" % TAG_LINE).match
_NEXT_MEANT = re.compile(
    # Few lines begin with one of these: the others are passed over at once.
    rb"\n(?![^\r\n#>`~< \t])(?=(?:\r*\n)?(?:[#>]|[ \t]*[`~]|%b|\Z))" % TAG_LINE
).search
_IS_TAG = re.compile(TAG_FENCE).fullmatch
#: Lines that are empty, as most of those are.
_EMPTY = frozenset({b"\n", b"\r\n"})
#: The first line of a file.
TOP = Line(1, 0)

# Mark and end may share a space: an empty output is `>` and two spaces.
_HEAD = HEADER.pattern.replace(b"(", b"(?:")
_PROMPT, _USAGE = rb"(?=#### ).*  ", re.escape(USAGE)


def _shapes(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.DOTALL | re.ASCII)


#: The shapes of lines that are more than text. An answer may quote a line with a mark,
#: except for reports, and for those that end as aider's own do.
_SHAPES = _shapes(
    rb"(?P<head>%b)|(?P<prompt>%b)|(?P<own>%b.*|(?=> ).*  )|(?P<marked>> .*)"
    % (_HEAD, _PROMPT, _USAGE)
)
#: Lines that are never part of an answer if they follow an empty one.
_BEGINNING = _shapes(rb"%b|%b|(?=%b).*  " % (_HEAD, _PROMPT, _USAGE))
#: Lines of something else than an output, and all lines that decide where it ends.
_OTHER = _shapes(rb"%b|%b|> .*" % (_HEAD, _PROMPT))
_DECIDING = _shapes(rb"%b|> .*|.*  " % _HEAD)

_KINDS = ("head", "prompt", "answer", "output")
_EITHER = (False, True)
#: The kind of the block that a line begins, None if it continues the one before it: by
#: its shape, by whether it follows an empty line, and by the kind of that block. Any
#: other line is text.
_BEGINS: Mapping[tuple[str | None, bool, str], str | None] = {
    **dict.fromkeys(product(["head"], [True], _KINDS), "head"),
    **dict.fromkeys(product(["prompt"], [True], _KINDS), "prompt"),
    ("prompt", False, "prompt"): None,
    # The rest of a torn line may show that it is one more line of the prompt.
    ("torn", False, "prompt"): None,
    **dict.fromkeys(product(["own", "marked"], _EITHER, ["head"]), "output"),
    **dict.fromkeys(product(["own"], _EITHER, ["prompt"]), "output"),
    # No empty line is before the output that follows a prompt; an answer has one, and
    # may begin with a quote.
    ("marked", False, "prompt"): "output",
    **dict.fromkeys(product(["own", "marked"], _EITHER, ["output"]), None),
    ("own", True, "answer"): "output",
}


@dataclass
class Block:
    """Some lines; ``kind`` is head, prompt, answer or output.

    ``line`` is its first one; most lines of an answer are not apart. ``marks`` are the
    numbers of its lines, from 0, that continue an output, and ``doubts`` says why it
    may be something else.
    """

    kind: str
    line: Line
    lines: list[bytes] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    #: How many lines were searched for the last one with text, and that one.
    _searched: tuple[int, bytes] = field(default=(0, b""), repr=False, compare=False)

    @property
    def raw(self) -> bytes:
        """Its bytes."""
        return b"".join(self.lines)

    @property
    def started(self) -> str | None:
        """The time of its header; None if it has none."""
        if self.kind != "head":
            return None

        for line in self.lines:
            match = HEADER.fullmatch(_bare(line))
            if match:
                return match[1].decode()
        return None

    def last(self) -> bytes:
        """Return the last line that is not empty, without its end."""
        count, last = self._searched
        for line in reversed(self.lines[count:]):
            if bare := _bare(line):
                last = bare
                break
        self._searched = len(self.lines), last
        return last

    @cached_property
    def outputs(self) -> list[tuple[str, bool]]:
        """Each output of aider's in it, and whether that has lines without a mark."""
        marks, continued = frozenset(self.marks), set[int]()
        outputs: list[list[str]] = []
        for number, raw in enumerate(self.lines):
            line = raw.decode("utf-8", "replace").rstrip("\r\n").removesuffix(BREAK)
            # The first line has a mark: a block of output begins with one.
            if number in marks:
                continued.add(len(outputs))
            elif line.startswith(">"):
                line = line.removeprefix(">").removeprefix(" ")
                outputs.append([])
            outputs[-1].append(line)

        texts = ("\n".join(lines).rstrip("\n") for lines in outputs)
        return [(text, count in continued) for count, text in enumerate(texts, 1)]


def _bare(line: bytes) -> bytes:
    return line.removeprefix(BOM).rstrip(ENDS)


class Scanner:
    """The blocks between *start* and the offset *end*; memory holds one of them."""

    def __init__(self, lines: Lines, start: Line, end: int) -> None:
        self._lines = lines
        self._start, self._end = start, end
        self._block = Block("head", start)

        #: The empty line before the next one, which may belong to either block.
        self._empty: tuple[bytes, ...] = ()
        self._empty_at = start
        self._fence: bytes | None = None
        #: The offset of its line, None if everything inside of it is content.
        self._opened: int | None = None
        self._fences: Fences | None = None
        #: The last line that decided where an output ends, and that it continues.
        self._decided = -1, False
        #: The shape of a line that has no other one.
        self._rest = "text"

    def __iter__(self) -> Iterator[Block]:
        number, offset = self._start
        for batch in self._lines.line_batches(offset, self._end):
            place = 0
            while place < len(batch):
                text = (
                    self._text_at(batch, place) if self._block.kind == "answer" else b""
                )
                if text:
                    # Most lines of most files: text of an answer, whatever is open.
                    self._keep_empty()
                    self._block.lines.append(text)
                    number += text.count(b"\n")
                else:
                    text = batch[place : batch.find(b"\n", place) + 1 or len(batch)]
                    over = self._take(Line(number, offset), text)
                    if over is not None:
                        yield over
                    number += 1

                place += len(text)
                offset += len(text)

        self._keep_empty()
        if self._block.lines:
            yield self._block

    def _text_at(self, batch: bytes, place: int) -> bytes:
        """Return the lines from *place* on that can only be text of the open answer."""
        if _IS_MEANT(batch, place):
            return b""

        match = _NEXT_MEANT(batch, place)
        return batch[place : match.end() if match else len(batch)]

    def _take(self, line: Line, raw: bytes) -> Block | None:
        """Add a line to a block; return the one before if it begins another one."""
        if raw in _EMPTY or not _bare(raw):
            self._keep_empty()
            self._empty, self._empty_at = (raw,), line
            return None

        self._rest = "text" if raw.endswith(b"\n") else "torn"
        kind = self._kind(line, _bare(raw))
        over = None if kind is None else self._begin(kind, line)
        self._keep_empty()
        self._block.lines.append(raw)
        return over

    def _ahead(self, line: Line) -> Iterator[tuple[int, bytes]]:
        """Yield *line* and those after it: their offsets, and them without ends."""
        offset, most = line.offset, min(self._end, line.offset + AHEAD)
        for raw in self._lines.lines_from(offset):
            if offset >= most:
                return

            yield offset, raw.rstrip(ENDS)
            offset += len(raw)

    def _keep_empty(self) -> None:
        """Add the empty line, if there is one, to the block that is open."""
        self._block.lines += self._empty
        self._empty = ()

    def _begin(self, kind: str, line: Line) -> Block | None:
        """Begin a block and return the one before, if it has any lines.

        An empty line before it is its own, but for output.
        """
        if kind == "output":
            self._keep_empty()

        over = self._block
        self._block = Block(kind, self._empty_at if self._empty else line)
        if kind != "answer":
            self._fence = None
        return over if over.lines else None

    # -- one line ------------------------------------------------------------------

    def _kind(self, line: Line, bare: bytes) -> str | None:
        """Return the kind of the block that a line begins; None if it begins none."""
        is_apart = bool(self._empty) or not line.offset
        if self._fence is not None and not self._leaves_fence(line, bare, is_apart):
            return None

        match = _SHAPES.fullmatch(bare)
        shape = match.lastgroup if match else self._rest
        place = shape, is_apart, self._block.kind
        if place in _BEGINS:
            return _BEGINS[place]
        return self._text(line, bare, is_apart)

    def _text(self, line: Line, bare: bytes, is_apart: bool) -> str | None:
        """Return whether text begins an answer, or continues the block before it."""
        block = self._block
        if block.kind == "output" and self._continues(line, is_apart):
            # After an empty line that is about to be added, if there is one.
            block.marks.append(len(block.lines) + len(self._empty))
            return None

        self._fence = _begun(bare)
        self._opened = line.offset
        return None if block.kind == "answer" else "answer"

    # -- fences --------------------------------------------------------------------

    def _leaves_fence(self, line: Line, bare: bytes, is_apart: bool) -> bool:
        """Return whether a line inside a fence is not content."""
        assert self._fence is not None
        if _closes(self._fence, bare):
            self._fence = None
            return False

        # Each fence is judged once: content stays content.
        if self._opened is None or not (is_apart and _BEGINNING.fullmatch(bare)):
            return False

        if not self._is_left_open(self._opened, line.offset):
            self._opened = None
            return False

        self._block.doubts.append("its fence was never closed")
        self._fence = None
        return True

    def _is_left_open(self, opened: int, offset: int) -> bool:
        """Return whether an interruption left the fence *opened* there open.

        If the fences that follow fit together equally well, the line is content.
        """
        assert self._fence is not None
        if self._fence.startswith(b"<"):
            return self._is_tag_left_open(self._fence, offset)
        if self._fences is None or not self._fences.reach(offset):
            self._fences = Fences(self._lines, self._fence, opened, offset, self._end)
        return self._fences.is_left_open(opened, offset)

    def _is_tag_left_open(self, tag: bytes, offset: int) -> bool:
        """Return whether a *tag* begins again before it is closed, or never is."""
        name, most = tag.removeprefix(b"<"), min(self._end, offset + AHEAD)
        lines = rb"\n(?:<%b|(</%b\s*?(?:\n|\Z)))" % (name, name)
        for batch in self._lines.line_batches(offset, most):
            match = re.search(lines, b"\n" + batch)
            if match:
                return match[1] is None
        return True

    # -- output of several lines -----------------------------------------------------

    def _continues(self, line: Line, is_apart: bool) -> bool:
        """Return whether a line without a mark continues aider's own output.

        It does if there is no empty line before it, or if the last line of the output
        does not end as one, and a later one does.
        """
        if not is_apart:
            return True

        if self._block.last().endswith(b"  "):
            return False

        # The first line that decides it does so for all lines before it.
        if line.offset > self._decided[0]:
            # Without such a line the output is complete.
            self._decided = line.offset, False
            for offset, bare in self._ahead(line):
                if _DECIDING.fullmatch(bare):
                    self._decided = offset, _OTHER.fullmatch(bare) is None
                    break
        return self._decided[1]


def _begun(bare: bytes) -> bytes | None:
    """Return the fence or the tag that a line begins, None if it begins none."""
    fence = FENCE.fullmatch(bare)
    if fence is not None:
        return fence[1]
    return bare.rstrip() if _IS_TAG(bare.rstrip()) else None


def _closes(fence: bytes, bare: bytes) -> bool:
    """Return whether a line is nothing but a fence of that kind, as long or longer."""
    if fence.startswith(b"<"):
        return bare.rstrip() == fence.replace(b"<", b"</")
    mark = bare.lstrip(b" \t").rstrip()
    return mark.startswith(fence) and not mark.strip(fence[:1])
