"""A tool call as something folded: a line that reports how it went, the rest below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sessiondb.errors import CorruptionError
from sessiondb.formats.kit.fields import without
from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Command,
    Fold,
    Output,
    Todos,
)
from sessiondb.formats.transcript.changes import (
    NO_CHANGES,
    PATHS,
    Changes,
    changes,
    is_diff,
)
from sessiondb.formats.transcript.detail import Detail
from sessiondb.formats.transcript.pictures import MARKS, Album
from sessiondb.formats.transcript.shapes import (
    Records,
    as_json,
    as_text,
    is_list_of,
    is_object,
    is_text,
)
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
#: Those that are not shown again below the line of the call.
_MENTIONS = frozenset(_SUBJECTS).difference(_COMMANDS)
_EXITS = ("exit", "exit_code", "exitCode")
#: Levels of a record in which the codes of exits are looked for.
_EXIT_DEPTH = 3
_JSON_STARTS = ("{", "[{", "[\n")
#: Characters of an argument and its name that fit on a line.
_SHORT = 200
#: Milliseconds from which on a duration is worth a word.
_NOTICEABLE = 100


@dataclass(slots=True)
class Arguments:
    """The arguments of a call: ``fields`` by name, or else one ``bare`` value."""

    fields: Mapping[str, Any]
    bare: Any = None

    @classmethod
    def of_call(cls, part: Part) -> Arguments:
        """Return those of the call *part*, decoded as far as possible."""
        try:
            value = part.input
        except CorruptionError:
            value = part.input_json
        return cls(value) if is_object(value) else cls({}, value)

    def named(self) -> Mapping[str, Any]:
        """Return the fields; the bare value counts as ``input``."""
        return self.fields if self.bare is None else {"input": self.bare}

    def subject(self, title: str | None) -> str:
        """Return a few words for the call: its title, or what it was given."""
        values = [title, self.bare, *(self.fields.get(name) for name in _SUBJECTS)]
        for value in values:
            words = excerpt(_joined(value)) if value else ""
            if words:
                return words
        return ""


def call(
    part: Part, detail: Detail, album: Album, nested: tuple[Block, ...] = ()
) -> Fold:
    """Return the call *part*; *nested* are the sessions it started."""
    arguments = Arguments.of_call(part)
    records = Records(part.data)
    codes = _error_codes(records)
    # The changes of a failed call were not made.
    failed = part.status == "error"
    changed = NO_CHANGES if failed else changes(arguments.named(), records)

    subject = arguments.subject(part.title)
    body: list[Block] = []
    if detail.bodies:
        body = _body(part, arguments, changed, "" if detail.records else subject)
        if records.having(MARKS):
            body += album.inside(part.data)
    if detail.records and part.data:
        body.append(Code(as_json(part.data), "json", "Kept by the program"))

    return Fold(
        kind="call",
        label=part.tool or "tool",
        about=subject,
        details=_details(part, changed, codes),
        state=_state(part),
        tone=_tone(part, codes),
        blocks=(*cut_all(body, detail), *nested),
    )


def _state(part: Part) -> str:
    """Return in a word how a call ended, or is; nothing if it is unknown."""
    if part.outcome:
        return str(part.outcome)
    return "failed" if part.status == "error" else part.status or ""


def _tone(part: Part, codes: list[int]) -> str:
    """Return the tone of a call, see `Fold`."""
    if part.outcome:
        return "error"
    if codes and part.status == "completed":
        return "odd"
    if part.status == "completed":
        return "ok"
    return "error" if part.status == "error" else "open"


def _details(part: Part, changed: Changes, codes: list[int]) -> tuple[str, ...]:
    details = [changed.counted(), *(f"exit {code}" for code in codes), _time(part)]
    return tuple([detail for detail in details if detail])


def _error_codes(records: Records) -> list[int]:
    """Return the codes with which a command failed, if its program kept them."""
    codes = []
    for level in records.having(_EXITS, _EXIT_DEPTH):
        for record in level:
            for name in _EXITS:
                code = record.get(name)
                # Not True, which is an int too.
                if type(code) is int and code != 0:
                    codes.append(code)
    return codes


def _time(part: Part) -> str:
    if part.time_started is None or part.time_ended is None:
        return ""
    took = part.time_ended - part.time_started
    return duration(took) if took >= _NOTICEABLE else ""


def _joined(value: Any) -> str:
    """Return a string, or a list of strings with spaces between; else nothing."""
    # Not `listed`: each call has a few of these, and most are strings.
    if isinstance(value, str):
        return value
    return " ".join(value) if is_list_of(value, is_text) else ""


def _body(
    part: Part, arguments: Arguments, changed: Changes, subject: str
) -> list[Block]:
    """Return the arguments and the result of a call, without those in *subject*."""
    # A command stays: a subject is an excerpt, and may end in the middle of it.
    mentioned = [
        key
        for key, value in arguments.fields.items()
        if value == subject != "" and key in _MENTIONS
    ]
    fields = without({*changed.used, *mentioned}, arguments.fields)
    todos, command = _take_todos(fields), _take_command(fields)
    body: list[Block] = []
    if arguments.bare is not None and not changed.used:
        body.append(Code(as_text(arguments.bare)))
    body += [*command, *_field_blocks(fields), *todos, *changed.codes]

    result = (part.text or "").rstrip("\n")
    if result:
        label = "Error" if part.status == "error" else "Result"
        body.append(Output(result, language_of(result), label))
    return body


def _take_todos(fields: dict[str, Any]) -> list[Todos]:
    """Return the todo list among the arguments, and take it out of them."""
    items = fields.get("todos")
    if not items or not is_list_of(items, _is_todo):
        return []

    del fields["todos"]
    return [Todos(tuple([_todo(item) for item in items]))]


def _is_todo(item: Any) -> bool:
    return is_object(item) and isinstance(item.get("content"), str)


def _todo(item: Mapping[str, Any]) -> tuple[str, str]:
    return str(item.get("status") or "pending"), item["content"]


def _take_command(fields: dict[str, Any]) -> list[Command]:
    """Return the command line among the arguments, and take it out of them."""
    for key in _COMMANDS:
        command = _joined(fields.get(key))
        if command:
            del fields[key]
            return [Command(command, "bash")]
    return []


def _field_blocks(fields: Mapping[str, Any]) -> Iterator[Code]:
    """Yield the arguments; short ones share a block above the long ones."""
    short, long = [], []
    for key, value in fields.items():
        text = as_text(value)
        line = f"{key}: {text}"

        if "\n" not in line and len(line) <= _SHORT:
            short.append(line)
        else:
            long.append(Code(text, None if is_text(value) else "json", key))

    if short:
        yield Code("\n".join(short))
    yield from long


def language_of(text: str) -> str | None:
    """Return the language of a result if it is obvious, else None."""
    if text.startswith(_JSON_STARTS):
        return "json"
    return "diff" if is_diff(text) else None


def cut_all(blocks: Iterable[Block], detail: Detail) -> list[Block]:
    """Return *blocks*, long texts cut to the limits of *detail*."""
    return [cut(it, detail) if isinstance(it, Code) else it for it in blocks]


def cut(code: Code, detail: Detail) -> Code:
    """Return *code* within the limits of *detail*; ``left_out`` counts the rest."""
    text = code.text.rstrip("\n")
    limits = detail.diffs if code.language == "diff" else detail.limits

    # A short text has no line that is too wide either.
    if len(text) <= limits.shortest and text.count("\n") < limits.lines:
        return code if text is code.text else _shortened(code, text)

    lines = text[: limits.characters].split("\n", limits.lines)[: limits.lines]
    more = len(text) - sum(len(line) for line in lines) - len(lines) + 1

    if max(len(line) for line in lines) > limits.width:
        lines = [_narrowed(line, limits.width) for line in lines]
    return _shortened(code, "\n".join(lines), _counted(text[len(text) - more :]))


def _shortened(code: Code, text: str, left_out: str = "") -> Code:
    # `dataclasses.replace` would take three times as long.
    return type(code)(text, code.language, code.label, left_out)


def _counted(left_out: str) -> str:
    """Return how much is left out, in lines or else in characters; nothing if empty."""
    if not left_out:
        return ""
    lines = left_out.count("\n")
    if lines:
        return count(lines, "more line")
    return count(len(left_out), "more character")


def _narrowed(line: str, width: int) -> str:
    more = len(line) - width
    return line if more <= 0 else f"{line[:width]}… (+{more:,})"
