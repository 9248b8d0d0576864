"""``python -m sessiondb`` is the ``sessiondb`` command."""

from __future__ import annotations

from sessiondb.cli import run

run()
