"""The reader of OpenCode's stores: lineage, order, laziness, and odd records."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opencode_reading import drafts, one, read
from opencode_store import (
    assistant,
    done,
    old_tree_store,
    session,
    sqlite_store,
    text,
    tool,
    tree_store,
    user,
)

from sessiondb.formats.opencode.ids import in_creation_order
from sessiondb.formats.opencode.v1.records import export_json
from sessiondb.model import Problem


def test_a_session_outside_of_a_repository_has_no_worktree(tmp_path: Path) -> None:
    item = session(1, user(0, "Hi"), projectID="global")
    path = sqlite_store(tmp_path / "opencode.db", item)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE project SET id = 'global', worktree = '/', vcs = NULL")
    source = one(path)
    assert (source.worktree, source.vcs, source.root_commit) == (None, None, None)
    assert source.directory == "/home/ann/shop"


def test_version_0_5_says_in_its_answers_where_it_was(tmp_path: Path) -> None:
    source = one(
        old_tree_store(tmp_path, session(1, user(0, "Hi"), assistant(1, text("Hello"))))
    )
    assert (source.directory, source.worktree) == ("/home/ann/shop", "/home/ann/shop")
    answer = drafts(source)[1]
    assert (answer.agent, answer.turn_id) == ("build", None)


@pytest.mark.parametrize("write", [sqlite_store, tree_store, old_tree_store])
def test_a_subagent_names_the_call_that_started_it(write: Any, tmp_path: Path) -> None:
    started = done({"prompt": "Look"}, "Seen", sessionId="ses_0001")
    if write is old_tree_store:
        started = done({"prompt": "Look"}, "Seen", summary=[{"sessionID": "ses_0001"}])
    parent = session(2, user(10, "Go"), assistant(11, tool("task", "call_9", started)))
    child = session(1, user(0, "Look"), parentID="ses_0002")
    orphan = session(3, user(20, "Hm"), parentID="ses_0404")
    place = tmp_path / "opencode.db" if write is sqlite_store else tmp_path
    sessions, problems = read(write(place, child, parent, orphan))
    assert not problems
    assert list(sessions) == ["ses_0002", "ses_0001", "ses_0003"]
    source = sessions["ses_0001"]
    assert (source.relation, source.parent_source_id) == ("subagent", "ses_0002")
    assert (source.parent_message, source.call_id) == ("msg_0011", "call_9")
    assert sessions["ses_0003"].parent_source_id == "ses_0404"
    assert sessions["ses_0003"].call_id is None


def test_sessions_that_are_each_others_parents_are_cut_and_reported(
    tmp_path: Path,
) -> None:
    ring = [
        session(n, user(n, "Hi"), parentID=f"ses_{n % 3 + 1:04d}") for n in (1, 2, 3)
    ]
    sessions, problems = read(sqlite_store(tmp_path / "opencode.db", *ring))
    assert len(sessions) == 3
    assert [source.parent_source_id is None for source in sessions.values()] == [
        True,
        False,
        False,
    ]
    assert len(problems) == 1
    assert "its own ancestor" in problems[0].why


def test_messages_are_ordered_by_time_and_parts_by_their_place_in_a_wrapped_clock(
    tmp_path: Path,
) -> None:
    early, late = "fffff15a0001AAAAAAAAAAAAAA", "00000ea60001AAAAAAAAAAAAAA"
    answer = assistant(1, text("one"), text("two"), name=f"msg_{early}")
    answer["parts"][0]["id"], answer["parts"][1]["id"] = f"prt_{early}", f"prt_{late}"
    item = session(1, user(0, "Hi"), answer, user(2, "Again", f"msg_{late}"))
    for number, path in enumerate(
        (
            sqlite_store(tmp_path / "opencode.db", item),
            tree_store(tmp_path / "tree", item),
        )
    ):
        messages = drafts(one(path))
        assert [draft.id for draft in messages] == [
            "msg_0000",
            f"msg_{early}",
            f"msg_{late}",
        ], number
        assert [part.text for part in messages[1].parts] == ["one", "two"]
    assert in_creation_order(["prt_b", "prt_a"]) == ["prt_b", "prt_a"]


def test_messages_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    item = session(1, user(0, "Hi"), assistant(1, text("Hello")))
    path = sqlite_store(tmp_path / "opencode.db", item)
    source = one(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE part SET data = replace(data, 'Hello', 'Bye')")
    messages = iter(source.messages)
    next(messages)
    assert next(messages).draft.parts[0].text == "Bye"
    messages.close()
    assert len(list(source.messages)) == 2


def test_the_digest_changes_with_anything_that_changed(tmp_path: Path) -> None:
    item = session(1, user(0, "Hi"), assistant(1, text("Hello")))
    path = sqlite_store(tmp_path / "opencode.db", item)
    seen = {one(path).digest}
    assert one(path).digest in seen
    changes = (
        "UPDATE session SET title = 'New'",
        'UPDATE session SET model = \'{"id":"a"}\'',
        'UPDATE session SET model = \'{"id":"b"}\'',
        "UPDATE part SET time_updated = time_updated + 1 WHERE id = 'prt_00000000'",
        "DELETE FROM part WHERE id = 'prt_00000000'",
        "UPDATE project SET worktree = '/elsewhere'",
    )
    for number, change in enumerate(changes, 2):
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(change)
        seen.add(one(path).digest)
        assert len(seen) == number, change
    tree = tree_store(tmp_path / "tree", item)
    before = one(tree).digest
    assert one(tree).digest == before
    (part,) = (tree / "part" / "msg_0001").iterdir()
    part.write_text(part.read_text().replace("Hello", "Hello!"))
    assert one(tree).digest != before


def test_an_output_that_is_not_utf_8_is_read_to_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "tool-output" / "tool_1"
    file.parent.mkdir()
    file.write_bytes(b"caf\xe9\r\n")
    state = done({}, "…", outputPath=str(file))
    item = session(1, assistant(1, tool("bash", "call_1", state)))
    (answer,) = drafts(one(sqlite_store(tmp_path / "opencode.db", item)))
    output = {"name": "tool-output/tool_1", "content": b"caf\xe9\r\n"}
    assert answer.parts[0].data["output_file"] == output


def test_a_cut_output_comes_along_only_from_inside_the_store(tmp_path: Path) -> None:
    data = tmp_path / "opencode"
    outputs = data / "tool-output"
    outputs.mkdir(parents=True)
    (outputs / "tool_1").write_bytes(b"all of it\0")
    (tmp_path / "secret").write_text("secret")
    (data / "auth.json").write_text("secret")
    (outputs / "tool_2").symlink_to(tmp_path / "secret")
    named = [
        "/home/ann/.local/share/opencode/tool-output/tool_1",
        "C:\\Users\\ann\\opencode\\tool-output\\tool_1",
        "/x/tool-output/tool_2",
        "/x/tool-output/../auth.json",
        "/x/tool-output/gone",
        str(data / "auth.json"),
        17,
    ]
    parts = [
        tool("bash", f"c{n}", done({}, "…", outputPath=path))
        for n, path in enumerate(named)
    ]
    item = session(1, assistant(1, *parts))
    source = one(sqlite_store(data / "opencode.db", item))
    (draft,) = drafts(source)
    files = [part.data.get("output_file") for part in draft.parts]
    complete = {"name": "tool-output/tool_1", "content": b"all of it\0"}
    assert files == [complete, complete, None, None, None, None, None]
    assert export_json(source, [draft])["messages"] == item["messages"]


ODD = {
    "not JSON": ("{", "is not JSON"),
    "no object": ("[1]", "is not a JSON object"),
    "NaN": ('{"role":"user","type":"text","cost":NaN}', "NaN"),
    "huge": ('{"role":"user","type":"text","n":99999999999999999999}', "64 bits"),
    "deep": (
        '{"role":"user","type":"text","n":' + "[" * 500 + "]" * 500 + "}",
        "nested",
    ),
    "very deep": ("[" * 100_000, "nested"),
    "nothing": ('{"n":1}', "has no"),
    "wrong role": ('{"role":1,"type":1}', "has no"),
    "bytes": (b'{"role":"user","type":"text","text":"\xff"}', "UTF-8"),
}


@pytest.mark.slow
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("table", ["message", "part"])
def test_an_odd_record_is_a_problem_and_the_rest_is_read(
    odd: str, table: str, tmp_path: Path
) -> None:
    content, why = ODD[odd]
    item = session(1, user(0, "Hi"), assistant(1, text("A"), text("B")), user(2, "Bye"))
    path = sqlite_store(tmp_path / "opencode.db", item)
    name = "msg_0001" if table == "message" else "prt_00010000"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            f"UPDATE {table} SET data = CAST(? AS TEXT) WHERE id = ?", (content, name)
        )
    tree = tree_store(tmp_path / "tree", item)
    (file,) = tree.glob(f"{table}/*/{name}.json")
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    for place, where in ((path, path), (tree, file)):
        source = one(place)
        ids = [draft.id for draft in drafts(source)]
        assert ids == (
            ["msg_0000", "msg_0002"]
            if table == "message"
            else ["msg_0000", "msg_0001", "msg_0002"]
        )
        if table == "part":
            assert [part.text for part in drafts(source)[1].parts] == ["B"]
        (problem,) = (item for item in source.messages if isinstance(item, Problem))
        assert problem.source == str(where)
        assert name in problem.why
        assert why in problem.why


def test_no_file_outside_of_the_store_is_read_for_a_session(tmp_path: Path) -> None:
    (tmp_path / "ses_0002.json").write_text('[{"file": "secret"}]')
    item = session(1, user(0, "Hi"), id="../../../ses_0002")
    source = one(sqlite_store(tmp_path / "opencode" / "opencode.db", item))
    assert source.diffs is None


def test_records_without_an_owner_are_reported(tmp_path: Path) -> None:
    item = session(1, user(0, "Hi"))
    lost = session(2, user(1, "Lost"), assistant(2, text("Gone")))
    path = sqlite_store(tmp_path / "opencode.db", item, lost)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM session WHERE id = 'ses_0002'")
        db.execute("DELETE FROM message WHERE id = 'msg_0002'")
    tree = tree_store(tmp_path / "tree", item, lost)
    next((tree / "session").glob("*/ses_0002.json")).unlink()
    next((tree / "message").glob("*/msg_0002.json")).unlink()
    for place in (path, tree):
        sessions, problems = read(place)
        assert list(sessions) == ["ses_0001"]
        assert len(problems) == 2
        assert "ses_0002" in problems[0].why
        assert "msg_0002" in problems[1].why


def test_an_odd_session_is_a_problem_and_the_others_are_read(tmp_path: Path) -> None:
    items = [session(n, user(n, "Hi")) for n in (1, 2)]
    tree = tree_store(tmp_path / "tree", *items)
    next((tree / "session").glob("*/ses_0001.json")).write_text("{")
    (tree / "todo").mkdir()
    (tree / "todo" / "ses_0002.json").write_text('{"not": "a list"}')
    sessions, problems = read(tree)
    assert list(sessions) == ["ses_0002"]
    assert [Path(p.source).name for p in problems] == ["ses_0001.json", "ses_0002.json"]
    path = sqlite_store(tmp_path / "opencode.db", *items)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE session SET id = '' WHERE id = 'ses_0001'")
        db.execute(
            "UPDATE session SET permission = '[', metadata = '7' WHERE id = 'ses_0002'"
        )
    sessions, problems = read(path)
    assert list(sessions) == ["ses_0002"]
    assert sessions["ses_0002"].permission is None
    assert sessions["ses_0002"].data["permission"] == "["
    assert sessions["ses_0002"].data["metadata"] == 7
    assert len(problems) == 3
