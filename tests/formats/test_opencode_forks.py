"""Forks that OpenCode 1.x does not mark are recognised by their copied messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from opencode_store import (
    T0,
    assistant,
    done,
    forked,
    session,
    sqlite_store,
    text,
    tool,
    tree_store,
    user,
)

from sessiondb.formats import find
from sessiondb.formats.opencode.v1.sqlite import SQLiteV1
from sessiondb.model import SourceMessage, SourceSession


def read(path: Path) -> dict[str, SourceSession]:
    items = [item for store in find(path) for item in store.read()]
    assert all(isinstance(item, SourceSession) for item in items), items
    return {item.source_id: item for item in items if isinstance(item, SourceSession)}


def messages(source: SourceSession) -> list[SourceMessage]:
    return [item for item in source.messages if isinstance(item, SourceMessage)]


def original(turns: int = 3, number: int = 1) -> dict:
    dialogue = []
    for turn in range(0, 10 * turns, 10):
        dialogue += [
            user(turn, f"Step {turn}"),
            assistant(turn + 1, text(f"Done {turn}")),
        ]
    return session(number, *dialogue, title="Plan")


@pytest.mark.parametrize("write", [sqlite_store, tree_store])
def test_a_fork_names_its_original_and_the_last_message_it_copied(
    write, tmp_path: Path
) -> None:
    first = original()
    fork = forked(first, 2, 4, user(900, "Something else"))
    place = tmp_path / "opencode.db" if write is sqlite_store else tmp_path
    sources = read(write(place, first, fork))
    source = sources["ses_0002"]
    assert (source.relation, source.parent_source_id) == ("fork", "ses_0001")
    assert source.parent_message == "msg_0011"
    copies = [(m.draft.id, m.usage_id) for m in messages(source)]
    assert copies == [
        ("msg_02f0000", "msg_0000"),
        ("msg_02f0001", "msg_0001"),
        ("msg_02f0002", "msg_0010"),
        ("msg_02f0003", "msg_0011"),
        ("msg_0900", "msg_0900"),
    ]
    assert sources["ses_0001"].relation is None


def test_a_fork_of_a_fork_counts_for_the_first_original(tmp_path: Path) -> None:
    first = original()
    fork = forked(first, 2, 4, user(900, "B"), assistant(901, text("b")))
    second = forked(fork, 3, 6, user(950, "C"), title="Plan (fork #2)")
    sources = read(sqlite_store(tmp_path / "opencode.db", second, fork, first))
    assert list(sources) == ["ses_0001", "ses_0002", "ses_0003"]
    source = sources["ses_0003"]
    assert (source.parent_source_id, source.parent_message) == ("ses_0002", "msg_0901")
    assert [m.usage_id for m in messages(source)] == [
        "msg_0000", "msg_0001", "msg_0010", "msg_0011", "msg_0900", "msg_0901", "msg_0950",
    ]  # fmt: skip


def test_of_two_equal_beginnings_the_title_decides(tmp_path: Path) -> None:
    first = original()
    one = forked(first, 2, 2, user(900, "B"))
    of_first = forked(first, 3, 2, user(910, "C"))
    of_one = forked(one, 4, 2, user(920, "D"), title="Plan (fork #2)")
    untitled = forked(one, 5, 2, user(930, "E"), title="Renamed")
    sources = read(
        sqlite_store(tmp_path / "opencode.db", first, one, of_first, of_one, untitled)
    )
    parents = {name: source.parent_source_id for name, source in sources.items()}
    assert parents["ses_0003"] == "ses_0001"
    assert parents["ses_0004"] == "ses_0002"
    assert parents["ses_0005"] == "ses_0001"


def test_the_copy_ends_where_original_and_fork_differ(tmp_path: Path) -> None:
    first = original()
    fork = forked(first, 2, 6)
    first["messages"][3]["parts"][0]["text"] = "Rewritten later"
    sources = read(sqlite_store(tmp_path / "opencode.db", first, fork))
    assert sources["ses_0002"].parent_message == "msg_0010"
    assert [m.usage_id != m.draft.id for m in messages(sources["ses_0002"])] == [
        True
    ] * 3 + [False] * 3


def test_an_output_cleared_in_the_original_is_still_the_same_output(
    tmp_path: Path,
) -> None:
    call = tool("bash", "call_1", done({"command": "ls"}, "a\nb"))
    first = session(1, user(0, "List"), assistant(1, call))
    fork = forked(first, 2, 2)
    call["state"]["time"]["compacted"] = T0 + 99
    assert (
        read(sqlite_store(tmp_path / "opencode.db", first, fork))[
            "ses_0002"
        ].parent_message
        == "msg_0001"
    )


def test_cost_distinguishes_two_sessions_of_the_same_millisecond(
    tmp_path: Path,
) -> None:
    first = session(1, user(0, "Hi"), assistant(1, text("Hello"), cost=1))
    other = session(
        2, user(0, "Hi", "msg_a"), assistant(1, text("Hello"), name="msg_b", cost=2)
    )
    sources = read(sqlite_store(tmp_path / "opencode.db", first, other))
    assert sources["ses_0002"].parent_message == "msg_0000"


def test_sessions_with_other_first_prompts_are_not_forks(tmp_path: Path) -> None:
    first = session(1, user(0, "Hi"))
    other = session(2, user(0, "Hello", "msg_a"))
    child = session(3, user(0, "Hi", "msg_b"), parentID="ses_0001")
    sources = read(sqlite_store(tmp_path / "opencode.db", first, other, child))
    assert sources["ses_0002"].relation is None
    assert sources["ses_0003"].relation == "subagent"


def test_the_digest_of_a_fork_says_what_it_is_a_fork_of(tmp_path: Path) -> None:
    first = original()
    fork = forked(first, 2, 4)
    together = read(sqlite_store(tmp_path / "a" / "opencode.db", first, fork))
    alone = read(sqlite_store(tmp_path / "b" / "opencode.db", fork))
    assert together["ses_0002"].digest != alone["ses_0002"].digest
    assert alone["ses_0002"].relation is None


def test_messages_are_read_for_forks_only_where_sessions_begin_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = original()
    fork = forked(first, 2, 4)
    other = session(3, user(5, "Hi"), assistant(6, text("Hello")))
    path = sqlite_store(tmp_path / "opencode.db", first, fork, other)
    compared: set[str] = set()
    read_message = SQLiteV1.read_message

    def recording(records: SQLiteV1, name: str, message: str) -> bytes | None:
        compared.add(name)
        return read_message(records, name, message)

    monkeypatch.setattr(SQLiteV1, "read_message", recording)
    read(path)
    assert compared == {"ses_0001", "ses_0002"}
