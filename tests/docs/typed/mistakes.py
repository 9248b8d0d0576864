"""Calls that a type checker refuses, one in each line that says so; it is never run."""

from __future__ import annotations

from sqlalchemy import Table

from sessiondb import (
    AsyncStore,
    Session,
    SessionHandle,
    Store,
    assistant,
    text,
    tool,
    user,
)
from sessiondb.extensions import Extension


def opening() -> None:
    Store(creat=False)  # refused
    Store.open(3)  # refused
    Store.open("sessions.db", read_onyl=True)  # refused
    Store.open("sessions.db", busy_timeout="10")  # refused
    Store.opne("sessions.db")  # refused
    AsyncStore.open("sessions.db", sorce="my-agent")  # refused
    with AsyncStore.open("sessions.db"):  # refused
        pass
    AsyncStore.open("sessions.db").sessions()  # refused
    with Store.open() as store:
        store.sesion("a")  # refused
        assert store.location.knd  # refused


def tables_of_a_program(store: Store, table: Table) -> None:
    Extension("graph", version="1")  # refused
    store.insert_rows("step", [])  # refused
    store.insert_rows(table, [3])  # refused
    store.insert_rows(table, [], on_conflcit="keep")  # refused
    store.execute("DELETE FROM ext_graph_step")  # refused
    store.select("SELECT 1")  # refused


def drafts() -> None:
    user(3)  # refused
    assistant("a", id=3)  # refused
    user({"type": "text", "txt": "a"})  # refused
    assistant({"text": "a"})  # refused
    text(3)  # refused
    tool()  # refused
    tool("bash", output=3)  # refused


def writing(store: Store, session: SessionHandle) -> None:
    with store.effects(durabilty="full") as fx:  # refused
        pass
    with store.effects() as fx:
        fx.apend(session, user("a"))  # refused
        fx.append(session, user("a"), csot=0.1)  # refused
        fx.expect(session, revison=3)  # refused
        fx.expect(session, leaf=0.5)  # refused
    store.update_metadata(session, {"a": 1})  # refused
    store.remove(session, 3)  # refused
    store.replace(session, "m", "a")  # refused
    store.replace(session, "m", user("a"), modle="m")  # refused
    store.pop()  # refused
    store.update_metadata(session, lambda: None)  # refused
    store.create_session(titel="a")  # refused
    store.create_session(title=3)  # refused
    store.create_session(scope=3)  # refused
    store.create_session(directory=3)  # refused
    store.open_session("thread-1", titel="a")  # refused
    store.open_session(3)  # refused
    store.update_session(session, modle="m")  # refused
    store.append(session)  # refused
    store.append(session, "a")  # refused
    store.append(session, {"role": "user", "content": "a"})  # refused
    store.append(session, {"role": "user", "parts": [{"typ": "text"}]})  # refused
    store.append(session, {"parts": []})  # refused
    store.append_openai(session, [], modle="m")  # refused
    store.append_openai([])  # refused
    store.append_anthropic(session, [], sytem="a")  # refused
    store.append_anthropic(session, [], tokens=3)  # refused
    store.append(session, user("a"), cost="0.1")  # refused
    store.append(session, user("a"), tokens=3)  # refused
    store.append(session, user("a"), modle="m")  # refused
    store.append(session, user("a"), after=0.5)  # refused
    store.settle(session, "c1", output=3)  # refused
    store.finish(session, "m", finnish="stop")  # refused
    store.set_title(session)  # refused
    store.set_value(3, "k", 1)  # refused
    store.set_value("a", b"k", 1)  # refused
    store.set_value("a", "k", 1, tll=3)  # refused
    store.update_value("a", "k", 3)  # refused
    store.delete_value("a")  # refused
    store.fork(session, at=[])  # refused
    store.delete(session, keep_fork=True)  # refused


def writing_over_time(store: Store, session: Session) -> None:
    store.lease(session, ttl="30")  # refused
    with store.stream(session, modle="m") as out:  # refused
        out.txt()  # refused
    with store.stream(session) as out:
        out.text().add(3)  # refused
        out.finish("stop", cots=0.1)  # refused
        out.tool("bash").settle(output=3)  # refused


async def asynchronously(store: AsyncStore, session: SessionHandle) -> None:
    async with store.effects(durabilty="full"):  # refused
        pass
    (await store.sessions(limt=3))  # refused
    await store.append(session, user("a"), modle="m")  # refused
    await store.finish(session, 3, cost="0.1")  # refused
    await store.append_openai(session, [], csot=0.1)  # refused
    await store.append_anthropic(session, [], model=3)  # refused
    assert store.append(session, user("a")).seq  # refused
    async with store.stream(session, modle="m"):  # refused
        pass
    async with store.lease(session, tll=3.0):  # refused
        pass


def reading(store: Store) -> None:
    store.session(3)  # refused
    store.sessions(limt=3)  # refused
    store.sessions(project=3)  # refused
    store.sessions(since=0.5)  # refused
    assert store.sessions().next_page  # refused
    store.context("a").to_opnai()  # refused
    store.context("a").to_anthropic(system="a")  # refused
    store.messages("a", last="3")  # refused
    store.messages("a", role="user")  # refused
    store.walk("a", last=3)  # refused
    store.find_message(3)  # refused
    assert store.messages("a")[0].contents  # refused
    store.search(3)  # refused
    store.value("a")  # refused
    assert store.value("a", "k").value  # refused
    store.values(where=["a"])  # refused
    store.values_of(["a"])  # refused
    store.namespaces(depth="1")  # refused
    store.usage(by=3)  # refused
    store.walk("a", pages=3)  # refused
    store.export("a", branch=True)  # refused
    store.changes(sinse="a")  # refused
    store.on_commit(3)  # refused
    store.ingest([], dryrun=True)  # refused
