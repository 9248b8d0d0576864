"""Properties of effects, for any write: exact values, true trees, complete streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from backends import Backend
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import (
    CodecError,
    PoppedMessage,
    Store,
    assistant,
    part,
    text,
    tool,
    user,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(backend: Backend) -> Iterator[Store]:
    place = backend.fresh()
    with Store.open(place, durability="normal") as opened:
        yield opened
    backend.assert_intact(place)


CHARACTERS = st.characters(codec=None) | st.sampled_from(
    "\0\ud83d\ude00\ud800\udfff\u2400é"
)
TEXTS = st.text(CHARACTERS, max_size=40)
NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
QUICK = settings(max_examples=40, deadline=None)


@QUICK
@given(said=TEXTS.map(lambda t: t * 50) | TEXTS, data=PLAIN, given_=JSON, output=TEXTS)
def test_accepted_values_come_back_exactly(
    store: Store, said: str, data: Any, given_: Any, output: str
) -> None:
    s = store.create_session(directory="/tmp")
    call = tool("t", given_, output=output)
    try:
        store.append(
            s, assistant(text(said), call, part("x", value=data)), error=given_
        )
    except CodecError as refused:
        assert "surrogates" in str(refused)  # noqa: PT017  the one thing JSON cannot hold
        assert store.messages(s) == []
        return
    (message,) = store.messages(s)
    one, two, three = message.parts
    assert (one.text, two.text, two.input, three.data) == (
        said,
        output,
        given_,
        {"value": data},
    )
    assert message.error == given_


@dataclass
class Plain:
    """A session as a list and a dict, to compare with."""

    parents: dict[int, int | None] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    leaf: int | None = None
    last: int = 0

    def append(self, after: int | None) -> None:
        self.last += 1
        self.parents[self.last] = after
        self.leaf = self.last

    def below(self, seq: int | None) -> set[int]:
        going = {child for child, parent in self.parents.items() if parent == seq}
        return going.union(*map(self.below, going))

    def truncate(self, after: int | None) -> None:
        going = set(self.parents) if after is None else self.below(after)
        self.parents = {s: p for s, p in self.parents.items() if s not in going}
        self.labels = {n: s for n, s in self.labels.items() if s not in going}
        if self.leaf in going:
            self.leaf = after

    def remove(self, seq: int) -> None:
        above = self.parents.pop(seq)
        self.parents = {s: above if p == seq else p for s, p in self.parents.items()}
        self.labels = {n: s for n, s in self.labels.items() if s != seq}
        if self.leaf == seq:
            self.leaf = above

    def path(self) -> list[int]:
        found, seq = [], self.leaf
        while seq is not None:
            found.append(seq)
            seq = self.parents[seq]
        return found[::-1]


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "append",
                "append",
                "append",
                "after",
                "set_leaf",
                "truncate",
                "label",
                "pop",
                "remove",
                "replace",
                "commit",
            ]
        ),
        st.integers(0, 30),
    ),
    max_size=25,
)


@QUICK
@given(operations=OPERATIONS)
def test_a_tree_is_what_its_effects_make_it(
    store: Store, operations: list[tuple[str, int]]
) -> None:
    """However they are spread over units, and whichever unit is committed twice."""
    s, plain = store.create_session(directory="/tmp"), Plain()
    unit = store._core.unit()
    popped: list[tuple[PoppedMessage, int | None]] = []
    for name, number in operations:
        seqs = [None, *sorted(plain.parents)]
        at = seqs[number % len(seqs)]
        if name == "append":
            unit.append(s, user("x"))
            plain.append(plain.leaf)
        elif name == "after":
            unit.append(s, user("x"), after=at)
            plain.append(at)
        elif name == "set_leaf":
            unit.set_leaf(s, at)
            plain.leaf = at
        elif name == "truncate":
            unit.truncate(s, after=at)
            plain.truncate(at)
        elif name == "pop":
            popped.append((unit.pop(s), plain.leaf))
            if plain.leaf is not None:
                plain.remove(plain.leaf)
        elif name == "remove" and at is not None:
            unit.remove(s, [at])
            plain.remove(at)
        elif name == "replace" and at is not None:
            unit.replace(s, at, user("y"))
        elif name == "label" and at is not None:
            unit.label(s, at, f"label {number % 3}")
            plain.labels[f"label {number % 3}"] = at
        elif name == "commit":
            store.commit(unit)
            store.commit(unit)
            unit = store._core.unit()
    store.commit(unit)
    assert [item.message and item.message.seq for item, _ in popped] == [
        seq for _, seq in popped
    ]
    found = store.messages(s, branches=True)
    assert {m.seq: m.parent_seq for m in found} == plain.parents
    assert [m.seq for m in store.messages(s)] == plain.path()
    assert {label.label: label.seq for label in store.labels(s)} == plain.labels
    record = store.session(s)
    assert (record.leaf_seq, record.last_seq) == (plain.leaf, plain.last)
    assert record.message_count == len(plain.parents)


@QUICK
@given(deltas=st.lists(st.tuples(st.integers(0, 2), TEXTS, st.booleans()), max_size=12))
def test_a_stream_holds_what_was_added_at_every_flush(
    store: Store, deltas: list[tuple[int, str, bool]]
) -> None:
    s = store.create_session(directory="/tmp")
    added = ["", "", ""]
    with store.stream(s) as out:
        growing = [out.text(), out.reasoning(), out.text()]
        for which, delta, flushed in deltas:
            growing[which].add(delta)
            added[which] += delta
            if flushed:
                out.flush()
                (message,) = store.messages(s)
                assert [p.text for p in message.parts] == added
    (message,) = store.messages(s)
    assert [p.text for p in message.parts] == added
