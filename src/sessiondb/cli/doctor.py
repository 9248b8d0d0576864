"""``doctor``: versions, settings and sizes, to read or to paste into a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options
from sessiondb.cli.text import clock, one_line, short_id, size
from sessiondb.hints import with_database


@click.command("doctor")
@shared.as_json
@click.pass_obj
def doctor_command(options: Options, *, as_json: bool) -> None:
    """Versions, settings and sizes of this installation and its database."""
    from sessiondb.location import resolve
    from sessiondb.maintenance import diagnose

    # Not `locate`: the advice says what it would report.
    report = diagnose(resolve(options.db, scope=options.scope))
    report["advice"] = [
        with_database(line, options.database) for line in report["advice"]
    ]
    if as_json:
        output.write_json(report)
    else:
        output.page(_lines(report))


def _lines(report: dict[str, Any]) -> Iterator[str]:
    shown = output.screen()
    for name, value in report.items():
        if name == "advice":
            for line in value:
                yield shown.style(f"! {one_line(line)}", fg="yellow")
        elif not isinstance(value, dict | list):
            yield f"{_label(name)}: {_fact(name, value)}"
        elif value:
            yield shown.style(_label(name), bold=True)
            yield from _section(name, value)


def _section(name: str, value: Any) -> Iterator[str]:
    if name == "bytes_by_table":
        for table, number in value.items():
            yield f"  {size(number):>10}  {table}"
    elif name == "biggest_sessions":
        for s in value:
            title = one_line(s["title"])
            yield f"  {size(s['bytes']):>10}  {short_id(s['id'])}  {title}"
    elif isinstance(value, list):
        for item in value:
            yield f"  {one_line(str(item))}"
    else:
        for key, fact in value.items():
            yield f"  {_label(key):<20} {_fact(key, fact)}"


def _label(name: str) -> str:
    return name.replace("_", " ")


def _fact(name: str, value: Any) -> str:
    """Return a value as text; its name says what it measures."""
    if value is None or value == []:
        return "–"
    if name.startswith("time"):
        return clock(value)
    if name.startswith("bytes"):
        return size(value)
    return one_line(str(value))
