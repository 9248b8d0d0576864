"""Databases of any size, built by bulk SQL straight into the schema.

Sizes of texts and outputs are heavy-tailed as those of real agents are: the
median tool output has 0.8 KB, the ninth decile 6.7 KB. Everything comes from one
seed, so two runs measure the same bytes.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from sessiondb import Store, assistant, codec, ids, text, tool, user
from sessiondb.engine.default import ENGINE
from sessiondb.engine.search_words import words_beside
from sessiondb.engine.sqlite.connection import connect
from sessiondb.model import MessageDraft

START = 1_760_000_000_000
#: A word of every hundredth part, and one of every second.
RARE, COMMON = "quokka", "wombat"
#: A part of an identifier, and a piece of a run, each in as many parts as `RARE`.
PART, PIECE = "bilby", "字符集"

#: Writes rows, mappings that all have the keys of the first, into a table by name.
Insert = Callable[[str, Iterable[Mapping[str, Any]]], None]
Fill = Callable[[Insert], None]


@cache
def corpus() -> str:
    """Return a megabyte of 5,000 words, which are as unevenly common as those of a language."""
    rng = random.Random(7)  # noqa: S311  a fixture, nothing secret
    syllables = [a + b for a in "bcdfghjklmnprstv" for b in "aeiou"]
    vocabulary = [
        "".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(5000)
    ]
    weights = [1 / (rank + 3) for rank in range(5000)]
    return " ".join(rng.choices(vocabulary, weights, k=200_000))


def words(rng: random.Random, size: int) -> str:
    """Return *size* characters of words."""
    start = rng.randrange(len(corpus()) - size)
    return corpus()[start : start + size]


def large(rng: random.Random) -> int:
    """Return the length of a tool output."""
    return min(200_000, int(rng.lognormvariate(6.68, 1.66)))


def small(rng: random.Random) -> int:
    """Return the length of a message's text."""
    return min(20_000, int(rng.lognormvariate(5.0, 1.0)))


FIELDS: dict[str, Any] = {
    "agent": "build",
    "provider": "acme",
    "model": "acme-large",
    "cost": 0.0123,
    "tokens": {"input": 5123, "output": 214, "cache_read": 40_960},
    "finish": "tool-calls",
}


def draft(number: int) -> MessageDraft:
    """Return an answer of two parts and 1.5 KB, no value large enough to be a blob."""
    start = number * 1499 % 500_000
    said = corpus()[start : start + 1200]
    return assistant(
        text(said[:480]),
        tool(
            "edit",
            {"path": f"src/{number}.py", "old": said[480:600], "new": said[600:720]},
            call_id=f"call_{number}",
            output=said[720:],
            title=f"src/{number}.py",
        ),
    )


@cache
def appendable(folder: Path) -> tuple[Path, list[str]]:
    """Return a database with some history, and 64 sessions in it to append to."""
    path = folder / "appendable.db"
    with Store.open(path, source="bench", durability="normal", cwd=folder) as store:
        return path, sessions_with_history(store, 64)


def sessions_with_history(store: Store, count: int) -> list[str]:
    """Make so many sessions with a few messages; return their ids."""
    handles = [store.create_session(title=f"session {n}") for n in range(count)]
    for handle in handles:
        with store.effects() as fx:
            for number in range(8):
                fx.append(handle, user(corpus()[number * 300 : number * 300 + 240]))
                fx.append(handle, draft(number), **FIELDS)
    return [handle.id for handle in handles]


def built(path: Path, *fills: Fill) -> Path:
    """Make a database at *path* and fill it."""
    Store.open(path).close()
    for fill in fills:
        with _bulk(path) as connection:
            fill(partial(insert_rows, connection))
    return path


@contextmanager
def _bulk(path: Path) -> Generator[sqlite3.Connection]:
    """Yield a connection in a transaction without durability; search follows at its end.

    The trigger on INSERT would make one segment of the index for each session.
    """
    with closing(connect(path)) as connection:
        for pragma in ("synchronous=OFF", "journal_mode=OFF", "cache_size=-400000"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        (trigger,) = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE name = 'session_search_insert'"
        ).fetchone()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DROP TRIGGER session_search_insert")
        yield connection
        connection.execute(trigger)
        connection.execute(
            "INSERT INTO session_search (session_search) VALUES ('rebuild')"
        )
        ENGINE.search.put_waiting(connection)
        ENGINE.usage.put_waiting(connection)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL").fetchall()


