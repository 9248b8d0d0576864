"""Damaged or malicious files cost their own sessions, and nothing else."""

from __future__ import annotations

import gzip
import json
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opencode_store import assistant, session, sqlite_store, text, tree_store, user
from samples import SAMPLES, content, log, new_store, read_into

from sessiondb import Store
from sessiondb import user as said
from sessiondb.formats.kit import lines, packed
from sessiondb.importing.gate.values import MAX_LAST_SEQ
from sessiondb.maintenance import check
from sessiondb.model import Imported, Problem
from sessiondb.repository.sessions import ALL

pytestmark = pytest.mark.slow

SAMPLE_SESSIONS = 3


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Return a folder with a good store in it, next to what a test adds."""
    folder = tmp_path / "theirs"
    tree_store(folder / "good", session(9, user(90, "Near")))
    return folder


def problems_of(results: list[Imported | Problem]) -> list[Problem]:
    return [result for result in results if isinstance(result, Problem)]


def imported(results: list[Imported | Problem]) -> set[str]:
    return {result.source_id for result in results if isinstance(result, Imported)}


def changed(record: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({**record, **fields}).encode()


def log_with(change: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """Return the log with *change* applied to every record of its first session."""
    records = [json.loads(line) for line in log().splitlines()]
    first = records[0]["session_id"]
    return b"".join(
        json.dumps(change(r) if r["session_id"] == first else r).encode() + b"\n"
        for r in records
    )


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9, 1.0])
def test_a_flipped_byte_in_a_packed_log_costs_what_follows_it(
    theirs: Path, store: Store, place: float
) -> None:
    raw = bytearray(gzip.compress(log(), mtime=0))
    raw[int(place * (len(raw) - 1))] ^= 0x10
    (theirs / "bundle.jsonl.gz").write_bytes(raw)
    results = read_into(store, theirs)
    assert problems_of(results)
    assert "ses_0009" in imported(results)
    assert check(store) == []


def test_a_packed_log_of_several_members_is_read_and_a_cut_one_up_to_the_cut(
    theirs: Path, store: Store
) -> None:
    complete = log()
    half = complete.index(b"\n", len(complete) // 2) + 1
    packed = gzip.compress(complete[:half]) + gzip.compress(complete[half:])
    (theirs / "bundle.jsonl.gz").write_bytes(packed)
    assert not problems_of(read_into(store, theirs))
    (theirs / "bundle.jsonl.gz").write_bytes(packed[:-20])
    (problem,) = [
        p for p in problems_of(read_into(store, theirs)) if "damaged" in p.why
    ]
    assert problem.source.endswith("bundle.jsonl.gz")


def test_a_packed_file_that_would_fill_the_disk_is_not_unpacked(
    theirs: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "FREE_BYTES", 1 << 20)
    written = 0
    real = tempfile.TemporaryFile

    def counting() -> Any:
        file = real()
        write = file.write

        def count(piece: bytes) -> int:
            nonlocal written
            written += len(piece)
            return int(write(piece))

        file.write = count
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", counting)
    bomb = gzip.compress(log() + b"x" * (32 << 20), mtime=0)
    (theirs / "bomb.jsonl.gz").write_bytes(bomb)
    results = read_into(store, theirs)
    assert written <= max(1 << 20, packed.MAX_RATIO * len(bomb))
    assert any("times its size" in problem.why for problem in problems_of(results))
    assert len(imported(results)) == SAMPLE_SESSIONS + 1


def test_a_line_that_is_too_long_is_left_out_and_the_next_one_read(
    theirs: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1 << 20)
    first, *rest = log().splitlines(keepends=True)
    (theirs / "bundle.jsonl").write_bytes(
        first + b"y" * (3 << 20) + b"\n" + b"".join(rest)
    )
    results = read_into(store, theirs)
    (problem,) = problems_of(results)
    assert (problem.line, "longer than" in problem.why) == (2, True)
    assert len(imported(results)) == SAMPLE_SESSIONS + 1


@pytest.mark.parametrize("line", [
    b'{"$map":[1]}', b'{"$map":[[1,2,3]]}', b'{"$map":["ab"]}', b'{"$map":7}', b'{"$map":[[[],1]]}',
    b'{"$blob":[]}', b'{"$bytes":{}}', b'{"$str":"/w=="}', b'{"$float":1}',
])  # fmt: skip
def test_a_value_that_no_log_has_costs_its_line(
    theirs: Path, store: Store, line: bytes
) -> None:
    (theirs / "bundle.jsonl").write_bytes(log() + line + b"\n")
    results = read_into(store, theirs)
    (problem,) = problems_of(results)
    assert "line skipped" in problem.why
    assert len(imported(results)) == SAMPLE_SESSIONS + 1


@pytest.mark.parametrize("field", ["revision", "last_seq", "seq"])
@pytest.mark.parametrize("value", [(1 << 63) - 1, (1 << 63) - 2, 1 << 62])
def test_a_counter_near_its_end_is_refused_because_nothing_could_be_written_after_it(
    theirs: Path, store: Store, field: str, value: int
) -> None:
    (theirs / "bundle.jsonl").write_bytes(log_with(lambda r: {**r, field: value}))
    results = read_into(store, theirs)
    assert any(field in problem.why for problem in problems_of(results))
    assert "ses_0009" in imported(results)
    for item in store.sessions(project=ALL, empty=True, subagents=True):
        store.set_title(item.id, "Still")
        store.append(item.id, said("goes on"))
        store.delete(item.id)
    assert check(store) == []


@pytest.mark.parametrize("above", [1, (1 << 32) - 1, 1 << 32])
def test_a_last_seq_without_room_for_further_messages_is_refused(
    theirs: Path, store: Store, above: int
) -> None:
    last_seq = MAX_LAST_SEQ + above
    (theirs / "bundle.jsonl").write_bytes(
        log_with(lambda r: {**r, "last_seq": last_seq})
    )
    results = read_into(store, theirs)
    (problem,) = problems_of(results)
    assert "last_seq above 2^53 - 2^32 leaves no room" in problem.why
    assert len(imported(results)) == SAMPLE_SESSIONS


@pytest.mark.parametrize(("kind", "fields"), [
    ("session_state", {"last_seq": None}), ("session_renamed", {"title_source": None}),
    ("session_renamed", {"title": None, "title_source": None}),
    ("forked", {"parent_source_id": "a\ud800"}), ("user", {"usage_key": "a\ud800"}),
    ("session_state", {"revision": None}), ("session_meta", {"slug": ""}),
    ("session_meta", {"time": -1}), ("user", {"parent_id": ""}), ("user", {"turn_id": ""}),
])  # fmt: skip
def test_a_null_or_a_lone_surrogate_where_none_belongs_is_a_problem_of_its_record(
    theirs: Path, store: Store, kind: str, fields: dict[str, Any]
) -> None:
    (theirs / "bundle.jsonl").write_bytes(
        log_with(lambda r: {**r, **fields} if r["type"] in (kind, "spawned") else r)
    )
    results = read_into(store, theirs)
    again = read_into(store, theirs)
    assert problems_of(again) == problems_of(results)
    assert len(imported(results)) >= SAMPLE_SESSIONS
    assert check(store) == []


@pytest.mark.parametrize("name", ["@", "@~1", "@mine"])
def test_a_session_under_an_id_that_names_another_one_is_refused(
    theirs: Path, store: Store, name: str
) -> None:
    (theirs / "bundle.jsonl").write_bytes(log_with(lambda r: {**r, "session_id": name}))
    results = read_into(store, theirs)
    assert any("begins with @" in problem.why for problem in problems_of(results))
    for item in store.sessions(project=ALL, empty=True, subagents=True):
        store.export(item.id)


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
@pytest.mark.parametrize(
    "sample", ["opencode 1.18, a database", "opencode 2, a database"]
)
def test_a_database_in_utf_16_is_imported_with_the_same_content(
    tmp_path: Path, store: Store, sample: str, encoding: str
) -> None:
    SAMPLES[sample].write(tmp_path / "a")
    (path,) = (tmp_path / "a").iterdir()
    other = tmp_path / "b" / "opencode.db"
    other.parent.mkdir()
    with (
        closing(sqlite3.connect(path)) as source,
        closing(sqlite3.connect(other)) as target,
        target,
    ):
        target.execute(f"PRAGMA encoding = '{encoding}'")
        for statement in source.iterdump():
            if not statement.startswith(("BEGIN", "COMMIT")):
                target.execute(statement)
    with new_store() as plain:
        read_into(plain, path.parent)
        expected = content(plain)
    assert not problems_of(read_into(store, other.parent))
    assert content(store) == expected


def test_an_error_that_sqlite_cannot_put_into_utf_8_is_a_problem(
    theirs: Path, store: Store
) -> None:
    path = sqlite_store(
        theirs / "opencode.db", session(1, user(1, "x"), assistant(2, text("y")))
    )
    raw = path.read_bytes()
    path.write_bytes(
        raw.replace(b"CREATE TABLE message", b"CREATE TABL\xff message", 1)
    )
    with closing(sqlite3.connect(path)) as db, pytest.raises(UnicodeDecodeError):
        db.execute("SELECT * FROM message")
    results = read_into(store, theirs)
    (problem,) = problems_of(results)
    assert problem.source == str(path)
    assert "reader failed" not in problem.why
    assert imported(results) == {"ses_0009"}


def test_a_column_whose_name_is_not_utf_8_is_a_problem_of_what_is_read_of_it(
    theirs: Path, store: Store
) -> None:
    path = sqlite_store(theirs / "opencode.db", session(1, user(1, "x")), version="1.2")
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"version text", b"ve\xddsion text", 1))
    results = read_into(store, theirs)
    assert problems_of(results)
    assert not [p for p in problems_of(results) if "reader failed" in p.why]
    assert imported(results) == {"ses_0009"}


def test_fifos_and_links_to_themselves_are_skipped(theirs: Path, store: Store) -> None:
    import os

    os.mkfifo(theirs / "log.jsonl")
    os.mkfifo(theirs / "opencode.db")
    (theirs / "loop.jsonl").symlink_to(theirs / "loop.jsonl")
    assert imported(read_into(store, theirs)) == {"ses_0009"}


def test_numbers_that_would_spoil_sums_and_orders_stay_in_the_record(
    tmp_path: Path, store: Store
) -> None:
    far = {"created": 1 << 60, "completed": 1 << 61}
    item = session(
        1, user(1, "x"), assistant(2, text("y"), cost=1e300, time=far), time=far
    )
    item["messages"][1]["info"]["tokens"]["input"] = 1 << 62
    tree_store(tmp_path / "theirs", item)
    assert not problems_of(read_into(store, tmp_path / "theirs"))
    (found,) = store.sessions(project=ALL)
    answer = store.messages(found.id)[1]
    assert (answer.cost, answer.tokens_input) == (None, None)
    assert answer.data["cost"] == 1e300
    assert answer.data["tokens"]["input"] == 1 << 62
    assert found.time_created < 1 << 50
    store.append(found.id, said("goes on"))
    assert check(store) == []


def test_messages_of_a_log_that_are_their_own_ancestors_are_not_linked(
    tmp_path: Path, store: Store
) -> None:
    """A lost line makes its children follow the message before, which may follow them."""
    records = [json.loads(line) for line in log().splitlines()]
    sid = records[0]["session_id"]
    names = [
        r["message_id"] for r in records if r["session_id"] == sid and "parent_id" in r
    ]
    above = {
        names[0]: names[1],
        names[1]: "lost",
        names[2]: names[3],
        names[3]: names[2],
    }
    for record in records:
        if record["session_id"] == sid and "parent_id" in record:
            record["parent_id"] = above.get(record["message_id"], record["parent_id"])
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    assert len(imported(read_into(store, tmp_path))) == SAMPLE_SESSIONS
    assert check(store) == []
    assert {m.id for m in store.messages(sid, branches=True)} == set(names)
