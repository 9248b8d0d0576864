"""The checks that every format passes, over a `Sample` of it and nothing else.

A check gets a sample and an empty folder. It knows no format: it damages files and
records by what they are (lines, JSON, rows of SQLite), and compares what an import
makes of them with what it makes of the intact store. `CHECKS` has them all, and
`test_conformance` runs each over every sample of every registered format.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from opencode_store import session, tree_store, user
from prefixes import LOGS
from samples import (
    LARGE,
    OWN,
    Sample,
    bytes_of,
    content,
    files_in,
    new_store,
    permissions_hold,
    read_into,
    stores_in,
)

from sessiondb import Store
from sessiondb.formats import exporter
from sessiondb.formats.registry import REGISTRY
from sessiondb.maintenance import check
from sessiondb.model import Document, Imported, Message, Part, Problem, SourceSession
from sessiondb.repository.sessions import ALL

T = TypeVar("T")
Check = Callable[[Sample, Path], None]
#: The texts of each session, by the id it has in its source.
Content = dict[str, list[Any]]
#: A problem with these words is a defect of a reader.
DEFECT = "its reader failed"
NEIGHBOUR = "ses_0009"
HOSTILE: list[Any] = [
    None, True, -1, (1 << 63) - 1, 1 << 70, 1e308, "", "@", "a\0b", "a\ud800b", "../../etc/passwd",
    "x" * 5000, [], {}, [[1]], {"": {}},
]  # fmt: skip
KIND_NAMES = ("type", "role", "kind")
#: Cuts, unknown types and hostile values that a check tries, always the same. A long run
#: tries more, and `scripts/fuzz` any number.
TRIED = 40 if os.environ.get("SESSIONDB_LONG") else 4
#: Bytes of memory that the import of a store takes at most, however large it is.
FLAT = 18 << 20
SEED = 7
#: The home directory of the programs whose stores are real.
HOME = "/home/dev/"


# -- the import of a store -------------------------------------------------------


@dataclass
class Result:
    """The outcome of an import into a database of its own."""

    outcomes: dict[str, str]
    problems: list[Problem]
    content: Content


def imported(store: Store, folder: Path) -> Result:
    """Import everything in *folder*; no reader may fail, and the database stays sound."""
    results = read_into(store, folder)
    problems = [r for r in results if isinstance(r, Problem)]
    assert not [p for p in problems if DEFECT in p.why], problems
    assert check(store) == []
    outcomes = {r.source_id: r.outcome for r in results if isinstance(r, Imported)}
    return Result(outcomes, problems, content(store))


def alone(folder: Path) -> Result:
    """Import everything in *folder* into a new database."""
    with new_store() as store:
        return imported(store, folder)


#: The contents of samples, with a neighbour and without.
_intact: WeakKeyDictionary[Sample, dict[bool, Content]] = WeakKeyDictionary()


def intact(sample: Sample, folder: Path, *, with_neighbour: bool = False) -> Content:
    """Return the content of a sample that was written, undamaged, to *folder*.

    It is the same in every folder, so the first check imports it for all others.
    """
    contents = _intact.setdefault(sample, {})
    if with_neighbour not in contents:
        contents[with_neighbour] = alone(folder).content
    return contents[with_neighbour]


def written(sample: Sample, folder: Path) -> Path:
    """Write the sample to a folder of its own and return it."""
    theirs = folder / "theirs"
    sample.write(theirs)
    return theirs


def neighbour(folder: Path) -> None:
    """Add a sound store, which damage to another one must not affect."""
    tree_store(folder / "neighbour", session(9, user(90, "Near")))


def of_each_kind(folder: Path) -> list[Path]:
    """Return one file for each kind of files: those of a kind fail alike."""
    return list({(p.parent.parent, p.suffix): p for p in files_in(folder)}.values())


def some(variations: list[T]) -> list[T]:
    """Return as many variations as are tried."""
    return random.Random(SEED).sample(variations, min(TRIED, len(variations)))


# -- records of any kind of store --------------------------------------------------


@dataclass
class Record:
    """A JSON object somewhere in a store: *put* writes another one in its place."""

    where: str
    value: dict[str, Any]
    put: Callable[[Any], None]


def records_in(folder: Path) -> list[Record]:
    """Return the records of all text files and the rows of all databases."""
    found: list[Record] = []
    for path in files_in(folder):
        if path.suffix in (".json", ".jsonl", ".gz"):
            found += _records_of_text(path)
        elif path.suffix == ".db" and path.name != OWN:
            found += _rows_of(path)
    return found


def unpacked(path: Path) -> bytes:
    """Return the bytes of a file, a packed one's unpacked."""
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def pack(path: Path, raw: bytes) -> None:
    """Write the bytes of a file, packed if it is."""
    path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def _records_of_text(path: Path) -> Iterator[Record]:
    text = unpacked(path).decode()
    lines = [text] if path.suffix == ".json" else text.splitlines()

    def put(index: int, value: Any) -> None:
        changed = [*lines[:index], json.dumps(value), *lines[index + 1 :]]
        pack(path, "\n".join([*changed, ""]).encode("utf-8", "surrogatepass"))

    for index, line in enumerate(lines):
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                where = f"{path.parent.parent.name}/{sorted(value)}"
                yield Record(where, value, lambda new, i=index: put(i, new))  # type: ignore[misc]


