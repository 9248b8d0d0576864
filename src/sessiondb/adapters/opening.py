"""How an adapter gets its store: a path, a URL, or a store that is open already."""

from __future__ import annotations

import os
from typing import Any

from sessiondb.store import Store


def open_store(
    database: str | os.PathLike[str] | Store | None, **options: Any
) -> Store:
    """Return an open store; *options* are those of `Store.open`.

    A store that is given stays that of the caller, who closes it.
    """
    if isinstance(database, Store):
        return database
    return Store.open(database, **options)
