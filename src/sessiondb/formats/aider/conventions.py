"""The lines that aider writes, as shapes to recognise and as functions to write them.

Read off ``aider/io.py`` (``append_chat_history`` and its callers), and off
``calculate_and_show_tokens_and_cost`` in ``coders/base_coder.py``, of 0.86. Everything
but an answer ends with two spaces and a line feed; a prompt, an answer and a header
begin with an empty line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from sessiondb.formats.kit.json import known_time

#: The names of the chat history, and of the input history beside it.
CHAT, INPUTS = ".aider.chat.history.md", ".aider.input.history"
BREAK = "  "
HEADER = re.compile(
    rb"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.ASCII
)
#: How a header begins, for one that is torn.
HEADER_START = b"# aider chat started at "
FENCE = re.compile(rb"[ \t]*(`{3,}|~{3,})([^`]*)")
#: The lines after an answer that end it whatever their ending is.
USAGE = b"> Tokens: "
_THINKING = re.compile(
    r"<(thinking-content-[0-9a-f]{32})>\n\n(.*?)\n\n</\1>(?:\n\n|\Z)", re.DOTALL
)
#: The answer to a question that was repeated for a group of files; nobody typed it.
CONFIRMED = re.compile(r".*\(Y\)es/\(N\)o.*/\(S\)kip all.*\[[^\]]*\]: \w+")
_COUNT = r"([\d.,]+[kKmM]?)"
_TOKENS = re.compile(
    rf"Tokens: {_COUNT} sent(?:, {_COUNT} cache write)?"
    rf"(?:, {_COUNT} (?:cache hit|cached))?, {_COUNT} received\.?"
)
_COST = re.compile(r"Cost: \$([\d.,]+) (?:message|request|send), \$([\d.,]+) session")
_MODEL = re.compile(r"(?:Main model|Models?): (\S+)(?: (?:with|using) .*)?")
_VERSION = re.compile(r"Aider v(\S+)")
_EDIT = re.compile(r"Applied edit to (.+)")
_COMMIT = re.compile(r"Commit ([0-9a-f]{7,40}) (.*)")


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


# -- what is written -------------------------------------------------------------


def header(start: str) -> str:
    """Return the beginning of a run."""
    return f"\n# aider chat started at {start}\n\n"


def prompt(text: str) -> str:
    """Return what a prompt is recorded as; its ends and line separators are lost."""
    lines = text.splitlines() or ["<blank>"]
    said = f"{BREAK}\n#### ".join(lines)
    return f"\n#### {said}".rstrip() + f"{BREAK}\n"


def answer(text: str) -> str:
    """Return what an answer is recorded as."""
    return f"\n{text}\n\n"


def output(text: str) -> str:
    """Return what aider's own output is recorded as; only its first line is marked."""
    return f"> {text}".rstrip() + f"{BREAK}\n"


def typed_entry(stamp: str, text: str) -> str:
    """Return an entry of the input history."""
    lines = "".join(f"+{line}\n" for line in text.split("\n"))
    return f"\n# {stamp}\n{lines}"


# -- what is found ---------------------------------------------------------------


def prompt_of(block: str) -> str:
    """Return the text of a recorded prompt, by the lines of its block."""
    return "\n".join(map(_unquoted, block.strip("\r\n").split("\n")))


def _unquoted(line: str) -> str:
    line = line.rstrip("\r").removesuffix(BREAK)
    return line.removeprefix("####").removeprefix(" ")


def is_prompt(line: bytes) -> bool:
    """Return whether a line, without its end, is one of a prompt."""
    return line.startswith(b"#### ") and line.endswith(b"  ")


def is_output(line: bytes) -> bool:
    """Return whether a line, without its end, is aider's own and complete."""
    return line.startswith(b"> ") and line.endswith(b"  ")


def reasoning_and_text(said: str) -> list[tuple[str, str, str]]:
    """Return the pieces of an answer: their type, their tag if any, and their text."""
    found, end = [], 0
    for match in _THINKING.finditer(said):
        before = said[end : match.start()].removesuffix("\n\n")
        found += [("text", "", before)] if before else []
        found.append(("reasoning", match[1], match[2]))
        end = match.end()
    rest = said[end:]
    return found + ([("text", "", rest)] if rest or not found else [])


def pieces_joined(pieces: Iterable[tuple[str, str, str]]) -> str:
    """Return the answer that has these pieces."""
    return "\n\n".join(
        f"<{tag}>\n\n{text}\n\n</{tag}>" if tag else text for _, tag, text in pieces
    )


class Usage(NamedTuple):
    """What a report says: costs in USD, counts as they are written."""

    cost: float | None
    session: float | None
    counts: dict[str, str]


def usage_of(text: str) -> Usage | None:
    """Return the report in a text of aider's; None if it is not one."""
    found = _TOKENS.match(text)
    if found is None:
        return None
    names = ("sent", "cache_write", "cache_hit", "received")
    counts = {n: c for n, c in zip(names, found.groups(), strict=True) if c}
    costs = _COST.search(text)
    message, session = costs.groups() if costs else ("", "")
    return Usage(_number(message), _number(session), counts)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def exact(count: str) -> int | None:
    """Return a count that was not rounded: 352 and 1,234 are exact, 1.2k is not."""
    digits = count.replace(",", "")
    return int(digits) if digits.isascii() and digits.isdecimal() else None


def model_of(text: str) -> str | None:
    """Return the model that aider announces, with its provider if it names one."""
    found = _MODEL.fullmatch(text)
    return found[1] if found else None


def version_of(text: str) -> str | None:
    """Return the version that aider announces."""
    found = _VERSION.fullmatch(text)
    return found[1] if found else None


def edited(text: str) -> str | None:
    """Return the path of the file that aider says it changed."""
    found = _EDIT.fullmatch(text)
    return found[1] if found else None


def committed(text: str) -> tuple[str, str] | None:
    """Return the hash and the message of the commit that aider says it made."""
    found = _COMMIT.fullmatch(text)
    return (found[1], found[2]) if found else None
