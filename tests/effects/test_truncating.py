"""Truncations: what follows a message goes, and is subtracted from the counters."""

from __future__ import annotations

from backends import Backend

from sessiondb import Store, assistant, user
from sessiondb.maintenance import check


def test_truncating_keeps_the_counters_right(backend: Backend) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        session = store.create_session().id
        store.append(session, user("x"))
        for cost, tokens in (
            (0.1, {"input": 1}),
            (0.2, {"input": 2, "output": 5}),
            (None, None),
        ):
            store.append(session, assistant("a"), cost=cost, tokens=tokens)
        fork = store.fork(session).id
        store.append(fork, assistant("b"), cost=0.4, tokens={"reasoning": 9})
        expected = {
            # after seq: (messages, own cost, inherited cost, output, reasoning)
            (session, 3): (3, 0.3, None, 5, None),
            (session, 2): (2, 0.1, None, None, None),
            (session, 1): (1, None, None, None, None),
            (fork, 4): (4, 0.3, None, 5, None),
            (fork, 1): (1, None, None, None, None),
        }
        for (handle, after), wanted in expected.items():
            store.truncate(handle, after=after)
            found = store.session(handle)
            numbers = (found.cost, found.cost_inherited)
            rounded = tuple(None if n is None else round(n, 9) for n in numbers)
            counts = (
                (found.tokens.output, found.tokens.reasoning)
                if found.tokens
                else (None,) * 2
            )
            assert (found.message_count, *rounded, *counts) == wanted, (handle, after)
            assert check(store) == []


def test_a_truncation_follows_parents_that_have_a_higher_seq_than_their_child(
    backend: Backend,
) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        session = store.create_session()
        for word in "abcd":
            store.append(session, user(word))
        # As an import leaves it that found d between a and b: a, d, b, c.
        backend.run(store, "UPDATE message SET parent_seq = 4 WHERE seq = 2")
        backend.run(store, "UPDATE message SET parent_seq = 1 WHERE seq = 4")
        backend.run(store, "UPDATE session SET leaf_seq = 3")
        assert [m.text for m in store.messages(session)] == ["a", "d", "b", "c"]
        store.truncate(session, after=4)
        assert [m.text for m in store.messages(session, branches=True)] == ["a", "d"]
        assert check(store) == []
