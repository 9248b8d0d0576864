"""What was said, as Markdown inside a document of ours: it formats itself and nothing else.

Renderers differ in what they let through, so nothing is left to them. Outside of
what is code for every reader of CommonMark, no character begins HTML, an image,
or a link to anything but the web or mail; a fence left open is closed, and a
heading stands below ours.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from sessiondb.formats.transcript.words import visible

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})([^\n]*)")
_HEADING = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_WEB = r"(?!\s*(?:https?://|mailto:))"
_TICKS = re.compile("`+")
_UNSAFE = re.compile(
    rf"<(?=[A-Za-z/!?])|!(?=\[)|(?<=\])\({_WEB}|(?<=\]):{_WEB}", re.IGNORECASE
)
#: The marks of lists and quotes that a line begins with: how many, and how far from the margin.
_MARK = re.compile(r"[ \t]|[>*+-]|\d{1,9}[.)]")
_LEAD = re.compile(rf"(?:{_MARK.pattern})+")
_DEEPEST, _WIDEST = 6, 15
#: How many lines an indented fence may hold, and how many may turn out to be none.
_REACH, _PATIENCE = 1000, 100
_MARKUP = re.compile(r"[!-/:-@\[-`{-~]")


def prose(text: str) -> str:
    """Return *text*, which is Markdown, so that it can stand anywhere in a document."""
    out: list[str] = []
    plain: list[str] = []
    lines = visible(text).strip("\n").split("\n")
    number, patience = 0, _PATIENCE
    while number < len(lines):
        opening = _opening(lines[number])
        found = _code(lines, number, opening) if opening and patience else None
        if found is None:
            patience -= opening is not None and patience > 0
            plain.append(lines[number])
            number += 1
            continue
        out += [*_plain(plain), *found]
        plain = []
        number += len(found)
    return "\n".join([*out, *_plain(plain)])


def _opening(line: str) -> re.Match[str] | None:
    match = _FENCE.fullmatch(line)
    return None if match and match[2][0] == "`" and "`" in match[3] else match


def _code(lines: list[str], start: int, opening: re.Match[str]) -> list[str] | None:
    """Return the fenced code that begins at a line, closed; None if none surely does.

    At the margin a fence is one for everybody, also without an end. Indented it may
    belong to a list, and then ends with it: it has to end itself, and never to come
    nearer to the margin.
    """
    indent, mark = opening[1], opening[2]
    closing = re.compile(rf" {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*")
    for number in range(
        start + 1, min(len(lines), start + _REACH) if indent else len(lines)
    ):
        line = lines[number]
        if indent and line.strip() and not line.startswith(indent):
            return None
        if closing.fullmatch(line):
            return lines[start : number + 1]
    return None if indent else [*lines[start:], mark]


def _plain(lines: list[str]) -> Iterator[str]:
    """Yield lines outside of code, without what could be more than text."""
    if not lines:
        return
    text = "\n".join(_structure(line) for line in lines)
    runs = list(_TICKS.finditer(text))
    closing: dict[int, int] = {}
    after: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = len(runs[number][0])
        closing[number] = after.get(length, -1)
        after[length] = number
    pieces, done, number = [], 0, 0
    while number < len(runs):
        end = closing[number]
        if end >= 0:
            pieces.append(_safe(text[done : runs[number].start()]))
            pieces.append(_span(text, runs[number], runs[end]))
            done, number = runs[end].end(), end
        number += 1
    yield "".join([*pieces, _safe(text[done:])])


def _structure(line: str) -> str:
    if _RULE.fullmatch(line):
        return "* * *"
    fence = _FENCE.fullmatch(line)
    if _UNDERLINE.fullmatch(line) or (
        fence and (_opening(line) or _UNSAFE.search(line))
    ):
        # It would make a heading of the line above, or code of all that follows.
        return _entities(line)
    lead = _LEAD.match(line)
    if lead and len(lead[0]) > _DEEPEST:
        line = _flattened(lead[0]) + line[lead.end() :]
    return _HEADING.sub(
        lambda match: match[1] + "#" * min(len(match[2]) + 3, 6), line, count=1
    )


def _flattened(lead: str) -> str:
    """Return the marks that begin a line with those as text that nest too deep.

    Readers give up at some depth, and what follows is then lost, ours included.
    """
    kept, depth, column = [], 0, 0
    for mark in _MARK.findall(lead):
        depth += not mark.isspace()
        deep = not mark.isspace() and (depth > _DEEPEST or column > _WIDEST)
        kept.append(_entities(mark) if deep else mark)
        column += 4 if mark == "\t" else len(mark)
    return "".join(kept)


def _safe(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"&#{ord(match[0])};", text)


def _span(text: str, first: re.Match[str], last: re.Match[str]) -> str:
    """Return code within a line. Where it looks like markup it is said so that it cannot be."""
    code = text[first.end() : last.start()]
    if not _UNSAFE.search(code):
        return text[first.start() : last.end()]
    # Perhaps no code at all: escaped, or not ended in the paragraph it began in.
    if "\n" in code or text[max(first.start() - 1, 0)] == "\\":
        return f"{first[0]}{_safe(code)}{last[0]}"
    return f"<code>{_entities(code.strip())}</code>"


def _entities(text: str) -> str:
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", text)


def inline(text: str) -> str:
    """Return *text* for one line of Markdown, meaning nothing but itself."""
    line = html.escape(" ".join(visible(text).split()), quote=False)
    return re.sub(r"[\\`*_{}\[\]#|~]", r"\\\g<0>", line)


def summary(text: str) -> str:
    """Return *text* for a line of our HTML, where Markdown means nothing to most readers."""
    line = html.escape(" ".join(visible(text).split()), quote=False)
    return re.sub(r"[\\`*_{}\[\]#|~]", lambda match: f"&#{ord(match[0])};", line)


def code(text: str) -> str:
    """Return *text* as code within a line."""
    line = " ".join(visible(text).split())
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    mark = "`" * (longest + 1)
    return f"{mark} {line} {mark}" if longest else f"{mark}{line}{mark}"


def fenced(text: str, language: str | None) -> str:
    """Return *text* as code: the fence is longer than any in it."""
    shown = visible(text)
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    mark = "`" * max(3, longest + 1)
    name = re.sub(r"[^\w+#.-]", "", language or "")
    return f"{mark}{name}\n{shown}\n{mark}"


def attribute(text: str) -> str:
    """Return *text* for an attribute of our own HTML."""
    return html.escape(visible(text))
