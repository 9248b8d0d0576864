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
def doctor_command(options: Options, *, as_json: bool) -> int:
    """Versions, settings and sizes of this installation and its database.

    If the database cannot be used, the error is part of the report, and the exit code
    is that of the error.
    """
    from sessiondb.location import resolve
    from sessiondb.maintenance import diagnose

    # Not `locate`: the advice says what it would report.
    report = diagnose(resolve(options.db, scope=options.scope))
    advice = [with_database(line, options.database) for line in report.pop("advice")]
    if as_json:
        output.write_json(report | {"advice": advice})
    else:
        output.page(_report_lines(report, advice))
    return int(report.get("error", {}).get("exit_code", 0))


def _report_lines(report: dict[str, Any], advice: list[str]) -> Iterator[str]:
    shown = output.screen()
    for name, value in report.items():
        if not isinstance(value, dict | list):
            yield f"{_fact_label(name)}: {_fact_text(name, value)}"
        elif value:
            yield shown.style(_fact_label(name), bold=True)
            lines = _SECTIONS.get(name, _fact_lines)
            yield from (f"  {line}" for line in lines(value))
    for line in advice:
        yield shown.style(f"! {one_line(line)}", fg="yellow")


def _fact_lines(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from (one_line(str(item)) for item in value)
        return
    for key, fact in value.items():
        yield f"{_fact_label(key):<20} {_fact_text(key, fact)}"


def _bytes_by_table(value: Any) -> Iterator[str]:
    for table, number in value.items():
        yield f"{size(number):>10}  {table}"


def _biggest_sessions(value: Any) -> Iterator[str]:
    for s in value:
        yield f"{size(s['bytes']):>10}  {short_id(s['id'])}  {one_line(s['title'])}"


#: The parts of a report that are more than labels and facts.
_SECTIONS = {
    "bytes_by_table": _bytes_by_table,
    "biggest_sessions": _biggest_sessions,
}


def _fact_label(name: str) -> str:
    return name.replace("_", " ")


def _fact_text(name: str, value: Any) -> str:
    """Return a value as text; the beginning of its name is its unit."""
    if value is None or value == []:
        return "–"
    unit = name.partition("_")[0]
    if unit == "time":
        return clock(value)
    if unit == "bytes":
        return size(value)
    return one_line(str(value))
