"""A small store of each layout that a format reads, for tests that hold for all of them.

A further format has a module ``samples_NAME`` beside this one, with `SAMPLES` and
`REAL` of its own; `test_conformance` and the fuzzer then apply to it. Each sample has
three sessions, so that there are neighbours to be harmed, and is the same bytes each
time.
"""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from opencode2_store import answered, asked, called, resulted, session2, sqlite2_store
from opencode_store import (
    assistant,
    done,
    everything,
    failed,
    old_tree_store,
    session,
    sqlite_store,
    text,
    tool,
    tree_store,
    user,
)
from sample import LARGE, PIECE, Sample

from sessiondb import Store
from sessiondb.errors import SourceError
from sessiondb.formats import ForeignStore, find, jsonl
from sessiondb.model import Document, Imported, Problem
from sessiondb.repository.sessions import ALL

TODO = [
    {"content": "Write it down", "status": "pending", "priority": "high", "id": "1"}
]
DIFF = [
    {"file": "a.py", "before": "a\n", "after": "b\n", "additions": 1, "deletions": 1}
]


#: One of our own databases, which is imported only if it is named.
OWN = "sessions.db"


def large_session() -> dict[str, Any]:
    """Return an OpenCode session that is larger than `LARGE`."""
    pieces = range(10, 10 + LARGE // PIECE + 1)
    return session(1, *(user(n, f"{n} ".ljust(PIECE, "x")) for n in pieces))


def _sessions(*, lists: bool = True) -> list[dict[str, Any]]:
    parent = everything()
    child = session(
        2,
        user(10, "Look for it"),
        assistant(
            11, text("Found"), tool("bash", "call_9", done({"command": "ls"}, "a\nb"))
        ),
        parentID="ses_0001",
    )
    other = session(
        3,
        user(20, "Another one"),
        assistant(21, text("Yes"), tool("read", "call_7", failed("No such file"))),
        user(22, "And?"),
    )
    if lists:
        parent["todo"], other["diff"] = TODO, DIFF
    return [parent, child, other]


def _table(version: str) -> Callable[[Path], Any]:
    def write(folder: Path) -> Path:
        sessions = _sessions(lists=False)
        sessions[0]["todo"] = [
            {k: v for k, v in item.items() if k != "id"} for item in TODO
        ]
        return sqlite_store(folder / "opencode.db", *sessions, version=version)

    return write


def _second(folder: Path) -> Path:
    call = called(
        "bash", "call_1", resulted({"command": "ls"}, {"type": "text", "text": "a.py"})
    )
    sessions = [
        session2(
            1, asked(1, "Do it"), answered(2, {"type": "text", "text": "Done"}, call)
        ),
        session2(2, asked(3, "Look"), answered(4, {"type": "text", "text": "Seen"})),
        session2(3, asked(5, "Another one")),
    ]
    return sqlite2_store(folder / "opencode.db", *sessions)


def _exports(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for item in _sessions(lists=False):
        (folder / f"{item['info']['id']}.json").write_text(json.dumps(item, indent=1))


@cache
def empty_database() -> bytes:
    """Return the file of a database without a session.

    A copy of it is open in half the time that a new file takes.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / OWN
        Store.open(path).close()
        return path.read_bytes()


@contextlib.contextmanager
def new_store() -> Iterator[Store]:
    """Open a database of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / OWN
        path.write_bytes(empty_database())
        with Store.open(path, durability="normal") as store:
            yield store


@cache
def log() -> bytes:
    """Return three sessions as one of our own logs."""
    with TemporaryDirectory() as name, new_store() as store:
        folder = Path(name)
        tree_store(folder, *_sessions())
        names = [r.id for r in read_into(store, folder) if isinstance(r, Imported)]
        exports = [store.export(name, **jsonl.READ) for name in names]
        documents = jsonl.write_logs(exports, together=True)
        lines = [
            x for item in documents if isinstance(item, Document) for x in item.chunks
        ]
    return "".join(lines).encode()


def _large_log(folder: Path) -> None:
    folder.mkdir(parents=True)
    with Store.open(folder.parent / "large.db", durability="normal") as store:
        tree_store(folder / "source", large_session())
        (result,) = read_into(store, folder / "source")
        assert isinstance(result, Imported)
        shutil.rmtree(folder / "source")
        export = store.export(result.id, **jsonl.READ)
        with (folder / "large.jsonl").open("w") as file:
            file.writelines(jsonl.session_lines(export))


def _large_own(folder: Path) -> None:
    folder.mkdir(parents=True)
    with Store.open(folder / OWN, durability="normal") as store:
        tree_store(folder / "source", large_session())
        read_into(store, folder / "source")
    shutil.rmtree(folder / "source")


def _log(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bundle.jsonl").write_bytes(log())


def _packed(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bundle.jsonl.gz").write_bytes(gzip.compress(log(), mtime=0))


def _own(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with Store.open(folder / OWN, durability="normal") as store:
        tree_store(folder / "source", *_sessions())
        assert len(read_into(store, folder / "source")) == 3
    shutil.rmtree(folder / "source")
    (folder / f"{OWN}.lock").unlink(missing_ok=True)


SAMPLES = {
    "opencode 0.5, a tree": Sample(
        "opencode", lambda f: old_tree_store(f, *_sessions(lists=False))
    ),
    "opencode 1.1, a tree": Sample(
        "opencode",
        lambda f: tree_store(f, *_sessions()),
        large=lambda f: tree_store(f, large_session()),
    ),
    "opencode 1.2, a database": Sample("opencode", _table("1.2")),
    "opencode 1.18, a database": Sample(
        "opencode",
        _table("1.18"),
        large=lambda f: sqlite_store(f / "opencode.db", large_session()),
    ),
    "opencode 2, a database": Sample("opencode", _second),
    "opencode, exports": Sample("opencode", _exports),
    "jsonl": Sample("jsonl", _log, large=_large_log),
    "jsonl, packed": Sample("jsonl", _packed),
    "sessiondb, a database": Sample("sessiondb", _own, large=_large_own),
}


#: Folders of `SESSIONDB_FIXTURES` with stores that real programs wrote, and formats.
REAL = {
    "opencode-0.5.29": "opencode",
    "opencode-1.1.65": "opencode",
    "opencode-migrated-1.2.27": "opencode",
    "opencode-1.18.33": "opencode",
    "opencode-2.0.15": "opencode",
    "opencode-upgraded-2.0.15": "opencode",
}

for _file in sorted(Path(__file__).parent.glob("samples_*.py")):
    _module = import_module(_file.stem)
    SAMPLES |= _module.SAMPLES
    REAL |= _module.REAL


def stores_in(folder: Path) -> Iterator[ForeignStore]:
    """Yield every store in a folder, those too that are imported only if they are named."""
    named = [path for path in folder.rglob(OWN) if folder.is_dir()]
    for path in (folder, *named):
        yield from find(path)


def read_into(store: Store, folder: Path) -> list[Imported | Problem]:
    """Import everything at *folder*; a store that cannot be opened is a problem."""
    results: list[Imported | Problem] = []
    for found in stores_in(folder):
        try:
            results += store.ingest(found.read())
        except SourceError as error:
            results.append(Problem(str(found.path), str(error)))
    return results


def content(store: Store) -> dict[str, list[Any]]:
    """Return the texts of each session, by the id it has in its source."""
    found = {}
    for item in store.sessions(
        project=ALL, archived=True, subagents=True, empty=True, limit=1000
    ):
        messages = store.messages(item.id, branches=True)
        said = [
            (
                m.id,
                m.role,
                m.cost,
                [(p.type, p.tool, p.input_json, p.text) for p in m.parts],
            )
            for m in messages
        ]
        found[item.source_id or item.id] = sorted(said, key=repr)
    return found


def files_in(folder: Path) -> list[Path]:
    """Return the files below a folder, sorted."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def bytes_of(folder: Path) -> dict[Path, bytes]:
    """Return every file below a folder; what SQLite keeps beside an open database does not count."""
    return {p: p.read_bytes() for p in files_in(folder) if not p.name.endswith("-shm")}


@contextlib.contextmanager
def permissions_hold() -> Iterator[None]:
    """Let the modes of files count for this thread, also where it is root's."""
    if sys.platform != "linux" or os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    before = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    without = (ctypes.c_uint32 * 6)(*before)
    without[0] &= ~(1 << 1 | 1 << 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, without) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0
