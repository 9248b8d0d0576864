"""Usage that a program records beside its answers, in formats that have it on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from samples import new_store, read_into
from samples_codex import (  # fmt: skip
    answered,
    asked,
    item,
    line,
    meta,
    numbered,
    result,
    used,
    write,
)

from sessiondb import ALL, Store, Tokens, assistant, event, user
from sessiondb.formats import exporter
from sessiondb.formats.kit.turns import with_usage
from sessiondb.model import Loss, Session


def usage(store: Store, session: Any, number: int, **known: Any) -> None:
    tokens = Tokens(number, None, 0)
    store.append(session, event("usage"), tokens=tokens, cost=number / 4, **known)


def counted(store: Store, session: Any) -> list[tuple[str, int | None, float | None]]:
    messages = with_usage(store.messages(session.id, branches=True))
    return [(m.text, m.tokens_input, m.cost) for m in messages if m.role == "assistant"]


def test_usage_is_of_the_answer_before_it_else_of_the_next_one(store: Store) -> None:
    session = store.create_session()
    usage(store, session, 64)
    store.append(session, user("1"))
    usage(store, session, 1)
    store.append(session, assistant("a"), tokens=Tokens(8))
    store.append(session, assistant("b"))
    usage(store, session, 2)
    usage(store, session, 4)
    store.append(session, user("2"))
    usage(store, session, 32)
    store.append(session, user("3"))
    store.append(session, assistant("c"))
    store.append(session, user("4"))
    usage(store, session, 16)
    # Before turns, and in one without an answer, it is of the answer that is nearest.
    assert counted(store, session) == [("a", 73, 16.25), ("b", 6, 1.5), ("c", 48, 12.0)]
    assert [m.tokens_input for m in with_usage(store.messages(session.id)) if m.kind] == [None] * 6  # fmt: skip


@pytest.mark.parametrize("form", ["pi", "claude", "opencode", "opencode2"])
def test_usage_without_any_answer_is_reported_as_lost(
    form: str, store: Store, tmp_path: Path
) -> None:
    session = store.create_session()
    store.append(session, user("1"))
    usage(store, session, 1)
    assert is_usage_lost(written(store, session, form, tmp_path))

    store.append(session, assistant("a"))
    assert not is_usage_lost(written(store, session, form, tmp_path))


def is_usage_lost(losses: list[Loss]) -> bool:
    """Return whether events of usage, or their counts, are among the losses."""
    lost = {loss.field for loss in losses if loss.of == "event:usage"}
    return "" in lost or "tokens_input" in lost


def test_usage_of_a_turn_with_branches_is_counted_once(store: Store) -> None:
    session = store.create_session()
    store.append(session, user("1"))
    usage(store, session, 1)
    last = list(store.messages(session.id))[-1]
    store.append(session, assistant("a"))
    store.set_leaf(session, last.id)
    store.append(session, assistant("b"))
    usage(store, session, 2)
    assert counted(store, session) == [("a", 1, 0.25), ("b", 2, 0.5)]


@pytest.mark.parametrize("form", ["pi", "claude", "opencode", "opencode2"])
def test_the_tokens_of_codex_arrive_in_other_formats_once(
    form: str, store: Store, tmp_path: Path
) -> None:
    call = item(3, "function_call", id="fc", name="ls", arguments="{}", call_id="c1")
    records = [
        meta(), line(1, "turn_context", cwd="/home/ada/tea", model="large"), asked(1, "Tea?"),
        answered(2, "Looking"), call, used(4, "r1", 10, 2, 5, 1), result(5, "c1", "green"),
        answered(6, "Green"), used(6, "r2", 20, 4, 6, 2, total=(30, 6, 11, 3)),
    ]  # fmt: skip
    write(tmp_path / ".codex", 1, *numbered(records))
    read_into(store, tmp_path)
    (session,) = store.sessions(project=ALL)
    assert session.tokens == Tokens(24, 8, 3, 6, 0)

    folder = tmp_path / form
    written(store, session, form, folder)
    with new_store() as other:
        read_into(other, folder)
        (found,) = other.sessions(project=ALL)
        assert [count or 0 for count in found.tokens.columns()] == [24, 8, 3, 6, 0]
        answers = {m.text: m.tokens_input for m in other.messages(found.id) if m.tokens}
        assert answers["Green"] == 16


def written(store: Store, session: Session, form: str, folder: Path) -> list[Loss]:
    """Write a session in another format; return what is lost."""
    target = exporter(form)
    export = store.export(store.session(session.id), **target.read)
    losses = []
    for document in target.write([export], detail=target.details[0]):
        if isinstance(document, Loss):
            losses.append(document)
        else:
            path = folder / document.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(document.chunks), encoding="utf-8")
    return losses
