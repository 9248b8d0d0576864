"""The stores whose sessions are sent through a tool, and what is in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from sessiondb import ALL, Session, Store
from sessiondb.formats import find
from sessiondb.maintenance.bundle import parents_first
from sessiondb.model import Problem
from verifying.sessions import talk

ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = Path(
    os.environ.get("SESSIONDB_FIXTURES", ROOT.parent / "shared" / "fixtures")
)
SAMPLE = ROOT / "examples" / "sample-opencode"
MADE_HERE = Path("made here")


def sessions_of(store: Store) -> list[Session]:
    """Return every session, parents first."""
    every = store.sessions(
        project=ALL, archived=True, subagents=True, empty=True, limit=1000
    )
    return parents_first(store, list(every)[::-1])


def fill(store: Store, path: Path) -> None:
    """Import the sessions of a store, or make some."""
    if path is MADE_HERE:
        talk(store)
        return
    for found in find(path):
        for item in store.ingest(found.read()):
            if isinstance(item, Problem):
                print(f"{path}: {item.why}", file=sys.stderr)


def stores(asked: list[Path], *fixtures: str) -> Iterator[tuple[str, Path]]:
    """Yield a name and the path of each store; *fixtures* are patterns of their names."""
    real = [
        path for name in fixtures for path in sorted(FIXTURES.glob(f"{name}/data*"))
    ]
    for path in asked or [MADE_HERE, SAMPLE, *real]:
        yield (path.parent.name if path.name == "data" else path.name), path
