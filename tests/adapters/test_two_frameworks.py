"""Two frameworks in one file at once: their sessions with equal ids never meet."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed")
pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")

from peers import Connection, other

from sessiondb import Store
from sessiondb.adapters.claude_agent import SessionDBSessionStore
from sessiondb.adapters.openai_agents import SessionDBSession
from sessiondb.maintenance import check

EACH = 25
#: One id for all: digits, which a REF would take for a message.
ID = "1234"


def item(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"agents {number}"}


def entry(number: int) -> dict[str, Any]:
    return {
        "type": "user", "uuid": str(uuid4()), "sessionId": ID,
        "timestamp": "2026-01-02T03:04:05.000Z",
        "message": {"role": "user", "content": f"claude {number}"},
    }  # fmt: skip


def run_agents(pipe: Connection, path: str, first: int) -> None:
    async def work() -> None:
        session = SessionDBSession(ID, path)
        for number in range(first, first + EACH):
            await session.add_items([item(number)])  # type: ignore[list-item]
        session.close()

    pipe.recv()
    asyncio.run(work())


def run_claude(pipe: Connection, path: str, first: int) -> None:
    async def work() -> None:
        async with SessionDBSessionStore(path) as store:
            for number in range(first, first + EACH):
                await store.append(
                    {"project_key": "p", "session_id": ID}, [entry(number)]
                )

    pipe.recv()
    asyncio.run(work())


@pytest.mark.slow
def test_four_processes_of_two_frameworks_write_to_one_file(tmp_path: Path) -> None:
    path = str(tmp_path / "agents.db")
    with (
        other(run_agents, path, 0) as one,
        other(run_agents, path, EACH) as two,
        other(run_claude, path, 0) as three,
        other(run_claude, path, EACH) as four,
    ):
        processes = (one, two, three, four)
        for process in processes:
            process.say()
        for process in processes:
            process.end()
    with Store.open(path) as store:
        sessions = store.sessions().items
        stored = {
            session.source: sorted(message.text for message in store.messages(session))
            for session in sessions
        }
        assert stored == {
            "openai-agents": sorted(f"agents {number}" for number in range(2 * EACH)),
            "claude-agent-sdk": sorted(
                f"claude {number}" for number in range(2 * EACH)
            ),
        }
        assert check(store) == []
