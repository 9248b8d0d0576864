"""Markdown of a transcript inside our document: it formats itself and nothing else.

Renderers differ in what they let through, so nothing is left to them. Outside of
what every reader of CommonMark takes for code, no character begins HTML, an image,
or a link to anything but the web or mail; an open fence is closed, and a heading
is below ours.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator

from sessiondb.words import visible

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})([^\n]*)")
#: One that opens code; after its ticks no other tick follows.
_OPENING = re.compile(r"( {0,3})(`{3,}(?=[^`\n]*$)|~{3,})([^\n]*)")
_HEADING = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_WEB = r"(?!\s*(?:https?://|mailto:))"
_TICKS = re.compile("`+")
_UNSAFE = re.compile(
    rf"<(?=[A-Za-z/!?])|!(?=\[)|(?<=\])\({_WEB}|(?<=\]):{_WEB}", re.IGNORECASE
)
#: The marks of lists and quotes at the start of a line: how many, and how far in.
_MARK = re.compile(r"[ \t]|[>*+-]|\d{1,9}[.)]")
_LEAD = re.compile(rf"(?:{_MARK.pattern})+")
_DEEPEST, _WIDEST = 6, 15
#: How many lines an indented fence may hold, and how many may turn out to be none.
_REACH, _PATIENCE = 1000, 100
_MARKUP = re.compile(r"[!-/:-@\[-`{-~]")
_ACTIVE = re.compile(r"[\\`*_{}\[\]#|~]")


def prose(text: str) -> str:
    """Return *text*, which is Markdown, so that it is safe anywhere in a document."""
    out: list[str] = []
    plain: list[str] = []
    lines = visible(text).strip("\n").split("\n")

    number, patience = 0, _PATIENCE
    while number < len(lines):
        opening = _OPENING.fullmatch(lines[number]) if patience else None
        code = _code(lines, number, opening) if opening else []
        if code:
            out += [*_plain(plain), *code]
            plain = []
            number += len(code)
            continue

        # Each one that is none costs a search to the end.
        patience -= opening is not None
        plain.append(lines[number])
        number += 1
    return "\n".join([*out, *_plain(plain)])


def _code(lines: list[str], start: int, opening: re.Match[str]) -> list[str]:
    """Return the fenced code that begins at a line, closed; empty if it is uncertain.

    At the margin every reader sees a fence, also without an end. An indented one may
    belong to a list, and then ends with it: it must end itself, and never come nearer
    to the margin.
    """
    indent, mark = opening[1], opening[2]
    nearer = re.compile(rf"(?!{indent})\s*\S")
    closing = re.compile(rf" {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*")

    end = min(len(lines), start + _REACH) if indent else len(lines)
    for number in range(start + 1, end):
        if nearer.match(lines[number]):
            return []
        if closing.fullmatch(lines[number]):
            return lines[start : number + 1]
    return [] if indent else [*lines[start:], mark]


def _plain(lines: list[str]) -> Iterator[str]:
    """Yield lines outside of code, without what could be more than text."""
    if not lines:
        return

    text = "\n".join(map(_structure, lines))
    runs = list(_TICKS.finditer(text))
    closing = _closing(runs)

    pieces, done, number = [], 0, 0
    while number < len(runs):
        end = closing[number]
        if end is not None:
            pieces.append(_safe(text[done : runs[number].start()]))
            pieces.append(_span(text, runs[number], runs[end]))
            done, number = runs[end].end(), end
        number += 1

    yield "".join([*pieces, _safe(text[done:])])


def _closing(runs: list[re.Match[str]]) -> list[int | None]:
    """Return for each run of ticks the next one of its length, in one pass."""
    closing: list[int | None] = [None] * len(runs)
    closings: dict[int, int] = {}

    # From the end: the search of each run for its pair would be quadratic.
    for number in range(len(runs) - 1, -1, -1):
        length = len(runs[number][0])
        closing[number] = closings.get(length)
        closings[length] = number
    return closing


def _structure(line: str) -> str:
    if _RULE.fullmatch(line):
        return "* * *"
    # These would make a heading of the line above, or code of all that follows.
    if _UNDERLINE.fullmatch(line) or _is_uncertain_fence(line):
        return _entities(line)

    lead = _LEAD.match(line)
    if lead and len(lead[0]) > _DEEPEST:
        line = _flattened(lead[0]) + line[lead.end() :]
    return _HEADING.sub(_lowered, line, count=1)


def _is_uncertain_fence(line: str) -> bool:
    if not _FENCE.fullmatch(line):
        return False
    return bool(_OPENING.fullmatch(line) or _UNSAFE.search(line))


def _lowered(heading: re.Match[str]) -> str:
    return heading[1] + "#" * min(len(heading[2]) + 3, 6)


def _flattened(lead: str) -> str:
    """Return the marks that begin a line, those that nest too deep as text.

    Readers give up at some depth, and what follows is then lost, ours included.
    """
    lines, depth, column = [], 0, 0
    for mark in _MARK.findall(lead):
        if not mark.isspace():
            depth += 1
            if depth > _DEEPEST or column > _WIDEST:
                lines.append(_entities(mark))
                column += len(mark)
                continue
        lines.append(mark)
        column += 4 if mark == "\t" else len(mark)
    return "".join(lines)


def _safe(text: str) -> str:
    return _UNSAFE.sub(_entity, text)


def _span(text: str, first: re.Match[str], last: re.Match[str]) -> str:
    """Return code within a line; if it looks like markup, so that it cannot be any."""
    code = text[first.end() : last.start()]
    if not _UNSAFE.search(code):
        return text[first.start() : last.end()]

    # Perhaps not code at all: escaped, or beyond the paragraph in which it began.
    if "\n" in code or text[max(first.start() - 1, 0)] == "\\":
        return f"{first[0]}{_safe(code)}{last[0]}"
    return f"<code>{_entities(code.strip())}</code>"


def _entities(text: str) -> str:
    return _MARKUP.sub(_entity, text)


def _entity(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"


def inline(text: str) -> str:
    """Return *text* for one line of Markdown, meaning nothing but itself."""
    return _on_one_line(text, lambda match: f"\\{match[0]}")


def summary(text: str) -> str:
    """Return *text* for a line of our HTML, where most readers ignore Markdown."""
    return _on_one_line(text, _entity)


def _on_one_line(text: str, disarmed: Callable[[re.Match[str]], str]) -> str:
    line = html.escape(" ".join(visible(text).split()), quote=False)
    return _ACTIVE.sub(disarmed, line)


def code(text: str) -> str:
    """Return *text* as code within a line."""
    line = " ".join(visible(text).split())
    longest = _longest(line)

    mark = "`" * (longest + 1)
    return f"{mark} {line} {mark}" if longest else f"{mark}{line}{mark}"


def fenced(text: str, language: str | None) -> str:
    """Return *text* as code: the fence is longer than any inside it."""
    shown = visible(text)

    # CommonMark ends a fence at the first one that is as long.
    mark = "`" * max(3, _longest(shown) + 1)
    name = re.sub(r"[^\w+#.-]", "", language or "")
    return f"{mark}{name}\n{shown}\n{mark}"


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


def attribute(text: str) -> str:
    """Return *text* for an attribute of our own HTML."""
    return html.escape(visible(text))
