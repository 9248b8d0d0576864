"""Names that sessiondb reserves for its own values cannot hold anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgpack
import pytest
from backends import Backend
from facades import Contract

from sessiondb import (
    InvalidInputError,
    MessageDraft,
    PartDraft,
    SessionHandle,
    Store,
    assistant,
    part,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.formats import exporter, find
from sessiondb.model import Document, SourceMessage, SourceSession

ODD = "a\0b"
KEYS: dict[str, Any] = {
    "text_exact": "OTHER",
    "~text_exact": 7,
    "~~text_exact": [1],
    "mine": 1,
}


@pytest.mark.parametrize("value", ["OTHER", 7, None])
async def test_the_key_of_the_exact_text_is_refused_when_queued(
    contract: Contract, session: SessionHandle, value: Any
) -> None:
    unit = contract.store.unit()
    reserved = {"text_exact": value}
    with pytest.raises(InvalidInputError, match="text_exact"):
        unit.append(session, user(text("shown", **reserved)))
    with pytest.raises(InvalidInputError, match="text_exact"):
        unit.append(session, assistant(tool("t", {}, **reserved)))
    with pytest.raises(InvalidInputError, match="text_exact"):
        unit.add_part(session, "m", part("odd", **reserved))
    with pytest.raises(InvalidInputError, match="text_exact"):
        unit.settle(session, "c", output="x", **reserved)
    assert unit.effects == []


async def test_a_message_may_have_a_key_of_that_name_for_it_has_no_text(
    contract: Contract, session: SessionHandle
) -> None:
    handle = await contract.store.append(session, user("shown", text_exact="mine"))
    found = await contract.store.message(session, handle)
    assert (found.text, found.data) == ("shown", {"text_exact": "mine"})


def imported_session(store: Store, *messages: MessageDraft, digest: str = "1") -> str:
    records = [SourceMessage(message) for message in messages]
    (result,) = store.ingest(
        [SourceSession("other", "s", "/store", digest, records, directory="/")]
    )
    return result.id  # type: ignore[union-attr]


FOREIGN = (
    MessageDraft("user", (PartDraft("text", "shown", data=KEYS),), id="m1"),
    MessageDraft("user", (PartDraft("text", ODD, data=KEYS),), id="m2"),
    MessageDraft("assistant", (PartDraft("tool", None, "t", "c", data=KEYS),), id="m3"),
    MessageDraft(
        "tool", (PartDraft("tool-result", ODD, call_id="c", data=KEYS),), id="m4"
    ),
)


def test_a_foreign_record_with_such_a_key_is_kept_exactly(
    store: Store, backend: Backend, tmp_path: Path
) -> None:
    session = imported_session(store, *FOREIGN)
    parts = [message.parts[0] for message in store.messages(session)]
    assert [item.text for item in parts] == ["shown", ODD, ODD, ODD]
    assert [dict(item.data) for item in parts] == [KEYS] * 4
    revision = store.session(session).revision
    imported_session(store, *FOREIGN, digest="2")
    assert store.session(session).revision == revision, "the same again changes nothing"

    jsonl = exporter("jsonl")
    (document, *_) = [
        item
        for item in jsonl.write([store.export(session, **jsonl.read)])
        if isinstance(item, Document)
    ]
    (tmp_path / "log.jsonl").write_text("".join(document.chunks))
    with Store.open(backend.fresh(), durability="normal") as other:
        for found in find(tmp_path / "log.jsonl"):
            list(other.ingest(found.read()))
        again = [message.parts[0] for message in other.messages(session)]
        assert [(item.text, dict(item.data)) for item in again] == [
            (item.text, dict(item.data)) for item in parts
        ]


def test_the_database_holds_the_exact_text_under_its_name_and_others_beside_it(
    store: Store,
    backend: Backend,
) -> None:
    session = imported_session(store, *FOREIGN[:2])
    sql = "SELECT data FROM part WHERE session_id = ? ORDER BY seq"
    rows = backend.rows(store, sql, session)
    plain, odd = (msgpack.unpackb(data) for (data,) in rows)
    kept = {"~text_exact": "OTHER", "~~text_exact": 7, "~~~text_exact": [1], "mine": 1}
    assert plain == kept
    assert odd == {**kept, "text_exact": ODD}


def test_a_fork_and_a_settled_call_keep_what_a_foreign_part_has(store: Store) -> None:
    session = imported_session(store, *FOREIGN[:3])
    store.settle(session, "c", output=ODD, more=1)
    fork = store.fork(session)
    for found in (session, fork.id):
        item = store.messages(found)[2].parts[0]
        assert (item.text, dict(item.data)) == (ODD, {**KEYS, "more": 1})


# -- the secret of a share ---------------------------------------------------------------


async def test_the_secret_of_a_share_is_set_by_set_share_alone(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    for given in ("mine", {"secret": "x"}, None):
        with pytest.raises(InvalidInputError, match="share"):
            await store.set_metadata(session, {"share": given})
        with pytest.raises(InvalidInputError, match="share"):
            await store.create_session(metadata={"share": given})
    assert (await store.session(session)).metadata == {}

    await store.set_metadata(session, {"a": 1})
    await store.set_share(session, "https://example.org/s/1", secret="s")
    await store.set_metadata(session, {"b": 2})
    found = await store.session(session)
    assert found.metadata == {"b": 2, "share": {"secret": "s"}}
    await store.set_metadata(session, {**found.metadata, "c": 3})
    assert (await store.session(session)).metadata == {**found.metadata, "c": 3}
    with pytest.raises(InvalidInputError, match="share"):
        await store.set_metadata(session, {"share": {"secret": "another"}})

    fork = await store.session(await store.fork(session))
    assert (fork.metadata, fork.share_url) == ({"b": 2, "c": 3}, None)
    await store.set_share(session, None)
    found = await store.session(session)
    assert (found.metadata, found.share_url) == ({"b": 2, "c": 3}, None)
    contract.check()


def test_the_helpers_of_drafts_take_any_other_key(store: Store) -> None:
    session = store.create_session()
    drafts = [text("x", text_exactly=1), tool_result("c", "y", **{"~": 1, "exact": 2})]
    store.append(session, MessageDraft("user", tuple(drafts)))
    found = store.messages(session)[0].parts
    assert [dict(item.data) for item in found] == [
        {"text_exactly": 1},
        {"~": 1, "exact": 2},
    ]
