"""Files that ``opencode export`` printed, given to an import."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opencode2_store import answered, asked, everything2, forked2, session2, tokens
from opencode_reading import drafts, one, problems_in, read
from opencode_store import (
    WORKTREE,
    assistant,
    everything,
    forked,
    session,
    sqlite_store,
    text,
    user,
)

from sessiondb import Store
from sessiondb.formats import find
from sessiondb.formats.opencode.v1.records import export_json
from sessiondb.formats.opencode.v2.records import export_json as export2_json


def written(path: Path, item: dict[str, Any], **how: Any) -> Path:
    content = {key: item[key] for key in ("info", "messages")}
    path.write_text(json.dumps(content, **how), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "how", [{"indent": 2}, {"separators": (",", ":")}, {"indent": "\t"}]
)
def test_an_export_of_version_1_is_read_as_it_was(how: Any, tmp_path: Path) -> None:
    item = everything()
    source = one(written(tmp_path / "export.out", item, **how))
    assert export_json(source, drafts(source)) == {
        key: item[key] for key in ("info", "messages")
    }
    assert drafts(source) == drafts(source)


def test_an_export_of_version_2_is_read_as_it_was(tmp_path: Path) -> None:
    item = everything2()
    source = one(written(tmp_path / "export.out", item))
    assert export2_json(source, drafts(source)) == item
    assert (source.directory, source.worktree) == (f"{WORKTREE}/src", WORKTREE)


def test_exports_are_found_in_a_folder_by_their_ending_and_beginning(
    tmp_path: Path,
) -> None:
    written(tmp_path / "a.json", session(1, user(0, "One")))
    written(tmp_path / "b.json", session2(2, asked(1, "Two")))
    (tmp_path / "c.json").write_text('{"messages": []}')
    (tmp_path / "d.txt").write_text('{"info": {}}')
    (tmp_path / "e.json").write_bytes(b"")
    sources, problems = read(tmp_path)
    assert (list(sources), problems) == (["ses_0001", "ses_0002"], [])


def test_a_database_is_never_taken_for_an_export(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE t (x)")
        assert (
            list(find(path)) == []
        )  # the audit of all tests sees whether it was opened


def test_an_export_that_breaks_off_gives_the_messages_before_the_break(
    tmp_path: Path,
) -> None:
    path = written(
        tmp_path / "a.json", session(1, user(0, "One"), user(1, "Two")), indent=1
    )
    complete = path.read_text(encoding="utf-8")
    path.write_text(complete[: complete.index('"Two"')], encoding="utf-8")
    sources, problems = read(path)
    assert [d.parts[0].text for d in drafts(sources["ses_0001"])] == ["One"]
    assert "breaks off after 1 messages" in problems[0].why


def test_odd_messages_of_an_export_are_problems_and_the_rest_is_read(
    tmp_path: Path,
) -> None:
    item = session(1, user(0, "One"), assistant(1, text("Two")))
    item["messages"] += [
        7,
        {"info": 5},
        {"info": {"id": "msg_9", "role": None}, "parts": 3},
    ]
    source = one(written(tmp_path / "a.json", item))
    assert [draft.id for draft in drafts(source)] == ["msg_0000", "msg_0001"]
    assert len(problems_in(source)) == 3
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    second = session2(1, asked(0, "One"))
    second["messages"] += [7, {"id": "msg_8", "deep": deep}, {"id": "msg_9"}]
    source = one(written(tmp_path / "b.json", second))
    assert [draft.kind or draft.role for draft in drafts(source)] == ["user", "unknown"]
    assert len(problems_in(source)) == 2


@pytest.mark.parametrize("generation", [1, 2])
def test_a_byte_that_is_not_utf_8_costs_an_export_one_message(
    generation: int, tmp_path: Path
) -> None:
    first = session(1, user(0, "One"), user(1, "Two"), user(2, "Three"))
    second = session2(1, asked(0, "One"), asked(1, "Two"), asked(2, "Three"))
    path = written(tmp_path / "a.json", first if generation == 1 else second)
    path.write_bytes(path.read_bytes().replace(b"Two", b"T\xffo"))
    source = one(path)
    assert [draft.id for draft in drafts(source)] == ["msg_0000", "msg_0002"]
    assert "is not UTF-8" in problems_in(source)[0]


def test_messages_of_one_id_are_all_kept(tmp_path: Path) -> None:
    item = session(1, user(0, "One"), user(0, "Again"))
    source = one(written(tmp_path / "a.json", item))
    assert [draft.id for draft in drafts(source)] == ["msg_0000", "msg_0000/1"]
    assert [draft.parts[0].text for draft in drafts(source)] == ["One", "Again"]


def test_an_export_without_an_id_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"info": {"title": "x"}, "messages": []}')
    sources, problems = read(tmp_path / "a.json")
    assert not sources
    assert "no usable id" in problems[0].why


def test_the_export_of_a_fork_names_its_original_and_counts_its_own(
    tmp_path: Path,
) -> None:
    original = session2(1, asked(0, "One"), answered(1), asked(2, "Two"))
    fork = forked2(original, 2, 2, asked(9, "Else"), answered(10))
    fork["info"] |= {"cost": 0.5, "tokens": tokens(15, 2, 0, 0, 0)}
    source = one(written(tmp_path / "a.json", fork))
    assert (source.relation, source.parent_source_id) == ("fork", "ses_0001")
    assert source.parent_message == "msg_0001"
    usage = drafts(source)[0]
    assert (usage.kind, usage.cost) == ("usage", 0.25)
    fork["info"]["fork"]["boundary"]["type"] = "before"
    assert one(written(tmp_path / "a.json", fork)).parent_message is None


def test_an_export_that_comes_back_extends_the_session_it_came_from(
    tmp_path: Path,
) -> None:
    original = session(1, user(0, "One"), assistant(1, text("Two")))
    fork = forked(original, 2, 2, user(5, "Else"))
    path = sqlite_store(tmp_path / "opencode.db", original, fork)
    with Store.open(tmp_path / "own.db", durability="normal") as store:
        (foreign,) = find(path)
        done = {item.source_id: item for item in store.ingest(foreign.read())}
        fork["messages"].append(user(6, "And more"))
        fork["messages"][-1]["info"]["sessionID"] = "ses_0002"
        (file,) = find(written(tmp_path / "a.json", fork))
        (again,) = store.ingest(file.read())
        assert (again.outcome, again.id) == ("updated", done["ses_0002"].id)
        assert [m.text for m in store.messages(again.id)] == [
            "One",
            "Two",
            "Else",
            "And more",
        ]
        session_again = store.session(again.id)
        assert (session_again.relation, session_again.cost) == ("fork", None)
        (once_more,) = store.ingest(file.read())
        assert once_more.outcome == "unchanged"
