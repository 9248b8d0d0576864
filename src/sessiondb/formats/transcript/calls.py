"""A tool call as something folded: a line that reports how it went, the rest below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.errors import CorruptionError
from sessiondb.formats.kit.fields import without_keys
from sessiondb.formats.transcript.ansi import shown_output
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
    changes_of_call,
    is_diff,
)
from sessiondb.formats.transcript.detail import Detail
from sessiondb.formats.transcript.pictures import MARKS, Album
from sessiondb.formats.transcript.shapes import (
    CallRecords,
    as_json,
    as_text,
    first_text,
    is_list_of,
    is_object,
    is_text,
    text_of,
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
    "message",
    "i",
)
#: The arguments that are a todo list, and the text of an item.
_TODO_LISTS, _TODO_TEXTS = ("todos", "plan"), ("content", "step", "description")
_COMMANDS = ("command", "cmd", "script")
#: Those that are not shown again below the line of the call.
_MENTIONS = frozenset(_SUBJECTS).difference(_COMMANDS)
#: The tones of calls of which it is shown why they failed.
FAILURES = ("error", "odd")
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

    def named_values(self) -> Mapping[str, Any]:
        """Return the fields; the bare value counts as ``input``."""
        return self.fields if self.bare is None else {"input": self.bare}

    def subject_words(self, title: str | None) -> str:
        """Return a few words for the call: its title, or what it was given."""
        for value in self._subjects(title):
            text = _joined_strings(value)
            words = excerpt(text)
            # The files that a patch changes say more than how it begins.
            if words and not is_diff(text):
                return words
        return ""

    def _subjects(self, title: str | None) -> Iterator[Any]:
        """Yield what may have these words, the best first."""
        if title:
            yield title
        if self.bare:
            yield self.bare
        for name in _SUBJECTS:
            if self.fields.get(name):
                yield self.fields[name]


def call_fold(
    part: Part,
    detail: Detail,
    album: Album,
    nested: tuple[Block, ...] = (),
    directory: str = "",
) -> Fold:
    """Return the call *part*; *nested* are the sessions it started.

    A file below *directory* is named by its place in it.
    """
    arguments = Arguments.of_call(part)
    records = CallRecords(part.data)
    codes = _error_codes(records)
    # The changes of a failed call were not made.
    failed = part.status == "error"
    changed = (
        NO_CHANGES if failed else changes_of_call(arguments.named_values(), records)
    )

    tone = _call_tone(part, codes)
    subject = arguments.subject_words(part.title)
    about = subject or changed.name_files()
    # The directory of a session that has none may be the root.
    if directory.strip("/"):
        about = about.removeprefix(f"{directory.rstrip('/')}/")
    body: list[Block] = []
    if detail.bodies:
        body = _call_body(
            part, arguments, changed, subject, detail, is_failure=tone in FAILURES
        )
        if records.levels_having(MARKS):
            body += album.pictures_inside(part.data)
    if detail.records and part.data:
        body.append(Code(as_json(part.data), "json", "Kept by the program"))

    return Fold(
        kind="call",
        label=part.tool or "tool",
        about=about,
        details=_call_details(part, changed, codes),
        state=_call_state(part),
        tone=tone,
        blocks=(*cut_all(body, detail), *nested),
    )


def _call_state(part: Part) -> str:
    """Return in a word how a call ended, or is; nothing if it is unknown."""
    if part.outcome:
        return str(part.outcome)
    return "failed" if part.status == "error" else part.status or ""


def _call_tone(part: Part, codes: list[int]) -> str:
    """Return the tone of a call, see `Fold`."""
    if part.outcome:
        return "error"
    if codes and part.status == "completed":
        return "odd"
    if part.status == "completed":
        return "ok"
    return "error" if part.status == "error" else "open"


def _call_details(part: Part, changed: Changes, codes: list[int]) -> tuple[str, ...]:
    details = [
        changed.count_lines(),
        *(f"exit {code}" for code in codes),
        _call_duration(part),
    ]
    return tuple([detail for detail in details if detail])


def _error_codes(records: CallRecords) -> list[int]:
    """Return the codes with which a command failed, if its program kept them."""
    codes = []
    for level in records.levels_having(_EXITS, _EXIT_DEPTH):
        for record in level:
            for name in _EXITS:
                code = record.get(name)
                # Not True, which is an int too.
                if type(code) is int and code != 0:
                    codes.append(code)
    return codes


def _call_duration(part: Part) -> str:
    if part.time_started is None or part.time_ended is None:
        return ""
    took = part.time_ended - part.time_started
    return duration(took) if took >= _NOTICEABLE else ""


def _joined_strings(value: Any) -> str:
    """Return a string, or a list of strings with spaces between; else nothing."""
    # Not `listed`: each call has a few of these, and most are strings.
    if isinstance(value, str):
        return value
    return " ".join(value) if is_list_of(value, is_text) else ""


def _call_body(
    part: Part,
    arguments: Arguments,
    changed: Changes,
    subject: str,
    detail: Detail,
    *,
    is_failure: bool,
) -> list[Block]:
    """Return the arguments and the result of a call, without those in *subject*."""
    if detail.records:
        subject = ""
    # A command stays: a subject is an excerpt, and may end in the middle of it.
    mentioned = [
        key
        for key, value in arguments.fields.items()
        if value == subject != "" and key in _MENTIONS
    ]
    fields = without_keys({*changed.used, *mentioned}, arguments.fields)
    todos, command = _take_todos(fields), _take_command(fields)
    body: list[Block] = []
    if detail.arguments and arguments.bare is not None and not changed.used:
        body.append(Code(as_text(arguments.bare)))
    body += command
    if detail.arguments:
        body += _field_blocks(fields)
    body += [*todos, *changed.codes]

    result = (part.text or "").rstrip("\n")
    if result:
        label = "Error" if part.status == "error" else "Result"
        output = output_code(result, detail, label, Output)
        if detail.results or is_failure or output.language == "diff":
            body.append(output)
    return body


def _take_todos(fields: dict[str, Any]) -> list[Todos]:
    """Return the todo list among the arguments, and take it out of them."""
    for name in _TODO_LISTS:
        items = fields.get(name)
        if not items or not is_list_of(items, _is_todo):
            continue

        del fields[name]
        todos = []
        for item in items:
            status = str(item.get("status") or "pending")
            todos.append((status, text_of(item, _TODO_TEXTS)))
        return [Todos(tuple(todos))]
    return []


def _is_todo(item: Any) -> bool:
    return is_object(item) and first_text(item, _TODO_TEXTS) is not None


def _take_command(fields: dict[str, Any]) -> list[Command]:
    """Return the command line among the arguments, and take it out of them."""
    for key in _COMMANDS:
        command = _joined_strings(fields.get(key))
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


def output_code(
    text: str, detail: Detail, label: str = "", kind: type[Code] = Code
) -> Code:
    """Return what a program wrote, as its terminal showed it.

    A level with all records has each state of a progress bar, and sees the rest too.
    """
    shown, styles = shown_output(text, complete=detail.records)
    # Its language if that is obvious.
    language = "diff" if is_diff(shown) else None
    if shown.startswith(_JSON_STARTS):
        language = "json"
    return kind(shown, language, label, styles=None if language else styles)


def cut_all(blocks: Iterable[Block], detail: Detail) -> list[Block]:
    """Return *blocks*, long texts cut to the limits of *detail*."""
    return [cut_code(it, detail) if isinstance(it, Code) else it for it in blocks]


def cut_code(code: Code, detail: Detail) -> Code:
    """Return *code* within the limits of *detail*; ``left_out`` counts the rest."""
    text = code.text.rstrip("\n")
    limits = detail.diffs if code.language == "diff" else detail.limits

    # A short text has no line that is too wide either.
    if len(text) <= limits.shortest and text.count("\n") < limits.lines:
        return code if text is code.text else _with_text(code, text)

    lines = text[: limits.characters].split("\n", limits.lines)[: limits.lines]
    more = len(text) - sum(len(line) for line in lines) - len(lines) + 1

    if max(len(line) for line in lines) > limits.width:
        lines = [_narrow_line(line, limits.width) for line in lines]
    return _with_text(code, "\n".join(lines), _count_left_out(text[len(text) - more :]))


def _with_text(code: Code, text: str, left_out: str = "") -> Code:
    # `dataclasses.replace` would take three times as long.
    return type(code)(text, code.language, code.label, left_out, code.styles)


def _count_left_out(left_out: str) -> str:
    """Return how much is left out, in lines or else in characters; nothing if empty."""
    if not left_out:
        return ""
    lines = left_out.count("\n")
    if lines:
        return count(lines, "more line")
    return count(len(left_out), "more character")


def _narrow_line(line: str, width: int) -> str:
    more = len(line) - width
    return line if more <= 0 else f"{line[:width]}… (+{more:,})"
