from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from jsonl_tables import bundle, differences, log, outcomes, read_into

from sessiondb import Store, assistant, tool, user
from sessiondb.formats import find, jsonl
from sessiondb.maintenance import check

Opened = Callable[[str], Store]


def story(store: Store) -> list[str]:
    """A session, its fork, its subagent and a fork of the fork."""
    top = store.create_session(title="Fix the parser").id
    store.append(top, user("Fix the off-by-one"))
    call = tool("bash", {"command": "ls"}, call_id="c1", output="x" * 6000)
    store.append(
        top, assistant("Done.", call), cost=0.5, model="m", tokens={"input": 3}
    )
    helper = store.create_session(parent=top, call_id="c1").id
    store.append(helper, user("Where is the lexer?"))
    fork = store.fork(top).id
    store.append(fork, user("Another idea"))
    deep = store.fork(fork).id
    store.append(deep, user("Deeper"))
    return [top, helper, fork, deep]


def write(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


@pytest.mark.slow
def test_children_that_come_before_their_parents_are_linked(
    opened: Opened, tmp_path: Path
) -> None:
    here, there = opened("a"), opened("b")
    for name in reversed(story(here)):
        read_into(there, write(tmp_path / f"{name}.jsonl", log(here, name)))
    assert differences(tmp_path / "a.db", tmp_path / "b.db") == []
    assert check(there) == []


def test_a_fork_alone_owns_what_it_inherited(opened: Opened, tmp_path: Path) -> None:
    here, there = opened("a"), opened("b")
    fork = story(here)[2]
    read_into(there, write(tmp_path / "f.jsonl", log(here, fork)))
    assert [m.inherited for m in there.messages(fork)] == [False] * 3
    assert there.session(fork).cost == 0.5
    assert check(there) == []


def test_a_bundle_keeps_each_blob_once_and_parents_first(
    opened: Opened, tmp_path: Path
) -> None:
    here = opened("a")
    names = story(here)
    records = [json.loads(line) for line in bundle(here, names).splitlines()]
    assert [r["type"] for r in records].count("blob") == 1
    backwards = "".join(bundle(here, [name]) for name in reversed(names))
    (store,) = find(write(tmp_path / "b.jsonl", backwards))
    assert {x.stored.id for x in list(store.read())[:1]} == {names[0]}


def test_changes_made_elsewhere_are_imported(opened: Opened, tmp_path: Path) -> None:
    here, there = opened("a"), opened("b")
    top = story(here)[0]
    path = tmp_path / "s.jsonl"
    read_into(there, write(path, log(here, top)))
    here.append(top, user("More"))
    here.set_title(top, "Renamed")
    assert outcomes(read_into(there, write(path, log(here, top)))) == ["updated"]
    assert log(there, top) == log(here, top)
    assert outcomes(read_into(there, path)) == ["unchanged"]


def test_branches_of_two_sides_are_both_kept_and_the_leaf_stays_here(
    opened: Opened, tmp_path: Path
) -> None:
    here, there = opened("a"), opened("b")
    top = story(here)[0]
    path = tmp_path / "s.jsonl"
    read_into(there, write(path, log(here, top)))
    here.append(top, user("From here"))
    there.append(top, user("From there"))
    assert outcomes(read_into(there, write(path, log(here, top)))) == ["updated"]
    assert [m.text for m in there.messages(top)][-1] == "From there"
    assert {m.text for m in there.messages(top, branches=True)} >= {
        "From here",
        "From there",
    }
    assert check(there) == []
    assert outcomes(read_into(here, write(path, log(there, top)))) == ["updated"]
    assert [m.text for m in here.messages(top, branches=True)][-2:] == [
        "From here",
        "From there",
    ]


def test_an_open_message_is_finished_by_the_other_side_and_never_opens_again(
    opened: Opened, tmp_path: Path
) -> None:
    here, there = opened("a"), opened("b")
    top = here.create_session().id
    message = here.append(top, assistant(tool("bash", {}, call_id="c")), open=True)
    before = write(tmp_path / "old.jsonl", log(here, top))
    read_into(there, before)
    assert there.messages(top)[0].time_completed is None
    here.settle(top, message.parts[0].id, output="ok")
    here.finish(top, message.id)
    read_into(there, write(tmp_path / "new.jsonl", log(here, top)))
    read_into(there, before)
    assert there.messages(top)[0].parts[0].text == "ok"
    assert there.messages(top)[0].time_completed is not None


def test_a_session_removed_here_comes_back_only_on_request(
    opened: Opened, tmp_path: Path
) -> None:
    here = opened("a")
    names = story(here)
    path = write(tmp_path / "all.jsonl", bundle(here, names))
    here.delete(names[0])
    assert outcomes(read_into(here, path)) == ["deleted"] * 4
    assert set(outcomes(read_into(here, path, undelete=True))) == {"imported"}
    assert bundle(here, names) == path.read_text()
    assert check(here) == []


@pytest.mark.parametrize("cut", [1, 40, 120])
def test_a_torn_line_costs_that_line(opened: Opened, tmp_path: Path, cut: int) -> None:
    here, there = opened("a"), opened("b")
    top = here.create_session(title="T").id
    here.append(top, user("one"))
    here.append(top, user("two"))
    complete = log(here, top)
    path = write(tmp_path / "torn.jsonl", complete[:-cut])
    problem, *_ = read_into(there, path)
    lines = len(complete[:-cut].splitlines())
    if cut > 1:
        assert (problem.source, problem.line) == (str(path), lines)
        assert "the file ends inside of it" in problem.why
    assert [m.text for m in there.messages(top)] == ["one", "two"]


HOSTILE = [
    "null", "[]", '"x"', "{", "{}", "[" * 5000, '{"schema_version":1}', "1e999", "\x00",
    '{"schema_version":99,"seq":1,"time":1,"type":"user","session_id":"s","message_id":"m"}',
    '{"schema_version":1,"seq":true,"time":1,"type":"user","session_id":"s","message_id":"m"}',
    '{"schema_version":1,"seq":1,"time":1,"type":"user","session_id":"s","message_id":7}',
    '{"schema_version":1,"seq":9,"time":1,"type":"user","session_id":"ID","message_id":"h1",'
    '"parent_id":null,"parts":[7]}',
    '{"schema_version":1,"seq":-9,"time":1,"type":"user","session_id":"ID","message_id":"h2",'
    '"parent_id":null}',
    '{"schema_version":1,"seq":9,"time":1,"type":"user","session_id":"ID","message_id":"h3",'
    '"parent_id":{"$float":"x"}}',
    '{"schema_version":1,"seq":9,"time":1,"type":"user","session_id":"ID","message_id":"h4",'
    '"parent_id":null,"parts":[{"part_id":"p","part_type":"text","time":1,"text_blob":"00"}]}',
    '{"schema_version":1,"seq":9,"time":1,"type":"tool_finished","session_id":"ID",'
    '"message_id":"h5","part_id":"p"}',
    '{"schema_version":1,"seq":9,"time":1,"type":"user","session_id":"ID","message_id":"\\u0000",'
    '"parent_id":null}',
    '{"schema_version":1,"seq":9,"time":1,"type":"user","session_id":"ID","message_id":"h6",'
    '"parent_id":null,"cost":"free"}',
    '{"schema_version":1,"seq":1,"time":1,"type":"user","session_id":"lost","message_id":"m",'
    '"parent_id":null}',
]  # fmt: skip


def test_hostile_lines_are_problems_with_their_line_and_the_rest_is_read(
    opened: Opened, tmp_path: Path
) -> None:
    here, there = opened("a"), opened("b")
    top = here.create_session(title="T").id
    here.append(top, user("one"))
    lines = [line.replace("ID", top) for line in HOSTILE]
    path = write(tmp_path / "hostile.jsonl", log(here, top) + "\n".join(lines))
    with path.open("ab") as file:
        file.write(b"\n\xff\xfe\n")
    *problems, done = read_into(there, path)
    assert done.outcome == "imported"
    assert len(problems) == len(HOSTILE) + 1
    assert {m.text for m in there.messages(top, branches=True)} == {"one"}
    assert check(there) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("session_meta", "source", 5),
        ("session_meta", "source", "a\u0000b"),
        ("session_meta", "slug", []),
        ("session_meta", "directory", 7),
        ("session_meta", "directory", "/a\0b"),
        ("session_meta", "project", "x"),
        ("session_meta", "time", 1 << 62),
        ("session_renamed", "title", {}),
        ("session_renamed", "title_source", "nobody"),
        ("session_state", "last_seq", -1),
        ("session_state", "leaf_id", 3),
        ("session_state", "metadata", []),
        ("session_state", "data", 1),
        ("session_state", "time_updated", "late"),
        ("todos", "todos", [{"content": 1}]),
        ("todos", "todos", 3),
        ("forked", "parent_id", {"a": 1}),
        ("forked", "relation", "cousin"),
        ("forked", "parent_seq", "x"),
    ],
)
def test_a_session_that_cannot_be_is_a_problem_and_the_next_one_is_read(
    opened: Opened, tmp_path: Path, kind: str, field: str, value: object
) -> None:
    here, there = opened("a"), opened("b")
    top = here.create_session(title="T").id
    fork = here.fork(top).id
    here.set_todos(fork, ["a"])
    here.append(fork, user("one"))
    good = here.create_session(title="Good").id
    lines = [json.loads(line) for line in log(here, fork).splitlines()]
    for line in lines:
        if line["type"] == kind:
            line[field] = value
    content = "\n".join(map(json.dumps, lines)) + "\n" + log(here, good)
    *problems, done = read_into(there, write(tmp_path / "s.jsonl", content))
    assert done.id == good
    assert problems
    assert check(there) == []


