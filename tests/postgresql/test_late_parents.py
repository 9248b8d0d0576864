"""A parent that is imported after its child: the rows of the child move to its family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from foreign_sessions import said, session_of, take_in
from sqlalchemy import Column, Integer, UniqueConstraint

from sessiondb import ALL, FileDiff, Store, text, user
from sessiondb.engine.postgresql.families import SHARDED, family_of_root
from sessiondb.extensions import Extension, session_column
from sessiondb.maintenance import check

pytestmark = pytest.mark.slow
LONG = "many words " * 2_000
NOTES = Extension("notes")
NOTE = NOTES.table(
    "note", session_column(), Column("n", Integer), UniqueConstraint("session_id", "n")
)
PARENT = session_of("parent", said("p", cost=1.0))
CHILD = session_of(
    "child", said("c", LONG, cost=2.0), parent_source_id="parent", relation="subagent"
)
GRANDCHILD = session_of(
    "grandchild", said("g", parts=(text("deep"), text(LONG))),
    parent_source_id="child", relation="subagent",
)  # fmt: skip


@pytest.fixture
def store(address: Any) -> Iterator[Store]:
    with Store.open(address.url, durability="normal") as opened:
        yield opened


@pytest.fixture
def query(address: Any) -> Iterator[Any]:
    """Return a function that runs SQL and returns its rows."""
    import psycopg

    with psycopg.connect(address.url, autocommit=True) as connection:
        yield lambda sql: connection.execute(sql).fetchall()


def id_of(store: Store, source_id: str) -> str:
    every = store.sessions(project=ALL, subagents=True, limit=100).items
    (found,) = [session.id for session in every if session.source_id == source_id]
    return found


def families(query: Any, table: str) -> set[int]:
    """Return the families of the rows of a table."""
    return {family for (family,) in query(f"SELECT DISTINCT family FROM {table}")}


def test_a_child_and_all_below_it_move_to_the_family_of_a_late_parent(
    store: Store, query: Any
) -> None:
    take_in(store, GRANDCHILD)
    take_in(store, CHILD)
    child = id_of(store, "child")
    store.label(child, 1, "here")
    store.set_todos(child, ["do it"])
    store.insert_rows(NOTE, [{"session_id": child, "n": 1}])
    before = [
        list(store.messages(id_of(store, name))) for name in ("child", "grandchild")
    ]
    assert families(query, "session") == {family_of_root(child)}

    take_in(store, PARENT)
    family = family_of_root(id_of(store, "parent"))
    for table in (*SHARDED - {"lease", "file_diff", "merge_base"}, "ext_notes_note"):
        assert families(query, table) == {family}, table
    assert {route for (route,) in query("SELECT family FROM route")} == {family}
    after = [
        list(store.messages(id_of(store, name))) for name in ("child", "grandchild")
    ]
    assert after == before
    tree = store.tree(id_of(store, "parent"))
    assert str(tree).count("grandchild") >= 1
    assert {hit.session.source_id for hit in store.search("deep")} == {"grandchild"}
    assert check(store) == []


def test_a_process_that_knew_the_earlier_family_reads_and_writes_on(
    store: Store, address: Any, query: Any
) -> None:
    take_in(store, CHILD)
    child = id_of(store, "child")
    with Store.open(address.url) as other:
        other.append(child, user("before"))
        assert len(list(other.messages(child))) == 2
        take_in(store, PARENT)
        assert len(list(other.messages(child))) == 2
        other.append(child, user("after"))
        assert [message.text for message in other.messages(child)][1:] == [
            "before",
            "after",
        ]
    assert len(families(query, "message")) == 1


def test_blobs_move_and_nothing_is_left_of_them(store: Store, query: Any) -> None:
    take_in(store, session_of("other", said("o", LONG)))
    take_in(store, CHILD)
    assert len(query("SELECT 1 FROM blob")) == 2
    take_in(store, PARENT)
    rows = query("SELECT family, count(*) FROM blob GROUP BY 1")
    expected = {family_of_root(id_of(store, name)): 1 for name in ("other", "parent")}
    assert dict(rows) == expected
    assert check(store) == []


def test_a_text_that_the_family_has_as_a_file_stays_a_text(
    store: Store, query: Any
) -> None:
    take_in(store, CHILD)
    take_in(store, session_of("root", said("r")))
    # A file is compressed: the family of the parent has the same content as one.
    store.set_diffs(id_of(store, "root"), [FileDiff("a", before=LONG.encode())])
    assert len(query("SELECT 1 FROM blob")) == 2
    parent = session_of(
        "parent", said("p"), parent_source_id="root", relation="subagent"
    )
    take_in(store, parent)
    assert query("SELECT encoding FROM blob") == [("utf-8",)]
    assert check(store) == []


def test_a_family_without_a_late_parent_writes_beside_others(
    store: Store, query: Any
) -> None:
    take_in(store, PARENT, CHILD, GRANDCHILD)
    ((changes,),) = query("SELECT value FROM meta WHERE key = 'changed_families'")
    assert changes == "0"
    take_in(
        store, session_of("late", said("l"), parent_source_id="none", relation="fork")
    )
    take_in(store, session_of("none", said("n")))
    assert query("SELECT value FROM meta WHERE key = 'changed_families'") == [("1",)]
