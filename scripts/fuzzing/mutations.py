"""Mutations of a copy of a store. Each returns what it did, or None if it does not apply.

Every choice is drawn from the generator that is passed in, so that a seed and a number
name a mutant for good.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

HOSTILE: list[Any] = [
    None, True, 0, -1, 1 << 31, (1 << 63) - 1, 1 << 63, 1 << 70, 10**400, 1e308, -0.0, "", " ",
    "@", "@~1", "a\0b", "a\ud800b", "a\udfff", "\u202e\u2066", "\x1b[2J", "../../../etc/passwd",
    "/", "x" * 300, "x" * 5000, "é" * 200, [], {}, [[]], {"": {}}, {"$map": [1]}, {"$blob": "x"},
    {"$bytes": "="}, {"$str": "/w=="}, {"$float": "nan"}, {"a": {"b": {"c": [1, {"d": None}]}}},
]  # fmt: skip
#: Nesting that some parser or writer does not survive.
DEPTHS = (50, 300, 301, 400, 401, 990, 5000)
MAGIC = b"SQLite format 3\0"
Mutation = Callable[[Random, Path], "str | None"]


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


def _some_file(rng: Random, folder: Path, *suffixes: str) -> Path | None:
    found = [p for p in _files(folder) if not suffixes or p.suffix in suffixes]
    return rng.choice(found) if found else None


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder))


def flip_bits(rng: Random, folder: Path) -> str | None:
    """Flip one to eight bits of a file."""
    path = _some_file(rng, folder)
    raw = bytearray(path.read_bytes()) if path else bytearray()
    if path is None or not raw:
        return None
    places = [rng.randrange(len(raw)) for _ in range(rng.choice([1, 1, 2, 8]))]
    for place in places:
        raw[place] ^= 1 << rng.randrange(8)
    path.write_bytes(raw)
    return f"flipped bits of {_shown(path, folder)} at {places}"


def change_bytes(rng: Random, folder: Path) -> str | None:
    """Cut, drop, double or overwrite a piece of a file."""
    path = _some_file(rng, folder)
    raw = path.read_bytes() if path else b""
    if path is None or not raw:
        return None
    start = rng.randrange(len(raw))
    end = min(len(raw), start + rng.choice([1, 16, 512, 4096, 65536]))
    what = rng.choice(["cut", "drop", "double", "zeros", "ones", "noise"])
    fill = {"zeros": b"\0", "ones": b"\xff"}.get(what, b"") * (end - start)
    if what == "noise":
        fill = rng.randbytes(end - start)
    if what == "double":
        fill = raw[start:end] * 2
    path.write_bytes(raw[:start] + fill + (b"" if what == "cut" else raw[end:]))
    return f"{what} of {_shown(path, folder)} from {start} to {end}"


def change_lines(rng: Random, folder: Path) -> str | None:
    """Drop, double, swap or join lines of a log, packed or not."""
    path = _some_file(rng, folder, ".jsonl", ".gz")
    if path is None:
        return None
    lines = _read(path).splitlines(keepends=True)
    if len(lines) < 2:
        return None
    what = rng.choice(["drop", "double", "swap", "join", "shuffle"])
    a, b = rng.sample(range(len(lines)), 2)
    if what == "drop":
        del lines[a]
    elif what == "double":
        lines.insert(b, lines[a])
    elif what == "swap":
        lines[a], lines[b] = lines[b], lines[a]
    elif what == "join":
        lines[a] = lines[a].rstrip(b"\n")
    else:
        rng.shuffle(lines)
    _write(path, b"".join(lines))
    return f"{what} lines {a} and {b} of {_shown(path, folder)}"


def change_value(rng: Random, folder: Path) -> str | None:
    """Put a hostile value somewhere into a JSON record of a file."""
    path = _some_file(rng, folder, ".json", ".jsonl", ".gz")
    if path is None:
        return None
    try:
        text = _read(path).decode()
        lines = [text] if path.suffix == ".json" else text.splitlines()
        index = rng.randrange(len(lines))
        record = json.loads(lines[index])
    except (ValueError, OSError, IndexError):
        return None
    lines[index], where = _hostile(rng, record)
    raw = "\n".join(lines).encode("utf-8", "surrogatepass")
    _write(path, raw if path.suffix == ".json" else raw + b"\n")
    return f"record {index} of {_shown(path, folder)}: {where}"


def change_row(rng: Random, folder: Path) -> str | None:
    """Put a hostile value into a column, or into the JSON in it; or change the schema."""
    path = _database(rng, folder)
    if path is None:
        return None
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        try:
            names = "SELECT name FROM sqlite_master WHERE type = 'table'"
            tables = sorted(
                n for (n,) in db.execute(names) if not n.startswith("sqlite")
            )
            table = rng.choice([t for t in tables if _count(db, t)])
            if rng.random() < 0.1:
                return _change_schema(rng, db, table)
            columns = [
                name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")
            ]
            column, at = rng.choice(columns), rng.randrange(_count(db, table))
            row = f"(SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET {at})"
            query = f"SELECT {column} FROM {table} WHERE rowid = {row}"
            (old,) = db.execute(query).fetchone()
            value, where = _odd_column(rng, old)
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = {row}", [value])
        except (sqlite3.Error, OverflowError, UnicodeError, IndexError) as error:
            return f"nothing, as {error!r:.80}"
    return f"{_shown(path, folder)}: row {at} of {table}, {column} {where}"


def change_page(rng: Random, folder: Path) -> str | None:
    """Damage a page of a database: its header, its cells or its content."""
    path = _database(rng, folder)
    if path is None:
        return None
    raw = bytearray(path.read_bytes())
    page = rng.randrange(max(1, len(raw) // 4096))
    start = page * 4096 + (100 if page == 0 else 0)
    for _ in range(rng.choice([1, 4, 64])):
        place = start + rng.randrange(rng.choice([8, 64, 3900]))
        if place < len(raw):
            raw[place] = rng.randrange(256)
    path.write_bytes(raw)
    return f"page {page} of {_shown(path, folder)}"


def change_file(rng: Random, folder: Path) -> str | None:
    """Take permissions away, delete, rename, swap or replace a file or folder."""
    paths = sorted(folder.rglob("*"))
    if not paths:
        return None
    path = rng.choice(paths)
    what = rng.choice(
        ["close", "delete", "rename", "swap", "fifo", "loop", "folder", "empty"]
    )
    if what == "close":
        path.chmod(rng.choice([0o000, 0o200, 0o400, 0o100]))
    elif what == "rename":
        names = [
            "@",
            "ses_@~1",
            "a\nb",
            "ses_" + "x" * 200,
            "-wal",
            "\u202eses",
            "ses_0001",
        ]
        with contextlib.suppress(OSError):
            path.rename(path.with_name(rng.choice(names) + path.suffix))
    elif not path.is_file():
        return None
    elif what == "swap":
        other = rng.choice(_files(folder))
        a, b = path.read_bytes(), other.read_bytes()
        path.write_bytes(b)
        other.write_bytes(a)
    elif what == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
        if what == "fifo":
            os.mkfifo(path)
        elif what == "loop":
            path.symlink_to(path.name)
        elif what == "folder":
            path.mkdir()
    return f"{what} {_shown(path, folder)}"


#: The mutations to draw from; the more revealing ones are listed more often.
MUTATIONS: list[Mutation] = [
    flip_bits, change_bytes, change_lines, change_value, change_value, change_value, change_row,
    change_row, change_row, change_page, change_file,
]  # fmt: skip


def mutate(rng: Random, folder: Path) -> list[str]:
    """Change the store in *folder* in one to three ways and return what was done."""
    done: list[str] = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        what = None
        for _ in range(20):
            # The result of an earlier mutation may be too odd for this one.
            with contextlib.suppress(OSError, RecursionError):
                what = rng.choice(MUTATIONS)(rng, folder)
            if what is not None:
                done.append(what)
                break
    return done


def _read(path: Path) -> bytes:
    raw = path.read_bytes()
    if path.suffix == ".gz":
        with contextlib.suppress(OSError, EOFError, ValueError, zlib.error):
            return gzip.decompress(raw)
    return raw


def _write(path: Path, raw: bytes) -> None:
    path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def _database(rng: Random, folder: Path) -> Path | None:
    found = [
        p for p in _files(folder) if p.suffix == ".db" and p.read_bytes()[:16] == MAGIC
    ]
    return rng.choice(found) if found else None


def _count(db: sqlite3.Connection, table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _change_schema(rng: Random, db: sqlite3.Connection, table: str) -> str:
    what = rng.choice([
        f"DROP TABLE {table}", f"ALTER TABLE {table} RENAME TO other", "PRAGMA user_version = 99",
        f"DELETE FROM {table}", f"CREATE VIEW odd AS SELECT * FROM {table}",
        f"ALTER TABLE {table} ADD COLUMN odd BLOB DEFAULT x'ff'",
    ])  # fmt: skip
    db.execute(what)
    return what


def _odd_column(rng: Random, old: Any) -> tuple[Any, str]:
    if isinstance(old, str) and old[:1] in ("{", "[") and rng.random() < 0.8:
        with contextlib.suppress(ValueError):
            text, where = _hostile(rng, json.loads(old))
            return text.encode("utf-8", "surrogatepass").decode(
                "utf-8", "replace"
            ), where
    odd = [
        None,
        0,
        -1,
        (1 << 63) - 1,
        1.5,
        float("inf"),
        "",
        "@",
        "a\0b",
        b"\xff\xfe",
        "x" * 5000,
    ]
    value = rng.choice([*odd, "{}", "[[", "null", '{"a":1}'])
    return value, f"= {value!r:.40}"


def _hostile(rng: Random, record: Any) -> tuple[str, str]:
    """Return *record* with something odd in it, as text, and what that is."""
    places = list(_places(record))
    holder, key = rng.choice(places) if places else ([record], 0)
    what = rng.choice(["value", "value", "value", "deep", "gone", "twice", "constant"])
    if what == "gone":
        del holder[key]
        return _text(record), f"without {key!r}"
    if what == "deep":
        depth = rng.choice(DEPTHS)
        return _text(
            _put(record, holder, key, "DEEP"), DEEP="[" * depth + "]" * depth
        ), f"{key!r} deep"
    if what == "constant":
        odd = rng.choice(["NaN", "1e999", "-Infinity", "0" * 30, "1" * 5000])
        return _text(
            _put(record, holder, key, "DEEP"), DEEP=odd
        ), f"{key!r} = {odd:.20}"
    if what == "twice" and isinstance(holder, dict):
        name = rng.choice(list(holder))
        return _text(_put(record, holder, key, holder[name])), f"{key!r} like {name!r}"
    value = rng.choice(HOSTILE)
    return _text(_put(record, holder, key, value)), f"{key!r} = {value!r:.40}"


def _put(record: Any, holder: Any, key: Any, value: Any) -> Any:
    holder[key] = value
    return record


def _text(record: Any, **pieces: str) -> str:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    for name, piece in pieces.items():
        text = text.replace(f'"{name}"', piece)
    return text


def _places(value: Any) -> Any:
    """Yield (holder, key) of everything inside a JSON value."""
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in list(pairs):
        yield value, key
        yield from _places(item)