HASH = "a" * 64
ITSELF = {"type": "blob", "hash": HASH, "data": {"$blob": HASH}, "encoding": "utf-8"}
ENCODING = {"type": "blob", "hash": HASH, "data": "x", "encoding": []}
PATCH = {
    "type": "file_changed",
    "revision": 99,
    "list": "x",
    "path": "p",
    "patch_blob": HASH,
}
TEXT = {"type": "prompt", "prompt_id": "p", "source": "s", "text_blob": HASH}


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([ITSELF, PATCH], "is not a blob"),
        ([ITSELF, TEXT], "is not a blob"),
        ([ENCODING, PATCH], "is not a blob"),
        ([ENCODING, TEXT], "is not a blob"),
        ([PATCH], "is not in this file"),
        ([{**PATCH, "patch_blob": []}], "expected a text"),
        ([{"type": "file_changed", "revision": 99, "message_id": []}], "unhashable"),
    ],
)
def test_a_record_with_a_hostile_blob_costs_itself_and_nothing_else(
    opened: Opened, tmp_path: Path, records: list[dict[str, object]], why: str
) -> None:
    here, there = opened("a"), opened("b")
    names = [here.create_session(title=title).id for title in "AB"]
    envelope = {"schema_version": 1, "seq": 0, "time": 1, "session_id": names[0]}
    odd = "".join(json.dumps(envelope | record) + "\n" for record in records)
    path = write(tmp_path / "s.jsonl", log(here, names[0]) + odd + log(here, names[1]))
    problem, *done = read_into(there, path)
    assert why in outcomes([problem])[0]
    assert outcomes(done) == ["imported"] * 2
    assert [there.session(name).title for name in names] == ["A", "B"]


