"""An environment for each set of packages, installed once and kept in a cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path

from benchmarks.compare.catalog import Store

NO_WORDS = "pip failed without a word"


class NotInstalledError(Exception):
    """The packages of a store cannot be installed here; the text is the last line of pip."""


def cache_folder() -> Path:
    """Return the folder of the environments."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "sessiondb-bench"


def python_of(store: Store, cache: Path) -> Path:
    """Return the interpreter of a store, with its packages; raises `NotInstalledError`."""
    if not store.packages:
        return Path(sys.executable)
    wanted = " ".join((sys.version.split()[0], *store.packages))
    folder = cache / sha256(wanted.encode()).hexdigest()[:16]
    python, complete = folder / "bin" / "python", folder / "complete"
    if complete.exists():
        return python
    print(f"# installing {', '.join(store.packages)} ...", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "--disable-pip-version-check",
    ]
    done = subprocess.run(
        [*pip, "install", "--quiet", *store.packages],
        check=False, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [NO_WORDS]
        raise NotInstalledError(lines[-1])
    complete.write_text(wanted + "\n", encoding="utf-8")
    return python
