"""Programs of the npm registry, installed once and called by their path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: The longest that a command may take, in seconds.
PATIENCE = 120


def installed(folder: Path, program: str, *packages: str) -> Path:
    """Return the path of a *program* below ``node_modules``.

    Its *packages* are installed in *folder* unless it is there.
    """
    path = folder / "node_modules" / program
    if path.exists():
        return path

    print(f"installing {' and '.join(packages)} ...", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    quiet = ("--no-audit", "--no-fund", "--loglevel", "error")
    command = ["npm", "install", "--prefix", str(folder), *quiet, *packages]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return path


def search_path(folder: Path) -> str:
    """Return a ``PATH`` on which the programs in *folder* come first."""
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
