"""Any prefix of a store, imported first, changes nothing of an import of all of it.

A program is often caught in the middle: by `import --watch`, by a hook, by a copy of
some of its files. `prefixes_of` makes such states of a store: logs that end after a
line or inside of one, databases without their newest rows, folders without some files.
`copy_of` is everything that a user can see of a database, over all columns of the
schema but those of `OWN`.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sample import Sample
from samples import OWN, files_in, new_store, read_into

from sessiondb import Store
from sessiondb.maintenance import check
from sessiondb.model import Problem
from sessiondb.schema.tables import metadata

#: Columns that are this database's own, and not those of the sessions in it.
OWN_COLUMNS = {
    "rid": "a row number",
    "slug": "a name made of the id",
    "namespace": "how much was known of the beginning of a session",
    "revision": "counts the writes",
    "change": "counts the writes",
    "time_imported": "when it was imported",
    "last_seq": "counts the messages that were written",
    "usage_key": "names what copies have in common, as far as the import knew of them",
    "usage_name": "is the name in the usage key",
}
#: Tables whose times are those of this database.
OWN_TIMES = {"project", "project_directory", "todo"}
#: When a row was changed here, for example by the result of its call, and an id that is
#: made of a namespace.
OWN_PLACES = {("part", "time_updated"), ("prompt", "id")}
#: Tables that are not of a session, those of the import itself, and sums of the messages
#: up to a mark, which `check` compares with these.
OWN_TABLES = {
    *(
        "meta",
        "import_ledger",
        "import_file",
        "merge_base",
        "terminal",
        "lease",
        "tombstone",
    ),
    *("usage_hour", "usage_model", "usage_waiting"),
}
#: Logs, of which a program appends to the end.
LOGS = (".jsonl", ".md")

#: Prefixes of a store that are tried, always the same.
TRIED = 200 if os.environ.get("SESSIONDB_LONG") else 3
SEED = 11

Prefix = tuple[str, Callable[[Path], None]]


def copy_of(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every table, in a stable order, without `OWN_COLUMNS`.

    A message that came late has a later seq, at the same place of its path: in place of
    every seq there is the id of its message.
    """
    copied = {}
    with contextlib.closing(sqlite3.connect(store.path)) as db:
        db.row_factory = sqlite3.Row
        ids = {
            (row["session_id"], row["seq"]): row["id"]
            for row in db.execute("SELECT session_id, seq, id FROM message")
        }
        parents = dict(db.execute("SELECT id, parent_id FROM session"))
        named = "SELECT id, source || ' ' || coalesce(source_id, id) FROM session"
        names = dict(db.execute(named))
        for table in metadata.tables:
            if table not in OWN_TABLES:
                rows = [
                    _row_of(table, dict(row), ids, parents, names)
                    for row in db.execute(f"SELECT * FROM {table}")
                ]
                copied[table] = sorted(rows, key=repr)
    return copied


def _row_of(
    table: str,
    row: dict[str, Any],
    ids: dict[Any, str],
    parents: dict[str, str],
    names: dict[str, str],
) -> dict[str, Any]:
    """Return what a user can see of a row: sessions by name, messages by id."""
    session = row["id"] if table == "session" else row.get("session_id")
    for name in row.keys() & {"seq", "parent_seq", "leaf_seq"}:
        is_in_parent = table == "session" and name == "parent_seq"
        row[name] = ids.get((parents[session] if is_in_parent else session, row[name]))
    for name in row.keys() & {"id", "session_id", "parent_id", "root_id"}:
        row[name] = names.get(row[name], row[name])
    return {
        name: value
        for name, value in row.items()
        if name not in OWN_COLUMNS
        and not (table in OWN_TIMES and name.startswith("time_"))
        and (table, name) not in OWN_PLACES
    }


