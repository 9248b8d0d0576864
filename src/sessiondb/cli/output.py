"""stdout: JSON, tab-separated lines in a pipe, tables and a pager on a terminal.

JSON is UTF-8 whatever the locale; NaN and infinities, which JSON cannot
represent, are the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``, bytes are
``{"base64": …}``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

import click

from sessiondb.cli.opening import current
from sessiondb.cli.text import cell, cut, escape_json, one_line, pad
from sessiondb.dataclass import dataclass, field

T = TypeVar("T")

#: The width below which no column of a table is cut.
MIN_COLUMN = 8
#: The same for the last column, and for a title.
MIN_TITLE = 16


@dataclass(frozen=True, slots=True)
class Screen:
    """The properties of stdout: whether a terminal, whether coloured, its size."""

    terminal: bool
    color: bool
    width: int
    height: int

    def style(self, text: str, **styles: Any) -> str:
        """Return *text* in the style that `click.style` knows, if there is colour."""
        # Without a style it would still end in the sequence that resets one.
        if not (self.color and text and any(styles.values())):
            return text
        return click.style(text, **styles)


def screen() -> Screen:
    """Return the properties of stdout; honours NO_COLOR and ``--color``."""
    terminal = sys.stdout.isatty()
    columns, lines = shutil.get_terminal_size()
    return Screen(terminal, _has_color(terminal), columns, lines)


def _has_color(terminal: bool) -> bool:
    chosen = current().color
    if chosen != "auto":
        return chosen == "always"
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return terminal and not plain


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """Items in each form that a command can write.

    ``--json`` is one document with the list *name* and the fields *more*, ``--jsonl``
    an item a line. A pipe gets tab-separated *values*, a terminal a *table*; for no
    item both are empty.
    """

    name: str
    items: Sequence[T]
    as_json: Callable[[T], Any]
    values: Callable[[T], Sequence[Any]]
    table: Callable[[Sequence[T]], Iterator[str]]
    more: Mapping[str, Any] = field(default_factory=dict)

    def write(self, *, as_json: bool = False, as_jsonl: bool = False) -> None:
        """Write the items in the chosen form, or in the one that suits stdout."""
        if as_json:
            records = [self.as_json(item) for item in self.items]
            write_json({self.name: records, **self.more})
        elif as_jsonl:
            write_jsonl(self.as_json(item) for item in self.items)
        elif not screen().terminal:
            for item in self.items:
                write_tsv(*self.values(item))
        elif self.items:
            page(self.table(self.items))


def write(text: str) -> None:
    """Write text to stdout; what its encoding cannot represent is escaped."""
    _write_bytes(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


def _write_bytes(data: bytes) -> None:
    sys.stdout.buffer.write(data)


def page(lines: Iterable[str]) -> None:
    """Write lines as they come; ``$PAGER`` shows what does not fit on a terminal."""
    coming: Iterator[str] = (f"{line}\n" for line in lines)
    shown = screen()
    if shown.terminal:
        first, fits = _take_screenful(coming, shown)
        coming = chain(first, coming)
        if not fits:
            # R: let our colours pass; X: leave the text on the screen.
            os.environ.setdefault("LESS", "RX")
            click.echo_via_pager(coming, color=shown.color)
            return

    for text in coming:
        write(text)


def _take_screenful(lines: Iterator[str], shown: Screen) -> tuple[list[str], bool]:
    """Take lines until the screen is full; return them, and whether all of them fit."""
    from rich.cells import cell_len

    first: list[str] = []
    rows = 0
    for line in lines:
        first.append(line)
        rows += max(1, -(-cell_len(click.unstyle(line.rstrip("\n"))) // shown.width))
        if rows >= shown.height:
            return first, False
    return first, True


def write_tsv(*values: Any) -> None:
    """Write one tab-separated line."""
    write("\t".join(cell(value) for value in values) + "\n")


def dumps(value: Any) -> str:
    """Return *value* as JSON text on one line, exact and harmless on a terminal."""
    # NaN and infinities are rare: only after a failure they are read back as strings.
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, default=_refuse_value
        )
    except ValueError:
        text = json.dumps(value, ensure_ascii=False, default=_refuse_value)
        text = json.dumps(json.loads(text, parse_constant=str), ensure_ascii=False)
    return escape_json(text)


def _refuse_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bytes):
        import base64

        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(f"not a JSON value: {value!r}")


def write_json(value: Any) -> None:
    """Write one JSON document."""
    write_document(dumps(value))


def write_result(value: Any, text: str, *, as_json: bool) -> None:
    """Write the result of a command: *value* as JSON, or its one line of *text*."""
    if as_json:
        write_json(value)
    else:
        write(f"{text}\n")


def write_document(text: str) -> None:
    """Write JSON text and end its line."""
    _write_bytes(text.encode() + b"\n")


def write_jsonl(values: Iterable[Any]) -> None:
    """Write one JSON document a line, each as soon as it is available."""
    for value in values:
        write_json(value)


def write_json_stream(
    fields: Mapping[str, Any], name: str, values: Iterable[Any]
) -> None:
    """Write one JSON object with *fields* and the list *name*, item by item."""
    head = dumps(fields)[:-1] + (", " if fields else "")
    write_array(values, f"{head}{dumps(name)}: ", "}")


def write_array(values: Iterable[Any], before: str = "", after: str = "") -> None:
    """Write a JSON list between two texts, an item a line."""
    _write_bytes(before.encode())
    separator = "["
    for value in values:
        _write_bytes(f"{separator}\n{dumps(value)}".encode())
        separator = ","
    write_document(("[" if separator == "[" else "\n") + "]" + after)


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], right: str = "", spare: str = ""
) -> Iterator[str]:
    """Yield the lines of an aligned table; its widest columns shrink to fit the screen.

    *right* names the columns that are aligned to the right, *spare* those that a
    narrow screen leaves out, the first one first; both separated by spaces.
    """
    shown, fixed = screen(), right.split()
    lines = [list(head), *([one_line(value) for value in row] for row in rows)]
    columns = dict(zip(head, zip(*lines, strict=True), strict=True))
    columns, widths = _fitting_columns(columns, fixed, spare.split(), shown.width)

    # The head is the first line, so that it counts for the widths too.
    for number, row in enumerate(zip(*columns.values(), strict=True)):
        cells = [
            pad(cut(value, widths[name]), widths[name], right=name in fixed)
            for name, value in zip(columns, row, strict=True)
        ]
        line = cut("  ".join(cells).rstrip(), shown.width)
        yield line if number else shown.style(line, bold=True)


Columns = dict[str, tuple[str, ...]]


def _fitting_columns(
    columns: Columns, fixed: list[str], spare: list[str], width: int
) -> tuple[Columns, dict[str, int]]:
    """Return the columns that fit, without *spare* ones if need be, and widths."""
    columns = dict(columns)
    # At first none is left out.
    for name in ["", *spare]:
        columns.pop(name, None)
        room = width - 2 * (len(columns) - 1)
        widths = _column_widths(columns, fixed, room)
        if sum(widths.values()) <= room:
            break
    return columns, widths


def _column_widths(columns: Columns, fixed: list[str], room: int) -> dict[str, int]:
    """Return the widths of columns; text shrinks until all fit, or to a minimum."""
    from rich.cells import cell_len

    widths = {
        name: max(cell_len(text) for text in column) for name, column in columns.items()
    }
    least = {name: MIN_COLUMN for name in columns if name not in fixed}
    last = list(columns)[-1]
    if last in least:
        least[last] = MIN_TITLE

    # Column by column from the widest one, so that they end up about equal.
    while sum(widths.values()) > room:
        wide = [name for name, width in least.items() if widths[name] > width]
        if not wide:
            break
        widths[max(wide, key=lambda name: widths[name])] -= 1
    return widths
