"""The Claude Agent SDK: transcripts as its own files and in its store in memory.

There is no store on disk in the SDK. ``files`` are what the program and the functions
of the SDK without a store read and write, here with the fsync that they omit;
``memory`` is `InMemorySessionStore`, which keeps references. Both are compared with the
same adapter.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    InMemorySessionStore,
    delete_session,
    delete_session_via_store,
    fork_session,
    fork_session_via_store,
    get_session_messages,
    get_session_messages_from_store,
    list_sessions,
    list_sessions_from_store,
    project_key_for_directory,
)

from benchmarks.adapters.timing import Timings

TURNS, SESSIONS = 400, 200
_STEPS = (
    "append 1 entry",
    "append a turn (4)",
    "load",
    "messages",
    "last 50 messages",
    "list 200",
    "fork",
    "delete",
)
OPERATIONS = tuple(
    f"{step}, {place}" for place in ("files", "memory") for step in _STEPS
)

Entry = dict[str, Any]


class FileStore:
    """Transcripts in the files of the SDK, synced at each append."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, session_id: str) -> Path:
        """Return the file of a transcript."""
        return self.folder / f"{session_id}.jsonl"

    async def append(self, key: Any, entries: list[Entry]) -> None:
        """Append lines, and sync the file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.path(key["session_id"]).open("ab") as file:
            lines = [json.dumps(it, separators=(",", ":")) + "\n" for it in entries]
            file.write("".join(lines).encode())
            file.flush()
            os.fsync(file.fileno())

    async def load(self, key: Any) -> list[Entry]:
        """Return all entries."""
        with self.path(key["session_id"]).open("rb") as file:
            return [json.loads(line) for line in file]


class Transcript:
    """Turns as the program writes them: a prompt, a call, its result, an answer."""

    def __init__(self, directory: str) -> None:
        self.session_id = str(uuid.uuid4())
        self.directory = directory
        self._last: str | None = None
        self._number = 0

    def _entry(self, kind: str, message: Entry, **more: Any) -> Entry:
        self._number += 1
        name = str(uuid.uuid4())
        minutes, seconds = divmod(self._number, 60)
        entry = {
            "parentUuid": self._last,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.directory,
            "sessionId": self.session_id,
            "version": "2.1.330",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": name,
            "timestamp": f"2026-11-20T{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}.000Z",
            **more,
        }
        self._last = name
        return entry

    def _answer(self, block: Entry, reason: str) -> Entry:
        usage = {
            "input_tokens": 12, "output_tokens": 90, "cache_read_input_tokens": 5200,
            "cache_creation_input_tokens": 310, "service_tier": "standard",
        }  # fmt: skip
        message = {
            "id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5", "content": [block], "stop_reason": reason,
            "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        return self._entry("assistant", message, requestId=f"req_{uuid.uuid4().hex}")

    def prompt(self) -> Entry:
        """Return one entry."""
        text = f"Look at part {self._number} of the parser, and say why it is slow."
        return self._entry("user", {"role": "user", "content": text})

    def turn(self) -> list[Entry]:
        """Return four entries."""
        call = f"toolu_{uuid.uuid4().hex}"
        command = {"command": f"profile --part {self._number}"}
        output = f"parse() {self._number} calls, 91 % of the time\n" * 12
        result = {"type": "tool_result", "tool_use_id": call, "content": output}
        block = {"type": "tool_use", "id": call, "name": "Bash", "input": command}
        return [
            self.prompt(),
            self._answer(block, "tool_use"),
            self._entry(
                "user",
                {"role": "user", "content": [result]},
                toolUseResult={"stdout": output, "stderr": "", "interrupted": False},
            ),
            self._answer(
                {"type": "text", "text": "It reads each token twice. " * 12}, "end_turn"
            ),
        ]


async def run(kind: str, folder: Path, timings: Timings) -> None:
    """Do the work on the files and in memory, or twice on the adapter."""
    for place in ("files", "memory"):
        home = folder / place
        home.mkdir()
        os.environ["CLAUDE_CONFIG_DIR"] = str(home)
        if kind == "ours":
            from sessiondb.adapters.claude_agent import SessionDBSessionStore

            async with SessionDBSessionStore(home / "claude.db") as store:
                await _measure(store, place, str(home), timings)
            if place == "files":
                timings.bytes(home / "claude.db")
        elif place == "files":
            project = home / "projects" / project_key_for_directory(str(home))
            await _measure(FileStore(project), place, str(home), timings)
            timings.bytes(project)
        else:
            await _measure(InMemorySessionStore(), place, str(home), timings)


async def _measure(store: Any, place: str, directory: str, timings: Timings) -> None:
    project = project_key_for_directory(directory)

    async def timed(step: str, work: Callable[[], Awaitable[Any]]) -> Any:
        with timings.of(f"{step}, {place}"):
            return await work()

    async def add(step: str, transcript: Transcript, entries: list[Entry]) -> None:
        key = {"project_key": project, "session_id": transcript.session_id}
        await timed(step, lambda: store.append(key, entries))

    short = [Transcript(directory) for _ in range(SESSIONS)]
    for transcript in short:
        key = {"project_key": project, "session_id": transcript.session_id}
        await store.append(key, transcript.turn())
    long = Transcript(directory)
    for _ in range(TURNS):
        await add("append a turn (4)", long, long.turn())
    for _ in range(100):
        await add("append 1 entry", long, [long.prompt()])

    name = long.session_id
    key = {"project_key": project, "session_id": name}
    for _ in range(10):
        await timed("load", lambda: store.load(key))
        await timed("messages", lambda: _messages(store, name, directory))
        await timed("last 50 messages", lambda: _last_messages(store, name, directory))
        await timed("list 200", lambda: _list(store, directory))
    for _ in range(5):
        await timed("fork", lambda: _fork(store, name, directory))
    for transcript in short[:50]:
        await timed(
            "delete", lambda it=transcript.session_id: _delete(store, it, directory)
        )


async def _messages(store: Any, name: str, directory: str, **page: int) -> Any:
    if isinstance(store, FileStore):
        return get_session_messages(name, directory, **page)
    return await get_session_messages_from_store(store, name, directory, **page)


async def _last_messages(store: Any, name: str, directory: str) -> Any:
    return await _messages(store, name, directory, offset=TURNS * 4 + 50, limit=50)


async def _list(store: Any, directory: str) -> Any:
    if isinstance(store, FileStore):
        return list_sessions(directory)
    return await list_sessions_from_store(store, directory)


async def _fork(store: Any, name: str, directory: str) -> Any:
    if isinstance(store, FileStore):
        return fork_session(name, directory)
    return await fork_session_via_store(store, name, directory=directory)


async def _delete(store: Any, name: str, directory: str) -> None:
    if isinstance(store, FileStore):
        delete_session(name, directory)
    else:
        await delete_session_via_store(store, name, directory=directory)
