"""Tests of SQLite itself: of its files, plans, triggers and shell."""

from __future__ import annotations

from facades import contract, session  # noqa: F401  fixtures
