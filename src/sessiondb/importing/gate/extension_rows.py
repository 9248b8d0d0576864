"""The check of rows that programs added to a session: see `schema.extensions`.

A table decides which values it takes; here a row has to be one. A row that is refused
is a problem, and costs nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessiondb.errors import InvalidInputError, abridged
from sessiondb.importing.gate.checks import read_on
from sessiondb.model import ExtensionRow, Problem, SourceSession


def extension_rows(
    item: SourceSession, problems: list[Problem]
) -> Iterator[ExtensionRow]:
    """Yield the rows that pass; add the others to *problems*."""
    remainder = f"session {item.source_id}: its other extension_rows"
    for row in read_on(item.extension_rows, item.path, remainder):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        try:
            _check_row(row)
        except InvalidInputError as error:
            reason = f"session {item.source_id}: extension_rows: {error}"
            problems.append(Problem(item.path, reason))
        else:
            yield row


def _check_row(row: Any) -> None:
    if not isinstance(row, ExtensionRow):
        raise InvalidInputError(f"not a row: {abridged(row)}")
    for name in (row.extension, row.table):
        if not isinstance(name, str):
            raise InvalidInputError(f"not a name: {abridged(name)}")
    if not isinstance(row.columns, Mapping):
        raise InvalidInputError(f"not columns: {abridged(row.columns)}")
    for name, value in row.columns.items():
        is_scalar = isinstance(value, str | int | float | bytes)
        if not isinstance(name, str) or not is_scalar or isinstance(value, bool):
            raise InvalidInputError(
                f"not a column: {abridged(name)} with {abridged(value)}"
            )
