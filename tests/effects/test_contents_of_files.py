"""The content of a file is stored separately and once, under whatever name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from backends import Backend
from hypothesis import given
from hypothesis import strategies as st

from sessiondb import Store, assistant, codec, file, part, tool, user
from sessiondb.errors import ConflictError, CorruptionError
from sessiondb.formats import exporter, find
from sessiondb.maintenance import check
from sessiondb.model import Document, Problem

pytestmark = pytest.mark.slow

CONTENT = bytes(range(256)) * 8


def blobs(backend: Backend, store: Store) -> list[tuple[str, bytes]]:
    rows = backend.rows(store, "SELECT encoding, size, data FROM blob")
    return [
        (encoding, codec.content_of_blob(size, encoding, data))
        for encoding, size, data in rows
    ]


def test_one_content_under_two_names_is_stored_once(
    store: Store, backend: Backend
) -> None:
    session = store.create_session()
    first = file(content=CONTENT, filename="a.png", mime="image/png")
    second = file(content=CONTENT, filename="b.bin", mime="application/octet-stream")
    store.append(session, user("look", first))
    store.append(session, user("again", second))
    assert blobs(backend, store) == [("binary+zlib", CONTENT)]
    found = [message.parts[1].data for message in store.messages(session)]
    assert found == [first.data, second.data]
    assert check(store) == []


def test_a_content_goes_with_its_last_name(store: Store, backend: Backend) -> None:
    session = store.create_session()
    for name in ("a", "b"):
        store.append(session, user(file(content=CONTENT, filename=name)))
    fork = store.fork(session)
    store.truncate(session, after=None)
    assert blobs(backend, store) == [("binary+zlib", CONTENT)]
    assert [m.parts[0].data["filename"] for m in store.messages(fork)] == ["a", "b"]
    store.truncate(fork, after=1)
    assert store.messages(fork)[0].parts[0].data["content"] == CONTENT
    store.truncate(fork, after=None)
    assert blobs(backend, store) == []
    assert check(store) == []


def test_a_content_one_map_below_is_stored_by_itself_too(
    store: Store, backend: Backend
) -> None:
    session = store.create_session()
    for name in ("tool-output/a", "tool-output/b"):
        output = {"name": name, "content": CONTENT}
        store.append(
            session, assistant(part("note", truncated=True, output_file=output))
        )
    assert blobs(backend, store) == [("binary+zlib", CONTENT)]
    found = [m.parts[0].data["output_file"]["name"] for m in store.messages(session)]
    assert found == ["tool-output/a", "tool-output/b"]


def test_a_result_keeps_the_content_that_is_with_its_call(
    store: Store, backend: Backend
) -> None:
    session = store.create_session()
    call = tool("read", {}, call_id="c")
    call = replace(call, data={"output_file": {"name": "n", "content": CONTENT}})
    store.append(session, assistant(call))
    store.settle(session, "c", output="done", lines=3)
    (found,) = store.messages(session)[0].parts
    assert found.data == {"output_file": {"name": "n", "content": CONTENT}, "lines": 3}
    assert blobs(backend, store) == [("binary+zlib", CONTENT)]


def test_a_file_that_is_written_again_is_recognised(store: Store) -> None:
    session = store.create_session()
    draft = replace(user(file(content=CONTENT, filename="a")), id="mine")
    store.append(session, draft)
    store.append(session, draft)
    assert len(store.messages(session)) == 1
    for other in (
        file(content=CONTENT, filename="b"),
        file(content=b"x" * 2000, filename="a"),
    ):
        with pytest.raises(ConflictError):
            store.append(session, replace(user(other), id="mine"))


def test_a_log_takes_the_file_along(
    store: Store, backend: Backend, tmp_path: Path
) -> None:
    session = store.create_session()
    store.append(session, user(file(content=CONTENT, filename="a")))
    for document in exporter("jsonl").write([store.export(session)], detail="full"):
        assert isinstance(document, Document)
        (tmp_path / "log.jsonl").write_text("".join(document.chunks), encoding="utf-8")
    with Store.open(backend.fresh(), durability="normal") as other:
        for place in find(tmp_path / "log.jsonl"):
            assert not [r for r in other.ingest(place.read()) if isinstance(r, Problem)]
        assert other.messages(session.id)[0].parts[0].data["content"] == CONTENT
        assert blobs(backend, other) == [("binary+zlib", CONTENT)]


small = st.none() | st.text(max_size=3) | st.just(b"x") | st.just(CONTENT)
values = st.recursive(
    small,
    lambda inner: st.dictionaries(st.sampled_from(["content", "a", "b"]), inner),
    max_leaves=6,
)


@given(data=st.dictionaries(st.sampled_from(["content", "a", "b", "text"]), values))
def test_split_content_is_joined_to_the_same_data(data: dict[str, Any]) -> None:
    rest, content = codec.split_content(data)
    if content is None:
        assert rest is data
    else:
        assert len(content) >= codec.BLOB_BYTES
        assert codec.unpack_part(codec.pack_data(rest), content) == data


def test_a_large_rest_and_a_large_content_are_one_blob(
    store: Store, backend: Backend
) -> None:
    session = store.create_session()
    draft = file(content=CONTENT, filename="x" * 5000)
    store.append(session, user(draft))
    assert [encoding for encoding, _ in blobs(backend, store)] == ["msgpack+zlib"]
    assert store.messages(session)[0].parts[0].data == draft.data


def test_a_damaged_row_without_a_place_for_its_content_says_so(
    store: Store, backend: Backend
) -> None:
    session = store.create_session()
    store.append(session, user(file(content=CONTENT, filename="a")))
    backend.run(store, "UPDATE part SET data = ?", codec.pack({"filename": "a"}))
    with pytest.raises(CorruptionError, match="no place for its content"):
        store.messages(session)
