"""The table of what each format carries, in docs/FORMATS.md, follows from statements.

Run as a program, this module writes the table.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from sessiondb.formats.kit.carrying import Carried, CarryStatement, carriable_fields
from sessiondb.model import Message, Part, Session

PAGE = Path(__file__).parents[2] / "docs" / "FORMATS.md"
#: The formats, with the modules of their statements.
FORMATS = {
    "opencode": "opencode.v1",
    "opencode2": "opencode.v2",
    "claude": "claude",
    "codex": "codex",
    "pi": "pi",
    "goose": "goose",
    "aider": "aider",
    "event-log": "event_log",
}
NOTHING = Carried()


def statements() -> dict[str, CarryStatement]:
    """Return what each format carries of a session of another program."""
    modules = {
        name: import_module(f"sessiondb.formats.{path}.carried")
        for name, path in FORMATS.items()
    }
    return {name: module.CARRIES for name, module in modules.items()}


def mark(carried: Carried, field: str) -> str:
    """Return whether a field is carried: yes, some values of it, or no."""
    if field in carried.fields:
        return "yes"
    some = carried.values.keys() | carried.objects | carried.texts
    is_some = field in some or (field == "data" and carried.keys)
    return "some" if is_some else ""


def table() -> str:
    """Return the table as the page has it."""
    stated = statements()
    answers = {
        name: item.messages.get("assistant", NOTHING) for name, item in stated.items()
    }
    calls = {name: item.parts.get("tool", NOTHING) for name, item in answers.items()}
    cuts = {
        name: item.messages.get("event:compaction")
        or item.messages.get("event")
        or NOTHING
        for name, item in stated.items()
    }
    sessions = {name: item.session for name, item in stated.items()}
    rows = [
        *rows_of("session", Session, sessions),
        *rows_of("answer", Message, answers),
        *rows_of("call", Part, calls),
        *rows_of("compaction", Message, cuts),
    ]
    head = ["| of | field |", *(f" `{name}` |" for name in stated)]
    return "\n".join(["".join(head), "|---|---|" + "---|" * len(stated), *rows])


def rows_of(of: str, record: type, carried: dict[str, Carried]) -> list[str]:
    """Return a row for each field that some of the formats carry, and not all."""
    rows = []
    for field in sorted(carriable_fields(record)):
        marks = [mark(item, field) for item in carried.values()]
        if len(set(marks)) > 1:
            rows.append(f"| {of} | `{field}` |" + "".join(f" {m} |" for m in marks))
    return rows


def test_the_page_says_what_each_format_carries() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    before, rest = PAGE.read_text(encoding="utf-8").split("| of | field |", 1)
    _, after = rest.split("\n\n", 1)
    PAGE.write_text(f"{before}{table()}\n\n{after}", encoding="utf-8")