def insert_rows(
    connection: sqlite3.Connection, table: str, rows: Iterable[Mapping[str, Any]]
) -> None:
    """Insert mappings that all have the keys of the first."""
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    names = ", ".join(first)
    sql = f"INSERT INTO {table} ({names}) VALUES ({', '.join(':' + name for name in first)})"
    connection.execute(sql, first)
    connection.executemany(sql, rows)


def project(insert: Insert, worktree: str) -> str:
    """Make a project; return its id."""
    made = {"time_created": START, "time_updated": START}
    insert("project", [{"id": worktree, "worktree": worktree, **made}])
    where = {"directory": worktree, "project_id": worktree, "kind": "worktree"}
    insert("project_directory", [{**where, "time_created": START}])
    return worktree


def session_row(
    session_id: str, project_id: str, number: int, messages: int
) -> dict[str, Any]:
    """Return a session, last used *number* seconds after the start."""
    when, word = START + number * 1000, number * 7 % 900_000
    return {
        "id": session_id,
        "project_id": project_id,
        "parent_id": None,
        "relation": None,
        "root_id": session_id,
        "slug": f"slug-{number}",
        "title": f"{corpus()[word : word + 30]} {number}",
        "directory": project_id,
        "source": "bench",
        "agent": "build",
        "provider_id": "acme",
        "model_id": "acme-large",
        "leaf_seq": messages or None,
        "last_seq": messages,
        "message_count": messages,
        "cost": 0.01 * messages,
        "tokens_input": 5000 * messages,
        "tokens_output": 200 * messages,
        "time_created": when,
        "time_updated": when,
    }


def conversation(
    session_id: str,
    turns: int,
    seed: int,
    output: Callable[[random.Random], int] = large,
) -> Fill:
    """Fill in *turns* prompts with an answer each: 2 messages and 6 parts a turn.

    *output* draws the lengths of tool outputs.
    """

    def fill(insert: Insert) -> None:
        rng = random.Random(seed)  # noqa: S311  a fixture, nothing secret
        project_id = project(insert, f"/conversation/{session_id}")
        insert("session", [session_row(session_id, project_id, seed, 2 * turns)])
        insert("message", messages(session_id, 2 * turns))
        parts: list[dict[str, Any]] = []
        blobs: dict[str, dict[str, Any]] = {}
        for seq in range(1, 2 * turns + 1):
            parts += _parts(rng, session_id, seq, blobs, words(rng, output(rng)))
        insert("blob", blobs.values())
        insert("part", parts)

    return fill


def messages(session_id: str, count: int) -> Iterator[dict[str, Any]]:
    """Yield prompts and answers in turn."""
    for seq in range(1, count + 1):
        asked = seq % 2 == 1
        when = START + seq * 1000
        yield {
            "session_id": session_id,
            "seq": seq,
            "id": f"msg_{seq:026d}",
            "parent_seq": seq - 1 or None,
            "turn_id": f"msg_{seq if asked else seq - 1:026d}",
            "role": "user" if asked else "assistant",
            "agent": "build",
            "provider_id": "acme",
            "model_id": "acme-large",
            "usage_key": None if asked else f"{session_id[-16:]}{seq:016d}",
            "cost": None if asked else 0.0123,
            "tokens_input": None if asked else 5123,
            "tokens_output": None if asked else 214,
            "finish": None if asked else "stop",
            "time_created": when,
            "time_completed": when + 900,
            "data": codec.pack_data(
                {"path": {"cwd": "/home/dev/acme", "root": "/home/dev/acme"}}
            ),
        }


def _parts(
    rng: random.Random,
    session_id: str,
    seq: int,
    blobs: dict[str, dict[str, Any]],
    output: str,
) -> list[dict[str, Any]]:
    said = words(rng, small(rng))
    if seq % 2:
        return [part_row(session_id, seq, 0, blobs, type="text", text=said)]
    usage = {
        "tokens": {"input": 5123, "output": 214},
        "cost": 0.0123,
        "snapshot": f"{seq:040x}",
    }
    call: dict[str, Any] = {
        "type": "tool",
        "tool": "bash",
        "call_id": f"call_{seq:024d}",
        "status": "completed",
        "title": words(rng, 30),
        "input": codec.json_text(
            {"command": words(rng, 120), "description": words(rng, 40)}
        ),
        "text": output,
        "data": {"metadata": {"exit": 0, "preview": output[:200], "truncated": False}},
    }
    facts: list[dict[str, Any]] = [
        {"type": "step-start", "data": {"snapshot": f"{seq:040x}"}},
        {"type": "reasoning", "text": words(rng, small(rng))},
        {"type": "text", "text": said},
        call,
        {"type": "step-finish", "data": usage},
    ]
    return [
        part_row(session_id, seq, idx, blobs, **fact) for idx, fact in enumerate(facts)
    ]


