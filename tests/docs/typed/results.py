"""The type of each result of both façades, for type checkers; it is never run."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_type

from sqlalchemy import Column, Connection, Integer, Table, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from sessiondb import (
    ALL,
    BEGINNING,
    HERE,
    LEAF,
    AsyncStore,
    AsyncStream,
    Change,
    Comparison,
    Context,
    DeletePlan,
    Export,
    FileDiff,
    Hit,
    Imported,
    KeyValue,
    Label,
    Lease,
    Message,
    MessageDraft,
    MessageHandle,
    ModelName,
    OpenedSession,
    Page,
    PartDraft,
    PartHandle,
    PoppedMessage,
    Problem,
    Project,
    Prompt,
    Queries,
    Read,
    Session,
    SessionHandle,
    SnapshotResult,
    Store,
    Stream,
    StreamCall,
    StreamPart,
    Todo,
    Tokens,
    Tree,
    Unfinished,
    Unit,
    UsageRecord,
    UsageRow,
    ValueHandle,
    assistant,
    event,
    file,
    part,
    reasoning,
    system,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.database.damage import PastDamage
from sessiondb.database.opening import Opening
from sessiondb.effects.extension import Execute, Extend, InsertRows
from sessiondb.effects.place import Relink
from sessiondb.effects.values import DeleteExpired, DeleteValues
from sessiondb.extensions import Extension, session_column
from sessiondb.location import Database

NOW = datetime.now(UTC)


class OwnStore(Store):
    """A façade may be subclassed."""


GRAPH = Extension("graph")
STEP = GRAPH.table("step", session_column(), Column("number", Integer))


def tables_of_a_program(store: Store) -> None:
    rows = [{"session_id": "s", "number": 1}]
    assert_type(STEP, Table)
    assert_type(store.extend(GRAPH), Extend)
    assert_type(store.insert_rows(STEP, rows, on_conflict="keep"), InsertRows)
    assert_type(store.execute(delete(STEP), {}).rowcount, int)
    assert_type(store.select(select(STEP.c.number)), list[tuple[Any, ...]])
    with store.effects() as fx:
        assert_type(fx.execute(delete(STEP)), Execute)


async def tables_of_an_asynchronous_program(store: AsyncStore) -> None:
    assert_type(await store.extend(GRAPH), Extend)
    assert_type(await store.insert_rows(STEP, []), InsertRows)
    assert_type(await store.execute(delete(STEP)), Execute)
    assert_type(await store.select(select(STEP)), list[tuple[Any, ...]])


def drafts() -> None:
    assert_type(user("a", text("b")), MessageDraft)
    assert_type(user({"type": "text", "text": "a"}), MessageDraft)
    assert_type(assistant("a", id="m"), MessageDraft)
    assert_type(system("a"), MessageDraft)
    assert_type(event("compaction", "a"), MessageDraft)
    assert_type(text("a"), PartDraft)
    assert_type(reasoning("a"), PartDraft)
    assert_type(tool("bash", {}, call_id="c"), PartDraft)
    assert_type(tool_result("c", "a"), PartDraft)
    assert_type(file("https://example.org"), PartDraft)
    assert_type(part("patch", text="a"), PartDraft)


def opening(path: Path) -> None:
    assert_type(Store(), Store)
    assert_type(Store(path, source="my-agent"), Store)
    assert_type(Store.open(), Store)
    assert_type(Store.open(path, create=False, read_only=True), Store)
    assert_type(OwnStore.open(":memory:"), OwnStore)
    with Store.open("sessions.db", source="my-agent", durability="normal") as store:
        assert_type(store, Store)
        assert_type(store.path, Path | None)
        assert_type(store.location, Database)
        assert_type(store.closed, bool)
        assert_type(Store.sharing(AsyncStore(path)), Store)
        assert_type(store.close(), None)
    with OwnStore.open() as own:
        assert_type(own, OwnStore)


async def opening_asynchronously(path: Path) -> None:
    assert_type(AsyncStore.open(path), Opening[AsyncStore])
    assert_type(await AsyncStore.open(path, busy_timeout=1), AsyncStore)
    async with AsyncStore.open("sessions.db", source="my-agent") as store:
        assert_type(AsyncStore.sharing(store), AsyncStore)
        assert_type(store.closed, bool)
        assert_type(store, AsyncStore)
        assert_type(store.path, Path | None)
        assert_type(store.location, Database)
        assert_type(store.closed, bool)
        assert_type(await store.close(), None)
    async with await AsyncStore.open() as awaited:
        assert_type(awaited, AsyncStore)


def writing(store: Store, session: Session, message: Message) -> None:
    with store.effects(durability="normal") as fx:
        assert_type(fx, Unit)
        assert_type(fx.expect(session, revision=3, leaf=message), None)
        assert_type(fx.expect("a", absent=True), None)
        assert_type(fx.pop(session), PoppedMessage)
        assert_type(fx.pop(session).message, Message | None)
        assert_type(fx.create_session(title="a"), SessionHandle)
        assert_type(fx.append(session, user("a"), model="m", cost=0.1), MessageHandle)
        assert_type(fx.append_openai(session, {}), tuple[MessageHandle, ...])
        assert_type(fx.append_anthropic(session, []), tuple[MessageHandle, ...])
        assert_type(fx.fork(session, at=message), SessionHandle)
    assert_type(store.commit(fx), None)
    assert_type(store.create_session(directory="/", time=NOW), SessionHandle)
    opened = store.open_session("thread-1", title="a")
    assert_type(opened, OpenedSession)
    assert_type(opened.created, bool | None)
    assert_type(store.update_session(session, model=None), None)
    answer = store.append(
        session, assistant("a"), after=LEAF, open=True, expect_leaf=None, agent="a",
        provider="p", model="m", cost=1, tokens={"input": 3}, time=NOW,
    )  # fmt: skip
    assert_type(answer, MessageHandle)
    assert_type(answer.id, str)
    assert_type(answer.seq, int | None)
    assert_type(store.append(session, {"role": "user", "parts": ["a"]}), MessageHandle)
    handles = store.append_openai(
        session, [{"role": "user", "content": "a"}], model="m"
    )
    assert_type(handles, tuple[MessageHandle, ...])
    handles = store.append_anthropic(session, "a", system="b", cost=0.1)
    assert_type(handles, tuple[MessageHandle, ...])
    assert_type(store.add_part(session, answer, "a"), PartHandle)
    assert_type(store.start(session, "c1", input={}), None)
    assert_type(store.settle(session, "c1", output="a"), None)
    assert_type(store.finish(session, answer, tokens=Tokens(input=3)), None)
    assert_type(store.set_leaf(session, 3), None)
    assert_type(store.truncate(session, after=None), None)
    assert_type(store.pop(session), Message | None)
    assert_type(store.remove(session, [message, answer, "m", 3]), None)
    assert_type(store.replace(session, 3, user("a"), cost=0.1), MessageHandle)
    assert_type(store.set_title(session, "a", by="agent"), None)
    assert_type(store.set_directory(session, "/"), None)
    assert_type(store.set_metadata(session, {"a": 1}), None)
    assert_type(
        store.update_metadata(session, lambda old: {**(old or {}), "a": 1}), None
    )
    assert_type(store.set_permission(session, [{"allow": "bash"}]), None)
    assert_type(store.set_share(session, "https://example.org", secret="s"), None)
    assert_type(store.set_revert(session, None), None)
    assert_type(store.set_todos(session, ["a", Todo("b")]), None)
    assert_type(store.set_diffs(session, [FileDiff("a.py")]), None)
    assert_type(store.label(session, message, "a"), None)
    assert_type(store.archive(session), None)
    assert_type(store.unarchive(session), None)
    assert_type(store.add_prompt("a", session=session), str)
    assert_type(store.note_used(session, "tty1"), None)
    assert_type(store.relink("/old", "/new"), Relink)
    value = store.set_value(("users", "1"), "k", {"a": 1}, ttl=60, expect_revision=0)
    assert_type(value, ValueHandle)
    assert_type(value.revision, int | None)
    assert_type(store.update_value("users", "k", len, ttl=None), ValueHandle)
    assert_type(store.delete_value("users", "k", expect_revision=1), None)
    assert_type(store.delete_values(["users", "1"]), DeleteValues)
    assert_type(store.delete_expired(("users", "1")), DeleteExpired)
    assert_type(store.refresh_value("users", "k"), None)
    assert_type(store.recover(session), None)
    assert_type(store.fork("title", before=message, branches=True), SessionHandle)
    assert_type(store.delete(session, keep_forks=True), None)
    assert_type(store.reap(), int)


async def writing_asynchronously(store: AsyncStore, session: SessionHandle) -> None:
    async with store.effects() as fx:
        assert_type(fx, Unit)
    assert_type(await store.commit(fx), None)
    assert_type(await store.create_session(title="a"), SessionHandle)
    assert_type(await store.open_session("thread-1"), OpenedSession)
    assert_type(await store.update_session(session, model=None), None)
    answer = await store.append(session, assistant("a"), open=True, cost=0.1)
    assert_type(answer, MessageHandle)
    handles = await store.append_openai(session, "a")
    assert_type(handles, tuple[MessageHandle, ...])
    handles = await store.append_anthropic(session, [], turn_id="t")
    assert_type(handles, tuple[MessageHandle, ...])
    assert_type(await store.add_part(session, answer, tool("bash")), PartHandle)
    assert_type(await store.start(session, "c1"), None)
    assert_type(await store.settle(session, "c1", error="a"), None)
    assert_type(await store.finish(session, answer, finish="length"), None)
    assert_type(await store.set_leaf(session, answer), None)
    assert_type(await store.truncate(session, after=1), None)
    assert_type(await store.pop(session), Message | None)
    assert_type(await store.remove(session, [answer]), None)
    assert_type(await store.replace(session, answer, user("a")), MessageHandle)
    assert_type(await store.set_title(session, "a"), None)
    assert_type(await store.set_directory(session, "/"), None)
    assert_type(await store.set_metadata(session, {}), None)
    assert_type(await store.update_metadata(session, lambda old: old), None)
    assert_type(await store.set_permission(session, None), None)
    assert_type(await store.set_share(session, None), None)
    assert_type(await store.set_revert(session, {"message_id": "m"}), None)
    assert_type(await store.set_todos(session, []), None)
    assert_type(await store.set_diffs(session, []), None)
    assert_type(await store.label(session, answer, None), None)
    assert_type(await store.archive(session), None)
    assert_type(await store.unarchive(session), None)
    assert_type(await store.add_prompt("a"), str)
    assert_type(await store.note_used(session, "tty1", "/"), None)
    assert_type(await store.relink("/old", "/new"), Relink)
    assert_type(await store.set_value("users", "k", b"a"), ValueHandle)
    assert_type(await store.update_value("users", "k", len), ValueHandle)
    assert_type(await store.delete_value("users", "k"), None)
    assert_type(await store.delete_values(()), DeleteValues)
    assert_type(await store.delete_expired(), DeleteExpired)
    assert_type(await store.refresh_value("users", "k"), None)
    assert_type(await store.recover(session), None)
    assert_type(await store.fork(session), SessionHandle)
    assert_type(await store.delete(session), None)
    assert_type(await store.reap(), int)


def writing_over_time(store: Store, session: SessionHandle) -> None:
    with store.lease(session, ttl=60) as held:
        assert_type(held, Lease)
        assert_type(held.lost, BaseException | None)
    with store.stream(session, model="m", turn_id="t") as out:
        assert_type(out, Stream)
        assert_type(out.message, MessageHandle)
        assert_type(out.text(), StreamPart)
        assert_type(out.reasoning(), StreamPart)
        call = out.tool("bash", call_id="c1")
        assert_type(call, StreamCall)
        assert_type(call.add("{}"), None)
        assert_type(call.settle(output="a"), None)
        assert_type(out.flush(), None)
        assert_type(out.finish("stop", cost=0.1, tokens={"output": 1}), None)


async def writing_over_time_asynchronously(store: AsyncStore, session: str) -> None:
    async with store.lease(session) as held:
        assert_type(held, Lease)
    async with store.stream(session, ttl=5.0, model="m") as out:
        assert_type(out, AsyncStream)
        assert_type(out.message, MessageHandle)
        assert_type(out.text(), StreamPart)
        assert_type(out.tool("bash"), StreamCall)
        assert_type(await out.flush(), None)
        assert_type(out.finish("error", error={"message": "a"}), None)


def one_value(reads: Queries) -> Read[KeyValue | None]:
    return (yield from reads.value("users", "k"))


def reading(store: Store, session: SessionHandle, project: Project) -> None:
    assert_type(store.session("@"), Session)
    page = store.sessions(project=HERE, order="cost")
    assert_type(page, Page[Session])
    assert_type(page.next_cursor, str | None)
    for listed in store.sessions(project=project, empty=True):
        assert_type(listed, Session)
    assert_type(store.messages(session, last=3, after="label"), list[Message])
    assert_type(
        store.messages(session, ids=["m"], roles="user", newest=True), list[Message]
    )
    assert_type(store.walk(session, page=10), Iterator[Message])
    assert_type(store.walk(session, at=3, kinds=["a"]), Iterator[Message])
    assert_type(store.find_message("m", source="a"), Message | None)
    assert_type(store.children(session), list[Session])
    assert_type(store.sessions(scope="a", reverse=True), Page[Session])
    assert_type(store.session("a").directory, str | None)
    assert_type(store.create_session(directory=None), SessionHandle)
    assert_type(store.message(session, 3), Message)
    context = store.context(session, at=LEAF, repair="strip")
    assert_type(context, Context)
    assert_type(context.models["default"], ModelName)
    assert_type(context.to_openai(), list[Any])
    assert_type(context.to_openai_chat(), list[Any])
    assert_type(context.to_anthropic(), dict[str, Any])
    assert_type(store.tree(session, messages=True), Tree)
    assert_type(store.compare(session, "other"), Comparison)
    assert_type(store.plan_delete(session), DeletePlan)
    assert_type(store.freed_bytes([session, "other"]), int)
    assert_type(store.search("words", project=Path("/"), role="user"), Page[Hit])
    assert_type(store.usage(by="day", project="/"), list[UsageRow])
    assert_type(store.usage_records({"day": "2026-01-01"}), list[UsageRecord])
    assert_type(store.prompts("a", project=ALL), Page[Prompt])
    assert_type(store.todos(session), list[Todo])
    assert_type(store.diffs(session), list[FileDiff])
    assert_type(store.labels(session), list[Label])
    assert_type(store.subagents(session), list[Session])
    assert_type(store.projects(), list[Project])
    assert_type(store.unfinished(), list[Unfinished])
    assert_type(store.half_imported(), list[str])
    assert_type(store.value("users", "k"), KeyValue | None)
    assert_type(store.values("users", where={"a": {"$gt": 1}}), Page[KeyValue])
    assert_type(store.values_of([(("users", "1"), "k")]), list[KeyValue | None])
    assert_type(store.snapshot(one_value), KeyValue | None)
    with store.effects() as fx:
        found = fx.snapshot(one_value)
        assert_type(found, SnapshotResult[KeyValue | None])
        assert_type(found.value, KeyValue | None)
    assert_type(store.namespaces(suffix="*", depth=1), Page[tuple[str, ...]])
    assert_type(store.blob("0" * 64, session=session), bytes)
    assert_type(store.export(session, branches=True), Export)
    assert_type(store.read_past_damage(print), PastDamage)
    with store.connection() as connection:
        assert_type(connection, Connection)


async def reading_asynchronously(store: AsyncStore, session: Session) -> None:
    assert_type(await store.session(session), Session)
    assert_type(await store.sessions(project=ALL), Page[Session])
    assert_type(await store.messages(session), list[Message])
    assert_type(store.walk(session, since="7d"), AsyncIterator[Message])
    assert_type(await store.find_message("m"), Message | None)
    assert_type(await store.children(session), list[Session])
    assert_type(await store.message(session, "label"), Message)
    assert_type(await store.context(session), Context)
    assert_type(await store.tree(session), Tree)
    assert_type(await store.compare(session, session), Comparison)
    assert_type(await store.plan_delete(session), DeletePlan)
    assert_type(await store.freed_bytes([]), int)
    assert_type(await store.search("words"), Page[Hit])
    assert_type(await store.usage(by=("model", "month")), list[UsageRow])
    assert_type(await store.usage_records({"model": "m"}), list[UsageRecord])
    assert_type(await store.prompts(), Page[Prompt])
    assert_type(await store.todos(session), list[Todo])
    assert_type(await store.diffs(session), list[FileDiff])
    assert_type(await store.labels(session), list[Label])
    assert_type(await store.subagents(session), list[Session])
    assert_type(await store.projects(), list[Project])
    assert_type(await store.unfinished(), list[Unfinished])
    assert_type(await store.half_imported(), list[str])
    assert_type(await store.value("users", "k"), KeyValue | None)
    assert_type(await store.values(order="updated", reverse=True), Page[KeyValue])
    assert_type(await store.values_of([("users", "k")]), list[KeyValue | None])
    assert_type(await store.snapshot(one_value), KeyValue | None)
    assert_type(await store.namespaces("users"), Page[tuple[str, ...]])
    assert_type(await store.blob("0" * 64), bytes)
    assert_type(await store.export(session), Export)
    async with store.connection() as connection:
        assert_type(connection, AsyncConnection)


def following(store: Store, session: SessionHandle) -> None:
    assert_type(store.newest_change(), str)
    changes = store.changes(session, since=BEGINNING, stop=threading.Event())
    assert_type(changes, Generator[Change])
    for result in store.ingest([], dry_run=True):
        assert_type(result, Imported | Problem)
    store.on_commit(lambda changes: changes[0].session_id)()


async def following_asynchronously(store: AsyncStore) -> None:
    assert_type(await store.newest_change(), str)
    assert_type(store.changes(poll=0.5), AsyncGenerator[Change])
    async for result in store.ingest([]):
        assert_type(result, Imported | Problem)
    store.on_commit(lambda changes: changes[0].session_id)()
