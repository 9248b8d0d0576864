"""Stores of every format that is read, generated: the same conversations in each.

A turn is a prompt, an answer that thinks and calls a tool, the result, and an answer.
Nothing here knows a reader: the stores are written as their programs write them.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import Any

import msgpack

from benchmarks.fixtures import START, large, small, words

Record = dict[str, Any]
HOME = "/home/dev/acme"
MODEL = "acme-large"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a session; its texts are the same in every format."""

    session: int
    number: int
    prompt: str
    thought: str
    command: str
    output: str
    answer: str

    @property
    def call(self) -> str:
        """The id of the call."""
        return f"call_{self.session:08}{self.number:016}"

    @property
    def ms(self) -> int:
        """The time of the turn; each of its messages is a second after the last."""
        return START + self.session * 100_000_000 + self.number * 10_000

    def text(self, second: int) -> str:
        """Return the time of a message as RFC 3339."""
        when = datetime.fromtimestamp(self.ms / 1000 + second, UTC)
        return f"{when:%Y-%m-%dT%H:%M:%S}.000Z"

    def uuid(self, second: int) -> str:
        """Return a UUID for a message."""
        return f"{self.session:08}-{self.number:04x}-4000-8000-{second:012}"


@dataclass(frozen=True, slots=True)
class Talk:
    """A session: its turns are made while they are written."""

    number: int
    count: int
    #: Characters of each tool output; None for lengths as those of real agents.
    output: int | None = None

    @property
    def uuid(self) -> str:
        """The id of the session."""
        return f"01a1f9a8-0000-7000-8000-{self.number:012}"

    @property
    def began(self) -> str:
        """The time of its first turn."""
        return Turn(self.number, 0, "", "", "", "", "").text(0)

    def __iter__(self) -> Iterator[Turn]:
        rng = random.Random(self.number)  # noqa: S311  a fixture, nothing secret
        for number in range(1, self.count + 1):
            length = self.output or large(rng)
            yield Turn(
                self.number,
                number,
                prompt=words(rng, small(rng)),
                thought=words(rng, small(rng)),
                command=words(rng, 60),
                output=words(rng, length),
                answer=words(rng, small(rng)),
            )


Talks = list[Talk]


def _logs(
    name: str, records: Callable[[Talk], Iterator[Record]]
) -> Callable[[Path, Talks], None]:
    """Return what writes a log for each session, whose path is *name* of the session."""

    def write(folder: Path, talks: Talks) -> None:
        for talk in talks:
            _log(folder / name.format(talk), records(talk))

    return write


def _log(path: Path, records: Iterator[Record]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
            file.write(f"{line}\n")


def _database(path: Path, schema: str) -> closing[sqlite3.Connection]:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous=OFF")
    connection.executescript(schema)
    return closing(connection)


def _insert(connection: sqlite3.Connection, table: str, **row: Any) -> None:
    values = [
        json.dumps(value) if isinstance(value, dict | list) else value
        for value in row.values()
    ]
    marks = ", ".join("?" * len(row))
    names = ", ".join(row)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)


# -- logs ----------------------------------------------------------------------


def _codex(talk: Talk) -> Iterator[Record]:
    """Rollouts: a message is an item, and again an event."""

    def line(when: str, kind: str, /, **payload: Any) -> Record:
        return {"timestamp": when, "type": kind, "payload": payload}

    def item(type: str, **fields: Any) -> Record:
        return line(when, "response_item", type=type, **fields)

    def message(role: str, kind: str, text: str) -> Record:
        return item("message", role=role, content=[{"type": kind, "text": text}])

    yield line(
        talk.began, "session_meta", id=talk.uuid, timestamp=talk.began, cwd=HOME,
        originator="codex_exec", cli_version="0.98.0", source="exec", model_provider="acme",
    )  # fmt: skip
    for turn in talk:
        when = turn.text(0)
        yield line(when, "turn_context", cwd=HOME, model=MODEL, effort="high")
        yield message("user", "input_text", turn.prompt)
        yield line(when, "event_msg", type="user_message", message=turn.prompt)
        when = turn.text(1)
        thought = [{"type": "summary_text", "text": turn.thought}]
        yield item("reasoning", summary=thought, content=None, encrypted_content="gA")
        arguments = json.dumps({"cmd": turn.command})
        yield item("function_call", name="exec", arguments=arguments, call_id=turn.call)
        when = turn.text(2)
        yield item("function_call_output", call_id=turn.call, output=turn.output)
        when = turn.text(3)
        yield message("assistant", "output_text", turn.answer)
        yield line(when, "event_msg", type="agent_message", message=turn.answer)
        last = {"input_tokens": 5123, "cached_input_tokens": 4096, "output_tokens": 214,
                "reasoning_output_tokens": 64, "total_tokens": 5337}  # fmt: skip
        total = {name: value * turn.number for name, value in last.items()}
        info = {"total_token_usage": total, "last_token_usage": last}
        yield line(when, "event_msg", type="token_count", info=info)


