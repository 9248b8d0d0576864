"""The output of a command as its terminal showed it: text, and where it was coloured.

The only place that reads escape sequences (ECMA-48). None is passed on: colours have
names here, and each look writes them in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from sessiondb.patterns import late_pattern

#: The styled places of each line that has any: where they begin and end, and words
#: that name the style, such as ``red strong``.
OutputStyles = dict[int, list[tuple[int, int, str]]]

#: Characters that a terminal acts on. A carriage return at the end of a line is none.
_ACTIVE = ("\x07", "\x08", "\x1b")
_ACTIVE_RETURN = late_pattern("\r(?!\n)")
_LINE_END = late_pattern("\r+\n")
#: Back to the first column, as the next state of a progress bar begins.
_RETURN = late_pattern("\r|\x1b\\[[01]?G")
_SGR = "\x1b\\[(?P<sgr>[0-9;:]{0,64})m"
_STYLING = late_pattern(_SGR)
#: Any sequence: those with parameters, those that hold a text, those of two letters.
_SEQUENCE = late_pattern(
    f"{_SGR}|\x1b\\[[0-?]*[ -/]*[@-~]"
    "|\x1b[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|\x1b[ -/]*[0-~]|\x07"
)
#: A text of a colour that may be that of the paper could not be read: black and white
#: are left out, as are backgrounds and exact colours.
_COLORS = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")
_GREY = 8
_MARKS = {1: "strong", 2: "dim", 3: "emphasis", 4: "underline"}
_ENDS_OF_MARKS = {22: ("strong", "dim"), 23: ("emphasis",), 24: ("underline",)}
_FOREGROUND, _BACKGROUND, _NO_COLOR = 38, 48, 39
#: Parameters of an exact colour: of a table of 256, or of three channels.
_TABLE, _CHANNELS = 5, 2
#: A line with more styled places is a picture, and would take long to lay out.
_MOST = 500


def shown_output(text: str, *, complete: bool = False) -> tuple[str, OutputStyles]:
    """Return *text* as a terminal would have shown it, and its styles.

    Of a progress bar the last state is kept; sequences that move the cursor, clear or
    name a window are dropped. If *complete* nothing is dropped but colours: each state
    has a line of its own, and other sequences remain for `visible`.
    """
    if not _is_active(text):
        return text, {}

    text = _LINE_END.sub("\n", text)
    if complete:
        text = text.replace("\r", "\n")
    pen = _Pen(_STYLING if complete else _SEQUENCE)
    lines: list[str] = []
    styles: OutputStyles = {}
    for line in text.split("\n"):
        states = [line] if complete else _RETURN.split(_erase(line))
        shown, places = pen.write(states[0])
        for state in states[1:]:
            written = pen.write(state)
            if written[0].strip():
                shown, places = written
        if 0 < len(places) <= _MOST:
            styles[len(lines)] = places
        lines.append(shown)
    return "\n".join(lines), styles


def _is_active(text: str) -> bool:
    # To look for a character takes a hundredth of the time that a pattern takes.
    if any(character in text for character in _ACTIVE):
        return True
    return "\r" in text and _ACTIVE_RETURN.search(text) is not None


def styled_pieces(
    line: str, places: list[tuple[int, int, str]]
) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a line and their styles; a line that was cut has fewer."""
    end = 0
    for start, stop, style in places:
        if line[end:start]:
            yield line[end:start], ""
        if line[start:stop]:
            yield line[start:stop], style
        end = stop
    if line[end:]:
        yield line[end:], ""


def _erase(line: str) -> str:
    """Return a line without what its backspaces take back."""
    if "\x08" not in line:
        return line
    characters: list[str] = []
    for character in line:
        if character != "\x08":
            characters.append(character)
        elif characters:
            characters.pop()
    return "".join(characters)


class _Pen:
    """The look of the next text. *sequence* matches what is not written."""

    def __init__(self, sequence: re.Pattern[str]) -> None:
        self._sequence = sequence
        self._color = ""
        self._marks: set[str] = set()

    def write(self, text: str) -> tuple[str, list[tuple[int, int, str]]]:
        """Return *text* without sequences, and the places that are styled."""
        pieces: list[str] = []
        places: list[tuple[int, int, str]] = []
        length = end = 0
        for match in [*self._sequence.finditer(text), None]:
            piece = text[end : match.start() if match else None]
            style = " ".join(sorted({*self._marks, self._color} - {""}))
            if style and piece:
                places.append((length, length + len(piece), style))
            pieces.append(piece)
            length += len(piece)
            if match is not None:
                end = match.end()
                if match["sgr"] is not None:
                    self._change(match["sgr"])
        return "".join(pieces), places

    def _change(self, parameters: str) -> None:
        """Apply the parameters of a sequence that selects how text looks."""
        codes = iter([_code(parameter) for parameter in parameters.split(";")])
        for code in codes:
            if code == 0:
                self._color = ""
                self._marks.clear()
            elif code in _MARKS:
                self._marks.add(_MARKS[code])
            elif code in _ENDS_OF_MARKS:
                self._marks.difference_update(_ENDS_OF_MARKS[code])
            elif code in (_FOREGROUND, _BACKGROUND):
                color = _exact_color(codes)
                if code == _FOREGROUND:
                    self._color = color
            elif 30 <= code <= _NO_COLOR:
                self._color = "" if code == _NO_COLOR else _color(code - 30)
            elif 90 <= code <= 97:
                self._color = _color(code - 90 + _GREY)


def _code(parameter: str) -> int:
    """Return the code of a parameter, 0 if it is empty; -1 of one in several parts."""
    if not parameter:
        return 0
    return -1 if ":" in parameter else int(parameter)


def _color(number: int) -> str:
    """Return the name of one of the sixteen colours of terminals; empty for others."""
    if number == _GREY:
        return "dim"
    return _COLORS[number % 8] if number < 16 else ""


def _exact_color(codes: Iterator[int]) -> str:
    """Take the parameters of an exact colour; return its name if it has one."""
    kind = next(codes, 0)
    if kind == _TABLE:
        return _color(next(codes, 0))
    if kind == _CHANNELS:
        list(islice(codes, 3))
    return ""
