"""Sessions of two stores under one id, and one session that is found in two files."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import samples_aider as aider
import samples_goose as goose
import samples_openai_agents as agents
from samples import new_store, read_into

from sessiondb import ALL, AmbiguousIdError, Store
from sessiondb.effects.transaction import Transaction
from sessiondb.formats import exporter, find
from sessiondb.model import Document, Imported, MessageDraft, PartDraft, Session

Write = Callable[..., Path]
NAME = "20260202_1"


def database(folder: Path, *texts: str, name: str = NAME, **row: Any) -> Path:
    """Write a database of Goose whose messages have ids of that store alone."""
    said = (goose.asked(None, text, at) for at, text in enumerate(texts))
    path = folder / "goose.db"
    path.unlink(missing_ok=True)
    goose.database(path, {"id": name, "messages": [*said], **row}).close()
    return path


def conversation(folder: Path, *texts: str) -> Path:
    path = folder / "agents.db"
    path.unlink(missing_ok=True)
    return agents.write(path, {"default": map(agents.prompt, texts)})


def history(folder: Path, *texts: str) -> Path:
    return aider.write(folder / "tea", aider.run(1, *map(aider.asked, texts)))


every = pytest.mark.parametrize("write", [database, conversation, history])


def outcomes(store: Store, *folders: Path) -> list[str]:
    results = [result for folder in folders for result in read_into(store, folder)]
    assert all(isinstance(result, Imported) for result in results), results
    return [result.outcome for result in results if isinstance(result, Imported)]


def sessions(store: Store) -> list[Session]:
    found = store.sessions(project=ALL, archived=True, subagents=True, empty=True)
    return list(found)


def texts(store: Store) -> list[list[str]]:
    found = (store.messages(session.id, branches=True) for session in sessions(store))
    return sorted([m.text for m in each if m.role == "user"] for each in found)


# -- two stores ----------------------------------------------------------------------


@every
def test_one_id_in_two_stores_is_two_sessions(
    store: Store, tmp_path: Path, write: Write
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    write(a, "Tea", "More")
    write(b, "Coffee", "More")
    for outcome in ("imported", "unchanged"):
        assert outcomes(store, a, b) == [outcome] * 2
    assert texts(store) == [["Coffee", "More"], ["Tea", "More"]]

    one, other = sessions(store)
    assert one.source_id == other.source_id
    assert one.slug != other.slug
    with pytest.raises(AmbiguousIdError) as caught:
        store.session(str(one.source_id))
    assert set(caught.value.candidates) == {one.id, other.id}
    assert store.session(one.id) == one

    # Neither is a copy of the other, though their messages have one id and time.
    messages = [m for item in (one, other) for m in store.messages(item.id)]
    assert [m.inherited for m in messages] == [False] * 4
    assert len(store.prompts(project=ALL)) == 4


@every
def test_each_of_two_stores_continues_its_own(
    store: Store, tmp_path: Path, write: Write
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    write(a, "Tea")
    write(b, "Coffee")
    outcomes(store, a, b)
    write(b, "Coffee", "Milk")
    assert outcomes(store, b, a) == ["updated", "unchanged"]
    assert texts(store) == [["Coffee", "Milk"], ["Tea"]]


@every
def test_a_store_is_known_wherever_it_is(
    store: Store, tmp_path: Path, write: Write
) -> None:
    first = write(tmp_path / "a", "Tea").parent
    outcomes(store, first)
    moved = tmp_path / "backup" / first.name
    shutil.copytree(first, moved)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "a")

    for place in (moved, link, tmp_path / "a" / ".." / "a"):
        assert outcomes(store, place) == ["unchanged"]
        assert outcomes(store, place) == ["unchanged"]
    shutil.rmtree(first)
    write(moved.parent if first.name == "tea" else moved, "Tea", "More")
    assert outcomes(store, moved) == ["updated"]
    assert texts(store) == [["Tea", "More"]]


@every
def test_a_deletion_is_of_one_of_them(
    store: Store, tmp_path: Path, write: Write
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    write(a, "Tea")
    write(b, "Coffee")
    (done,) = [r for r in read_into(store, a) if isinstance(r, Imported)]
    store.delete(done.id)
    store.reap()
    assert outcomes(store, a, b) == ["deleted", "imported"]
    shutil.copytree(a, tmp_path / "c")
    assert outcomes(store, tmp_path / "c") == ["deleted"]
    assert texts(store) == [["Coffee"]]

    back = [item for found in find(a) for item in found.read()]
    (restored,) = store.ingest(back, undelete=True)
    assert isinstance(restored, Imported)
    assert restored.outcome == "imported"
    assert texts(store) == [["Coffee"], ["Tea"]]


@pytest.mark.slow
@every
def test_only_the_session_that_was_continued_here_diverges(
    store: Store, tmp_path: Path, write: Write
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    write(a, "Tea")
    (done,) = [r for r in read_into(store, a) if isinstance(r, Imported)]
    with store.effects() as fx:
        fx.append(done.id, MessageDraft("user", [PartDraft("text", "Here")]))
    write(a, "Tea", "There")
    write(b, "Coffee")
    assert outcomes(store, a, b) == ["diverged", "imported"]
    write(b, "Coffee", "Milk")
    assert outcomes(store, b) == ["updated"]
    given = [item for found in find(a) for item in found.read()]
    (fork,) = store.ingest(given, as_fork=True)
    assert isinstance(fork, Imported)
    assert outcomes(store, a) == ["unchanged"]
    assert texts(store) == [["Coffee", "Milk"], ["Tea", "Here"], ["Tea", "There"]]


@pytest.mark.slow
@every
def test_logs_of_two_machines_keep_them_apart(tmp_path: Path, write: Write) -> None:
    """Each machine has one session of that id; a third one has the logs of both."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for text in ("Tea", "Coffee"):
        write(tmp_path / text, text)
        with Store.open(tmp_path / f"{text}.db") as machine:
            outcomes(machine, tmp_path / text)
            (session,) = sessions(machine)
            export = [machine.export(session.id)]
            for item in exporter("jsonl").write(export, detail="full"):
                assert isinstance(item, Document)
                body = "".join(item.chunks)
                (logs / f"{text}.jsonl").write_text(body, encoding="utf-8")

    with new_store() as third:
        assert outcomes(third, logs) == ["imported"] * 2
        assert texts(third) == [["Coffee"], ["Tea"]]
        # It recognises the stores themselves.
        write(tmp_path / "Tea", "Tea", "More")
        found = outcomes(third, tmp_path / "Tea", tmp_path / "Coffee")
        assert found == ["updated", "unchanged"]
        assert texts(third) == [["Coffee"], ["Tea", "More"]]

    with new_store() as fourth:
        # Also the other way round, and from the databases.
        outcomes(fourth, tmp_path / "Tea")
        for text in ("Coffee", "Tea"):
            (database,) = find(tmp_path / f"{text}.db")
            list(fourth.ingest(database.read()))
        assert texts(fourth) == [["Coffee"], ["Tea", "More"]]


