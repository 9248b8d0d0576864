"""``doctor``: one screen on the state of the database, or all facts for a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options
from sessiondb.cli.text import clock, count, cut, one_line, short_id, size
from sessiondb.hints import command, with_database

#: Tables and sessions that the short report names.
LARGEST = 3


@click.command("doctor")
@click.option(
    "-v", "--verbose", is_flag=True, help="Every version, setting, table and size."
)
@shared.as_json
@click.pass_obj
def doctor_command(options: Options, *, verbose: bool, as_json: bool) -> int:
    """The state of this installation and its database, and commands that remedy it.

    One screen; --verbose and --json have all facts, for a report. If the database
    cannot be used, the error is part of it, and the exit code is that of the error.
    """
    from sessiondb.location import resolve
    from sessiondb.maintenance import diagnose

    # Not `locate`: the advice says what it would report.
    report = diagnose(resolve(options.db, scope=options.scope))
    advice = [with_database(line, options.database) for line in report.pop("advice")]
    if as_json:
        output.write_json(report | {"advice": advice})
    elif verbose or options.verbose:
        output.page(_report_lines(report, advice))
    else:
        output.page(_short_lines(report, advice, options))
    return int(report.get("error", {}).get("exit_code", 0))


def _short_lines(
    report: dict[str, Any], advice: list[str], options: Options
) -> Iterator[str]:
    """Yield the report of one screen: the database, what is in it, what to do."""
    shown = output.screen()
    versions, place = report["versions"], report["database"]
    engine = place.get("server") or f"SQLite {versions['sqlite']}"
    yield (
        f"sessiondb {versions['sessiondb']} · Python {versions['python']} · "
        f"{one_line(engine)}"
    )
    yield shown.style(one_line(str(place["path"])), bold=True)
    if text := _place_text(place):
        yield f"  {with_database(text, options.database)}"
    if "rows" in report:
        yield from (f"  {line}" for line in _content_lines(report))
    if "error" in report:
        error = report["error"]
        hint = with_database(error["hint"] or "", options.database)
        text = one_line(f"{error['message']}; {hint}".removesuffix("; "))
        yield shown.style(f"! {text}", fg="red")
    for line in advice:
        yield shown.style(f"! {one_line(line)}", fg="yellow")
    if not advice and "error" not in report:
        yield "nothing to remedy"
    every = command("doctor", "--verbose")
    yield with_database(f"every setting and table: {every}", options.database)


def _place_text(place: dict[str, Any]) -> str:
    """Return the size of a database; empty if its server does not answer."""
    if place["exists"] is None:
        return ""
    if not place["exists"]:
        return f"does not exist yet; {command('init')} creates it"
    facts = [size(place["bytes"])]
    if place.get("bytes_wal"):
        facts.append(f"{size(place['bytes_wal'])} in the write-ahead log")
    if place.get("bytes_free_on_disk") is not None:
        facts.append(f"{size(place['bytes_free_on_disk'])} free on the disk")
    if place.get("mode"):
        facts.append(f"mode {place['mode']}")
    return ", ".join(facts)


def _content_lines(report: dict[str, Any]) -> Iterator[str]:
    names = ("session", "message", "part", "blob", "project")
    rows = report["rows"]
    yield ", ".join(count(rows[f"{name}s"], name) for name in names)
    if rows["values"]:
        occupied = size(report["bytes_by_table"]["key_value"])
        yield f"{count(rows['values'], 'value')} of programs, {occupied}"

    last = report["last_import"]
    if last:
        problems = last["with_problems"]
        note = f", {problems:,} with problems" if problems else ""
        files = f"{count(last['files'], 'file')}{note}"
        yield f"last import {clock(last['time_imported'])}: {last['source']}, {files}"

    tables = sorted(report["bytes_by_table"].items(), key=lambda item: -item[1])
    largest = [f"{name} {size(number)}" for name, number in tables[:LARGEST]]
    yield f"largest tables: {', '.join(largest)}"
    for line in list(_biggest_sessions(report["biggest_sessions"]))[:LARGEST]:
        yield cut(line, output.screen().width - 2)


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
