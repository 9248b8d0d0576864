"""The names with which a program adds tables of its own: see `schema.extensions`.

This module loads SQLAlchemy, in which such tables and statements are written.
"""

from __future__ import annotations

from sessiondb.engine.expressions import numbers, pairs, texts
from sessiondb.schema.extensions import Extension, session_column

__all__ = ["Extension", "numbers", "pairs", "session_column", "texts"]
