"""The lines that aider writes, as shapes to recognise and as functions to write them.

Read off ``aider/io.py`` (``append_chat_history`` and its callers), and off
``calculate_and_show_tokens_and_cost`` in ``coders/base_coder.py``, of 0.86. Everything
but an answer ends with two spaces and a line feed; a prompt, an answer and a header
begin with an empty line.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from sessiondb.formats.kit.fields import amount, without_none
from sessiondb.formats.kit.json import known_time
from sessiondb.patterns import late_pattern

#: The names of the chat history, and of the input history beside it.
CHAT, INPUTS = ".aider.chat.history.md", ".aider.input.history"
BREAK = "  "
#: The characters that end a line, and a mark of byte order before it.
ENDS, BOM = b"\r\n", b"\xef\xbb\xbf"
HEADER = late_pattern(
    rb"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.ASCII
)
#: How a header begins, for one that is torn.
HEADER_START = b"# aider chat started at "
FENCE = late_pattern(rb"[ \t]*+(`{3,}+|~{3,}+)([^`]*+)")
#: The tags that aider fences text with that has fences of its own: they begin and end
#: lines of their own (``all_fences`` in ``coders/base_coder.py``).
_TAGS = rb"(?:source|sourcecode|code|codeblock|pre)"
TAG_FENCE = rb"<%b>" % _TAGS
TAG_LINE = rb"</?%b>" % _TAGS
#: The start of lines that end an answer even without two spaces at their own end.
USAGE = b"> Tokens: "
_TAG_START = "</thinking-content-"
_TAG = r"(thinking-content-[0-9a-f]{32})>"
_OPENING = late_pattern(rf"<{_TAG}\n\n")
_CLOSING = late_pattern(rf"\n\n</{_TAG}(?=\n\n|\Z)")
#: Records of prompts that were not typed: an empty one, and the answer to a question,
#: which aider repeats for each file of a group. Its pieces fit in one way alone.
UNTYPED = late_pattern(
    r"(?P<blank><blank>)"
    r"|(?P<confirmation>(?>.*?\(Y\)es/\(N\)o)(?>.*?/\(S\)kip all)"
    r"(?>.*\[)[^\]]*+\]: \w+)"
)
_COUNT = r"[\d.,]+[kKmM]?"
_USAGE = late_pattern(
    rf"Tokens: (?P<sent>{_COUNT}) sent(?:, (?P<cache_write>{_COUNT}) cache write)?"
    rf"(?:, (?P<cache_hit>{_COUNT}) (?:cache hit|cached))?"
    rf", (?P<received>{_COUNT}) received\.?"
    r"(?:.*?Cost: \$(?P<cost>[\d.,]+) (?:message|request|send)"
    r", \$(?P<session>[\d.,]+) session)?",
    re.DOTALL,
)
#: More digits than any column holds are not a count.
_EXACT = late_pattern(r"[0-9]{1,18}")
_MODEL = late_pattern(r"(?:Main model|Models?): (\S+)(?: (?:with|using) .*)?")
_VERSION = late_pattern(r"Aider v(\S+)")
_ANNOUNCED = late_pattern(rb"\n> ?(?:Aider v|Main model: |Models?: )")
_EDIT = late_pattern(r"Applied edit to (.+)")
_COMMIT = late_pattern(r"Commit (?P<hash>[0-9a-f]{7,40}) (?P<message>(?s:.*))")


# -- times ---------------------------------------------------------------------


def time_of(text: str) -> int | None:
    """Return the Unix ms of a local time without a zone; None if it is not a time.

    It is read in the zone of this machine: aider does not record its own.
    """
    try:
        return known_time(int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        return None


def started(ms: int) -> str:
    """Return a time in Unix ms as a header has it."""
    return _local(ms).strftime("%Y-%m-%d %H:%M:%S")


def typed(ms: int) -> str:
    """Return a time in Unix ms as the input history has it."""
    return str(_local(ms))


def _local(ms: int) -> datetime:
    """Return a time in Unix ms on the clock of this machine, without its zone."""
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone().replace(tzinfo=None)


# -- writing ---------------------------------------------------------------------


def header(start: str) -> str:
    """Return the beginning of a run."""
    return f"\n# aider chat started at {start}\n\n"


def prompt(text: str) -> str:
    """Return the record of a prompt, without its ends and its line separators."""
    # As aider does it: splitlines, which also splits at a form feed.
    lines = text.splitlines() or ["<blank>"]
    joined = f"{BREAK}\n#### ".join(lines)
    return f"\n#### {joined}".rstrip() + f"{BREAK}\n"


def answer(text: str) -> str:
    """Return the record of an answer."""
    return f"\n{text}\n\n"


def output(text: str) -> str:
    """Return the record of aider's own output; only its first line is marked."""
    return f"> {text}".rstrip() + f"{BREAK}\n"


