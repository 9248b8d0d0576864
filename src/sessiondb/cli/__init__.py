"""The command line: one file per command or small group, loaded when it is typed.

stdout is data, stderr is for people, exit codes are an API. Nothing here is imported
before it is needed: ``--help``, ``--version`` and ``path`` load no SQLAlchemy.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import NoReturn

#: The exit code of a process that SIGTERM ended, as shells report it.
TERMINATED = 128 + signal.SIGTERM


def main() -> NoReturn:
    """Run the command line and raise `SystemExit`."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ModuleNotFoundError as error:
        _report_missing(
            f"{error.name} is missing", "run `pip install 'sessiondb[cli]'`"
        )
    from sessiondb.cli.app import app

    app.main()


def _report_missing(message: str, hint: str) -> NoReturn:
    """Report an error as `failures` does, which cannot be imported without click."""
    if {"--json", "--jsonl"}.isdisjoint(sys.argv):
        sys.exit(f"sessiondb: {message}; {hint}")

    import json

    error = {
        "type": "MissingExtraError",
        "message": message,
        "hint": hint,
        "exit_code": 1,
    }
    sys.exit(json.dumps({"error": error}))


def run() -> NoReturn:
    """Run the command line and end the process; the entry point ``sessiondb``.

    A quarter of the time of ``list`` would go into garbage collection of modules
    while they are imported, and into unloading them one by one at the end. So the
    collector starts when a store is opened (`opening.open_store`), and a command
    whose database is closed ends the process at once.
    """
    gc.disable()
    # Ended at once, a command would leave the hidden file that it is writing.
    signal.signal(signal.SIGTERM, _exit_terminated)
    try:
        main()
    except KeyboardInterrupt:  # while modules were being loaded
        os._exit(130)
    except SystemExit as done:
        if not isinstance(done.code, int):
            raise
        sys.stderr.flush()
        os._exit(done.code)


def _exit_terminated(*_: object) -> NoReturn:
    raise SystemExit(TERMINATED)
