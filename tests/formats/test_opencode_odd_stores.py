"""Databases of OpenCode as no version of it leaves them: damage stays where it is."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opencode2_store import (
    answered,
    asked,
    everything2,
    forked2,
    session2,
    sqlite2_store,
)
from opencode_reading import drafts, one, read
from opencode_store import (
    assistant,
    everything,
    forked,
    session,
    sqlite_store,
    text,
    user,
)
from opencode_writing import import_store, one_written

from sessiondb import Store
from sessiondb.formats.opencode.v1.records import export_json
from sessiondb.formats.opencode.v2.records import export_json as export2_json

pytestmark = pytest.mark.slow


class Kind(NamedTuple):
    """A generation: how its database is written, and a session as it exports it."""

    write: Callable[..., Path]
    export: Callable[..., dict[str, Any]]
    intact: dict[str, Any]
    others: list[dict[str, Any]]


FORKED = session(2, user(20, "One"), assistant(21, text("Two")))
FORKED2 = session2(2, asked(20, "One"), answered(21, {"type": "text", "text": "Two"}))
KINDS = {
    "1": Kind(
        partial(sqlite_store, version="1.2"),
        export_json,
        everything(),
        [FORKED, forked(FORKED, 3, 2)],
    ),
    "2": Kind(
        sqlite2_store, export2_json, everything2(), [FORKED2, forked2(FORKED2, 3, 2)]
    ),
}
ODD = [
    None, "", "{", "[]", "null", "7", '{"role":7}', '{"content":[7]}', '{"time":{"created":1e400}}',
    '{"type":"before","messageID":7}', "a\0b", "../../x", 0, -1, 2**63 - 1, 1.5, float("-inf"),
    b"", b"\xff\0",
]  # fmt: skip


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("templates")
    return {
        name: kind.write(folder / name / "opencode.db", kind.intact, *kind.others)
        for name, kind in KINDS.items()
    }


def tables(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """Every table with each of its columns."""
    return db.execute(
        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
        " WHERE m.type = 'table' ORDER BY 1, 2"
    ).fetchall()


def put_odd(db: sqlite3.Connection, table: str, column: str, value: Any) -> None:
    """Write a value into rows of all sessions but the first, wherever the table allows it."""
    db.execute(f"CREATE TABLE odd AS SELECT * FROM {table}")
    db.execute(f"DROP TABLE {table}")
    db.execute(f"ALTER TABLE odd RENAME TO {table}")
    owner = "id" if table in ("session", "session_v2") else "session_id"
    if (table, owner) in tables(db):
        statement = f"UPDATE {table} SET {column} = ? WHERE {owner} <> 'ses_0001'"
        db.execute(statement, (value,))


@pytest.mark.parametrize("generation", KINDS)
@settings(max_examples=30)
@given(data=st.data())
def test_no_value_in_any_column_harms_another_session(
    generation: str, templates: dict[str, Path], data: st.DataObject
) -> None:
    kind = KINDS[generation]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(templates[generation], folder))
        with closing(sqlite3.connect(path)) as db, db:
            for _ in range(data.draw(st.integers(1, 3))):
                place = data.draw(st.sampled_from(tables(db)))
                put_odd(db, *place, data.draw(st.sampled_from(ODD)))
        sources, problems = read(path)
        source = sources["ses_0001"]
        assert kind.export(source, drafts(source)) == kind.intact
        lost = {"ses_0002", "ses_0003"} - sources.keys()
        assert not lost or problems
        assert all([list(other.messages)] for other in sources.values())


@pytest.mark.parametrize("generation", KINDS)
def test_columns_that_a_release_removes_or_adds_are_harmless(
    generation: str, tmp_path: Path
) -> None:
    kind = KINDS[generation]
    path = kind.write(tmp_path / "opencode.db", *kind.others)
    with closing(sqlite3.connect(path)) as db, db:
        for table in {table for table, _ in tables(db)}:
            db.execute(f"ALTER TABLE {table} ADD COLUMN later TEXT DEFAULT 'new'")
        sessions = "session" if generation == "1" else "session_v2"
        for column in (
            "share_url",
            "summary_diffs",
            "revert",
            "permission",
            "time_archived",
        ):
            db.execute(f"ALTER TABLE {sessions} DROP COLUMN {column}")
    sources, problems = read(path)
    assert (list(sources), problems) == (["ses_0002", "ses_0003"], [])
    assert sources["ses_0003"].relation == "fork"
    assert sources["ses_0002"].data["row"]["later"] == "new"
    source = sources["ses_0002"]
    assert kind.export(source, drafts(source)) == kind.others[0]


@pytest.mark.parametrize("generation", KINDS)
def test_values_that_json_cannot_express_are_written_as_null_and_reported(
    generation: str, tmp_path: Path
) -> None:
    kind = KINDS[generation]
    path = kind.write(tmp_path / "opencode.db", *kind.others)
    table = "session" if generation == "1" else "session_v2"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            f"UPDATE {table} SET project_id = X'FF00', time_archived = 9e999 WHERE id = 'ses_0002'"
        )
    with Store.open(tmp_path / "own.db", durability="normal") as store:
        ids = import_store(store, path)
        document, losses = one_written("opencode", store.export(ids["ses_0002"]))
        info = document["info"]
        assert (info["id"], info["projectID"]) == ("ses_0002", None)
        assert "values that JSON cannot express: they are written as null" in losses


WRITE = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA journal_mode = WAL")
for seq in (1, 2):
    db.execute("INSERT INTO session_message SELECT 'msg_' || :seq, session_id, type, :seq, :seq, 0,"
               " replace(data, 'One', :seq) FROM session_message WHERE seq = 0", {"seq": seq})
    db.commit()
    print(os.stat(sys.argv[1] + "-wal").st_size, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(
    "tail", [b"", b"\0" * 3000, b"\xff" * 5000], ids=["cut", "zeros", "noise"]
)
def test_a_log_that_is_torn_is_read_up_to_the_tear(tail: bytes, tmp_path: Path) -> None:
    path = sqlite2_store(tmp_path / "opencode.db", session2(1, asked(0, "One")))
    command = [
        sys.executable,
        "-c",
        WRITE,
        str(path),
    ]  # it dies without closing the database
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, second = map(int, done.stdout.split())
    log = path.with_name("opencode.db-wal")
    torn = log.read_bytes()[: (first + second) // 2] + tail
    log.write_bytes(torn)
    assert [draft.parts[0].text for draft in drafts(one(path))] == ["One", "1"]


def test_a_file_that_is_not_a_log_hides_nothing(tmp_path: Path) -> None:
    path = sqlite2_store(tmp_path / "opencode.db", session2(1, asked(0, "One")))
    path.with_name("opencode.db-wal").write_bytes(b"no log at all" * 500)
    assert one(path).title == "Session 1"
