"""A session of 64 MB is never completely in memory, in any operation."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from processes import run, said

from sessiondb import Store, user
from sessiondb.maintenance import check

pytestmark = pytest.mark.slow

MESSAGES = 64
#: The pages of the file that a connection may keep, and a page of messages, twice.
BOUND = 32 * 1024

NUMBERS = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count) "
)
LARGE = (
    NUMBERS + "INSERT INTO blob (hash, size, encoding, data) SELECT i, "
    "1048576, 'utf-8', CAST(hex(randomblob(524288)) AS BLOB) FROM n WHERE :session <> ''",
    "UPDATE blob SET hash = sha256(data) WHERE :session <> ''",
    NUMBERS
    + "INSERT INTO message (session_id, seq, id, parent_seq, role, time_created, "
    "time_completed) SELECT :session, i + 1, 'm' || i, i, 'assistant', 1, 1 FROM n",
    NUMBERS
    + "INSERT INTO part (session_id, seq, idx, id, type, text_blob, time_created, "
    "time_updated) SELECT :session, i + 1, 0, 'p' || i, 'text', (SELECT hash FROM blob WHERE rid = i), "
    "1, 1 FROM n",
    "UPDATE session SET leaf_seq = :count + 1, last_seq = :count + 1, message_count = :count + 1 WHERE id = :session",
)

MEASURED = """
import json, sys
from sessiondb import ALL, Store

store, session = Store.open(sys.argv[1], durability="normal"), sys.argv[2]

def resident(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))

def grown(work):
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    before = resident("VmRSS")
    result = work()
    return [resident("VmHWM") - before, result]

print(json.dumps({
    "list": grown(lambda: len(store.sessions(project=ALL))),
    "tail": grown(lambda: len(store.messages(session, last=2))),
    "tree": grown(lambda: len(store.tree(session, messages=True).messages)),
    "walk": grown(lambda: sum(len(message.text) for message in store.walk(session))),
    "search": grown(lambda: len(store.search("first"))),
    "fork": grown(lambda: store.session(store.fork(session)).message_count),
    "plan": grown(lambda: store.plan_delete(session).bytes // 2**20),
    "delete": grown(lambda: store.delete(session)),
    "reap": grown(lambda: store.reap() > 64 // 4),
}))
store.close()
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="the peak of a process is read from /proc"
)
def test_a_large_session_is_never_completely_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.db"
    with Store.open(path, durability="normal") as store:
        session = store.create_session(title="large")
        store.append(session, user("first"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.create_function("sha256", 1, lambda b: hashlib.sha256(b).hexdigest())
        for statement in LARGE:
            connection.execute(statement, {"count": MESSAGES, "session": session.id})
    assert path.stat().st_size > MESSAGES * 2**20
    measured = json.loads(said(run(MEASURED, path, session.id)))
    results = {name: result for name, (_, result) in measured.items()}
    assert results == {
        "list": 1, "tail": 2, "tree": MESSAGES + 1, "walk": MESSAGES * 2**20 + 5, "search": 1,
        "fork": MESSAGES + 1, "plan": MESSAGES, "delete": None, "reap": True,
    }  # fmt: skip
    assert {name: grown for name, (grown, _) in measured.items() if grown > BOUND} == {}
    with Store.open(path, durability="normal") as store:
        assert check(store) == []
