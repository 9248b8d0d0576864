"""The command line: one file per command or small group, loaded when it is typed.

stdout is data, stderr is talk, exit codes are an API. Nothing here is imported
before it is needed: ``--help``, ``--version`` and ``path`` load no SQLAlchemy.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command line and leave the process; the entry point ``sessiondb``."""
    missing = [name for name in ("click", "rich") if find_spec(name) is None]
    if missing:
        sys.exit(f"sessiondb: {missing[0]} is missing; run `pip install 'sessiondb[cli]'`")
    from sessiondb.cli.app import app

    app.main()
