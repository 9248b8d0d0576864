"""Large values that no shell reads are compressed; whoever reads them gets the content."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from backends import Backend
from foreign_sessions import said, session_of, take_in
from hypothesis import given
from hypothesis import strategies as st

from sessiondb import (
    ALL,
    CorruptionError,
    FileDiff,
    Store,
    assistant,
    codec,
    file,
    tool,
    user,
)
from sessiondb.maintenance import check, repair

#: A content that is UTF-8, so that it may be a text as well.
LINES = "a line of a file\n" * 200
DRAFTS = {
    "text": lambda: user(LINES),
    "output": lambda: assistant(tool("read", {"path": "a"}, output=LINES)),
    "file": lambda: user(file(content=LINES.encode(), filename="a")),
}


# -- bytes -----------------------------------------------------------------------

contents = st.builds(
    lambda unit, times, end: unit * times + end,
    st.binary(max_size=40),
    st.sampled_from([0, 1, 30, 1_000, 5_000]),
    st.binary(max_size=2_000),
)


@given(content=contents, encoding=st.sampled_from(["utf-8", "msgpack", "binary"]))
def test_a_content_is_read_as_it_was_stored(content: bytes, encoding: str) -> None:
    stored_as, data = codec.compress_content(content, encoding)
    assert codec.content_of_blob(len(content), stored_as, data) == content
    measured = codec.measure_blob(stored_as, data)
    assert measured == (codec.digest(content), len(content))
    assert len(data) <= len(content)
    if encoding == "utf-8":
        assert (stored_as, data) == (encoding, content)


@given(content=contents, data=st.data())
def test_damaged_bytes_give_the_content_or_another_hash(
    content: bytes, data: st.DataObject
) -> None:
    compressed = bytearray(zlib.compress(content))
    place = data.draw(st.integers(0, len(compressed) - 1))
    if data.draw(st.booleans()):
        del compressed[place:]
    else:
        compressed[place] ^= data.draw(st.integers(1, 255))
    read = codec.content_of_blob(len(content), "binary+zlib", bytes(compressed))
    assert len(read) <= len(content)
    assert read == content or codec.digest(read) != codec.digest(content)


def test_a_small_blob_does_not_become_gigabytes() -> None:
    bomb = zlib.compress(bytes(64 << 20), 1)
    tracemalloc.start()
    try:
        assert len(codec.content_of_blob(1_000, "msgpack+zlib", bomb)) <= 1_000
        assert codec.measure_blob("msgpack+zlib", bomb)[1] == 64 << 20
        assert tracemalloc.get_traced_memory()[1] < 48 << 20
    finally:
        tracemalloc.stop()


def test_what_hardly_becomes_smaller_is_stored_as_it_is() -> None:
    digests = [codec.digest(b"%d" % number) for number in range(4_000)]
    hashes = b"".join(map(bytes.fromhex, digests))
    assert codec.compress_content(hashes, "binary") == ("binary", hashes)
    assert codec.compress_content(hashes + bytes(10_000), "binary")[0] == "binary"
    assert (
        codec.compress_content("".join(digests).encode(), "binary")[0] == "binary+zlib"
    )


# -- rows ------------------------------------------------------------------------


def test_records_are_compressed_and_texts_are_not(
    store: Store, backend: Backend
) -> None:
    session = store.create_session()
    output = "a line of output\n" * 200
    store.append(session, assistant(tool("ls", {"of": LINES}, output=output)))
    store.append(session, user(LINES, record=LINES))
    store.set_diffs(session, [FileDiff("a", before=b"old " * 900)])
    rows = backend.rows(store, "SELECT encoding, size, length(data) FROM blob")
    is_small = {encoding: stored < size // 5 for encoding, size, stored in rows}
    assert is_small == {"utf-8": False, "msgpack+zlib": True, "binary+zlib": True}
    assert len(rows) == 5
    assert store.messages(session)[1].data == {"record": LINES}
    assert store.diffs(session)[0].before == b"old " * 900
    assert check(store) == []


@pytest.mark.parametrize("large_from", [8 << 20, 1024])
@pytest.mark.parametrize("second", ["text", "output"])
def test_a_text_that_is_the_content_of_a_file_too_is_readable_for_both(
    store: Store,
    backend: Backend,
    monkeypatch: pytest.MonkeyPatch,
    second: str,
    large_from: int,
) -> None:
    # From this size on SQLite writes a blob in steps.
    monkeypatch.setattr("sessiondb.engine.sqlite.blobs.LARGE_BLOB", large_from)
    session = store.create_session()
    store.append(session, DRAFTS["file"]())
    assert backend.rows(store, "SELECT encoding FROM blob") == [("binary+zlib",)]
    store.append(session, DRAFTS[second]())
    store.append(session, DRAFTS["file"]())
    (row,) = backend.rows(store, "SELECT encoding, size, data FROM blob")
    assert row == ("utf-8", len(LINES), LINES.encode())
    content, shown, again = store.messages(session)
    assert content.parts[0].data["content"] == LINES.encode()
    assert again.parts[0].data == content.parts[0].data
    assert shown.parts[0].text == LINES
    assert store.search("line of a file").items
    assert check(store) == []


def test_the_record_of_a_session_is_compressed_too(
    store: Store, backend: Backend
) -> None:
    record = {"record": LINES}
    take_in(store, session_of("a", said("hello"), data=record, digest="1"))
    assert backend.rows(store, "SELECT encoding FROM blob") == [("msgpack+zlib",)]
    (session,) = store.sessions(project=ALL)
    assert session.data == record
    more = {**record, "more": 1}
    take_in(store, session_of("a", said("hello"), data=more, digest="2"))
    assert store.session(session.id).data == more
    backend.run(store, "UPDATE blob SET data = ?", b"x")
    with pytest.raises(CorruptionError, match="not the one that was"):
        store.session(session.id)
    with pytest.warns(UserWarning, match="not the one that was"):
        assert [session.data for session in store.sessions(project=ALL)] == [{}]


def test_rows_that_an_older_release_stored_plain_stay_valid(
    store: Store, backend: Backend
) -> None:
    session = store.create_session()
    store.append(session, user("hello", record=LINES))
    ((size, encoding, data),) = backend.rows(
        store, "SELECT size, encoding, data FROM blob"
    )
    plain = (
        encoding.removesuffix("+zlib"),
        codec.content_of_blob(size, encoding, data),
    )
    backend.run(store, "UPDATE blob SET encoding = ?, data = ?", *plain)
    assert backend.rows(store, "SELECT DISTINCT encoding FROM blob") == [("msgpack",)]
    store.append(session, user("again", record=LINES))
    assert [m.data for m in store.messages(session)] == [{"record": LINES}] * 2
    assert check(store) == []


_DAMAGE: dict[str, Callable[[bytes], tuple[str, bytes]]] = {
    "cut short": lambda data: ("msgpack+zlib", data[: len(data) // 2]),
    "no zlib": lambda data: ("msgpack+zlib", b"x"),
    "not compressed": lambda data: ("msgpack", data),
}


@pytest.mark.parametrize("damage", _DAMAGE)
def test_damaged_compressed_bytes_are_reported_as_altered(
    store: Store, backend: Backend, damage: str
) -> None:
    session = store.create_session()
    store.append(session, user("hello", record=LINES))
    ((data,),) = backend.rows(store, "SELECT data FROM blob")
    backend.run(store, "UPDATE blob SET encoding = ?, data = ?", *_DAMAGE[damage](data))
    reads: list[Callable[[], Any]] = [
        lambda: store.messages(session),
        lambda: store.blob(backend.rows(store, "SELECT hash FROM blob")[0][0]),
    ]
    for read in reads:
        with pytest.raises(CorruptionError, match="not the one that was"):
            read()
    assert any("were changed" in finding.what for finding in check(store))


@pytest.mark.needs("is_file", "a repair is of a file")
def test_a_wrong_size_of_compressed_bytes_is_measured_again(
    store: Store, backend: Backend
) -> None:
    session = store.create_session()
    store.append(session, user("hello", record=LINES))
    backend.run(store, "UPDATE blob SET size = 7")
    with pytest.raises(CorruptionError):
        store.messages(session)
    assert [finding.what for finding in check(store)] == ["blobs whose size is wrong"]
    assert repair(store).left == []
    assert store.messages(session)[0].data == {"record": LINES}
