"""Search beside an evaluation by hand: what a message has, wherever its parts are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from backends import Backend
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sessiondb import Store, assistant, reasoning, text, tool
from sessiondb.model import Hit, MessageDraft, PartDraft
from sessiondb.repository import scanning

PIECES = [
    "red",
    "green",
    "oldRed",
    "Été",
    "x.y",
    "字符集",
    " 🧵 ",
    " ",
    ", ",
    "\n",
    "\\",
    '"',
]
LEAVES = ["red", "gr*", "old", "ete", '"red green"', '"red, green"', "x.y", "字", "🧵",
          "*re*", "*RE", "*dG*", "*été*", '*"d, g"*', "*符*", "*.y*", '*"n r"*', "*\\*"]  # fmt: skip


class Said(NamedTuple):
    """A part that search knows: its message, whether it is a call, and its texts."""

    session: str
    seq: int
    is_call: bool
    texts: list[str]


def without_accents(said: str) -> str:
    letters = unicodedata.normalize("NFD", said.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def leaf_holds(leaf: str, said: str) -> bool:
    wanted, plain = without_accents(leaf.strip('*"')), without_accents(said)
    if leaf.startswith("*") or wanted in "字🧵":
        return wanted in plain
    if leaf == '"red green"':
        return ("red", "green") in pairwise(re.findall(r"[^\W_]+", plain))
    if leaf != "gr*" and not wanted.isalnum():
        return re.search(rf"\b{re.escape(wanted)}\b", plain) is not None
    # A word is one of the text, of a name in it, or what stands beside ideographs.
    parts = re.sub("([a-zé])([A-ZÉ])", r"\1 \2", said)
    readings = (said, parts, re.sub("[字符集]+", " ", parts))
    words = {
        word
        for reading in readings
        for word in re.findall(r"[^\W_]+", without_accents(reading))
    }
    if leaf == "gr*":
        return any(word.startswith(wanted) for word in words)
    return wanted in words


def holds(tree: Any, parts: list[Said]) -> bool:
    """Say by hand whether *tree* is true of these parts together."""
    if isinstance(tree, str):
        return any(leaf_holds(tree, said) for part in parts for said in part.texts)
    operator, branches = tree
    first, *others = [holds(branch, parts) for branch in branches]
    if operator == "NOT":
        return first and not any(others)
    return any([first, *others]) if operator == "OR" else all([first, *others])


def typed(tree: Any) -> str:
    if isinstance(tree, str):
        return tree
    operator, branches = tree
    first, *others = map(typed, branches)
    if operator == "NOT":
        return f"({' '.join([first, *(f'-{other}' for other in others)])})"
    return f"({(' OR ' if operator == 'OR' else ' ').join([first, *others])})"


def parts_of(backend: Backend, store: Store) -> list[Said]:
    """Return all that is to be found, read without any index."""
    rows = backend.rows(
        store,
        "SELECT p.session_id, p.seq, p.type, p.text, p.input "
        "FROM part AS p JOIN session AS s ON s.id = p.session_id "
        "WHERE s.time_deleted IS NULL AND p.inherited = 0",
    )
    said = []
    for session, seq, kind, text_, arguments in rows:
        # The arguments are indexed as JSON, whose escapes are no letters.
        spaced = re.sub(r"\\(?:u....|.)", lambda found: {"\\n": " ", "\\\\": "\\ "}.get(
            found[0], found[0]), arguments or "")  # fmt: skip
        texts = [text_ or "", spaced]
        said.append(Said(session, seq, kind == "tool", texts))
    return said


def all_pages(store: Store, query: str, **how: Any) -> list[Hit]:
    found: list[Hit] = []
    cursor = None
    while True:
        page = store.search(query, cursor=cursor, **how)
        found += page
        cursor = page.next_cursor
        if cursor is None:
            return found


def message_of(pieces: list[tuple[str, str]]) -> MessageDraft:
    made: list[PartDraft] = []
    for kind, said in pieces:
        if kind == "call":
            first, second = said[: len(said) // 2], said[len(said) // 2 :]
            made.append(tool("bash", {"c": first}, output=second))
        else:
            made.append(reasoning(said) if kind == "reasoning" else text(said))
    return assistant(*made)


@pytest.fixture(scope="module")
def shared(backend: Backend) -> Iterator[Store]:
    # Two hundred bytes for a page of a scan, so that there are many.
    pages = pytest.MonkeyPatch()
    pages.setattr(scanning, "SCANNED_BYTES", 200)
    pages.setattr(scanning, "PARTS_AT_ONCE", 3)
    with Store.open(backend.fresh(), durability="normal") as store:
        yield store
    pages.undo()


QUERIES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.tuples(
        st.sampled_from(["AND", "OR", "NOT"]), st.lists(inner, min_size=2, max_size=3)
    ),
    max_leaves=4,
)
_TEXT = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)
_MESSAGE = st.lists(
    st.tuples(st.sampled_from(["text", "reasoning", "call"]), _TEXT),
    min_size=1,
    max_size=3,
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(
    tree=QUERIES,
    sessions=st.lists(
        st.lists(_MESSAGE, min_size=1, max_size=3), min_size=1, max_size=4
    ),
    steps=st.lists(st.sampled_from(["fork", "rest", "delete", "append"]), max_size=4),
    order=st.sampled_from(["newest", "time", "rank"]),
    limit=st.sampled_from([1, 2, 50]),
)
@example(
    tree=("AND", ["red", "green"]), sessions=[[[("text", "red"), ("call", "a green")]]],
    steps=["rest", "fork"], order="newest", limit=1,
)  # fmt: skip
@example(
    tree="gr*", sessions=[[[("text", "字符集green")]]], steps=[], order="newest", limit=1,
)  # fmt: skip
@example(
    tree=("NOT", ["red", "green"]), sessions=[[[("text", "red"), ("text", "green")]]],
    steps=[], order="rank", limit=2,
)  # fmt: skip
@example(
    tree=("OR", ["red", ("AND", ["*\\*", "字"])]), sessions=[[[("text", "字符集"), ("text", "\\")]]],
    steps=[], order="newest", limit=1,
)  # fmt: skip
def test_every_query_finds_the_messages_that_it_holds_of_by_hand(
    *,
    tree: Any,
    sessions: Any,
    steps: list[str],
    order: str,
    limit: int,
    shared: Store,
    backend: Backend,
) -> None:
    made = []
    for messages in sessions:
        session = shared.create_session().id
        for pieces in messages:
            shared.append(session, message_of(pieces))
        made.append(session)
    for step in steps:
        if step == "rest":
            shared._core.writer.idle()
        elif step == "fork":
            made.append(shared.fork(made[-1]).id)
        elif step == "append":
            shared.append(made[-1], message_of(sessions[0][0]))
        elif len(made) > 1:
            shared.delete(made.pop(0), keep_forks=True)

    parts = parts_of(backend, shared)
    messages_of: dict[tuple[str, int], list[Said]] = {}
    for part in parts:
        messages_of.setdefault((part.session, part.seq), []).append(part)
    expected = {place for place, said in messages_of.items() if holds(tree, said)}
    calls = {(p.session, p.seq) for p in parts if p.is_call and holds(tree, [p])}

    query = typed(tree)
    how: dict[str, Any] = {"order": order, "limit": limit}
    all_hits = all_pages(shared, query, all_hits=True, **how)
    found = [hit.session.id for hit in all_pages(shared, query, **how)]
    in_calls = all_pages(shared, query, all_hits=True, role="tool", **how)
    for session in made:
        shared.delete(session, keep_forks=True)

    assert {(hit.session.id, hit.seq) for hit in all_hits} == expected
    assert sorted(found) == sorted({session for session, _ in expected})
    assert {(hit.session.id, hit.seq) for hit in in_calls} == calls