def part_row(
    session_id: str,
    seq: int,
    idx: int,
    blobs: dict[str, dict[str, Any]] | None = None,
    *,
    type: str,
    text: str | None = None,
    data: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a part; a text of 1 KB or more goes to *blobs*."""
    text_blob = None
    if blobs is not None and text is not None and len(text) >= codec.BLOB_BYTES:
        raw = text.encode()
        text_blob, text = codec.digest(raw), None
        blobs[text_blob] = {
            "hash": text_blob, "size": len(raw), "encoding": codec.UTF8, "data": raw
        }  # fmt: skip
    when = START + seq * 1000
    return {
        "session_id": session_id,
        "seq": seq,
        "idx": idx,
        "id": f"prt_{seq:022d}{idx:04d}",
        "type": type,
        "tool": None,
        "call_id": None,
        "status": None,
        "title": None,
        "input": None,
        **more,
        "text": text,
        "text_blob": text_blob,
        "data": codec.pack_data(data or {}),
        "indexed": int(bool(text or text_blob or more.get("input"))),
        "time_created": when,
        "time_updated": when,
        "time_started": when,
        "time_ended": when + 500,
    }


def session_list(count: int, worktree: str) -> Fill:
    """Fill in *count* sessions, 19 of 20 of them subagents; half are of *worktree*."""

    def rows(projects: list[str]) -> Iterator[dict[str, Any]]:
        parent: dict[str, Any] = {}
        for number in range(count):
            row = session_row(
                ids.new_session_id(), projects[number // 20 % 2], number, 12
            )
            if number % 20 == 0:
                parent = row
            else:
                row |= {
                    "parent_id": parent["id"],
                    "relation": "subagent",
                    "root_id": parent["id"],
                }
            yield row

    def fill(insert: Insert) -> None:
        projects = [project(insert, worktree), project(insert, "/elsewhere")]
        insert("session", rows(projects))

    return fill


def answered_sessions(count: int, length: int) -> Fill:
    """Fill in *count* sessions of *length* messages each, in a year and 50 projects."""

    def fill(insert: Insert) -> None:
        rng = random.Random(count)  # noqa: S311  a fixture, nothing secret
        projects = [project(insert, f"/projects/{number}") for number in range(50)]
        names = [ids.new_session_id() for _ in range(count)]
        rows = (
            session_row(name, projects[number % 50], number, length)
            for number, name in enumerate(names)
        )
        insert("session", rows)
        begun = [rng.randrange(365 * 24) * 3_600_000 for _ in names]
        insert(
            "message",
            (
                row
                | {
                    "id": f"{row['id']}{number}",
                    "time_created": row["time_created"] + begun[number],
                    "model_id": f"acme-{number % 7}",
                }
                for number, name in enumerate(names)
                for row in messages(name, length)
            ),
        )

    return fill


def haystack(count: int) -> Fill:
    """Fill in *count* parts of 20 words, in sessions of 100 messages of three parts."""
    per_session, per_message = 300, 3

    def fill(insert: Insert) -> None:
        rng = random.Random(count)  # noqa: S311  a fixture, nothing secret
        pool = [words(rng, 120) for _ in range(4096)]
        project_id = project(insert, "/haystack")
        sessions = [ids.new_session_id() for _ in range(-(-count // per_session))]
        used = per_session // per_message
        rows = (session_row(sid, project_id, n, used) for n, sid in enumerate(sessions))
        insert("session", rows)
        insert(
            "message",
            (row for sid in sessions for row in messages(sid, used)),
        )
        insert(
            "part",
            (part(rng, pool, sessions, number) for number in range(count)),
        )

    def part(
        rng: random.Random, pool: list[str], sessions: list[str], number: int
    ) -> dict[str, Any]:
        sid, place = sessions[number // per_session], number % per_session
        said = rng.choice(pool)
        said += f" {RARE}" if number % 100 == 7 else ""
        said += f" {PART.title().join(('old', 'Name'))}" if number % 100 == 8 else ""
        said += f" 我们的{PIECE}测试" if number % 100 == 9 else ""
        said += f" {COMMON}" if number % 2 else ""
        seq, idx = divmod(place, per_message)
        beside = words_beside([said])
        return part_row(sid, seq + 1, idx, type="text", text=said, words=beside)

    return fill