@pytest.mark.parametrize(
    "line",
    [
        b'[{"a":1,"inherited":true}]',
        b"[" * 9_000 + b',"inherited":true',
        b'\xff,"inherited":true',
        b'{"schema_version":1,"seq":1,"time":1,"type":"forked","session_id":' + b"[" * 9_000,
        b"",
    ],
)  # fmt: skip
def test_a_file_with_any_line_in_it_can_grow(line: bytes) -> None:
    ours = '{"schema_version":1,"seq":1,"time":1,"type":"x","session_id":"a"}\n'
    file = BytesIO(line + b"\n")
    assert jsonl.missing_lines(file, [ours], intact=False) == [ours]
    # Only an empty line says nothing: with any other the file has to be rewritten.
    assert jsonl.missing_lines(BytesIO(line + b"\n"), [ours]) == (
        None if line else [ours]
    )


def test_a_record_of_a_type_we_do_not_know_is_kept_and_written_back(
    opened: Opened, tmp_path: Path
) -> None:
    here, there = opened("a"), opened("b")
    top = here.create_session().id
    strange = {
        "schema_version": 1, "seq": 0, "time": 1, "type": "weather", "session_id": top, "text": "hm"
    }  # fmt: skip
    path = write(tmp_path / "s.jsonl", json.dumps(strange) + "\n" + log(here, top))
    read_into(there, path)
    assert json.loads(log(there, top).splitlines()[0]) == strange


def test_prompts_come_along_and_belong_to_their_session_again(
    opened: Opened, tmp_path: Path
) -> None:
    here = opened("a")
    top = here.create_session(title="T").id
    here.append(top, user("sent"))
    kept = here.add_prompt("typed, never sent", session=top, time=1_700_000_000_005)
    here.add_prompt("of no session")
    path = write(tmp_path / "s.jsonl", log(here, top))
    here.delete(top)
    here.reap()
    assert [x.session_id for x in here.prompts()] == [None, None]
    read_into(here, path, undelete=True)
    assert [(x.id, x.session_id) for x in here.prompts("never")] == [(kept, top)]
    assert log(here, top) == path.read_text()
    there = opened("b")
    read_into(there, path)
    assert [(x.text, x.time_created) for x in there.prompts()] == [
        ("typed, never sent", 1_700_000_000_005)
    ]
    lines = path.read_text().replace(
        '"source":"sessiondb","directory', '"source":"","directory'
    )
    *problems, done = read_into(opened("c"), write(tmp_path / "odd.jsonl", lines))
    assert [x.line for x in problems] == [2]
    assert done.outcome == "imported"


def test_a_packed_log_is_read(opened: Opened, tmp_path: Path) -> None:
    import gzip

    here, there = opened("a"), opened("b")
    top = story(here)[0]
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(log(here, top).encode()))
    assert outcomes(read_into(there, path)) == ["imported"]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", ".hidden", "a/b", "x" * 256, "é b"]
)
def test_the_name_of_a_file_stays_in_its_folder(name: str) -> None:
    found = jsonl.file_name(name)
    assert "/" not in found
    assert not found.startswith(".")
    assert len(found.encode()) < 255
