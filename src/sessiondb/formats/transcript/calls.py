"""A tool call as something folded: one line that says how it went, and all of it below."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sessiondb.formats.transcript.blocks import Block, Code, Fold, Label, Todos
from sessiondb.formats.transcript.changes import PATHS, changes, counts, is_diff
from sessiondb.formats.transcript.pictures import Album
from sessiondb.formats.transcript.words import count, duration, one_line
from sessiondb.model import Part

#: What is left of a long text unless all is asked for; a diff may be longer.
LINES, CHARACTERS, DIFF_LINES = 40, 6000, 200
_SUBJECTS = (
    "description", "command", "cmd", *PATHS, "pattern", "query", "url", "title", "name", "prompt",
)  # fmt: skip
_COMMANDS = ("command", "cmd", "script")
_EXITS = frozenset({"exit", "exit_code", "exitCode"})


def call(part: Part, detail: str, album: Album, nested: tuple[Block, ...] = ()) -> Fold:
    """Return a call; *nested* are the sessions it started."""
    given = arguments(part)
    found, used = changes(given, part.data) if part.status != "error" else ([], set())
    facts = _facts(part, found)
    fold = Fold("call", part.tool or "tool", _subject(part, given), facts, tone(part))
    if detail == "brief":
        return replace(fold, blocks=nested)
    todos = list(_todos(given))
    body: list[Block] = [*todos, *found]
    shown = used | ({"todos"} if todos else set())
    if detail != "full" and isinstance(given, Mapping):  # what the line says already
        shown |= {key for key in _SUBJECTS if given.get(key) == fold.subject} - set(
            _COMMANDS
        )
    body = [*_given(given, shown), *body]
    body += _result(part)
    body += album.inside(part.data)
    if detail == "full" and part.data:
        body += [Label("Kept by the program"), Code(as_json(part.data), "json")]
    return replace(fold, blocks=(*cut_all(body, detail), *nested))


def tone(part: Part) -> str:
    """Return how a call went."""
    if part.status == "error" or part.outcome:
        return "error"
    if part.status != "completed":
        return "open"
    return "odd" if any(exit_codes(part.data)) else "ok"


def arguments(part: Part) -> Any:
    """Return the arguments of a call, decoded as far as they can be."""
    try:
        return part.input
    except (ValueError, RecursionError):
        return part.input_json


def _subject(part: Part, given: Any) -> str:
    texts = [part.title or ""]
    if isinstance(given, Mapping):
        values = (given.get(key) for key in _SUBJECTS)
        texts += [_joined(value) for value in values]
    elif isinstance(given, str):
        texts.append(given)
    return next((line for text in texts if (line := one_line(text))), "")


def _joined(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return value if isinstance(value, str) else ""


def _facts(part: Part, found: list[Code]) -> tuple[str, ...]:
    facts = []
    totals = [total for code in found if (total := counts(code))]
    if totals:
        facts.append(f"+{sum(t[0] for t in totals)} −{sum(t[1] for t in totals)}")
    if part.status != "completed" or part.outcome:
        facts.append(
            part.outcome
            or {"error": "failed"}.get(part.status or "", part.status or "")
        )
    facts += [f"exit {code}" for code in exit_codes(part.data) if code]
    took = (part.time_ended or 0) - (part.time_started or part.time_ended or 0)
    if took >= 100:
        facts.append(duration(took))
    return tuple(filter(None, facts))


def exit_codes(data: Any, depth: int = 3) -> Iterator[int]:
    """Yield with which codes a command ended, where its program kept that."""
    if isinstance(data, Mapping) and depth:
        for key, value in data.items():
            if key in _EXITS and type(value) is int:
                yield value
            else:
                yield from exit_codes(value, depth - 1)


def _todos(given: Any) -> Iterator[Todos]:
    items = given.get("todos") if isinstance(given, Mapping) else None
    if (
        isinstance(items, list)
        and items
        and all(isinstance(item, Mapping) for item in items)
    ):
        pairs = [(item.get("status"), item.get("content")) for item in items]
        if all(isinstance(text, str) for _, text in pairs):
            yield Todos(
                tuple((str(status or "pending"), str(text)) for status, text in pairs)
            )


def _given(given: Any, shown: set[str]) -> Iterator[Block]:
    if given is None or given == {}:
        return
    if not isinstance(given, Mapping):
        if not shown:
            yield Code(given if isinstance(given, str) else as_json(given))
        return
    rest = {key: value for key, value in given.items() if key not in shown}
    command = next((key for key in _COMMANDS if _joined(rest.get(key))), None)
    if command is not None:
        yield Code(_joined(rest.pop(command)), "bash")
    short: list[str] = []
    long: list[Block] = []
    for key, value in rest.items():
        text = value if isinstance(value, str) else as_json(value)
        if "\n" in text or len(text) > 200:
            long += [Label(key), Code(text, None if isinstance(value, str) else "json")]
        else:
            short.append(f"{key}: {text}")
    if short:
        yield Code("\n".join(short))
    yield from long


def _result(part: Part) -> Iterator[Block]:
    text = (part.text or "").rstrip("\n")
    if text:
        yield Label("Error" if part.status == "error" else "Result")
        yield Code(text, language_of(text))


def language_of(text: str) -> str | None:
    """Return in what a result is written, where that is plain to see."""
    if text.startswith(("{", "[{", "[\n")):
        return "json"
    return "diff" if is_diff(text) else None


def as_json(value: Any) -> str:
    """Return a value as JSON with lines; what JSON has no word for as Python writes it."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=_other)
        return text if len(text) <= 80 else json.dumps(
            value, ensure_ascii=False, default=_other, indent=2
        )  # fmt: skip
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _other(value: Any) -> str:
    return f"({count(len(value), 'byte')})" if isinstance(value, bytes) else str(value)


def cut_all(blocks: list[Block], detail: str) -> Iterator[Block]:
    """Yield blocks, long texts cut unless all is asked for."""
    for block in blocks:
        yield cut(block, detail) if isinstance(block, Code) else block


def cut(code: Code, detail: str) -> Code:
    """Return a text cut, with words for what is left out."""
    lines = DIFF_LINES if code.language == "diff" else LINES
    text = code.text.rstrip("\n")
    limit = CHARACTERS * (lines // LINES)
    if detail == "full" or (len(text) <= limit and text.count("\n") < lines):
        return replace(code, text=text)
    kept = "\n".join(text[:limit].split("\n", lines)[:lines])
    more = text.count("\n", len(kept))
    words = (
        count(more, "more line")
        if more
        else count(len(text) - len(kept), "more character")
    )
    return replace(code, text=kept, left_out=f"{words} left out")
