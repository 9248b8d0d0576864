"""The command line: one file per command or small group, loaded when it is typed.

stdout is data, stderr is talk, exit codes are an API. Nothing here is imported
before it is needed: ``--help``, ``--version`` and ``path`` load no SQLAlchemy.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave the process; the entry point ``sessiondb``."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ModuleNotFoundError as error:
        sys.exit(f"sessiondb: {error.name} is missing; run `pip install 'sessiondb[cli]'`")
    from sessiondb.cli.app import app

    app.main()
