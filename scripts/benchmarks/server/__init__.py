"""sessiondb on a server against plain psycopg: `scripts/bench --engine postgresql`.

A floor is what a program would write that has no library: a few statements, prepared,
in one transaction, for the same rows in the same tables (`raw`). So unlike that of a
file it does not take part in what sessiondb sends, and has no search index to fill.
Both sides use one server and, where they write, one set of tables; they take turns.

No module is loaded before its rows are asked for: the driver is an extra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

#: The rows of a server, each with the module and the function that measure them.
GROUPS = {
    "append": ("append", "append_rows"),
    "appenders": ("append", "appender_rows"),
    "processes": ("processes", "rows"),
    "hot": ("processes", "hot_rows"),
    "load": ("reading", "load_rows"),
    "list": ("reading", "list_rows"),
    "usage": ("reading", "usage_rows"),
    "last": ("reading", "last_rows"),
    "fork": ("moving", "fork_rows"),
    "search": ("searching", "rows"),
    "import": ("moving", "import_rows"),
    "copy": ("moving", "copy_rows"),
}


def rows_of(name: str) -> Callable[[Any], Iterator[Any]]:
    """Return the function that measures a group; `SystemExit` without the driver."""
    if find_spec("psycopg") is None:
        raise SystemExit(
            "psycopg is not installed: pip install 'sessiondb[postgresql]'"
        )
    module, function = GROUPS[name]
    rows: Callable[[Any], Iterator[Any]] = getattr(
        import_module(f"benchmarks.server.{module}"), function
    )
    return rows


def opened(
    url: str | None, latency: float, *, quick: bool
) -> Callable[[Path], AbstractContextManager[Any]]:
    """Return what runs a server for a group, or empties that of *url* after it."""
    from benchmarks.server.place import given_server, own_server

    if url is not None:
        return lambda folder: given_server(folder, url, quick=quick)
    return lambda folder: own_server(folder, quick=quick, latency=latency)
