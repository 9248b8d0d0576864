"""The engine of every database: SQLite, until a path can name another one."""

from __future__ import annotations

from typing import Final

from sessiondb.engine.base import Engine
from sessiondb.engine.sqlite.engine import SQLite

ENGINE: Final[Engine] = SQLite()
