"""One mutant: a copy of a sample is mutated, read twice, and checked against all rules."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from opencode_store import session, tree_store, user
from samples import (
    SAMPLES,
    content,
    empty_database,
    permissions_hold,
    read_into,
)

from fuzzing.mutations import mutate
from sessiondb import SessionDBError, Store
from sessiondb import user as said
from sessiondb.formats import jsonl
from sessiondb.maintenance import check
from sessiondb.model import Imported, Problem
from sessiondb.repository.sessions import ALL

#: Words of a problem that reports an error no reader should raise.
DEFECT = "its reader failed"
NEIGHBOUR = "ses_neighbour"
#: Our own databases are mutated, too; they have no reader.
OWN = "sessiondb"
_EVERYTHING: dict[str, Any] = {
    "project": ALL,
    "archived": True,
    "subagents": True,
    "empty": True,
}


def samples(formats: tuple[str, ...] = ()) -> dict[str, Callable[[Path], Any]]:
    """Return functions that write a store, by name; an empty *formats* chooses all."""
    found = {
        name: s.write
        for name, s in SAMPLES.items()
        if not formats or s.format in formats
    }
    if not formats or OWN in formats:
        found[OWN] = _own
    return found


def _own(folder: Path) -> None:
    tree_store(
        folder / "source", session(1, user(1, "x" * 2000)), session(2, user(20, "Two"))
    )
    with Store.open(folder / "sessions.db", durability="normal") as store:
        read_into(store, folder / "source")
    shutil.rmtree(folder / "source")
    for path in folder.iterdir():
        if path.name != "sessions.db":
            path.unlink()


def prepare(writes: dict[str, Callable[[Path], Any]], folder: Path) -> dict[str, Path]:
    """Write each sample once, to be copied."""
    made = {}
    for index, (name, write) in enumerate(writes.items()):
        made[name] = folder / str(index)
        made[name].mkdir(parents=True)
        write(made[name])
        _open_up(made[name])
    return made


def trial(
    seed: str, name: str, original: Path, folder: Path
) -> tuple[list[str], list[str]]:
    """Run one mutant in an empty *folder*; return what was done to it, and what failed."""
    rng = Random(seed)  # noqa: S311  nothing is kept secret
    theirs = folder / "theirs"
    shutil.copytree(original, theirs / "mutant", symlinks=True)
    done = mutate(rng, theirs / "mutant")
    try:
        with permissions_hold():
            failed = list(
                _own_failures(theirs) if name == OWN else _failures(folder, theirs)
            )
    except Exception as error:  # noqa: BLE001  that is what is looked for
        failed = [f"raised {error!r:.400}"]
    finally:
        _open_up(folder)
    return done, failed


def _failures(folder: Path, theirs: Path) -> Iterator[str]:
    tree_store(theirs / "neighbour", session(99, user(990, "Near"), id=NEIGHBOUR))
    before = _state(theirs)
    temporary = folder / "tmp"
    temporary.mkdir()
    (folder / "here.db").write_bytes(empty_database())
    with (
        _temporary(temporary),
        Store.open(folder / "here.db", durability="normal") as store,
    ):
        first = read_into(store, theirs)
        again = read_into(store, theirs)

        yield from _poor_problems(first)
        if [r.outcome for r in first if _is_neighbour(r)] != ["imported"]:
            yield "the neighbour was not imported"
        outcomes = Counter(r.outcome for r in again if isinstance(r, Imported))
        if set(outcomes) - {"unchanged"}:
            yield f"a second import says {dict(outcomes)}"
        if _problems(first) != _problems(again):
            yield f"problems differ: {_problems(first)} and {_problems(again)}"
        if problems := check(store):
            yield f"check: {problems}"
        yield from _used(store)
        if problems := check(store):
            yield f"check, after it was used: {problems}"
    if _state(theirs) != before:
        yield "the files were changed"
    if left := list(temporary.iterdir()):
        yield f"left behind: {left}"
    if extra := {p.name for p in folder.iterdir()} - {
        "theirs",
        "tmp",
        *_names("here.db"),
    }:
        yield f"written outside: {extra}"


def _poor_problems(results: list[Imported | Problem]) -> Iterator[str]:
    for result in results:
        if isinstance(result, Problem) and DEFECT in result.why:
            yield result.why
        if isinstance(result, Problem) and len(result.why) > 2000:
            yield f"a problem of {len(result.why)} characters: {result.why[:80]}"


def _used(store: Store) -> Iterator[str]:
    """Use what was imported as if it were any session."""
    content(store)
    for item in list(store.sessions(**_EVERYTHING, limit=1000)):
        _exported(store, item.id)
        store.set_title(item.id, "A title")
        store.append(item.id, said("goes on"))
    store.usage(by=("day", "model"))
    store.search("near")
    if not any(
        s.source_id == NEIGHBOUR for s in store.sessions(**_EVERYTHING, limit=1000)
    ):
        yield "the neighbour is not listed"


def _own_failures(theirs: Path) -> Iterator[str]:
    """Read a damaged database: answers, or errors whose code reports the damage."""
    for path in theirs.rglob("*.db"):
        try:
            with Store.open(path, create=False) as store:
                for item in _tried(lambda: list(store.sessions(**_EVERYTHING)), []):
                    _tried(partial(store.messages, item.id, branches=True), None)
                    _tried(partial(_exported, store, item.id), None)
                _tried(lambda: store.search("two"), None)
                _tried(lambda: store.usage(by=("day",)), None)
                _tried(lambda: check(store), None)
        except SessionDBError as error:
            _typed(error)
        yield from ()


def _exported(store: Store, session_id: str) -> int:
    return sum(map(len, jsonl.session_lines(store.export(session_id, **jsonl.READ))))


def _tried(call: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return call()
    except SessionDBError as error:
        _typed(error)
        return otherwise


def _typed(error: SessionDBError) -> None:
    if error.exit_code == 2:
        raise AssertionError(
            f"a damaged file is called bad usage: {error!r:.300}"
        ) from error


def _is_neighbour(result: Imported | Problem) -> bool:
    return isinstance(result, Imported) and result.source_id == NEIGHBOUR


def _problems(results: list[Imported | Problem]) -> Counter[Problem]:
    return Counter(result for result in results if isinstance(result, Problem))


def _state(folder: Path) -> dict[str, Any]:
    """Return what must not change: every file but what SQLite keeps beside an open database."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.name.endswith("-shm"):
            continue
        with contextlib.suppress(PermissionError):
            mode = path.lstat().st_mode
            found[str(path)] = stat.S_IMODE(mode)
            if stat.S_ISREG(mode):
                found[str(path)] = stat.S_IMODE(mode), path.read_bytes()
    return found


def _names(database: str) -> set[str]:
    return {database + end for end in ("", "-wal", "-shm", ".lock", "-journal")}


@contextlib.contextmanager
def _temporary(folder: Path) -> Iterator[None]:
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _open_up(folder: Path) -> None:
    """Give permissions back, so that everything can be removed."""
    for path in [folder, *folder.rglob("*")]:
        with contextlib.suppress(OSError):
            if not path.is_symlink():
                os.chmod(path, path.stat().st_mode | stat.S_IRWXU)  # noqa: PTH101