def _claude(talk: Talk) -> Iterator[Record]:
    """Transcripts: each block of an answer is a line."""
    above: str | None = None

    def line(type: str, message: Record) -> Record:
        nonlocal above
        record = {
            "parentUuid": above, "isSidechain": False, "userType": "external", "cwd": HOME,
            "sessionId": talk.uuid, "version": "2.1.329", "gitBranch": "main", "type": type,
            "message": message, "uuid": turn.uuid(second), "timestamp": turn.text(second),
        }  # fmt: skip
        above = str(record["uuid"])
        return record

    def asked(content: Any) -> Record:
        return line("user", {"role": "user", "content": content})

    def answered(block: Record, stop: str) -> Record:
        usage = {"input_tokens": 1027, "output_tokens": 214,
                 "cache_read_input_tokens": 4096, "cache_creation_input_tokens": 12}  # fmt: skip
        name = f"{turn.call}_{stop}"
        return line("assistant", {
            "id": name, "type": "message", "role": "assistant", "model": MODEL,
            "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage,
        })  # fmt: skip

    for turn in talk:
        second = 0
        yield asked(turn.prompt)
        second = 1
        thought = {"type": "thinking", "thinking": turn.thought, "signature": "c2ln"}
        yield answered(thought, "tool_use")
        second = 2
        given = {"command": turn.command}
        call = {"type": "tool_use", "id": turn.call, "name": "Bash", "input": given}
        yield answered(call, "tool_use")
        second = 3
        result = {"tool_use_id": turn.call, "type": "tool_result"}
        yield asked([{**result, "content": turn.output, "is_error": False}])
        second = 4
        yield answered({"type": "text", "text": turn.answer}, "end_turn")


def _pi(talk: Talk) -> Iterator[Record]:
    """Logs of version 3, each a tree without branches."""
    yield {"type": "session", "version": 3, "id": talk.uuid, "timestamp": talk.began, "cwd": HOME}  # fmt: skip
    count = 0

    def entry(second: int, role: str, *content: Record, **fields: Any) -> Record:
        nonlocal count
        count += 1
        message = {"role": role, "content": [*content], **fields}
        return {
            "type": "message", "id": f"{count:08x}",
            "parentId": f"{count - 1:08x}" if count > 1 else None,
            "timestamp": turn.text(second),
            "message": {**message, "timestamp": turn.ms + 1000 * second},
        }  # fmt: skip

    def answered(second: int, stop: str, *content: Record) -> Record:
        usage = {"input": 1027, "output": 214, "cacheRead": 4096, "cacheWrite": 0,
                 "totalTokens": 5337, "cost": {"total": 0.0123}}  # fmt: skip
        return entry(
            second, "assistant", *content, api="openai", provider="acme", model=MODEL,
            usage=usage, stopReason=stop,
        )  # fmt: skip

    for turn in talk:
        yield entry(0, "user", {"type": "text", "text": turn.prompt})
        thought = {"type": "thinking", "thinking": turn.thought}
        call = {"type": "toolCall", "id": turn.call, "name": "bash"}
        yield answered(1, "toolUse", thought, {**call, "arguments": {"command": turn.command}})  # fmt: skip
        about = {"toolCallId": turn.call, "toolName": "bash", "isError": False}
        yield entry(2, "toolResult", {"type": "text", "text": turn.output}, **about)
        yield answered(3, "stop", {"type": "text", "text": turn.answer})


