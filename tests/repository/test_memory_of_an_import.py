"""The memory that one large record takes on its way from another program's store into ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from backends import Backend

FORMATS = Path(__file__).resolve().parents[1] / "formats"
SIZE = 64 << 20
WRITE = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from opencode_store import *
big = "word " * (int(sys.argv[4]) // 5)
item = session(1, user(1, "x"), assistant(2, tool("bash", "c1", done({}, big))))
path = pathlib.Path(sys.argv[3])
tree_store(path, item) if sys.argv[2] == "tree" else sqlite_store(path / "opencode.db", item)
"""
READ = """
import pathlib, resource, sys
from sessiondb import Store
from sessiondb.formats import find
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
place, path, size = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
with Store.open(place, durability="normal") as store:
    before = peak()
    (result,) = [r for found in find(path) for r in store.ingest(found.read())]
    grown = peak() - before
    (part,) = store.messages(result.id)[1].parts
    assert part.text == "word " * (size // 5)
print(grown)
"""


def run(code: str, *words: object) -> str:
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="the unit of ru_maxrss is that of Linux"
)
@pytest.mark.parametrize("kind", ["tree", "database"])
def test_a_large_record_is_held_a_few_times_and_no_more(
    backend: Backend, tmp_path: Path, kind: str
) -> None:
    # Twice while it is decoded; then as its bytes, and in the copies of the engine.
    run(WRITE, FORMATS, kind, tmp_path / "theirs", SIZE)
    grown = int(run(READ, backend.fresh(), tmp_path / "theirs", SIZE))
    assert grown < backend.copies_of_a_record * SIZE
