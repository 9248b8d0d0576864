"""Strands: its files, of a session manager and of a storage, and both adapters.

Its files are not flushed to the disk, so a power cut may lose any of them. What a write
costs with ours is therefore measured twice: with full durability, and (``normal``) as a
crash of the process alone cannot undo it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from strands.session.file_session_manager import FileSessionManager
from strands.storage import LocalFileStorage
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from benchmarks.adapters.timing import Timings
from sessiondb.adapters.strands import SessionDBRepository, SessionDBStorage

TURNS, TAIL, SESSIONS, SNAPSHOTS = 400, 50, 200, 60
WRITES = (
    "create_message", "append a turn (4)", "update_agent", "update_message",
    "create session, agent", "delete_session", "storage write",
)  # fmt: skip
READS = (
    "list_messages (1,600)", "list_messages (last 50)", "read_message", "read_agent",
    "storage read", "storage list", "storage search",
)  # fmt: skip
OPERATIONS = (*WRITES, *READS, *[f"{name}, normal" for name in WRITES])


def turn_of(number: int) -> list[Any]:
    """Return the messages of a turn with one call."""
    call = {"toolUseId": f"call-{number}", "name": "bash", "input": {"command": "ls"}}
    usage = {"inputTokens": 900, "outputTokens": 40, "totalTokens": 940}
    result = {
        "toolUseId": f"call-{number}",
        "status": "success",
        "content": [{"text": "src/parser.py tests/test_parser.py " * 8}],
    }
    return [
        {"role": "user", "content": [{"text": f"Why is step {number} slow? " * 4}]},
        {
            "role": "assistant",
            "content": [{"text": "I look. " * 6}, {"toolUse": call}],
            "metadata": {"usage": usage},
        },
        {"role": "user", "content": [{"toolResult": result}]},
        {
            "role": "assistant",
            "content": [{"text": "The loop reads each file twice. " * 10}],
            "metadata": {"usage": usage},
        },
    ]


def new_agent() -> SessionAgent:
    """Return an agent as Strands stores it."""
    return SessionAgent(
        "default",
        {"plan": ["read", "mend", "test"], "count": 3},
        {"__name__": "SlidingWindowConversationManager", "removed_message_count": 0},
        {"interrupt_state": {"interrupts": {}, "context": {}, "activated": False}},
    )


def repository_work(repository: Any, timings: Timings, mode: str) -> None:
    """Perform the work of a repository."""
    for number in range(SESSIONS):
        with timings.of(f"create session, agent{mode}"):
            repository.create_session(Session(f"s{number}", SessionType.AGENT))
            repository.create_agent(f"s{number}", new_agent())

    session, index = ("s0", "default"), 0
    for number in range(TURNS):
        with timings.of(f"append a turn (4){mode}"):
            for message in turn_of(number):
                repository.create_message(*session, SessionMessage(message, index))
                index += 1
    for number in range(TURNS):
        (message, *_) = turn_of(number)
        with timings.of(f"create_message{mode}"):
            repository.create_message("s1", "default", SessionMessage(message, number))

    agent = new_agent()
    for number in range(200):
        agent.state["count"] = number
        with timings.of(f"update_agent{mode}"):
            repository.update_agent("s0", agent)
    for number in range(0, 400, 4):
        redacted: Any = {"role": "user", "content": [{"text": "[redacted]"}]}
        with timings.of(f"update_message{mode}"):
            repository.update_message(
                *session, SessionMessage(redacted, number, redacted)
            )
    if not mode:
        repository_reads(repository, timings)
    for number in range(2, SESSIONS):
        with timings.of(f"delete_session{mode}"):
            repository.delete_session(f"s{number}")


def repository_reads(repository: Any, timings: Timings) -> None:
    """Perform the reads of a repository."""
    session = ("s0", "default")
    for _ in range(7):
        with timings.of("list_messages (1,600)"):
            assert len(repository.list_messages(*session)) == 4 * TURNS
    for _ in range(30):
        with timings.of("list_messages (last 50)"):
            assert (
                len(repository.list_messages(*session, offset=4 * TURNS - TAIL)) == TAIL
            )
    for number in range(200):
        with timings.of("read_message"):
            repository.read_message(*session, number)
        with timings.of("read_agent"):
            repository.read_agent(*session)


async def storage_work(storage: Any, timings: Timings, mode: str) -> None:
    """Perform the work of a storage."""
    for number in range(SNAPSHOTS):
        snapshot = (
            f'{{"number": {number}, "words": "{"look at it " * 4_000}"}}'.encode()
        )
        key = f"session/s{number % 4}/snapshots/{number:04}.json"
        with timings.of(f"storage write{mode}"):
            await storage.write(key, snapshot)
    if mode:
        return
    for number in range(SNAPSHOTS):
        key = f"session/s{number % 4}/snapshots/{number:04}.json"
        with timings.of("storage read"):
            await storage.read(key)
        with timings.of("storage list"):
            assert len(await storage.list("session/s0/")) == SNAPSHOTS // 4
    for _ in range(5):
        with timings.of("storage search"):
            assert len(await storage.search("look at number")) == SNAPSHOTS


async def run(kind: str, folder: Path, timings: Timings) -> None:
    """Perform the work on Strands' own stores or on ours."""
    for mode in ("", ", normal"):
        place = folder / f"{kind}{mode.strip(', ')}"
        place.mkdir()
        if kind == "theirs":
            manager = FileSessionManager("unused", str(place / "sessions"))
            repository_work(manager, timings, mode)
            await storage_work(LocalFileStorage(str(place / "storage")), timings, mode)
            if not mode:
                timings.bytes(place / "sessions")
        else:
            durability = "normal" if mode else "full"
            path = place / "strands.db"
            with SessionDBRepository(path, durability=durability) as repository:
                repository_work(repository, timings, mode)
            if not mode:
                timings.bytes(path)
            async with SessionDBStorage(path, durability=durability) as storage:
                await storage_work(storage, timings, mode)
        shutil.rmtree(place)
