"""The prompts of an import in the prompt history: each once, where it was typed."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from foreign_sessions import SOURCE, T0, outcomes, session_of, take_in

from sessiondb import ALL, Store
from sessiondb.model import MessageDraft, PartDraft, SourceMessage, SourceSession


def message(
    name: str, text: str = "", role: str = "user", at: int = 0, **fields: Any
) -> SourceMessage:
    part = PartDraft("text", text or name)
    draft = MessageDraft(role, (part,), name, time_created=T0 + at)
    return SourceMessage(draft, **fields)


def typed(store: Store) -> list[str]:
    """The prompts, the oldest first."""
    return [prompt.text for prompt in store.prompts(project=ALL)][::-1]


def test_prompts_of_an_import_are_in_the_history_with_their_place(
    store: Store, tmp_path: Path
) -> None:
    given = session_of(
        "s", message("a", at=1), message("b", role="assistant", at=2),
        message("c", "Thanks", at=3), directory=str(tmp_path),
    )  # fmt: skip
    (done,) = take_in(store, given)
    last, first = store.prompts(project=ALL)
    assert [first.text, last.text] == ["a", "Thanks"]
    assert {p.session_id for p in (first, last)} == {done.id}
    assert {p.directory for p in (first, last)} == {str(tmp_path)}
    assert {p.source for p in (first, last)} == {SOURCE}
    assert [p.time_created for p in (first, last)] == [T0 + 1, T0 + 3]
    assert len(store.prompts("thanks", project=str(tmp_path))) == 1


def test_a_prompt_typed_twice_in_a_row_is_there_once(store: Store) -> None:
    texts = ["go on", "go on", "stop", "go on", "go on"]
    said = [message(str(at), text, at=at) for at, text in enumerate(texts)]
    answers = [message(f"a{at}", role="assistant", at=at) for at in range(len(texts))]
    both = [item for pair in zip(said, answers, strict=True) for item in pair]
    take_in(store, session_of("s", *both))
    assert typed(store) == ["go on", "stop", "go on"]
    take_in(store, session_of("s", *both, message("9", "go on", at=9), digest="2"))
    assert typed(store) == ["go on", "stop", "go on"]


def test_a_second_import_adds_only_what_is_new(store: Store) -> None:
    messages = [message("a", at=1), message("b", at=2)]
    take_in(store, session_of("s", *messages))
    before = list(store.prompts(project=ALL))
    assert outcomes(take_in(store, session_of("s", *messages, digest="2"))) == [
        "unchanged"
    ]
    assert list(store.prompts(project=ALL)) == before
    take_in(store, session_of("s", *messages, message("c", at=3), digest="3"))
    assert typed(store) == ["a", "b", "c"]


def test_a_prompt_that_its_program_changed_is_changed(store: Store) -> None:
    take_in(store, session_of("s", message("a", "Helo", at=1)))
    take_in(store, session_of("s", message("a", "Hello", at=1), digest="2"))
    assert typed(store) == ["Hello"]
    assert len(store.prompts("hello", project=ALL)) == 1
    assert len(store.prompts("helo", project=ALL)) == 0


def test_text_that_nobody_typed_is_not_a_prompt(store: Store) -> None:
    parts = (
        PartDraft("text", "<env>", synthetic=True),
        PartDraft("text", "Read"),
        PartDraft("file", "content", data={"mime": "text/plain"}),
        PartDraft("text", "and sum up"),
        PartDraft("text", "hint", data={"ignored": True}, synthetic=True),
    )
    added = MessageDraft("user", parts[:1], "added", time_created=T0)
    mixed = MessageDraft("user", parts, "mixed", time_created=T0 + 1)
    blank = MessageDraft("user", (PartDraft("text", " \n"),), "blank", time_created=T0)
    empty = MessageDraft("user", (), "empty", time_created=T0)
    others = [message(role, role=role) for role in ("assistant", "system", "tool")]
    event = SourceMessage(MessageDraft("event", (), "e", "custom_message"))
    drafts = map(SourceMessage, (added, mixed, blank, empty))
    take_in(store, session_of("s", *drafts, *others, event))
    assert typed(store) == ["Read\nand sum up"]


def test_prompts_of_a_subagent_can_be_left_out(store: Store) -> None:
    child = session_of(
        "c", message("task", at=2), parent_source_id="s", relation="subagent"
    )
    take_in(store, session_of("s", message("a", at=1)), child)
    assert typed(store) == ["a", "task"]
    own = store.prompts(project=ALL, subagents=False)
    assert [prompt.text for prompt in own] == ["a"]


def family() -> tuple[SourceSession, ...]:
    common = [message("a", at=1), message("b", at=2)]
    parent = session_of("p", *common, message("c", at=3))
    copies = [
        replace(item, draft=replace(item.draft, id=f"f{item.draft.id}"), usage_id=item.draft.id)
        for item in common
    ]  # fmt: skip
    fork = session_of(
        "f", *copies, message("d", at=4), parent_source_id="p", relation="fork"
    )
    other = session_of("o", message("a", at=5))
    return parent, fork, other


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_copies_in_forks_are_there_once_in_every_order(
    store: Store, order: tuple[int, ...]
) -> None:
    sessions = family()
    for place in order:
        take_in(store, sessions[place])
    take_in(store, *(replace(item, digest="2") for item in sessions))
    assert typed(store) == ["a", "b", "c", "d", "a"]
    by_text = {p.text: p.session_id for p in store.prompts(project=ALL)}
    names = {s.id: s.source_id for s in store.sessions(project=ALL)}
    assert names[by_text["b"] or ""] == "p"
    assert names[by_text["d"] or ""] == "f"


def test_prompts_over_several_transactions_are_merged_the_same(store: Store) -> None:
    many = [
        message(f"{at:04}", "again" if at % 3 else f"prompt {at}", at=at)
        for at in range(1500)
    ]
    take_in(store, session_of("s", *many))
    expected = [
        text
        for at in range(0, 1500, 3)
        for text in (f"prompt {at}", "again")
    ]  # fmt: skip
    assert len(store.prompts(project=ALL, limit=10_000)) == len(expected)
    found = [p.text for p in store.prompts(project=ALL, limit=10_000)][::-1]
    assert found == expected


def test_the_history_keeps_the_prompts_of_a_session_that_was_removed(
    store: Store,
) -> None:
    given = session_of("s", message("a", at=1))
    (done,) = take_in(store, given)
    store.delete(done.id)
    assert outcomes(take_in(store, given)) == ["deleted"]
    assert [p.session_id for p in store.prompts(project=ALL)] in ([None], [done.id])
    (back,) = take_in(store, given, undelete=True)
    assert [p.session_id for p in store.prompts(project=ALL)] == [back.id]


def test_a_dry_run_writes_none(store: Store) -> None:
    take_in(store, session_of("s", message("a")), dry_run=True)
    assert typed(store) == []


def test_texts_that_no_column_holds_are_readable(store: Store) -> None:
    take_in(store, session_of("s", message("a", "nul\0 and \ud800")))
    (text,) = typed(store)
    json.dumps(text).encode()
    assert "\0" not in text


def test_pasted_files_are_left_out_of_the_history(store: Store) -> None:
    longest = "x" * (32 << 10)
    take_in(store, session_of("s", message("a", longest), message("b", longest + "y")))
    assert typed(store) == [longest]


def test_a_session_without_a_title_is_named_after_its_first_prompt(
    store: Store,
) -> None:
    given = session_of("s", message("a", "Make\n tea"), message("b", "Thanks"))
    take_in(store, given)
    (found,) = store.sessions(project=ALL)
    assert (found.title, found.title_source) == ("Make tea", "derived")
    assert outcomes(take_in(store, given)) == ["unchanged"]

    take_in(store, replace(given, title="Its own", digest="2"))
    (found,) = store.sessions(project=ALL)
    assert (found.title, found.title_source) == ("Its own", "agent")
