"""The fields of a session: titles, todos, diffs, prompts, metadata, and its directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from facades import Contract

from sessiondb import (
    ALL,
    ConflictError,
    FileDiff,
    SessionHandle,
    Todo,
    assistant,
    reasoning,
    text,
    user,
)


async def title(contract: Contract, session: SessionHandle) -> tuple[str, str]:
    found = await contract.store.session(session)
    return found.title, found.title_source


async def test_a_title_is_derived_from_the_first_prompt(
    contract: Contract, session: SessionHandle
) -> None:
    assert await title(contract, session) == ("", "derived")
    await contract.store.append(session, assistant("Hello"))
    await contract.store.append(session, user(reasoning("not this"), text("  \n ")))
    assert await title(contract, session) == ("", "derived")
    await contract.store.append(
        session, user(text("Fix\n\n the\t parser\0 " + "now " * 100))
    )
    name, source = await title(contract, session)
    assert (len(name), name[:19], name[-1], source) == (
        80,
        "Fix the parser\u2400 now",
        "…",
        "derived",
    )
    await contract.store.append(session, user("Another prompt"))
    assert await title(contract, session) == (name, source)
    assert [h.session.id for h in await contract.store.search("parser")] == [session.id]
    long = await contract.store.create_session(directory="/tmp")
    await contract.store.append(long, user("Écrire " * 1_000))
    assert (await title(contract, long))[0] == "Écrire " * 11 + "Éc…"


async def test_a_user_names_above_an_agent_above_what_was_derived(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    await store.append(session, user("Derived"))
    await store.set_title(session, "By the agent", by="agent")
    await store.set_title(session, "Derived again", by="derived")
    assert await title(contract, session) == ("By the agent", "agent")
    await store.set_title(session, "Better, by the agent", by="agent")
    assert await title(contract, session) == ("Better, by the agent", "agent")
    await store.set_title(session, "By the user")
    await store.set_title(session, "Once more by the agent", by="agent")
    assert await title(contract, session) == ("By the user", "user")
    await store.append(session, user("No longer derived"))
    assert await title(contract, session) == ("By the user", "user")
    named = await store.create_session(title="Named at once", directory="/tmp")
    await store.append(named, user("Not derived"))
    assert await title(contract, named) == ("Named at once", "user")


async def test_titles_and_archiving_do_not_count_as_use_of_a_session(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append(session, user("x"), time=1_700_000_000_000)
    before = await contract.store.session(session)
    async with contract.store.effects() as fx:
        fx.set_title(session, "x")
        fx.archive(session)
        fx.set_metadata(session, {"a": 1})
        fx.set_todos(session, ["x"])
    after = await contract.store.session(session)
    assert after.time_updated == before.time_updated
    assert after.revision == before.revision + 1
    assert after.time_archived is not None
    assert len(await contract.store.sessions(project=ALL)) == 0
    await contract.store.unarchive(session)
    assert len(await contract.store.sessions(project=ALL)) == 1


async def test_a_todo_list_is_replaced_as_one(
    contract: Contract, session: SessionHandle
) -> None:
    todos = [Todo("write", "completed", "high", "t1"), Todo("test")]
    await contract.store.set_todos(session, todos)
    assert await contract.store.todos(session) == todos
    await contract.store.set_todos(session, ["only this"])
    assert await contract.store.todos(session) == [Todo("only this")]
    await contract.store.set_todos(session, [])
    assert await contract.store.todos(session) == []


async def test_diffs_are_replaced_as_one_with_their_contents(
    contract: Contract, session: SessionHandle
) -> None:
    diffs = [
        FileDiff("a.py", 0, "@@", 1, 2, b"before\0" * 500, b"\xff"),
        FileDiff("a.py", 3, None, None, None, b"", None),
    ]
    await contract.store.set_diffs(session, diffs)
    assert await contract.store.diffs(session) == diffs
    await contract.store.set_diffs(session, diffs[1:])
    assert await contract.store.diffs(session) == diffs[1:]
    assert contract.rows("SELECT size FROM blob") == [(0,)]
    await contract.store.set_diffs(session, [])
    contract.check()


async def test_the_prompt_history_outlives_its_sessions(
    contract: Contract, session: SessionHandle, tmp_path: Path
) -> None:
    store = contract.store
    first = await store.add_prompt(
        "first\nwith lines", session=session, time=1_700_000_000_005
    )
    await store.add_prompt("elsewhere", directory="/tmp", id="mine")
    await store.add_prompt("elsewhere", directory="/tmp", id="mine")
    with pytest.raises(ConflictError):
        await store.add_prompt("another", id="mine")
    found = list(await store.prompts())
    assert [(p.text, p.directory) for p in found] == [
        ("elsewhere", "/tmp"),
        ("first\nwith lines", str(tmp_path)),
    ]
    assert (found[1].id, found[1].session_id) == (first, session.id)
    assert found[1].time_created == 1_700_000_000_005
    await store.delete(session)
    await store.reap()
    assert [p.session_id for p in await store.prompts()] == [None, None]
    assert len(await store.prompts("lines")) == 1
    contract.check()


async def test_prompts_and_diffs_have_an_order_of_their_own(
    contract: Contract, session: SessionHandle
) -> None:
    """By time and id, by path: regardless of the order in which they were written."""
    store, at = contract.store, 1_700_000_000_000
    for name, time in (("late", at + 9), ("b", at), ("early", at - 9), ("a", at)):
        await store.add_prompt(name, id=name, session=session, time=time)
    assert [p.id for p in await store.prompts()] == ["late", "b", "a", "early"]
    page = await store.prompts(limit=2)
    rest = await store.prompts(limit=2, cursor=page.next_cursor)
    assert [p.id for p in rest] == ["a", "early"]
    kept = (await store.export(session)).prompts
    assert [p.id for p in kept] == ["early", "a", "b", "late"]
    await store.set_diffs(session, [FileDiff("b.py"), FileDiff("a.py")])
    assert [d.path for d in await store.diffs(session)] == ["a.py", "b.py"]


async def test_metadata_permission_and_revert_are_any_json(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    odd = {"a": [1, None, {"b": "\0\ud800é"}], "big": 1 << 90, "f": 0.1}
    await store.set_metadata(session, odd)
    await store.set_permission(session, [odd])
    await store.set_revert(session, {"message_id": "m", "diff": "x" * 5_000})
    found = await store.session(session)
    assert (found.metadata, found.permission) == (odd, [odd])
    assert found.revert == {"message_id": "m", "diff": "x" * 5_000}
    await store.set_permission(session, None)
    await store.set_revert(session, None)
    await store.set_metadata(session, {})
    found = await store.session(session)
    assert (found.metadata, found.permission, found.revert) == ({}, None, None)


async def test_a_share_is_noted_and_ended(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    await store.set_metadata(session, {"kept": 1})
    await store.set_share(session, "https://example.org/s/1", secret="hush")
    assert (await store.session(session)).share_url == "https://example.org/s/1"
    await store.set_metadata(session, {"kept": 2})
    ((metadata,),) = contract.rows("SELECT metadata FROM session")
    assert json.loads(metadata) == {"kept": 2, "share": {"secret": "hush"}}
    await store.set_share(session, None)
    assert (await store.session(session)).share_url is None
    ((metadata,),) = contract.rows("SELECT metadata FROM session")
    assert json.loads(metadata) == {"kept": 2}


async def test_a_session_moves_to_another_directory_and_its_project(
    contract: Contract, session: SessionHandle, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    before = await contract.store.session(session)
    await contract.store.set_directory(session, str(elsewhere))
    after = await contract.store.session(session)
    assert after.directory == str(elsewhere)
    assert after.project_id != before.project_id
    assert [p.worktree for p in await contract.store.projects()] == [
        str(tmp_path),
        str(elsewhere),
    ]


async def test_a_subagent_names_its_parent_and_the_call_that_started_it(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    ask = await store.append(session, user("Go"))
    await store.append(session, assistant("On it"))
    one = await store.create_session(
        parent=session, call_id="c1", agent="explore", model="m"
    )
    two = await store.create_session(parent=session, parent_message=ask)
    found = [await store.session(s) for s in (one, two)]
    assert [
        (s.parent_id, s.relation, s.parent_seq, s.call_id, s.root_id) for s in found
    ] == [
        (session.id, "subagent", 2, "c1", session.id),
        (session.id, "subagent", 1, None, session.id),
    ]
    assert (found[0].agent, found[0].model_id) == ("explore", "m")
    below = await store.create_session(parent=two)
    assert (await store.session(below)).root_id == session.id
    with pytest.raises(LookupError):
        await store.create_session(parent="ses_nowhere")
