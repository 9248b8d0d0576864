"""Streaming: an answer is written while it arrives, in few writes, and complete at its end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from facades import Contract, eventually

from sessiondb import Change, InvalidInputError, SessionHandle, tool_result, user
from sessiondb.streaming.stream import FLUSH_BYTES, FLUSH_SECONDS


async def parts(contract: Contract, session: SessionHandle) -> list[tuple[Any, ...]]:
    (message,) = await contract.store.messages(session, last=1)
    return [(p.type, p.text, p.status) for p in message.parts]


async def test_a_stream_opens_its_message_at_once(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.stream(
        session, model="m", agent="build", turn_id="t1"
    ) as out:
        (message,) = await contract.store.messages(session)
        assert (message.id, message.time_completed) == (out.message.id, None)
        assert (message.role, message.model_id, message.agent) == (
            "assistant",
            "m",
            "build",
        )
        assert (out.message.seq, message.turn_id) == (1, "t1")
    (message,) = await contract.store.messages(session)
    assert (message.finish, message.parts) == ("stop", ())
    assert message.time_completed is not None


async def test_several_parts_grow_at_once_in_the_order_they_began(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.stream(session) as out:
        thought, said = out.reasoning(), out.text()
        first, second = (
            out.tool("sh", call_id="c1"),
            out.tool("web", call_id="c2", input={"u": 1}),
        )
        for n in range(5):
            said.add(f"s{n} ")
            thought.add(f"r{n} ")
            first.add('{"a":' if n == 0 else "1")
        first.add("}")
        first.start()
        await out.flush()
        assert await parts(contract, session) == [
            ("reasoning", "r0 r1 r2 r3 r4 ", None),
            ("text", "s0 s1 s2 s3 s4 ", None),
            ("tool", None, "running"),
            ("tool", None, "pending"),
        ]
        second.settle(error="no network", title="Look up", status_code=503)
        first.settle(output="made")
        out.text().add("Done.")
        out.finish("tool-calls", cost=0.25, tokens={"input": 5, "output": 7})
    (message,) = await contract.store.messages(session)
    assert (message.finish, message.cost, message.tokens_output) == (
        "tool-calls",
        0.25,
        7,
    )
    _, _, a, b, last = message.parts
    assert (a.input, a.status, a.text) == ({"a": 1111}, "completed", "made")
    assert (b.input, b.status, b.outcome, b.text) == (
        {"u": 1},
        "error",
        "failed",
        "no network",
    )
    assert (b.title, b.data, last.text) == ("Look up", {"status_code": 503}, "Done.")
    assert (await contract.store.session(session)).cost == 0.25
    contract.check()


@pytest.mark.slow
async def test_deltas_are_written_after_a_quarter_of_a_second_in_one_write(
    contract: Contract, session: SessionHandle
) -> None:
    assert (FLUSH_SECONDS, FLUSH_BYTES) == (0.25, 4096)
    notified: list[list[Change]] = []
    async with contract.store.stream(session) as out:
        await asyncio.sleep(0.02)
        contract.store.on_commit(notified.append)
        said = out.text()
        for _ in range(100):
            said.add("a little ")
        await asyncio.sleep(0.1)
        assert (notified, await parts(contract, session)) == ([], [])
        await eventually(lambda: notified)
        assert await parts(contract, session) == [("text", "a little " * 100, None)]
        assert len(notified) == 1


async def test_four_kilobytes_do_not_wait(
    contract: Contract, session: SessionHandle
) -> None:
    notified: list[list[Change]] = []
    async with contract.store.stream(session) as out:
        await asyncio.sleep(0.02)
        contract.store.on_commit(notified.append)
        said = out.text()
        begun = asyncio.get_running_loop().time()
        for n in range(1, 9):
            said.add("x" * 4096)
            await eventually(lambda n=n: len(notified) == n)
        assert asyncio.get_running_loop().time() - begun < 8 * FLUSH_SECONDS
        await out.flush()
        assert len(notified) == 8


async def test_a_flush_of_nothing_writes_nothing(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.stream(session) as out:
        out.text().add("x")
        await out.flush()
        revision = (await contract.store.session(session)).revision
        for _ in range(3):
            await out.flush()
        assert (await contract.store.session(session)).revision == revision


async def test_every_flush_that_waits_for_the_same_write_is_woken(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.stream(session) as out:
        said = out.text()
        for n in range(20):
            said.add(f"{n} ")
            if contract.kind == "sync":
                flushes = [asyncio.to_thread(out.inner.flush) for _ in range(3)]
            else:
                flushes = [out.flush() for _ in range(3)]
            await asyncio.wait_for(asyncio.gather(*flushes), 5)
            assert (await parts(contract, session))[0][1].endswith(f" {n} "[n == 0 :])


async def test_search_sees_the_text_when_it_is_complete(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.stream(session) as out:
        said, call = out.text(), out.tool("sh")
        said.add("a marmalade ")
        await out.flush()
        said.add("sandwich")
        call.add('"peanut"')
        await out.flush()
        assert len(await contract.store.search("marmalade")) == 0
        call.settle(output="butter")
        await out.flush()
        assert len(await contract.store.search("butter")) == 1
    for word in ("marmalade", "sandwich", "peanut", "butter"):
        assert len(await contract.store.search(word)) == 1
    contract.check()


ODD = ["a\0", "\0b", "\ud83d", "\ude00", "x\udfff", "plain", "\u2400", "é\0" * 900]


async def test_deltas_with_nul_and_half_characters_are_exact_at_every_flush(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.stream(session) as out:
        said, plain = out.text(), out.text()
        for n, delta in enumerate(ODD):
            said.add(delta)
            plain.add("x")
            await out.flush()
            expected = [
                ("text", "".join(ODD[: n + 1]), None),
                ("text", "x" * (n + 1), None),
            ]
            assert await parts(contract, session) == expected
    assert (await parts(contract, session))[0][1] == "".join(ODD)
    written = contract.rows("SELECT text FROM part WHERE text IS NOT NULL")
    assert all("\0" not in said for (said,) in written)
    contract.check()


async def test_a_megabyte_ends_as_one_blob(
    contract: Contract, session: SessionHandle
) -> None:
    line = "a line of some text that is streamed, é included\n" * 400
    async with contract.store.stream(session) as out:
        said = out.text()
        for n in range(50):
            said.add(line)
            if n % 10 == 0:
                await out.flush()
    assert await parts(contract, session) == [("text", line * 50, None)]
    size = len((line * 50).encode())
    assert contract.rows(
        "SELECT text, size FROM part JOIN blob ON hash = text_blob"
    ) == [(None, size)]
    contract.check()


async def test_arguments_are_written_once_they_are_complete(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.stream(session) as out:
        call = out.tool("sh", call_id="c")
        call.add('{"cmd": ')
        await out.flush()
        assert contract.rows("SELECT status, input FROM part") == [("pending", None)]
        call.add('"ls", "big": 123456789012345678901234567890}')
        await out.flush()
        stored = '{"cmd":"ls","big":123456789012345678901234567890}'
        assert contract.rows("SELECT status, input FROM part") == [("pending", stored)]
        call.start()
        for late in (call.add, call.start):
            with pytest.raises(InvalidInputError):
                late("x") if late == call.add else late()
        call.settle(output="x")
        with pytest.raises(InvalidInputError):
            call.settle(output="y")
        with pytest.raises(InvalidInputError):
            call.start()
    assert contract.rows("SELECT status, input FROM part") == [("completed", stored)]


@pytest.mark.parametrize(
    "given", ['{"cut": "of', "not JSON", "[" * 2_000, '{"n": NaN}', "\ud800"]
)
async def test_arguments_that_are_not_json_are_kept_as_text(
    contract: Contract, session: SessionHandle, given: str
) -> None:
    async with contract.store.stream(session) as out:
        call = out.tool("sh", call_id="c")
        call.add(given)
        await out.flush()
    (message,) = await contract.store.messages(session)
    assert (message.parts[0].input, message.parts[0].status) == (given, "pending")


async def test_a_call_may_be_settled_after_its_stream_ended(
    contract: Contract, session: SessionHandle
) -> None:
    """An agent runs its tools when the answer is complete."""
    async with contract.store.stream(session) as out:
        one, two = out.tool("sh", call_id="c1"), out.tool("sh", call_id="c2")
        one.add('{"n": 1}')
        out.finish("tool-calls")
    await contract.store.start(session, one.handle)
    await contract.store.settle(session, one.handle, output="first")
    await contract.store.append(session, user(tool_result("c2", "second")))
    first, _ = await contract.store.messages(session)
    assert [(p.status, p.text) for p in first.parts] == [
        ("completed", "first"),
        ("completed", "second"),
    ]
    assert first.parts[0].input == {"n": 1}
    assert two.id == first.parts[1].id


async def test_a_call_may_be_settled_by_another_unit_while_it_streams(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with contract.store.stream(session) as out:
            call = out.tool("sh", call_id="c1")
            call.add("{}")
            await out.flush()
            await contract.store.settle(session, call.handle, output="by another unit")
            1 / 0  # noqa: B018
    assert await parts(contract, session) == [("tool", "by another unit", "completed")]


async def test_bad_arguments_of_a_stream_are_refused_at_the_call(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.stream(session) as out:
        for bad in ({"finish": "done"}, {"cost": float("nan")}, {"tokens": {"x": 1}}):
            with pytest.raises(InvalidInputError):
                out.finish(**bad)
        with pytest.raises(InvalidInputError):
            out.finish("error", error={1, 2})
        with pytest.raises(InvalidInputError):
            out.text().add(b"bytes")
        with pytest.raises(InvalidInputError):
            out.tool("")
        out.finish("length")
    assert (await contract.store.messages(session))[0].finish == "length"


async def test_a_finished_stream_takes_no_more(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.stream(session) as out:
        said = out.text()
    for late in (lambda: said.add("x"), out.text, lambda: out.tool("sh"), out.finish):
        with pytest.raises(InvalidInputError):
            late()


async def test_two_streams_of_two_sessions_run_at_once(contract: Contract) -> None:
    async def answer(name: str) -> str:
        s = await contract.store.create_session(id=name, directory="/tmp")
        async with contract.store.stream(s) as out:
            said = out.text()
            for n in range(10):
                said.add(f"{name}{n} ")
                await out.flush()
        return (await contract.store.messages(s))[0].text  # type: ignore[no-any-return]

    found = await asyncio.gather(*(answer(name) for name in "abcd"))
    assert found == ["".join(f"{name}{n} " for n in range(10)) for name in "abcd"]