def _gemini(talk: Talk) -> Iterator[Record]:
    """Logs in which an answer has its calls with their results."""
    yield {
        "sessionId": talk.uuid, "projectHash": "2b5e" * 16, "startTime": talk.began,
        "lastUpdated": talk.began, "kind": "main",
    }  # fmt: skip
    tokens = {"input": 5123, "output": 150, "cached": 4096, "thoughts": 64, "tool": 0, "total": 5337}  # fmt: skip
    for turn in talk:

        def said(second: int, type: str, content: Any, **more: Any) -> Record:
            about = {"id": turn.uuid(second), "timestamp": turn.text(second)}  # noqa: B023
            return {**about, "type": type, "content": content, **more}

        yield said(0, "user", [{"text": turn.prompt}])
        answer = {"id": turn.call, "name": "shell", "response": {"output": turn.output}}
        call = {
            "id": turn.call, "name": "shell", "args": {"command": turn.command},
            "result": [{"functionResponse": answer}], "status": "success",
            "timestamp": turn.text(2),
        }  # fmt: skip
        thought = {
            "subject": "",
            "description": turn.thought,
            "timestamp": turn.text(1),
        }
        known = {"tokens": tokens, "model": MODEL}
        yield said(1, "gemini", "", thoughts=[thought], toolCalls=[call], **known)
        yield said(3, "gemini", turn.answer, thoughts=[], **known)


def _qwen(talk: Talk) -> Iterator[Record]:
    """Logs of linked records."""
    above: str | None = None

    def said(second: int, type: str, *parts: Record, **fields: Any) -> Record:
        nonlocal above
        role = "model" if type == "assistant" else "user"
        record = {
            "uuid": turn.uuid(second), "parentUuid": above, "sessionId": talk.uuid,
            "timestamp": turn.text(second), "type": type, "cwd": HOME, "version": "0.24.4",
            "gitBranch": "main", "message": {"role": role, "parts": [*parts]}, **fields,
        }  # fmt: skip
        above = str(record["uuid"])
        return record

    def answered(second: int, *parts: Record) -> Record:
        usage = {"promptTokenCount": 5123, "candidatesTokenCount": 214, "thoughtsTokenCount": 64,
                 "totalTokenCount": 5337, "cachedContentTokenCount": 4096}  # fmt: skip
        return said(second, "assistant", *parts, model=MODEL, usageMetadata=usage)

    for turn in talk:
        yield said(0, "user", {"text": turn.prompt})
        thought = {"text": turn.thought, "thought": True}
        function = {"id": turn.call, "name": "shell"}
        call = {"functionCall": {**function, "args": {"command": turn.command}}}
        yield answered(1, thought, call)
        response = {
            "functionResponse": {**function, "response": {"output": turn.output}}
        }
        state = {"callId": turn.call, "status": "success"}
        yield said(2, "tool_result", response, toolCallResult=state)
        yield answered(3, {"text": turn.answer})


def _events(talk: Talk) -> Iterator[Record]:
    """Plain logs, with times in ms."""
    seq = 0

    def line(ms: int, type: str, **given: Any) -> Record:
        nonlocal seq
        seq += 1
        return {"schema_version": 1, "seq": seq, "time": ms, "type": type, **given}

    yield line(START, "session_meta", session_id=talk.uuid, cwd=HOME, model=MODEL)
    usage = {"input": 1027, "output": 150, "reasoning": 64, "cache_read": 4096}
    for turn in talk:
        yield line(turn.ms, "user_message", text=turn.prompt)
        given = {"command": turn.command}
        yield line(turn.ms + 1, "tool_started", call_id=turn.call, name="bash", arguments=given)  # fmt: skip
        yield line(turn.ms + 2, "tool_finished", call_id=turn.call, output=turn.output)
        yield line(
            turn.ms + 3, "assistant_finished", text=turn.answer, reasoning=turn.thought,
            usage=usage, cost=0.0123, finish="stop",
        )  # fmt: skip


