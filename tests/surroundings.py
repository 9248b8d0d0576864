"""Surroundings of the process that runs tests, set before anything else is imported.

Bytecode is always kept, temporary files are in memory if the system has room there, and
an interrupt arrives. Child processes inherit all of it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Files in memory, on Linux. Nothing that a test writes has to outlive a power cut, and
#: on a disk every commit, and every database that is closed, would wait for one.
_MEMORY = Path("/dev/shm")
#: Bytes to have free there: some tests write stores of hundreds of megabytes.
_ROOM = 4 << 30

# Under PYTHONDONTWRITEBYTECODE every run compiles all tests again, with their assertions, and
# each of its children all of sessiondb. No __pycache__ is left beside the sources here either.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(ROOT / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _is_usable(folder: Path) -> bool:
    """Return whether tests can have their files in *folder*, the programs among them, too."""
    return (
        os.access(folder, os.W_OK)
        and shutil.disk_usage(folder).free >= _ROOM
        # Containers usually have a /dev/shm from which no program is executed.
        and not os.statvfs(folder).f_flag & os.ST_NOEXEC
    )


if "TMPDIR" not in os.environ and _is_usable(_MEMORY):
    os.environ["TMPDIR"] = str(_MEMORY)
    tempfile.tempdir = None  # pytest has looked it up to capture what is printed

# A runner in the background starts us with SIGINT ignored, and so would every child be that a
# test interrupts: an ignored signal is inherited through exec, a handled one is not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