# -- Goose ---------------------------------------------------------------------------


def test_a_number_of_goose_that_is_given_again_is_another_session(
    store: Store, tmp_path: Path
) -> None:
    database(tmp_path, "Tea")
    outcomes(store, tmp_path)
    database(tmp_path, "Coffee", created_at="2026-02-02 02:50:00")
    assert outcomes(store, tmp_path) == ["imported"]
    assert texts(store) == [["Coffee"], ["Tea"]]


def test_an_edited_first_prompt_is_still_that_session_of_goose(
    store: Store, tmp_path: Path
) -> None:
    database(tmp_path, "Tea")
    outcomes(store, tmp_path)
    database(tmp_path, "Green tea")
    assert outcomes(store, tmp_path) == ["updated"]
    assert len(sessions(store)) == 1


def test_a_session_of_goose_without_messages_is_known_by_its_birth(
    store: Store, tmp_path: Path
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    database(a)
    database(b, created_at="2026-02-02 02:50:00")
    outcomes(store, a, b)
    assert len(sessions(store)) == 2
    database(tmp_path / "backup", "Tea")
    assert outcomes(store, tmp_path / "backup") == ["updated"]


def test_children_of_two_stores_of_goose_have_their_own_parents(
    store: Store, tmp_path: Path
) -> None:
    for text in ("Tea", "Coffee"):
        rows = [
            {"id": NAME, "messages": [goose.asked(None, text)]},
            {"id": "20260202_2", "parent_session_id": NAME,
             "messages": [goose.asked(None, f"Look for {text}", at=1)]},
        ]  # fmt: skip
        goose.database(tmp_path / f"{text}.db", *rows).close()
    outcomes(store, tmp_path)
    titles = {item.id: item.title for item in sessions(store)}
    parents = {item.title: titles.get(str(item.parent_id)) for item in sessions(store)}
    assert parents == {
        "Tea": None,
        "Coffee": None,
        "Look for Tea": "Tea",
        "Look for Coffee": "Coffee",
    }


def test_a_child_whose_parent_comes_later_is_linked_within_its_folder(
    store: Store, tmp_path: Path
) -> None:
    """Exports of Goose are a file each; a parent elsewhere is another one."""
    parent, child, _ = map(goose.exported, goose.sessions())
    child["parent_session_id"] = parent["id"]
    for name, record in (("a/1", child), ("b/2", parent), ("a/3", parent)):
        if name == "a/3":
            record["created_at"] = "2026-02-02T02:39:00Z"
        path = tmp_path / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(record), encoding="utf-8")
        outcomes(store, path)
    of = {item.time_created: item for item in sessions(store) if not item.parent_id}
    (below,) = [item for item in sessions(store) if item.parent_id]
    assert below.parent_id == min(of.items())[1].id


