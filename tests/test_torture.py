"""The torture finds broken promises, and sessiondb passes it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessiondb import Store, user

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
KINDS = ["crowd", "faults"]
if os.environ.get("SESSIONDB_LONG"):
    KINDS += ["replaced", "clones"]


@pytest.fixture
def verdict(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from torturing.verdict import verdict

    return lambda path, log: list(verdict([path], log))


def test_every_acknowledged_fact_that_does_not_hold_is_found(
    tmp_path: Path, verdict: Callable[..., list[str]]
) -> None:
    path = tmp_path / "s.db"
    with Store.open(path) as store:
        session = store.create_session(directory="/tmp").id
        message = store.append(session, user("Hello"))
    facts: dict[str, Any] = {"kind": "message", "session": session, "id": message.id}
    true = {**facts, "seq": 1, "text": "Hello"}
    flushed = {**true, "kind": "flushed", "text": "Hel"}
    assert verdict(path, [true, flushed, {"kind": "session", "session": session}]) == []

    for line, words in [
        ({**true, "seq": 2}, "has seq 1"),
        ({**true, "text": "Bye"}, "another text"),
        ({**true, "id": "m"}, "exists 0 times"),
        ({"kind": "session", "session": "s"}, "is missing"),
        ({"kind": "deleted", "session": session}, "and still exists"),
        ({"kind": "wrong", "what": "it hangs"}, "it hangs"),
    ]:
        (found,) = verdict(path, [line])
        assert words in found
    assert (
        verdict(path, [{"kind": "deleting", "session": "s"}, {**true, "session": "s"}])
        == []
    )

    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE session SET message_count = 5")
        connection.commit()
    assert any("check" in found for found in verdict(path, [true]))


def test_a_session_in_two_files_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from torturing.verdict import verdict

    old, new = tmp_path / "old.db", tmp_path / "new.db"
    with Store.open(old) as store:
        session = store.create_session(id="s1").id
    line = {"kind": "session", "session": session}
    Store.open(new).close()
    assert list(verdict([new, old], [line])) == []
    assert list(verdict([new], [line])) == [
        "session s1 was acknowledged and is missing"
    ]
    shutil.copy(old, new)
    assert list(verdict([new, old], [line])) == ["session s1 is in two files"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_torture_holds_and_says_its_seed(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "torture", "--minutes", "0", "--round", "0.8",
         "--seed", "7", "--only", kind],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("seed 7\n")
    assert f"round 1, {kind}: " in done.stderr
    assert "everything holds" in done.stderr
