"""The only reader of wall-clock time.

Times are integer Unix milliseconds everywhere. Nothing in the database is
ordered by them: ``seq`` orders history (clocks step back, machines disagree).
"""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the current Unix time in milliseconds."""
    return time.time_ns() // 1_000_000
