"""The engine of database files, for whoever has a path and no connection."""

from __future__ import annotations

from typing import Final

from sessiondb.engine.base import Engine
from sessiondb.engine.sqlite.engine import SQLITE

ENGINE: Final[Engine] = SQLITE
