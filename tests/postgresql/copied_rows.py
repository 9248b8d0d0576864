"""The rows of a file in a database of a server: what is made by one engine, read by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sessiondb import Store
from sessiondb.maintenance.copying import copy


def copy_rows(path: Path, connection: Any) -> None:
    """Copy what is in the file at *path* into an empty database with our tables."""
    with Store.open(path) as source, Store.open(connection.address.url) as to:
        copy(source, to)
