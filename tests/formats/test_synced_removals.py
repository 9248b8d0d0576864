"""Messages that are removed or replaced in one clone: what the logs of others do to them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from converging import Clone, exchanged, state, synced, two_clones

from sessiondb import MessageDraft, assistant, tool, tool_result, user
from sessiondb.maintenance import check
from sessiondb.maintenance.sync import NOTES, sync

pytestmark = pytest.mark.slow

Two = tuple[Clone, Clone, str]


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Two]:
    """Return two clones that have the same session of four messages."""
    with two_clones(tmp_path, ("one", "two", "three", "four")) as clones:
        yield clones


def words(clone: Clone, session: str) -> list[str | None]:
    return [message.text for message in clone.store.messages(session)]


def log(clone: Clone) -> str:
    (path,) = clone.logs.glob("*.jsonl")
    return path.read_text()


def at_rest(ada: Clone, bob: Clone) -> None:
    for _ in range(3):
        exchanged(ada, bob)
        exchanged(bob, ada)
    assert state(ada.store) == state(bob.store)
    assert check(ada.store) == check(bob.store) == []
    assert sync(ada.store).written == sync(bob.store).written == []


def test_what_was_removed_leaves_the_own_log_and_does_not_come_back_from_it(
    shared: Two,
) -> None:
    ada, _, session = shared
    ada.store.remove(session, ["m2"])
    popped = ada.store.pop(session)
    assert popped is not None
    for _ in range(2):
        synced(ada)
        assert words(ada, session) == ["one", "three"]
        assert "two" not in log(ada)
        assert "four" not in log(ada)
    (ada.root / NOTES).unlink()
    synced(ada)
    assert words(ada, session) == ["one", "three"]
    assert check(ada.store) == []


def test_what_was_replaced_is_replaced_in_the_other_clone(shared: Two) -> None:
    ada, bob, session = shared
    ada.store.replace(session, "m2", user("[redacted]"))
    synced(ada)
    assert "two" not in log(ada)
    for path in ada.logs.glob("*.jsonl"):  # as git does if only one side changed it
        shutil.copy(path, bob.logs / path.name)
    synced(bob)
    assert words(bob, session) == ["one", "[redacted]", "three", "four"]
    assert not bob.store.search("two")
    at_rest(ada, bob)
    assert words(ada, session) == ["one", "[redacted]", "three", "four"]


def test_of_a_message_that_both_replaced_all_clones_have_the_same(shared: Two) -> None:
    ada, bob, session = shared
    ada.store.replace(session, "m2", user("by Ada"))
    bob.store.replace(session, "m2", user("by Bob", "in two parts"))
    at_rest(ada, bob)
    (found,) = {message.text for message in ada.store.messages(session)} - {
        "one",
        "three",
        "four",
    }
    assert "by Bob" in (found or "")


def test_a_removed_message_that_comes_back_stands_where_it_was(shared: Two) -> None:
    ada, bob, session = shared
    ada.store.remove(session, ["m2", "m3"])
    at_rest(ada, bob)
    assert words(ada, session) == ["one", "two", "three", "four"]


def test_each_clone_removed_another_message(shared: Two) -> None:
    ada, bob, session = shared
    ada.store.remove(session, ["m2"])
    bob.store.remove(session, ["m3"])
    at_rest(ada, bob)
    found = {m.text for m in ada.store.messages(session, branches=True)}
    assert found == {"one", "two", "three", "four"}


def test_a_removed_result_and_its_call_agree_in_both(shared: Two) -> None:
    ada, bob, session = shared
    ada.store.append(session, assistant(tool("bash", {}, call_id="c")))
    ada.store.append(session, MessageDraft("tool", (tool_result("c", "x"),)))
    exchanged(bob, ada)
    ada.store.pop(session)
    bob.store.append(session, user("meanwhile"))
    at_rest(ada, bob)
    call, result = ada.store.messages(session, branches=True)[4:6]
    assert [item.text for m in (call, result) for item in m.parts] == ["x", "x"]


def test_a_part_of_a_finished_message_reaches_the_other_clone(shared: Two) -> None:
    ada, bob, session = shared
    ada.store.add_part(session, "m2", "added")
    exchanged(bob, ada)
    parts = bob.store.message(session, "m2").parts
    assert [item.text for item in parts] == ["two", "added"]
    at_rest(ada, bob)


def test_an_id_that_is_used_again_is_not_deleted_by_the_deletion_before(
    shared: Two,
) -> None:
    ada, bob, session = shared
    with ada.store.effects() as fx:
        fx.delete(session)
        fx.create_session(id=session, title="Again")
        fx.append(session, user("anew"))
    exchanged(bob, ada)
    exchanged(ada, bob)
    assert ada.store.session(session).title == "Again"
    assert "anew" in words(ada, session)
    at_rest(ada, bob)