def aider(folder: Path, talks: Talks) -> None:
    """A chat history, with an input history, for each session."""
    for talk in talks:
        project = folder / f"project-{talk.number}"
        project.mkdir(parents=True)
        with (project / ".aider.chat.history.md").open("w", encoding="utf-8") as chat:
            chat.write("\n# aider chat started at 2026-02-02 02:01:00\n\n")
            chat.write("> Aider v0.86.2  \n> Main model: acme/acme-large  \n")
            chat.writelines(map(_aider, talk))


def _aider(turn: Turn) -> str:
    block = fill(turn.output, 80)
    used = "Tokens: 5.1k sent, 214 received. Cost: $0.01 message, $0.01 session."
    return (
        f"\n#### {turn.prompt}  \n\n{turn.thought}\n\n```\n{block}\n```\n\n"
        f"{turn.answer}\n\n> {used}  \n"
    )


# -- databases -----------------------------------------------------------------

_GOOSE = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '',
  description TEXT NOT NULL DEFAULT '', working_dir TEXT NOT NULL, created_at TIMESTAMP,
  updated_at TIMESTAMP, extension_data TEXT DEFAULT '{}', provider_name TEXT,
  model_config_json TEXT, session_type TEXT NOT NULL DEFAULT 'user');
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT,
  session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
  content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP,
  tokens INTEGER, metadata_json TEXT);
CREATE INDEX idx_messages_session ON messages (session_id);
CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
INSERT INTO schema_version VALUES (8);
"""


def goose(folder: Path, talks: Talks) -> None:
    """A database of schema 8."""
    with _database(folder / "goose" / "sessions" / "sessions.db", _GOOSE) as db:
        for talk in talks:
            name = f"20260202_{talk.number}"
            _insert(
                db, "sessions", id=name, name=f"Session {talk.number}", working_dir=HOME,
                created_at="2026-02-02 02:40:00", updated_at="2026-02-02 02:41:00",
                provider_name="acme", model_config_json={"model_name": MODEL},
            )  # fmt: skip
            for turn in talk:
                for second, (role, block) in enumerate(_goose(turn)):
                    flags = {"userVisible": True, "agentVisible": True}
                    _insert(
                        db, "messages", message_id=turn.uuid(second), session_id=name,
                        role=role, content_json=[block], metadata_json=flags,
                        created_timestamp=turn.ms // 1000 + second,
                    )  # fmt: skip
        db.commit()


def _goose(turn: Turn) -> Iterator[tuple[str, Record]]:
    given = {"name": "shell", "arguments": {"command": turn.command}}
    output = {"content": [{"type": "text", "text": turn.output}], "isError": False}
    yield "user", {"type": "text", "text": turn.prompt}
    yield "assistant", {"type": "thinking", "thinking": turn.thought, "signature": "s"}
    call = {"status": "success", "value": given}
    yield "assistant", {"type": "toolRequest", "id": turn.call, "toolCall": call}
    result = {"status": "success", "value": output}
    yield "user", {"type": "toolResponse", "id": turn.call, "toolResult": result}
    yield "assistant", {"type": "text", "text": turn.answer}


_LLM = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT,
  prompt_json TEXT, options_json TEXT, response TEXT, response_json TEXT,
  conversation_id TEXT, duration_ms INTEGER, datetime_utc TEXT, input_tokens INTEGER,
  output_tokens INTEGER, token_details TEXT);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER,
  name TEXT, arguments TEXT, tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER,
  name TEXT, output TEXT, tool_call_id TEXT, instance_id INTEGER, exception TEXT);
"""


