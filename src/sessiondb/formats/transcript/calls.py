"""A tool call as something folded: one line that reports how it went, the rest below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sessiondb.errors import CorruptionError
from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Command,
    Fold,
    Output,
    Todos,
)
from sessiondb.formats.transcript.changes import (
    PATHS,
    Changes,
    changes,
    counts,
    is_diff,
)
from sessiondb.formats.transcript.detail import Detail, Limits
from sessiondb.formats.transcript.pictures import Album
from sessiondb.formats.transcript.shapes import as_json, as_text
from sessiondb.model import Part
from sessiondb.words import count, duration, excerpt

#: Arguments that describe a call in a few words, the best one first.
_SUBJECTS = (
    "description",
    "command",
    "cmd",
    *PATHS,
    "pattern",
    "query",
    "url",
    "title",
    "name",
    "prompt",
)
_COMMANDS = ("command", "cmd", "script")
_EXITS = frozenset({"exit", "exit_code", "exitCode"})
_EXIT_DEPTH = 3
_JSON_STARTS = ("{", "[{", "[\n")
#: Characters of an argument that fits on a line with its name.
_SHORT = 200
#: Milliseconds from which on a duration is worth a word.
_NOTICEABLE = 100


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a call: ``fields`` by name, or else one ``bare`` value."""

    fields: Mapping[str, Any]
    bare: Any = None

    def named(self) -> Mapping[str, Any]:
        """Return the fields; the bare value counts as ``input``."""
        return self.fields if self.bare is None else {"input": self.bare}


def call(
    part: Part, detail: Detail, album: Album, nested: tuple[Block, ...] = ()
) -> Fold:
    """Return the call *part*; *nested* are the sessions it started."""
    given = given_to(part)
    failed = part.status == "error"
    changed = Changes() if failed else changes(given.named(), part.data)
    fold = Fold(
        "call",
        part.tool or "tool",
        _subject(part, given),
        tuple(_details(part, changed)),
        state=_state(part),
        tone=tone(part),
        blocks=nested,
    )
    if not detail.bodies:
        return fold

    todos = _todos(given)
    shown = changed.used | ({"todos"} if todos else set())
    if not detail.records:
        shown |= _repeated(given, fold.subject)
    body: list[Block] = [*_arguments(given, shown), *todos, *changed.codes]
    body += _result(part)
    body += album.inside(part.data)
    if detail.records and part.data:
        body.append(Code(as_json(part.data), "json", "Kept by the program"))
    return replace(fold, blocks=(*cut_all(body, detail), *nested))


def given_to(part: Part) -> Given:
    """Return the arguments of a call, decoded as far as possible."""
    try:
        value = part.input
    except CorruptionError:
        value = part.input_json

    if isinstance(value, Mapping):
        return Given(value)
    return Given({}, value)


def tone(part: Part) -> str:
    """Return the tone of a call, see `Fold`."""
    if part.status == "error" or part.outcome:
        return "error"
    if part.status != "completed":
        return "open"
    return "odd" if any(exit_codes(part.data)) else "ok"


def _state(part: Part) -> str:
    failed = "failed" if part.status == "error" else part.status
    return part.outcome or failed or ""


def _subject(part: Part, given: Given) -> str:
    texts = [part.title or ""]
    texts += [_joined(given.fields.get(key)) for key in _SUBJECTS]
    texts.append(given.bare if isinstance(given.bare, str) else "")
    return next(filter(None, map(excerpt, texts)), "")


def _joined(value: Any) -> str:
    """Return a string, or a list of strings with spaces between; else nothing."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return value if isinstance(value, str) else ""


def _details(part: Part, changed: Changes) -> Iterator[str]:
    totals = [counts(code) for code in changed.codes]
    added, removed = (
        sum(total[0] for total in totals),
        sum(total[1] for total in totals),
    )
    if any(code.language == "diff" for code in changed.codes):
        yield f"+{added} −{removed}"

    for code in exit_codes(part.data):
        if code:
            yield f"exit {code}"

    if part.time_started is not None and part.time_ended is not None:
        took = part.time_ended - part.time_started
        if took >= _NOTICEABLE:
            yield duration(took)


def exit_codes(data: Any, depth: int = _EXIT_DEPTH) -> Iterator[int]:
    """Yield the codes with which a command ended, if its program kept them."""
    if not isinstance(data, Mapping) or not depth:
        return
    for key, value in data.items():
        if key in _EXITS and type(value) is int:
            yield value
        else:
            yield from exit_codes(value, depth - 1)


def _todos(given: Given) -> list[Todos]:
    items = given.fields.get("todos")
    if not isinstance(items, list) or not all(map(_is_todo, items)):
        return []

    pairs = ((str(item.get("status") or "pending"), item["content"]) for item in items)
    return [Todos(tuple(pairs))] if items else []


def _is_todo(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("content"), str)


def _repeated(given: Given, subject: str) -> set[str]:
    """Return the arguments that the line of the call shows already."""
    named = {key for key in _SUBJECTS if given.fields.get(key) == subject}
    return named - set(_COMMANDS)


def _arguments(given: Given, shown: set[str] | frozenset[str]) -> Iterator[Block]:
    if given.bare is not None:
        if not shown:
            yield Code(as_text(given.bare))
        return

    rest = {key: value for key, value in given.fields.items() if key not in shown}
    for key in _COMMANDS:
        if command := _joined(rest.get(key)):
            yield Command(command, "bash")
            del rest[key]
            break

    # Short ones share a block above the long ones.
    texts = {key: as_text(value) for key, value in rest.items()}
    short = [f"{key}: {text}" for key, text in texts.items() if _is_short(text)]
    if short:
        yield Code("\n".join(short))
    for key, text in texts.items():
        if not _is_short(text):
            language = None if isinstance(rest[key], str) else "json"
            yield Code(text, language, key)


def _is_short(text: str) -> bool:
    return "\n" not in text and len(text) <= _SHORT


def _result(part: Part) -> Iterator[Output]:
    text = (part.text or "").rstrip("\n")
    if text:
        label = "Error" if part.status == "error" else "Result"
        yield Output(text, language_of(text), label)


def language_of(text: str) -> str | None:
    """Return the language of a result if it is obvious, else None."""
    if text.startswith(_JSON_STARTS):
        return "json"
    return "diff" if is_diff(text) else None


def cut_all(blocks: Iterable[Block], detail: Detail) -> Iterator[Block]:
    """Yield *blocks*, long texts cut to the limits of *detail*."""
    for block in blocks:
        yield cut(block, detail) if isinstance(block, Code) else block


def cut(code: Code, detail: Detail) -> Code:
    """Return *code* within the limits of *detail*; ``left_out`` counts what is missing."""
    text = code.text.rstrip("\n")
    limits = detail.diffs if code.language == "diff" else detail.limits
    if limits is None:
        return replace(code, text=text)

    kept = "\n".join(
        text[: limits.characters].split("\n", limits.lines)[: limits.lines]
    )
    left_out = ""
    if lines := text.count("\n", len(kept)):
        left_out = count(lines, "more line")
    elif characters := len(text) - len(kept):
        left_out = count(characters, "more character")
    return replace(code, text=_narrowed(kept, limits), left_out=left_out)


def _narrowed(text: str, limits: Limits) -> str:
    width = limits.width
    if width is None:
        return text

    lines = []
    for line in text.split("\n"):
        more = len(line) - width
        lines.append(f"{line[:width]}… (+{more:,})" if more > 0 else line)
    return "\n".join(lines)