def test_a_parent_is_looked_for_without_the_entries_of_other_sessions(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a folder of 5,000 exports would be read 5,000 times."""
    steps = [0]
    begin = Transaction.begin_unit

    def counting(tx: Transaction, *how: Any) -> None:
        def count() -> None:
            steps[-1] += 1

        tx.connection.set_progress_handler(count, 10)
        begin(tx, *how)

    monkeypatch.setattr(Transaction, "begin_unit", counting)
    entries = "INSERT INTO import_ledger(source, path, namespace, time_imported) VALUES ('goose', ?, ?, 0)"  # fmt: skip
    for day in ("20260202", "20260203"):
        for at in range(6):
            # The parent comes last; its own one is gone.
            name, parent = f"{day}_{at}", f"{day}_{5 + at // 5}"
            said = goose.asked(None, name)
            record = goose.exported({"id": name, "messages": [said]})
            record["parent_session_id"] = parent
            path = tmp_path / f"{day}_{at}.json"
            path.write_text(json.dumps(record), encoding="utf-8")
            outcomes(store, path)

        if day == "20260202":
            rows = [(f"{tmp_path}/{n}.json#{n}", f"{n}/") for n in range(2000)]
            with closing(sqlite3.connect(store.path)) as db:
                db.executemany(entries, rows)
                db.commit()
            steps.append(0)

    assert sum(item.parent_id is not None for item in sessions(store)) == 10
    before, after = steps
    # They are read once, to have the linked ones read again.
    assert after < before + 1500


def test_sums_of_two_stores_of_goose_are_both_counted(
    store: Store, tmp_path: Path
) -> None:
    for text in ("Tea", "Coffee"):
        database(tmp_path / text, text, accumulated_cost=0.25)
    outcomes(store, tmp_path / "Tea", tmp_path / "Coffee")
    assert [(item.cost, item.cost_inherited) for item in sessions(store)] == [
        (0.25, None),
        (0.25, None),
    ]


def test_a_written_session_of_goose_keeps_its_id_and_is_known(
    store: Store, tmp_path: Path
) -> None:
    folders = [database(tmp_path / text, text).parent for text in ("Tea", "Coffee")]
    outcomes(store, *folders)
    for session in sessions(store):
        form = exporter("goose")
        (document,) = form.write([store.export(session.id, **form.read)], detail="full")
        assert isinstance(document, Document)
        path = tmp_path / session.id / document.name
        path.parent.mkdir()
        path.write_text("".join(document.chunks), encoding="utf-8")
        assert json.loads(path.read_text(encoding="utf-8"))["id"] == NAME
        (done,) = [r for r in read_into(store, path) if isinstance(r, Imported)]
        assert done.id == session.id
    assert texts(store) == [["Coffee"], ["Tea"]]


# -- the Agents SDK --------------------------------------------------------------------


def test_a_conversation_that_is_cleared_in_its_file_stays_that_session(
    store: Store, tmp_path: Path
) -> None:
    """A compaction clears a session and begins again with the same name."""
    path = conversation(tmp_path, "Tea")
    outcomes(store, tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM agent_sessions")
        db.execute("DELETE FROM agent_messages")
        db.execute("INSERT INTO agent_sessions VALUES ('default', '2026-11-21 00:00:00', '2026-11-21 00:00:00')")  # fmt: skip
        db.execute("INSERT INTO agent_messages VALUES (9, 'default', ?, ?)", [json.dumps(agents.prompt("Milk")), agents.WHEN])  # fmt: skip
        db.commit()
    assert outcomes(store, tmp_path) == ["updated"]
    assert texts(store) == [["Tea", "Milk"]]


# -- the names of stores ---------------------------------------------------------------


@every
def test_files_of_one_relative_name_are_distinct_stores(
    store: Store, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, outcome in (
        ("Tea", "imported"),
        ("Coffee", "imported"),
        ("Tea", "unchanged"),
    ):
        path = tmp_path / text / "x"
        if not path.exists():
            write(path, text)
        monkeypatch.chdir(path)
        assert outcomes(store, Path()) == [outcome]
        monkeypatch.chdir(path / "..")
        assert outcomes(store, Path("x", "..", "x")) == ["unchanged"]
    assert texts(store) == [["Coffee"], ["Tea"]]
