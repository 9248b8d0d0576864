"""A blob that one process gives up and another one stores is never missing, nor left."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from crew import crew, reports_of

from sessiondb import ALL, Store, user
from sessiondb.maintenance import check

pytest.importorskip("psycopg")

from waiting import commits_held

pytestmark = pytest.mark.slow
#: So long that it is stored once, as a blob.
LARGE = "large " * 1_000
STORE = """
    (text,) = args
    with Store.open(url) as store:
        begin()
        report(store.append("two", user(text)).id)
"""
REMOVE = """
    with Store.open(url) as store:
        begin()
        store.remove("two", [1])
    report(None)
"""


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store whose session ``one`` has the only reference to a blob."""
    with Store.open(url) as opened:
        opened.create_session(id="one", directory="/tmp")
        # Of one family, which shares blobs.
        opened.create_session(id="two", parent="one")
        opened.append("one", user(LARGE))
        yield opened


def blobs(store: Store) -> int:
    with store.connection() as rows:
        count: int = rows.exec_driver_sql("SELECT count(*) FROM blob").scalar_one()
    return count


def test_what_is_given_up_while_it_is_stored_is_kept(store: Store, url: str) -> None:
    with crew(STORE, url, (LARGE,)) as member, ThreadPoolExecutor(1) as thread:
        member.prepare()
        with commits_held(url) as gate:
            member.begin()
            gate.wait_for(1)
            removing = thread.submit(store.remove, "one", [1])
            gate.wait_for(2)
        removing.result()
        member.reports()
    assert store.messages("one") == []
    assert [message.parts[0].text for message in store.messages("two")] == [LARGE]
    assert check(store) == []


def remove_before(store: Store, url: str, program: str, *args: str) -> None:
    """Remove the message of ``one`` while a member runs *program*: both commit at once.

    The member writes as soon as this process waits in its COMMIT.
    """
    with crew(program, url, args) as member, ThreadPoolExecutor(1) as thread:
        member.prepare()
        with commits_held(url) as gate:
            removing = thread.submit(store.remove, "one", [1])
            gate.wait_for(1)
            member.begin()
            gate.wait_for(2)
        removing.result()
        member.reports()


def test_what_is_stored_while_it_is_given_up_is_stored_again(
    store: Store, url: str
) -> None:
    remove_before(store, url, STORE, LARGE)
    assert [message.parts[0].text for message in store.messages("two")] == [LARGE]
    assert check(store) == []


def test_the_last_references_that_go_at_one_moment_take_the_blob_with_them(
    store: Store, url: str
) -> None:
    store.append("two", user(LARGE))
    remove_before(store, url, REMOVE)
    assert blobs(store) == 0


def test_many_that_store_and_remove_a_few_texts_never_fail(
    store: Store, url: str
) -> None:
    work = """
        name, turns = args
        chance = random.Random(name)
        with Store.open(url, durability="normal") as store:
            session = store.create_session(parent="one")
            texts = {}
            begin()
            for _ in range(turns):
                if len(texts) > 2 or (texts and chance.random() < 0.4):
                    seq = chance.choice(list(texts))
                    store.remove(session, [seq])
                    del texts[seq]
                else:
                    text = f"{chance.randrange(3)} large " * 500
                    texts[store.append(session, user(text)).seq] = text
            for seq, text in texts.items():
                assert store.message(session, seq).parts[0].text == text
            report(sorted(set(texts.values())))
    """
    kept = reports_of(work, url, *[(str(name), 25) for name in range(4)])
    store.remove("one", [1])
    assert blobs(store) == len(set().union(*kept))
    assert check(store) == []
    assert len(store.sessions(project=ALL, empty=True, subagents=True)) == 6
