"""Large values whose rows of ``blob`` were removed in a shell: named, never an empty text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backends import Backend
from click.testing import CliRunner, Result
from facades import Contract

from sessiondb import (
    CorruptionError,
    FileDiff,
    SessionHandle,
    Store,
    assistant,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.cli.app import app

LARGE = 2_000


#: The blob of the message at a seq.
OF_MESSAGE = (
    " WHERE hash = (SELECT text_blob FROM part WHERE session_id = ? AND seq = ?)"
)


READS: dict[str, Callable[[Any, SessionHandle], Any]] = {
    "messages": lambda store, session: store.messages(session),
    "last": lambda store, session: store.messages(session, last=1),
    "context": lambda store, session: store.context(session),
    "compare": lambda store, session: store.compare(session, session),
    "fork": lambda store, session: store.fork(session),
}


@pytest.mark.slow
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    "part",
    [
        text("x" * LARGE),
        tool("t", {"a": "x" * LARGE}, output="ok"),
        tool("t", {}, output="x" * LARGE),
        text("x", more="x" * LARGE),
    ],
    ids=["text", "input", "output", "data"],
)
async def test_a_value_that_is_gone_is_named_by_session_message_and_part(
    contract: Contract, session: SessionHandle, read: str, part: Any
) -> None:
    await contract.store.append(session, user("small"))
    await contract.store.append(session, assistant("small", part))
    contract.backend.tear(contract.place, "DELETE FROM blob")
    with pytest.raises(CorruptionError) as caught:
        await READS[read](contract.store, session)
    found = str(caught.value)
    assert f"part 1 of message 2 of session {session.id} is damaged" in found
    assert "`sessiondb check`" in (caught.value.hint or "")


async def test_the_data_of_a_message_and_a_diff_are_named_too(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append(session, user("small", more="m" * LARGE))
    other = await contract.store.create_session()
    await contract.store.set_diffs(other, [FileDiff("a.py", before=b"d" * LARGE)])
    contract.backend.tear(contract.place, "DELETE FROM blob")
    with pytest.raises(CorruptionError, match=f"message 1 of session {session.id}"):
        await contract.store.messages(session)
    with pytest.raises(CorruptionError, match=f"message 1 of session {session.id}"):
        await contract.store.fork(session)
    for read in (contract.store.diffs, contract.store.export, contract.store.fork):
        with pytest.raises(CorruptionError, match=f"'a.py' of session {other.id}"):
            await read(other)


async def test_the_result_of_a_call_in_a_record_of_its_own_is_named(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    call = await store.append(
        session, assistant(tool("t", {}, call_id="c", output="1"))
    )
    await store.append(session, user(tool_result("c", "x" * LARGE)))
    contract.backend.tear(contract.place, "DELETE FROM blob")
    with pytest.raises(CorruptionError, match=f"message 2 of session {session.id}"):
        await store.message(session, call)


async def test_a_walk_yields_what_comes_before(
    contract: Contract, session: SessionHandle
) -> None:
    for letter in "abc":
        await contract.store.append(session, user(letter * LARGE))
    contract.backend.tear(
        contract.place, "DELETE FROM blob" + OF_MESSAGE, session.id, 3
    )
    found = contract.store.inner.walk(session, page=1)
    with pytest.raises(CorruptionError, match="message 3"):
        if contract.kind == "sync":
            list(found)
        else:
            [message async for message in found]


@pytest.fixture
def torn(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[SessionHandle, SessionHandle]:
    """A session of which a value is missing, and an intact one."""
    place = backend.fresh()
    with Store.open(place) as store:
        intact = store.create_session(title="Whole", directory=str(tmp_path))
        store.append(intact, user("w" * LARGE))
        session = store.create_session(title="Torn", directory=str(tmp_path))
        store.append(session, user("before " + "t" * LARGE))
        store.append(session, assistant("after"))
    backend.tear(place, "DELETE FROM blob" + OF_MESSAGE, session.id, 1)
    monkeypatch.setenv("SESSIONDB_PATH", str(place))
    monkeypatch.chdir(tmp_path)
    return session, intact


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


@pytest.mark.needs("is_file", "no read continues past the damage of a server")
def test_show_prints_the_rest_and_exits_with_4(
    torn: tuple[SessionHandle, SessionHandle],
) -> None:
    session, intact = torn
    for args in (["show", session.id], ["show", session.id, "--json"]):
        ran = run(*args)
        assert ran.exit_code == 4
        assert "after" in ran.stdout
        named = f"part 0 of message 1 of session {session.id}"
        assert ran.stderr.count(named) == 1
    assert run("show", intact.id).exit_code == 0


@pytest.mark.parametrize("form", ["jsonl", "markdown", "opencode"])
def test_export_leaves_the_session_out_and_exits_with_4(
    torn: tuple[SessionHandle, SessionHandle], form: str
) -> None:
    session, intact = torn
    ran = run("export", "-a", "--to", form, "-o", "out", "--force")
    assert ran.exit_code == 4
    assert f"part 0 of message 1 of session {session.id} is damaged" in ran.stderr
    files = [Path("out"), *Path("out").rglob("*")]
    written = "".join(file.read_text() for file in files if file.is_file())
    assert "w" * LARGE in written
    assert "after" not in written
    assert run("export", intact.id, "--to", form, "-o", "one", "--force").exit_code == 0


def test_fork_is_refused_with_the_same_error(
    torn: tuple[SessionHandle, SessionHandle],
) -> None:
    session, intact = torn
    ran = run("fork", session.id, "--json")
    assert ran.exit_code == 4
    error = json.loads(ran.stderr.splitlines()[-1])["error"]
    assert error["type"] == "CorruptionError"
    assert f"part 0 of message 1 of session {session.id}" in error["message"]
    assert run("fork", intact.id).exit_code == 0
