"""Values of our own file that cannot be decoded: an error that names the session and what to do."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sessiondb import CorruptionError, Store, assistant, tool, user
from sessiondb.formats import jsonl
from sessiondb.maintenance import check
from sessiondb.repository.sessions import ALL

pytestmark = pytest.mark.slow

DAMAGE = {
    "session.data": "UPDATE session SET data = x'c1' WHERE id = :sid",
    "message.data": "UPDATE message SET data = x'ff00' WHERE session_id = :sid",
    "part.data": "UPDATE part SET data = x'81a1' WHERE session_id = :sid",
    "session.metadata": "UPDATE session SET metadata = '{' WHERE id = :sid",
    "session.permission": "UPDATE session SET permission = '[1' WHERE id = :sid",
    "message.error": "UPDATE message SET error = '{\"a\"' WHERE session_id = :sid",
    "part.input": "UPDATE part SET input = 'nope' WHERE session_id = :sid AND type = 'tool'",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path, durability="normal") as store:
        yield store


@pytest.fixture
def damaged(store: Store, path: Path) -> Callable[[str], tuple[str, str]]:
    """Return a function that makes a sound session and one with a damaged column."""

    def make(where: str) -> tuple[str, str]:
        ids = []
        for title in ("Sound", "Damaged"):
            sid = store.create_session(title=title, metadata={"k": 1}).id
            store.append(sid, user("Fix it", extra=1))
            store.append(
                sid,
                assistant("Yes", tool("sh", {"a": 1}, output="x", extra=2)),
                error={},
            )
            ids.append(sid)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("PRAGMA ignore_check_constraints = ON")
            assert db.execute(DAMAGE[where], {"sid": ids[1]}).rowcount
        return ids[0], ids[1]

    return make


def exported(store: Store, name: str) -> str:
    return "".join(jsonl.session_lines(store.export(name, **jsonl.READ)))


def command(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "sessiondb", "--db", str(path), *words]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("where", DAMAGE)
def test_a_damaged_value_is_an_error_that_names_its_session_or_part(
    store: Store, damaged: Callable[[str], tuple[str, str]], where: str
) -> None:
    sound, broken = damaged(where)
    with pytest.raises(CorruptionError) as caught:
        exported(store, broken)
    parts = {p.id for m in store.messages(sound) for p in m.parts}
    assert broken in str(caught.value) or "part prt_" in str(caught.value)
    assert not any(part in str(caught.value) for part in parts)
    assert caught.value.exit_code == 4
    assert sound in exported(store, sound)


@pytest.mark.parametrize("where", DAMAGE)
def test_check_finds_a_damaged_payload(
    store: Store, damaged: Callable[[str], tuple[str, str]], where: str
) -> None:
    damaged(where)
    assert check(store)


@pytest.mark.parametrize(
    "where", ["session.data", "session.metadata", "session.permission"]
)
def test_a_damaged_session_does_not_hide_the_others(
    store: Store, path: Path, damaged: Callable[[str], tuple[str, str]], where: str
) -> None:
    sound, broken = damaged(where)
    with pytest.warns(UserWarning, match=broken):
        assert {item.id for item in store.sessions(project=ALL)} == {sound, broken}
    done = command(path, "list", "-a", "--json")
    assert done.returncode == 0
    assert {item["id"] for item in json.loads(done.stdout)["sessions"]} == {
        sound,
        broken,
    }
    assert broken in done.stderr


@pytest.mark.parametrize("where", ["session.data", "part.data", "part.input"])
def test_a_command_ends_with_code_4_and_names_the_check(
    path: Path, damaged: Callable[[str], tuple[str, str]], where: str
) -> None:
    _, broken = damaged(where)
    done = command(path, "show", broken, "--json")
    assert done.returncode == 4
    assert "damaged" in done.stderr
    assert "check`" in done.stderr
    assert "defect" not in done.stderr


def test_a_schema_that_is_not_utf_8_is_damage_and_no_defect(
    store: Store, path: Path
) -> None:
    store.create_session()
    store.close()
    raw = path.read_bytes()
    path.write_bytes(
        raw.replace(b"time_importing INTEGER", b"time_importing INTEGE\xd2", 1)
    )
    for words in (["list", "-a"], ["check"], ["doctor"]):
        done = command(path, *words)
        assert "defect" not in done.stderr, words
        assert "Unicode" not in done.stderr, words
        assert done.returncode in (0, 1, 4), words