def prefixes_of(folder: Path, *, seed: int, most: int) -> list[Prefix]:
    """Return up to *most* ways to make a prefix of the store in *folder*, in place."""
    prefixes: list[Prefix] = []
    files = [path for path in files_in(folder) if path.name != OWN]
    for path in files:
        name = path.relative_to(folder)
        if path.suffix in LOGS:
            prefixes += _cuts_of_log(path, str(name))
        if len(files) > 1:
            prefixes.append((f"without {name}", _without_file(name)))
    return random.Random(seed).sample(prefixes, min(most, len(prefixes)))


def _cuts_of_log(path: Path, name: str) -> Iterator[Prefix]:
    lines = path.read_bytes().splitlines(keepends=True)
    size = 0
    for number, line in enumerate(lines):
        for end, place in ((size, "before"), (size + len(line) // 2, "inside of")):
            yield f"{name} up to {place} line {number + 1}", _cut(Path(name), end)
        size += len(line)


def _cut(name: Path, size: int) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[:size])

    return cut


def _without_file(name: Path) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


@contextlib.contextmanager
def shortened(folder: Path, prefix: Callable[[Path], None]) -> Iterator[None]:
    """Make a prefix of the store in *folder*, and put everything back."""
    aside = folder.with_name(f"{folder.name}.complete")
    shutil.copytree(folder, aside)
    try:
        prefix(folder)
        yield
    finally:
        shutil.copytree(aside, folder, dirs_exist_ok=True)
        shutil.rmtree(aside)
        for path in files_in(folder):
            path.touch()


def differences(folder: Path, tried: int, seed: int = SEED) -> list[str]:
    """Return how a prefix of a store, then all of it, differs from all of it alone."""
    with new_store() as store:
        read_into(store, folder)
        read_into(store, folder)
        expected = copy_of(store)

    differences = []
    for name, prefix in prefixes_of(folder, seed=seed, most=tried):
        with new_store() as store:
            with shortened(folder, prefix):
                read_into(store, folder)
            # Twice: a child that does not change is read again by the next import.
            results = [*read_into(store, folder), *read_into(store, folder)]
            problems = [item for item in results if isinstance(item, Problem)]
            copied = copy_of(store)
            for table, rows in expected.items():
                if copied[table] != rows:
                    missing = [row for row in rows if row not in copied[table]]
                    further = [row for row in copied[table] if row not in rows]
                    differences.append(
                        f"{name}: {table}: {missing[:1]} is {further[:1]}"
                    )
            differences += [f"{name}: {finding}" for finding in check(store)]
            differences += [f"{name}: {problem.why}" for problem in problems]
    return differences


def any_prefix_and_then_all_of_it_is_all_of_it(sample: Sample, folder: Path) -> None:
    theirs = folder / "theirs"
    sample.write(theirs)
    for path in files_in(theirs):
        path.touch()
    found = differences(theirs, TRIED)
    assert not found, "\n".join(found)


def overcounted(folder: Path, tried: int, seed: int = SEED) -> list[str]:
    """Return where a log that became shorter, and then whole again, counts too much."""
    with new_store() as store:
        read_into(store, folder)
        whole = _spent(store)

    differences = []
    for name, prefix in prefixes_of(folder, seed=seed, most=tried):
        with new_store() as store:
            read_into(store, folder)
            with shortened(folder, prefix):
                read_into(store, folder)
                shorter = _spent(store)
            read_into(store, folder)
            again = _spent(store)
            is_more = any(
                now > then + 1e-9 for now, then in zip(shorter, whole, strict=True)
            )
            if is_more or again != whole or check(store):
                differences.append(f"{name}: {whole}, {shorter}, {again}")
    return differences


def _spent(store: Store) -> list[float]:
    """Return the cost and the tokens of everything."""
    return [
        value
        for row in store.usage(by=())
        for value in (round(row.cost or 0, 9), *(n or 0 for n in row.tokens.columns()))
    ]


def a_log_that_shrinks_counts_no_answer_twice(sample: Sample, folder: Path) -> None:
    theirs = folder / "theirs"
    sample.write(theirs)
    found = overcounted(theirs, TRIED)
    assert not found, "\n".join(found)


CHECKS = [
    any_prefix_and_then_all_of_it_is_all_of_it,
    a_log_that_shrinks_counts_no_answer_twice,
]