def llm(folder: Path, talks: Talks) -> None:
    """A log of 0.27: a turn is two responses, the result belongs to the second."""
    details = {"prompt_tokens_details": {"cached_tokens": 4096}}
    with _database(folder / "logs.db", _LLM) as db:
        for talk in talks:
            _insert(db, "conversations", id=talk.uuid, name="Acme", model=MODEL)
            for turn in talk:
                first, second = turn.uuid(1), turn.uuid(3)
                for name, prompt, answer in (
                    (first, turn.prompt, turn.thought),
                    (second, "", turn.answer),
                ):
                    _insert(
                        db, "responses", id=name, model=MODEL, prompt=prompt, response=answer,
                        response_json={"id": name, "finish_reason": "stop"},
                        conversation_id=talk.uuid, duration_ms=500, datetime_utc=turn.text(1),
                        input_tokens=5123, output_tokens=214, token_details=details,
                    )  # fmt: skip
                given = {"command": turn.command}
                _insert(db, "tool_calls", response_id=first, name="bash", arguments=given, tool_call_id=turn.call)  # fmt: skip
                _insert(db, "tool_results", response_id=second, name="bash", output=turn.output, tool_call_id=turn.call)  # fmt: skip
        db.commit()


_AGENTS = """
CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP,
  updated_at TIMESTAMP);
CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
  message_data TEXT NOT NULL, created_at TIMESTAMP,
  FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE);
CREATE INDEX idx_agent_messages_session_id ON agent_messages (session_id, id);
"""


def openai_agents(folder: Path, talks: Talks) -> None:
    """A file of `SQLiteSession`."""
    with _database(folder / "agents.db", _AGENTS) as db:
        for talk in talks:
            when = "2026-02-02 02:40:00"
            _insert(db, "agent_sessions", session_id=talk.uuid, created_at=when, updated_at=when)  # fmt: skip
            for turn in talk:
                for item in _items(turn):
                    _insert(db, "agent_messages", session_id=talk.uuid, message_data=item, created_at=when)  # fmt: skip
        db.commit()


def _items(turn: Turn) -> Iterator[Record]:
    yield {"content": turn.prompt, "role": "user"}
    thought = [{"text": turn.thought, "type": "summary_text"}]
    yield {"id": f"rs_{turn.call}", "summary": thought, "type": "reasoning"}
    arguments = json.dumps({"command": turn.command})
    call = {"call_id": turn.call, "name": "bash", "id": f"fc_{turn.call}"}
    yield {**call, "arguments": arguments, "type": "function_call"}
    yield {"call_id": turn.call, "output": turn.output, "type": "function_call_output"}
    said = [{"annotations": [], "text": turn.answer, "type": "output_text"}]
    yield {"id": f"msg_{turn.call}", "content": said, "role": "assistant", "type": "message"}  # fmt: skip


_OPENOXIDE = """
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, title TEXT,
  directory TEXT, model_id TEXT, time_created INTEGER, time_updated INTEGER,
  revert_oid TEXT);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT REFERENCES session,
  role TEXT, time_created INTEGER, content BLOB);
CREATE INDEX message_session ON message (session_id);
"""


def openoxide(folder: Path, talks: Talks) -> None:
    """A database with MessagePack in it."""
    with _database(folder / "openoxide.db", _OPENOXIDE) as db:
        for talk in talks:
            _insert(
                db, "session", id=talk.uuid, project_id="p1", title=f"Session {talk.number}",
                directory=HOME, model_id=MODEL, time_created=START, time_updated=START,
            )  # fmt: skip
            for turn in talk:
                for second, (role, content) in enumerate(_oxide(turn)):
                    _insert(
                        db, "message", id=turn.uuid(second), session_id=talk.uuid, role=role,
                        time_created=turn.ms + 1000 * second, content=msgpack.packb(content),
                    )  # fmt: skip
        db.commit()


def _oxide(turn: Turn) -> Iterator[tuple[str, Any]]:
    yield "user", turn.prompt
    given = {"command": turn.command}
    call = {"type": "tool_call", "id": turn.call, "name": "bash", "input": given}
    yield "assistant", [{"type": "reasoning", "text": turn.thought}, call]
    yield "tool", [{"type": "tool_result", "call_id": turn.call, "output": turn.output}]
    yield "assistant", {"content": turn.answer, "usage": {"input": 1027, "output": 214}}


_OPENCODE = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text,
  time_created integer NOT NULL, time_updated integer NOT NULL, sandboxes text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text,
  slug text NOT NULL, directory text NOT NULL, title text NOT NULL, version text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX message_session ON message (session_id, time_created, id);