def typed_entry(stamp: str, text: str) -> str:
    """Return an entry of the input history."""
    lines = "".join(f"+{line}\n" for line in text.split("\n"))
    return f"\n# {stamp}\n{lines}"


# -- recognising -----------------------------------------------------------------


def prompt_of(block: str) -> str:
    """Return the text of a recorded prompt, by the lines of its block."""
    return "\n".join(map(_unquoted, block.strip("\r\n").split("\n")))


def _unquoted(line: str) -> str:
    # The rest of the prompt's own spaces is kept.
    line = line.rstrip("\r").removesuffix(BREAK)
    return line.removeprefix("####").removeprefix(" ")


def reasoning_and_text(answer: str) -> list[tuple[str, str, str]]:
    """Return the pieces of an answer: their type, their tag if any, and their text."""
    if _TAG_START not in answer:
        return [("text", "", answer)]

    pieces, end = [], 0
    for opening, closing in _thoughts(answer):
        text = answer[end : opening.start()].removesuffix("\n\n")
        thought = answer[opening.end() : closing.start()]
        pieces += [("text", "", text), ("reasoning", opening[1], thought)]
        end = closing.end() + len("\n\n")

    pieces.append(("text", "", answer[end:]))
    return [piece for piece in pieces if any(piece[1:])] or pieces[-1:]


def _thoughts(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield the tags around each reasoning in an answer."""
    closings: dict[str, deque[re.Match[str]]] = {}
    for closing in _CLOSING.finditer(text):
        closings.setdefault(closing[1], deque()).append(closing)

    end = 0
    for opening in _OPENING.finditer(text) if closings else ():
        closing_places = closings.get(opening[1], deque())
        while closing_places and closing_places[0].start() < opening.end():
            closing_places.popleft()
        if closing_places and opening.start() >= end:
            end = closing_places[0].end()
            yield opening, closing_places[0]


def pieces_joined(pieces: Iterable[tuple[str, str, str]]) -> str:
    """Return the answer that has these pieces."""
    return "\n\n".join(
        f"<{tag}>\n\n{text}\n\n</{tag}>" if tag else text for _, tag, text in pieces
    )


class Usage(NamedTuple):
    """A report: costs in USD, counts as they are written."""

    cost: float | None
    session: float | None
    counts: dict[str, str]


def usage_of(text: str) -> Usage | None:
    """Return the report in a text of aider's; None if it is not one."""
    match = _USAGE.match(text)
    if match is None:
        return None

    counts = without_none(match.groupdict())
    cost, session = counts.pop("cost", ""), counts.pop("session", "")
    return Usage(_number(cost), _number(session), counts)


def _number(text: str) -> float | None:
    """Return a number; None for any other text, or if no column holds it."""
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None
    return number if amount(number) else None


def exact(count: str) -> int | None:
    """Return a count that was not rounded: 352 and 1,234 are exact, 1.2k is not."""
    digits = count.replace(",", "")
    return int(digits) if _EXACT.fullmatch(digits) else None


def model_of(text: str) -> str | None:
    """Return the model that aider announces, with its provider if it names one."""
    return _named(_MODEL, text)


def version_of(text: str) -> str | None:
    """Return the version that aider announces."""
    return _named(_VERSION, text)


def may_announce(raw: bytes) -> bool:
    """Return whether any of these lines may announce a model or a version."""
    # A search for a line feed is ten times as fast as one for beginnings of lines.
    return _ANNOUNCED.search(b"\n" + raw) is not None


def edited(text: str) -> str | None:
    """Return the path of the file that aider reports as changed."""
    return _named(_EDIT, text)


def committed(text: str) -> dict[str, str] | None:
    """Return the hash and the message of the commit that aider reports."""
    match = _COMMIT.fullmatch(text)
    return match and match.groupdict()


def _named(shape: re.Pattern[str], text: str) -> str | None:
    match = shape.fullmatch(text)
    return match and match[1]
