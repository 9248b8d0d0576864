from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from jsonl_tables import log

from sessiondb import Store, assistant, tool, user
from sessiondb.location import init_local, trust
from sessiondb.maintenance import check
from sessiondb.maintenance.sync import Synced, sync
from sessiondb.repository.sessions import ALL

pytestmark = pytest.mark.slow


def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.chdir(folder)
    return Store.open(init_local().path, durability="normal")


def run_git(folder: Path, *args: str) -> None:
    subprocess.run(["git", "-C", str(folder), *args], check=True, capture_output=True)


def test_a_second_sync_writes_nothing_and_directories_are_relative(
    git: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "p"
    (folder / "sub").mkdir(parents=True)
    run_git(folder, "init", "-q")
    with project(folder, monkeypatch) as store:
        name = store.create_session(title="T", directory=str(folder / "sub")).id
        store.append(name, user("hello"))
        assert sync(store).written == [name]
        path = folder / ".sessiondb" / "sessions" / f"{name}.jsonl"
        meta = json.loads(path.read_text().splitlines()[0])
        assert (meta["directory"], meta["project"]["worktree"]) == ("sub", ".")
        before = path.stat().st_mtime_ns
        again = sync(store)
        assert (again.written, [x.outcome for x in again.read]) == ([], ["unchanged"])
        assert path.stat().st_mtime_ns == before
        path.unlink()
        assert sync(store).missing == [name]
        assert not path.exists()


def test_a_session_removed_here_is_not_restored_from_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    with project(folder, monkeypatch) as store:
        name = store.create_session(title="T").id
        store.append(name, user("hello"))
        sync(store)
        store.delete(name)
        assert [x.outcome for x in sync(store).read] == ["deleted"]
        store.reap()
        assert [x.outcome for x in sync(store).read] == ["deleted"]


def test_two_people_merge_one_session_with_git(
    git: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = tmp_path / "ada", tmp_path / "bob"
    ada.mkdir()
    run_git(ada, "init", "-q", "-b", "main")
    with project(ada, monkeypatch) as store:
        name = store.create_session(title="Shared").id
        store.append(name, user("start"))
        sync(store)
        run_git(ada, "add", "-A")
        run_git(ada, "commit", "-qm", "one")
        run_git(tmp_path, "clone", "-q", str(ada), str(bob))
        with project(bob, monkeypatch) as other:
            assert [x.outcome for x in sync(other).read] == ["imported"]
            assert other.session(name).directory == str(bob)
            other.append(name, user("from bob"))
            mine = other.create_session(title="Bob's own").id
            other.append(mine, user("alone"))
            sync(other)
            run_git(bob, "add", "-A")
            run_git(bob, "commit", "-qm", "bob")
            store.append(name, user("from ada"))
            store.append(store.create_session(title="Ada's own"), user("alone"))
            sync(store)
            run_git(ada, "add", "-A")
            run_git(ada, "commit", "-qm", "ada")
            run_git(bob, "pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
            done = sync(other)
            assert done.problems == []
            assert sorted(x.outcome for x in done.read) == [
                "imported",
                "unchanged",
                "updated",
            ]
            texts = {m.text for m in other.messages(name, branches=True)}
            assert texts == {"start", "from ada", "from bob"}
            assert other.messages(name)[-1].text == "from bob"
            run_git(bob, "add", "-A")
            run_git(bob, "commit", "-qm", "merged")
            run_git(ada, "pull", "-q", "--no-rebase", "--no-edit", str(bob), "main")
            assert sync(store).problems == []
            assert {m.text for m in store.messages(name, branches=True)} == texts
            assert store.session(mine).title == "Bob's own"
            assert check(store) == check(other) == []
            assert sync(store).written == sync(other).written == []


def file_of(store: Store, name: str) -> Path:
    return Path(store.location.root or "") / ".sessiondb" / "sessions" / f"{name}.jsonl"


def outcomes(done: Synced) -> list[str]:
    return sorted(x.outcome for x in done.read)


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = tmp_path / "p"
    folder.mkdir()
    with project(folder, monkeypatch) as store:
        yield store


def test_a_follower_of_a_file_reads_only_new_lines(ours: Store) -> None:
    name = ours.create_session(title="T").id
    ours.append(name, user("one"))
    sync(ours)
    with file_of(ours, name).open() as follower:
        assert "one" in follower.read()
        ours.append(name, user("two"))
        ours.set_todos(name, ["a"])
        assert sync(ours).written == [name]
        added = [json.loads(line) for line in follower]
    assert [x["type"] for x in added] == ["user", "todos", "session_state"]
    file_of(ours, name).write_text(file_of(ours, name).read_text() + "\n")
    assert sync(ours).written == []


def test_outdated_records_are_not_kept_in_a_file(ours: Store) -> None:
    name = ours.create_session(title="T").id
    ours.append(name, user("one"))
    ours.append(name, assistant("half"), open=True)
    sync(ours)
    ours.finish(name, ours.messages(name)[-1].id)
    sync(ours)
    assert '"type":"part"' not in file_of(ours, name).read_text()
    ours.truncate(name, after=1)
    sync(ours)
    assert "half" not in file_of(ours, name).read_text()
    for number in range(40):
        ours.set_title(name, f"Title {number}")
        sync(ours)
    assert len(file_of(ours, name).read_bytes()) < 3 * len(log(ours, name))


def test_an_unchanged_file_is_not_read_and_costs_next_to_nothing(
    ours: Store,
) -> None:
    for number in range(60):
        name = ours.create_session(title=f"T{number}").id
        ours.append(name, assistant(*["x" * 900] * 30))
    began = time.perf_counter()
    assert len(sync(ours).written) == 60
    first = time.perf_counter() - began
    path = file_of(ours, name)
    seen, content = path.stat(), path.read_bytes()
    path.write_bytes(b"?" * len(content))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    took = []
    for _ in range(3):
        began = time.perf_counter()
        again = sync(ours)
        took.append(time.perf_counter() - began)
        assert (again.written, again.problems) == ([], [])
        assert outcomes(again) == ["unchanged"] * 60
    assert min(took) < first / 4
    path.write_bytes(content)
    (path.parents[1] / "sessions.db-synced").unlink()
    compared = sync(ours)
    assert (compared.written, outcomes(compared)) == ([], ["unchanged"] * 60)


@pytest.mark.parametrize(
    "line",
    [
        "<<<<<<< HEAD\n",
        '{"schema_version":1,"seq":1,"time":1,"ty',
        '{"schema_version":99,"seq":1,"time":1,"type":"user","session_id":"s","message_id":"m"}\n',
    ],
)  # fmt: skip
def test_an_unreadable_line_stays_in_the_file_and_is_reported_each_time(
    ours: Store, line: str
) -> None:
    name = ours.create_session(title="T").id
    ours.append(name, user("one"))
    sync(ours)
    path = file_of(ours, name)
    path.write_text(path.read_text() + line)
    at = len(path.read_text().splitlines())
    for text in ("two", "three"):
        ours.append(name, user(text))
        done = sync(ours)
        assert [(x.source, x.line) for x in done.problems] == [(str(path), at)]
        assert line in path.read_text()
        assert f'"text":"{text}"' in path.read_text()
    assert sync(ours).written == []


def test_a_link_in_the_folder_is_neither_read_nor_written(
    ours: Store, tmp_path: Path
) -> None:
    name = ours.create_session(title="T").id
    sync(ours)
    elsewhere = tmp_path / "elsewhere"
    file_of(ours, name).rename(elsewhere)
    file_of(ours, name).symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    ours.append(name, user("one"))
    done = sync(ours)
    assert (done.written, [x.source for x in done.problems]) == (
        [],
        [str(file_of(ours, name))],
    )
    assert elsewhere.read_bytes() == before


def test_a_project_that_moved_needs_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").mkdir()
    with project(tmp_path / "old", monkeypatch) as store:
        name = store.create_session(title="T", directory=str(tmp_path / "old")).id
        sync(store)
    (tmp_path / "old").rename(tmp_path / "new")
    trust.accept(tmp_path / "new" / ".sessiondb" / "sessions.db")
    with project(tmp_path / "new", monkeypatch) as store:
        assert store.session(name).directory == str(tmp_path / "new")
        done = sync(store)
        assert (done.written, outcomes(done)) == ([], ["unchanged"])
        file_of(store, name).unlink()
        assert sync(store).missing == [name]


def test_the_prompt_history_is_not_shared_with_the_team(ours: Store) -> None:
    name = ours.create_session(title="T").id
    ours.add_prompt("never sent", session=name)
    sync(ours)
    assert "never sent" not in file_of(ours, name).read_text()


def shared_state(store: Store) -> dict[str, Any]:
    """Return the state that two databases share, in whatever order they received it."""
    found = {}
    for session in store.sessions(
        project=ALL, empty=True, subagents=True, archived=True
    ):
        messages = store.messages(session.id, branches=True)
        ids = {message.seq: message.id for message in messages}
        tree = sorted(
            (m.id, ids.get(m.parent_seq or 0), m.text, m.cost) for m in messages
        )
        names = sorted((x.label, ids[x.seq]) for x in store.labels(session.id))
        facts = (
            session.title,
            session.revision,
            session.cost,
            session.parent_id,
            session.relation,
        )
        found[session.id] = (*facts, ids.get(session.leaf_seq or 0), tree, names)
        if session.parent_id and session.relation == "fork":
            above = store.messages(session.parent_id, branches=True)
            found[f"{session.id} began"] = [
                m.id for m in above if m.seq == session.parent_seq
            ]
    return found


def test_two_clones_come_to_the_same_and_then_to_rest(
    git: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = tmp_path / "ada", tmp_path / "bob"
    ada.mkdir()
    run_git(ada, "init", "-q", "-b", "main")
    run_git(ada, "remote", "add", "origin", "https://example.org/elsewhere.git")

    def handed_over(to: Path, of: Path) -> Synced:
        for folder in (of, to):
            run_git(folder, "add", "-A")
            run_git(folder, "commit", "-q", "--allow-empty", "-m", "sync")
        run_git(to, "pull", "-q", "--no-rebase", "--no-edit", str(of), "main")
        return sync(bobs if to == bob else adas)

    with project(ada, monkeypatch) as adas:
        shared = adas.create_session(title="Shared").id
        adas.append(shared, user("start"))
        sync(adas)
        run_git(ada, "add", "-A")
        run_git(ada, "commit", "-qm", "one")
        run_git(tmp_path, "clone", "-q", str(ada), str(bob))
        with project(bob, monkeypatch) as bobs:
            bobs.create_session(title="Shared")  # and so with the slug
            sync(bobs)
            for store, who in ((adas, "ada"), (bobs, "bob")):
                store.append(shared, user(f"from {who}"))
                call = tool("ask", {}, call_id=who, output="x" * 5000)
                store.append(shared, assistant("y" * 5000, call), cost=1.0, model="m")
                store.label(shared, store.messages(shared)[-1].id, who)
                store.append(store.fork(shared).id, user(f"{who} has another idea"))
                store.create_session(
                    parent=shared, call_id=who, title=f"{who}'s helper"
                )
                sync(store)
            assert handed_over(bob, ada).problems == []
            assert handed_over(ada, bob).problems == []
            assert shared_state(adas) == shared_state(bobs)
            assert adas.session(shared).cost == 2.0
            assert len(shared_state(adas)) == 6 + 2
            for to, of in ((bob, ada), (ada, bob)):
                done = handed_over(to, of)
                assert (done.written, set(outcomes(done))) == ([], {"unchanged"})
            assert check(adas) == check(bobs) == []
