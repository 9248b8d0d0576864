"""What a sample is: a small store of one layout, and a large one.

The samples of a format are the ``SAMPLES`` of its module ``samples_NAME``, and its real
stores the ``REAL`` of that module; `samples` has those of all formats.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def connected(path: Path) -> sqlite3.Connection:
    """Open a database of another program, to write it; no power cut is survived."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = OFF")
    return db


@dataclass(frozen=True)
class Sample:
    """A layout of a format.

    *write* makes a store of three sessions in a folder; *large*, of at least one
    layout of each format, makes one session of more than `LARGE` bytes in many messages.
    *writes* is the format that it is written back in, its own unless stated.
    """

    format: str
    write: Callable[[Path], Any]
    large: Callable[[Path], Any] | None = None
    writes: str = ""


#: Bytes of a large store, and of each of its messages.
LARGE = (200 if os.environ.get("SESSIONDB_LONG") else 20) << 20
PIECE = 64 << 10