CREATE INDEX part_message ON part (message_id, id);
CREATE INDEX part_session ON part (session_id);
"""


def opencode(folder: Path, talks: Talks) -> None:
    """A database of 1.18."""
    with _database(folder / "opencode.db", _OPENCODE) as db:
        times = {"time_created": START, "time_updated": START}
        _insert(
            db, "project", id="prj", worktree=HOME, vcs="git", sandboxes="[]", **times
        )
        for talk in talks:
            sid = f"ses_{talk.number:026d}"
            _insert(
                db, "session", id=sid, project_id="prj", slug=f"slug-{talk.number}",
                directory=HOME, title=f"Session {talk.number}", version="1.18.0", **times,
            )  # fmt: skip
            for turn in talk:
                _opencode(db, sid, turn)
        db.commit()


def _opencode(db: sqlite3.Connection, sid: str, turn: Turn) -> None:
    place = f"{turn.session:013}{turn.number:012}"
    asked, answered = f"msg_{place}0", f"msg_{place}1"
    model = {"providerID": "acme", "modelID": MODEL}
    tokens = {"input": 1027, "output": 150, "reasoning": 64, "cache": {"write": 0, "read": 4096}}  # fmt: skip
    cost = {"cost": 0.0080592, "tokens": tokens}
    prompt = {"role": "user", "time": {"created": turn.ms}, "agent": "build", "model": model}  # fmt: skip
    answer = {
        "role": "assistant", "parentID": asked, "mode": "build", "agent": "build", **model,
        "path": {"cwd": HOME, "root": HOME}, **cost, "finish": "stop",
        "time": {"created": turn.ms + 1, "completed": turn.ms + 900},
    }  # fmt: skip
    times = {"time_created": turn.ms, "time_updated": turn.ms}
    for mid, data in ((asked, prompt), (answered, answer)):
        _insert(db, "message", id=mid, session_id=sid, data=data, **times)

    time = {"start": turn.ms + 2, "end": turn.ms + 800}
    state = {
        "status": "completed", "input": {"command": turn.command}, "output": turn.output,
        "title": turn.command, "metadata": {"preview": turn.output[:200], "exit": 0},
        "time": time,
    }  # fmt: skip
    snapshot = f"{turn.number:040x}"
    parts: list[tuple[str, Record]] = [
        (asked, {"type": "text", "text": turn.prompt}),
        (answered, {"type": "step-start", "snapshot": snapshot}),
        (answered, {"type": "reasoning", "text": turn.thought, "time": time}),
        (answered, {"type": "tool", "tool": "bash", "callID": turn.call, "state": state}),
        (answered, {"type": "text", "text": turn.answer, "time": time}),
        (answered, {"type": "step-finish", "reason": "stop", "snapshot": snapshot, **cost}),
    ]  # fmt: skip
    for index, (mid, data) in enumerate(parts):
        _insert(db, "part", id=f"prt_{place}{index}", message_id=mid, session_id=sid, data=data, **times)  # fmt: skip


#: Each format with a reader of stores that other programs write, and its generator.
STORES: dict[str, Callable[[Path, Talks], None]] = {
    "codex": _logs(
        "sessions/2026/02/02/rollout-2026-02-02T02-40-00-{0.uuid}.jsonl", _codex
    ),
    "claude": _logs(".claude/projects/-home-dev-acme/{0.uuid}.jsonl", _claude),
    "pi": _logs(
        ".pi/agent/sessions/--home-dev-acme--/2026-02-02T02-40-00-000Z_{0.uuid}.jsonl",
        _pi,
    ),
    "goose": goose,
    "aider": aider,
    "gemini": _logs(
        ".gemini/tmp/acme/chats/session-2026-02-02T02-40-{0.number:08}.jsonl", _gemini
    ),
    "qwen": _logs(".qwen/projects/-home-dev-acme/chats/{0.uuid}.jsonl", _qwen),
    "llm": llm,
    "openai-agents": openai_agents,
    "event-log": _logs("{0.uuid}.jsonl", _events),
    "openoxide": openoxide,
    "opencode": opencode,
}
