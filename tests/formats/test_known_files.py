"""A file that is as it was is not opened again, whichever format it has."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from samples import SAMPLES, new_store, permissions_hold

from sessiondb import Store
from sessiondb.formats import find
from sessiondb.model import Imported, Problem

pytestmark = pytest.mark.slow

#: Seconds after which a file counts as settled, and a little more.
SETTLED = 2.2
#: The layouts that have a log for each session, of which an import knows the head.
LOGS = {
    name: sample
    for name, sample in SAMPLES.items()
    if sample.format in ("claude", "codex", "event-log", "gemini", "pi", "qwen")
}
#: Transcripts that begin with the same line are compared with each other, except those
#: of subagents.
FORKS = {"claude 2.0, a home", "claude 2.1, a home"}
#: Changed files that a format is tried with.
TRIED = 40 if os.environ.get("SESSIONDB_LONG") else 4
#: Bytes of a file that are changed.
HEAD = 600
#: The files and folders that this process opens, while a list is here.
NOTED: dict[str, list[str]] = {}


def note_path(event: str, arguments: tuple[Any, ...]) -> None:
    if event in NOTED and isinstance(arguments[0], str | bytes | Path):
        NOTED[event].append(os.fsdecode(arguments[0]))


@contextmanager
def noted(event: str) -> Iterator[list[str]]:
    """Return the paths with which an event is raised inside of the block."""
    paths = NOTED[event] = []
    try:
        yield paths
    finally:
        del NOTED[event]


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with copies of each store, written two seconds ago."""
    sys.addaudithook(note_path)
    top = tmp_path_factory.mktemp("known")
    for name, sample in LOGS.items():
        sample.write(top / "kept" / name)
        sample.write(top / "changed" / name)
    LOGS["pi 3, a home"].write(top / "gone")
    LOGS["pi 3, a home"].write(top / "closed")
    sleep(SETTLED)
    return top


def imported(store: Store, folder: Path, *, dry_run: bool = False) -> list[Any]:
    """Import everything in a folder, which is searched while it is imported."""
    items = (item for found in find(folder) for item in found.read())
    return list(store.ingest(items, dry_run=dry_run))


def known_files(store: Store) -> dict[str, dict[str, Any]]:
    with closing(sqlite3.connect(store.path)) as connection:
        rows = connection.execute("SELECT folder, name, facts FROM import_file")
        return {f"{folder}/{name}": json.loads(facts) for folder, name, facts in rows}


@pytest.mark.parametrize("name", LOGS)
def test_logs_that_did_not_change_are_not_opened(name: str, top: Path) -> None:
    folder = top / "kept" / name
    with new_store() as store:
        imported(store, folder)
        known = known_files(store)
        logs = {path for path, facts in known.items() if any(facts.values())}
        assert logs
        with noted("open") as opened:
            results = imported(store, folder)
        assert {r.outcome for r in results if isinstance(r, Imported)} == {"unchanged"}
        forks = {path for path in logs if name in FORKS and "agent-" not in path}
        assert logs & set(opened) == forks
        assert known_files(store) == known


@pytest.mark.parametrize("name", LOGS)
def test_a_changed_file_is_looked_at_whatever_its_size_and_time(
    name: str, top: Path
) -> None:
    folder = top / "changed" / name
    rng = random.Random(name)
    with new_store() as store, new_store() as forgetful:
        imported(store, folder)
        imported(forgetful, folder)
        with closing(sqlite3.connect(forgetful.path)) as connection, connection:
            connection.execute("DELETE FROM import_file")

        for path in map(Path, known_files(store)):
            content, status = path.read_bytes(), path.stat()
            times = status.st_atime_ns, status.st_mtime_ns
            for _ in range(TRIED):
                changed = bytearray(content)
                place = rng.randrange(min(len(content), HEAD))
                changed[place] = rng.choice(b"abc123")
                path.write_bytes(changed)
                os.utime(path, ns=times)
                assert outcomes(store, folder) == outcomes(forgetful, folder)
            path.write_bytes(content)
            os.utime(path, ns=times)
        assert not known_files(forgetful)


def outcomes(store: Store, folder: Path) -> list[tuple[Any, ...]]:
    """Return the results of an import, without importing anything."""
    return [
        (result.outcome, result.source, result.source_id, result.messages)
        if isinstance(result, Imported)
        else (result.source, result.line, result.why)
        for result in imported(store, folder, dry_run=True)
    ]


def test_files_that_are_gone_are_forgotten(top: Path) -> None:
    folder = top / "gone"
    with new_store() as store:
        imported(store, folder)
        known = known_files(store)
        removed = max(known)
        beside = [path for path in known if Path(path).parent == Path(removed).parent]
        assert len(beside) > 2
        Path(removed).unlink()
        imported(store, folder)
        assert known_files(store).keys() == known.keys() - {removed}


def test_facts_that_a_shell_spoiled_are_none(top: Path) -> None:
    folder = top / "kept" / "pi 3, a home"
    with new_store() as store:
        imported(store, folder)
        known = known_files(store)
        with closing(sqlite3.connect(store.path)) as connection, connection:
            connection.execute("UPDATE import_file SET facts = '[1]'")
        results = imported(store, folder)
        assert {r.outcome for r in results if isinstance(r, Imported)} == {"unchanged"}
        assert [r for r in results if isinstance(r, Problem)] == []
        assert known_files(store) == known


def test_a_file_that_cannot_be_read_is_not_known(top: Path) -> None:
    folder = top / "closed"
    closed = min(folder.rglob("*.jsonl"))
    with permissions_hold(), new_store() as store:
        closed.chmod(0)
        (problem,) = [r for r in imported(store, folder) if isinstance(r, Problem)]
        assert problem.source == str(closed)
        assert known_files(store)
        assert str(closed) not in known_files(store)


def test_a_folder_of_rollouts_is_listed_once_for_all_of_them(top: Path) -> None:
    listings = []
    for count in (5, 20):
        folder = top / "rollouts" / str(count)
        folder.mkdir(parents=True)
        for number in range(count):
            name = f"01a1f9a8-0000-7000-8000-{number:012}"
            header = {"id": name, "timestamp": "2026-02-02T02:40:00Z", "cwd": "/tea"}
            record = {"type": "session_meta", "payload": header}
            line = json.dumps({"timestamp": "2026-02-02T02:40:00Z", **record})
            log = folder / f"rollout-2026-02-02T02-40-00-{name}.jsonl"
            log.write_text(f"{line}\n")
        with new_store() as store, noted("os.scandir") as folders:
            imported(store, folder)
        listings.append(folders.count(str(folder)))
    assert listings[0] == listings[1]
