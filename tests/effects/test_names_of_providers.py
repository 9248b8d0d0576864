"""The names that providers use for a value are accepted; one of them is stored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sessiondb import (
    InvalidInputError,
    MessageDraft,
    PartDraft,
    Store,
    Tokens,
    assistant,
    tool,
    user,
)
from sessiondb.formats.claude import fields as claude
from sessiondb.formats.event_log import fields as event_log
from sessiondb.formats.kit.usage import COUNTS
from sessiondb.formats.llm import fields as llm
from sessiondb.formats.openoxide import drafts as openoxide
from sessiondb.formats.pi import fields as pi
from sessiondb.formats.providers.responses import fields as responses_fields
from sessiondb.model import aliases
from sessiondb.schema.tables import message, part

LIBRARY = Path(__file__).resolve().parents[2] / "docs" / "LIBRARY.md"
TABLES = {
    "`role` of a message": aliases.ROLES,
    "`finish`": aliases.FINISHES,
    "`outcome` of a call": aliases.OUTCOMES,
    "`tokens`": aliases.TOKENS,
}


def test_every_name_of_a_role_is_stored_as_one(store: Store) -> None:
    session = store.create_session()
    for spelling, role in aliases.ROLE.items():
        draft = MessageDraft(spelling, (PartDraft("text", "a"),), kind="note")
        store.append(session, draft)
        assert store.messages(session)[-1].role == role
        found = store.search("a", role=spelling, all_hits=True)
        seqs = {hit.seq for hit in store.search("a", role=role, all_hits=True)}
        assert {hit.seq for hit in found} == seqs


def test_every_name_of_a_finish_is_stored_as_one(store: Store) -> None:
    session = store.create_session()
    for spelling, finish in aliases.FINISH.items():
        store.append(session, assistant("a"), finish=spelling)
        opened = store.append(session, assistant("b"), open=True)
        store.finish(session, opened, finish=spelling)
        with store.stream(session) as out:
            out.finish(spelling)
        stored = [message.finish for message in store.messages(session, last=3)]
        assert stored == [finish] * 3


def test_every_name_of_an_outcome_is_stored_as_one(store: Store) -> None:
    session = store.create_session()
    for spelling, outcome in aliases.OUTCOME.items():
        made = assistant(tool("a", outcome=spelling), tool("b", call_id=spelling))
        store.append(session, made)
        store.settle(session, spelling, outcome=spelling)
        first, second = store.messages(session)[-1].parts
        assert [first.outcome, second.outcome] == [outcome] * 2
        assert [first.status, second.status] == ["error"] * 2


def test_every_name_of_a_count_is_stored_in_its_column(store: Store) -> None:
    session = store.create_session()
    for spelling, name in aliases.TOKEN.items():
        store.append(session, assistant("a"), tokens={spelling: 3})
        assert store.messages(session)[-1].tokens == Tokens(**{name: 3})


@pytest.mark.parametrize(
    "tokens", [{"total_tokens": 3}, {3: 3}, {"input": 1, "input_tokens": 1}]
)
def test_unknown_counts_and_one_that_is_stated_twice_are_refused(
    store: Store, tokens: dict[str, int]
) -> None:
    session = store.create_session()
    with pytest.raises(
        InvalidInputError, match=r"tokens are input, output|input twice"
    ):
        store.append(session, assistant("a"), tokens=tokens)


def test_an_unknown_name_is_refused_with_the_names_that_are_stored(
    store: Store,
) -> None:
    session = store.create_session()
    for value in ("finished", "", [], 3, "Stop"):
        with pytest.raises(InvalidInputError, match="one of stop, length, tool-calls"):
            store.append(session, assistant("a"), finish=value)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="one of user, assistant, tool"):
        store.append(session, MessageDraft("narrator"))
    with pytest.raises(InvalidInputError, match="one of user, assistant, tool"):
        store.search("a", role="narrator")
    with pytest.raises(InvalidInputError, match="one of failed, interrupted"):
        store.append(session, assistant(tool("a", outcome="bad")))
    assert store.messages(session) == []


def test_the_stored_names_are_those_that_the_tables_admit() -> None:
    conditions = " ".join(
        str(item.sqltext)
        for table in (message, part)
        for item in table.constraints
        if hasattr(item, "sqltext")
    )
    for column, names in (
        ("role", aliases.ROLES),
        ("finish", aliases.FINISHES),
        ("outcome", aliases.OUTCOMES),
    ):
        admitted = re.findall(rf"\b{column} = '([^']*)'", conditions)
        assert set(admitted) == {*names}, conditions


def test_no_name_has_two_meanings() -> None:
    for names in (*TABLES.values(), aliases.FIELDS):
        spellings = [item for name, others in names.items() for item in (name, *others)]
        assert len(spellings) == len({*spellings})


def test_formats_take_their_names_from_the_same_table() -> None:
    for table in (
        claude.FINISH, event_log.FINISH, llm.FINISH, pi.FINISH, openoxide._FINISH,
    ):  # fmt: skip
        assert table.items() <= aliases.FINISH.items()
    assert event_log.OUTCOME == aliases.OUTCOME
    assert responses_fields.ROLES.items() <= aliases.ROLE.items()
    assert {name: keys[1:] for name, (_, keys) in COUNTS.items()} == aliases.TOKENS


def test_the_library_page_lists_every_name() -> None:
    rows = re.findall(r"(?m)^\| (.*?) \| `([\w-]+)` \|(.*)\|$", LIBRARY.read_text())
    listed: dict[str, dict[str, tuple[str, ...]]] = {}
    for what, name, others in rows:
        if what in TABLES:
            listed.setdefault(what, {})[name] = tuple(re.findall(r"`([\w-]+)`", others))
    assert listed == TABLES


def test_a_prompt_by_another_name_opens_a_turn_of_its_own(store: Store) -> None:
    session = store.create_session()
    for draft in (user("a"), MessageDraft("human", (PartDraft("text", "b"),))):
        store.append(session, draft)
    first, second = store.messages(session)
    assert first.turn_id != second.turn_id