def _rows_of(path: Path) -> Iterator[Record]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        named = "SELECT name FROM sqlite_master WHERE type = 'table'"
        for (table,) in db.execute(named).fetchall():
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            rows = db.execute(f"SELECT rowid, * FROM {table}").fetchall()
            for rowid, *values in rows:
                row = dict(zip(columns, values, strict=True))
                yield from _cells(path, table, rowid, row)


def _cells(path: Path, table: str, rowid: int, row: dict[str, Any]) -> Iterator[Record]:
    def put(new: dict[str, Any]) -> None:
        with contextlib.closing(sqlite3.connect(path)) as db:
            names = ", ".join(f'"{name}" = ?' for name in new)
            values = [_column(value) for value in new.values()]
            with contextlib.suppress(sqlite3.IntegrityError, OverflowError):
                db.execute(f"UPDATE {table} SET {names} WHERE rowid = {rowid}", values)
                db.commit()

    yield Record(table, row, put)
    for name, cell in row.items():
        if isinstance(cell, str) and cell.startswith("{"):
            yield Record(
                f"{table}.{name}",
                json.loads(cell),
                lambda new, n=name: put({n: json.dumps(new)}),  # type: ignore[misc]
            )


def _column(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return value.replace("\ud800", "?") if isinstance(value, str) else value


def changes_of(folder: Path) -> list[tuple[Record, str]]:
    """Return each field of each kind of record once, so that nothing is tried twice."""
    found = {
        (record.where, name, str(record.value.get("type"))): (record, name)
        for record in records_in(folder)
        for name in record.value
    }
    return list(found.values())


# -- the checks --------------------------------------------------------------------


def leaves_every_byte_as_it_is(sample: Sample, folder: Path) -> None:
    theirs = written(sample, folder)
    before = bytes_of(theirs)
    alone(theirs)
    assert bytes_of(theirs) == before


def imports_everything_once(sample: Sample, folder: Path) -> None:
    theirs = written(sample, folder)
    with new_store() as store:
        first, again = imported(store, theirs), imported(store, theirs)
    assert first.problems == again.problems == []
    assert set(first.outcomes.values()) == {"imported"}
    assert set(again.outcomes.values()) == {"unchanged"}
    assert len(first.content) == 3
    assert again.content == first.content


def yields_parents_first(sample: Sample, folder: Path) -> None:
    for found in stores_in(written(sample, folder)):
        sessions = [s for s in found.read() if isinstance(s, SourceSession)]
        names = [item.source_id for item in sessions]
        for place, item in enumerate(sessions):
            parent = item.parent_source_id
            assert parent not in names or names.index(parent) < place, names


def survives_a_cut_anywhere(sample: Sample, folder: Path) -> None:
    theirs = written(sample, folder)
    expected = intact(sample, theirs)
    # Logs are cut line by line in `prefixes`.
    kinds = [path for path in of_each_kind(theirs) if path.suffix not in LOGS]
    files = [path for path in kinds if path.stat().st_size]
    for path, place in some([(path, n) for path in files for n in range(10)]):
        raw = path.read_bytes()
        # Its first bytes, its last ones, and any in between.
        size = {0: 0, 1: 1, 9: len(raw) - 1}.get(place, len(raw) * place // 9)
        with new_store() as store:
            path.write_bytes(raw[:size])
            imported(store, theirs)
            path.write_bytes(raw)
            mended = imported(store, theirs)
        assert mended.problems == [], (path, size)
        assert mended.content == expected, (path, size)


def names_what_may_not_be_read(sample: Sample, folder: Path) -> None:
    theirs = written(sample, folder)
    neighbour(folder)
    expected = intact(sample, folder, with_neighbour=True)
    closed = [
        *of_each_kind(theirs),
        theirs,
        *(p for p in theirs.rglob("*") if p.is_dir()),
    ]
    kinds = {(path.parent.parent, path.suffix): path for path in closed}
    for path in some(list(kinds.values())):
        mode = path.stat().st_mode
        with new_store() as store:
            path.chmod(0)
            try:
                with permissions_hold():
                    first, again = imported(store, folder), imported(store, folder)
            finally:
                path.chmod(mode)
            said = [f"{p.source} {p.why}" for p in first.problems]
            assert said, path
            assert str(path) in said[0]
            assert again.problems == first.problems
            assert NEIGHBOUR in first.outcomes
            assert imported(store, folder).content == expected, path


def skips_garbage_and_reads_the_rest(sample: Sample, folder: Path) -> None:
    theirs = written(sample, folder)
    neighbour(folder)
    expected = intact(sample, folder, with_neighbour=True)
    for path in of_each_kind(theirs):
        raw = path.read_bytes()
        lines = unpacked(path).splitlines(keepends=True)
        middle = len(lines) // 2
        is_log = path.suffix in (".jsonl", ".gz")
        if is_log:
            garbage = [b"\xff\xfe not a record\n", b"[]\n", b"{}\n", b'{"a":\n']
            pack(path, b"".join([*lines[:middle], *garbage, *lines[middle:]]))
        else:
            half = len(raw) // 2
            path.write_bytes(raw[:half] + b"\xff" * 64 + raw[half + 64 :])
        found = alone(folder)
        path.write_bytes(raw)

        assert NEIGHBOUR in found.outcomes
        if is_log:
            assert len(found.problems) >= 2
            assert found.content == expected


def passes_over_types_that_it_does_not_know(sample: Sample, folder: Path) -> None:
    theirs = written(sample, folder)
    expected = intact(sample, theirs)
    changes = [(r, name) for r, name in changes_of(theirs) if name in KIND_NAMES]
    for record, name in some(changes):
        record.put({**record.value, name: "never-seen"})
        found = alone(theirs)
        record.put(record.value)
        # Sessions that the record does not belong to are what they were, but what is
        # left of a total depends on the subagents that it counts.
        same = [
            session
            for session, messages in found.content.items()
            if _without_totals(messages) == _without_totals(expected[session])
        ]
        assert len(same) >= len(expected) - 1, (record.where, name)


def _without_totals(messages: list[Any]) -> list[Any]:
    return [
        (name, role, None if role == "event" else cost, parts)
        for name, role, cost, parts in messages
    ]


def refuses_hostile_values_one_by_one(sample: Sample, folder: Path) -> None:
    theirs = written(sample, folder)
    neighbour(folder)
    choice = random.Random(SEED)
    for record, name in some(changes_of(theirs)):
        hostile = choice.choice(HOSTILE)
        record.put({**record.value, name: hostile})
        with new_store() as store:
            first, again = imported(store, folder), imported(store, folder)
        record.put(record.value)
        where = record.where, name, hostile
        assert NEIGHBOUR in first.outcomes, where
        assert again.problems == first.problems, where
        assert set(again.outcomes.values()) <= {"unchanged"}, where


def is_read_while_it_is_written(sample: Sample, folder: Path) -> None:
    theirs = written(sample, folder)
    expected = intact(sample, theirs)
    with new_store() as store, contextlib.ExitStack() as writers:
        grow = [_writer_of(path, writers) for path in files_in(theirs)]
        for found in stores_in(theirs):
            reading = found.read()
            first = next(reading, None)
            for more in grow:
                more()
            given = [] if first is None else [first]
            results = [*store.ingest(_both(given, reading))]
            problems = [r.why for r in results if isinstance(r, Problem)]
            assert not [why for why in problems if DEFECT in why]
        writers.close()
        assert imported(store, theirs).content == expected


def _both(first: list[Any], rest: Iterator[Any]) -> Iterator[Any]:
    yield from first
    yield from rest


def _writer_of(path: Path, writers: contextlib.ExitStack) -> Callable[[], None]:
    """Leave a file as if its program were still writing it; return what completes it."""
    raw = path.read_bytes()
    if path.suffix == ".db":
        db = writers.enter_context(contextlib.closing(sqlite3.connect(path)))
        db.execute("BEGIN IMMEDIATE")
        return lambda: None
    if path.suffix != ".jsonl":
        return lambda: None
    path.write_bytes(raw[: len(raw) * 2 // 3])

    def complete() -> None:
        with path.open("r+b") as file:
            file.write(raw)

    return complete


def writes_back_what_it_read(sample: Sample, folder: Path) -> None:
    form = sample.writes or sample.format
    if REGISTRY[form].writes is None:
        return
    to = exporter(form)
    with new_store() as store:
        before = imported(store, written(sample, folder))
        everything = store.sessions(
            project=ALL, archived=True, subagents=True, limit=100
        )
        parents = sorted(everything, key=lambda item: item.time_created)
        exports = [store.export(item, **to.read) for item in parents]
        documents = to.write(exports, detail=to.details[0])
        for item in documents:
            if isinstance(item, Document):
                path = folder / "back" / item.name
                path.parent.mkdir(parents=True, exist_ok=True)
                text = "".join(item.chunks)
                path.write_bytes(text.encode("utf-8", "surrogatepass"))
    after = alone(folder / "back")
    assert after.problems == []
    assert after.content == before.content


def holds_little_of_a_large_store(sample: Sample, folder: Path) -> None:
    if sample.large is None:
        return
    theirs = folder / "theirs"
    sample.large(theirs)
    size = sum(path.stat().st_size for path in files_in(theirs))
    assert size > LARGE
    with Store.open(folder / "here.db", durability="normal") as store:
        tracemalloc.start()
        try:
            results = read_into(store, theirs)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert [type(result) for result in results] == [Imported]
    assert most < FLAT, f"{most:,} of {size:,} bytes"


# -- real stores ---------------------------------------------------------------------


def agrees_with_its_ground_truth(folder: Path) -> None:
    """Compare the store in ``data`` of a folder with its ``expected.json``.

    That file says what was typed and what the model returned, in one shape for all
    programs. A program that records more says so in tests of its own format. A session
    is named there by its id, its title, or its file below the home directory.
    """
    truth = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    stated = [item for item in truth["sessions"] if item.get("tool_session_id")]
    assert stated, folder
    with new_store() as store:
        first, again = (imported(store, folder / "data") for _ in range(2))
        assert first.problems == again.problems == []
        assert set(again.outcomes.values()) == {"unchanged"}

        found = store.sessions(project=ALL, archived=True, subagents=True, limit=1000)
        by_id = {item.source_id: item for item in found}
        names = _names_in(folder / "data")
        for item in stated:
            name = item["tool_session_id"].removeprefix(HOME).removeprefix("data/")
            messages = store.messages(by_id[names[name]].id, branches=True)
            _compare(item, [m.role for m in messages], _parts_of(messages), name)


def _names_in(folder: Path) -> dict[str, str]:
    """Return the ids of the sessions in a folder by every name that they have."""
    found = (item for store in stores_in(folder) for item in store.read())
    sessions = [item for item in found if isinstance(item, SourceSession)]
    files = {str(Path(s.path).relative_to(folder)): s.source_id for s in sessions}
    return (
        files
        | {s.title: s.source_id for s in sessions}
        | {s.source_id: s.source_id for s in sessions}
    )


def _parts_of(messages: Iterable[Message]) -> list[tuple[str, Part]]:
    return [(message.role, part) for message in messages for part in message.parts]


def _compare(
    stated: dict[str, Any], roles: list[str], parts: list[tuple[str, Part]], name: str
) -> None:
    assert roles.count("user") >= len(stated["user_prompts"]), name
    # Programs that are given a prompt by a shell may escape its quotes.
    said = [_unquoted(part.text) for role, part in parts if role == "user"]
    for prompt in stated["user_prompts"]:
        assert any(_unquoted(prompt["text"]) in text for text in said), (name, prompt)

    answered = [_visible(part.text) for _, part in parts if part.type == "text"]
    if stated["final_text"] and "interrupted" not in stated:
        assert _visible(stated["final_text"]) in answered, name

    # Gemini CLI puts the name of the tool before the id of the provider.
    tools = [part for _, part in parts if part.type == "tool"]
    calls = {(p.call_id or "").rpartition("__")[2]: p.tool for p in tools}
    calls |= {p.call_id or "": p.tool for p in tools}
    for call in stated["tool_calls"]:
        if call["id"] not in stated["tool_call_ids_not_in_store"]:
            assert calls.get(call["id"]) == call["name"], (name, call)


def _unquoted(text: str | None) -> str:
    return (text or "").replace('\\"', '"')


def _visible(text: str | None) -> str:
    # Gemini CLI drops the characters that join others, or have no width.
    return (
        (text or "").rstrip().translate(dict.fromkeys(map(ord, "\u200b\u200d\ufeff")))
    )


CHECKS: list[Check] = [
    leaves_every_byte_as_it_is,
    imports_everything_once,
    yields_parents_first,
    names_what_may_not_be_read,
    survives_a_cut_anywhere,
    skips_garbage_and_reads_the_rest,
    passes_over_types_that_it_does_not_know,
    refuses_hostile_values_one_by_one,
    is_read_while_it_is_written,
    writes_back_what_it_read,
]
