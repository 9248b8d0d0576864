"""The rows that must be equal after a session was written to a log and imported elsewhere."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sessiondb import Store
from sessiondb.formats import find, jsonl
from sessiondb.model import Document, Imported, Problem

#: Columns that are specific to one file, or that only record when a row was written.
LOCAL = {
    "session": {"rid", "change", "project_id", "time_importing"},
    "message": {"rid"},
    "part": {"rid"},
    "todo": {"rid"},
    "file_diff": {"rid"},
    "label": {"rid"},
    "prompt": {"rid", "project_id"},
    "blob": {"rid"},
    "project": {"rid", "time_created", "time_updated"},
}
#: Sums of floats over the messages of a session.
SUMS = {("session", "cost"), ("session", "cost_inherited")}
JSON = {"metadata", "revert", "permission", "summary_diffs", "error", "input"}


def tables(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return every row that matters, JSON decoded, in an order of their own."""
    found: dict[str, list[dict[str, Any]]] = {}
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    for table, local in LOCAL.items():
        rows = []
        for row in connection.execute(f"SELECT * FROM {table}"):
            values = {key: row[key] for key in row.keys() if key not in local}  # noqa: SIM118
            for name in JSON & values.keys():
                values[name] = values[name] and json.loads(values[name])
            if "metadata" in values:
                values["metadata"].pop("share", None)
            rows.append(values)
        found[table] = sorted(rows, key=repr)
    connection.close()
    return found


def bundle(store: Store, ids: Iterable[str]) -> str:
    """Return several sessions as one log."""
    exports = [store.export(name, **jsonl.READ) for name in ids]
    documents = jsonl.write_logs(exports, together=True)
    return "".join(
        "".join(item.chunks) for item in documents if isinstance(item, Document)
    )


def log(store: Store, name: str) -> str:
    """Return one session as a log."""
    return bundle(store, [name])


def read_into(store: Store, path: Path, **how: Any) -> list[Imported | Problem]:
    """Import what is at *path*."""
    return [
        result for found in find(path) for result in store.ingest(found.read(), **how)
    ]


def outcomes(results: Iterable[Imported | Problem]) -> list[str]:
    """Return the outcome of each session; of a problem its text."""
    return [r.outcome if isinstance(r, Imported) else r.why for r in results]


def differences(a: Path, b: Path) -> list[str]:
    """Return the rows in which two databases differ, or ``[]``."""
    found = []
    left, right = tables(a), tables(b)
    for table, rows in left.items():
        if len(rows) != len(right[table]):
            found.append(f"{table}: {len(rows)} and {len(right[table])} rows")
        for x, y in zip(rows, right[table], strict=False):
            unlike = [n for n in x if not _is_alike((table, n), x[n], y[n])]
            found += [f"{table}.{n}: {x[n]!r} != {y[n]!r}" for n in unlike]
    return found


def _is_alike(column: tuple[str, str], a: Any, b: Any) -> bool:
    # A cost is added as messages come, and summed by SQLite after an import: the same
    # addends in another order round to other last digits, and mean the same.
    if column in SUMS and a is not None and b is not None:
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return bool(a == b)
