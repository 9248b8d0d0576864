"""Small stores of Qwen Code: linked records, a fork, and a subagent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sample import LARGE, PIECE, Sample

Record = dict[str, Any]


def moment(number: int) -> str:
    return f"2026-02-02T02:{number // 60:02}:{number % 60:02}.000Z"


def session_id(number: int) -> str:
    return f"01a1f9a8-0000-4000-8000-{number:012}"


def uuid(number: int) -> str:
    return f"{number:08}-0000-4000-8000-000000000000"


def record(number: int, type: str, above: int | None = -1, **fields: Any) -> Record:
    """A record of session 1, linked to the one before it unless *above* is given."""
    parent = number - 1 if above == -1 else above
    return {
        "uuid": uuid(number), "parentUuid": uuid(parent) if parent else None,
        "sessionId": session_id(1), "timestamp": moment(number), "type": type,
        "cwd": "/home/ada/tea", "version": "0.24.4", "gitBranch": "main", **fields,
    }  # fmt: skip


def said(
    number: int, type: str, *parts: Record, above: int | None = -1, **fields: Any
) -> Record:
    role = "model" if type == "assistant" else "user"
    message = {"role": role, "parts": list(parts)}
    return record(number, type, above, message=message, **fields)


def asked(number: int, text: str, above: int | None = -1, **fields: Any) -> Record:
    return said(number, "user", {"text": text}, above=above, **fields)


def answered(
    number: int, *parts: Record, above: int | None = -1, **fields: Any
) -> Record:
    usage = {
        "promptTokenCount": 12, "candidatesTokenCount": 7, "thoughtsTokenCount": 3,
        "totalTokenCount": 19, "cachedContentTokenCount": 2,
    }  # fmt: skip
    known = {"model": "large", "usageMetadata": usage, "contextWindowSize": 1000}
    return said(number, "assistant", *parts, above=above, **{**known, **fields})


def words(text: str) -> Record:
    return {"text": text}


def call(name: str, tool: str = "ls", **arguments: Any) -> Record:
    return {"functionCall": {"id": name, "name": tool, "args": arguments}}


def result(number: int, name: str, output: str, **fields: Any) -> Record:
    response = {"id": name, "name": "ls", "response": {"output": output}}
    state = {"callId": name, "status": "success", **fields.pop("state", {})}
    function = {"functionResponse": response}
    return said(number, "tool_result", function, toolCallResult=state, **fields)


def system(number: int, subtype: str, above: int | None = -1, **payload: Any) -> Record:
    return record(number, "system", above, subtype=subtype, systemPayload=payload)


def request(
    number: int, response: str, above: int | None = -1, **fields: Any
) -> Record:
    """The event of a request, which comes before its answer."""
    event = {
        "event.name": "qwen-code.api_response", "response_id": response, "model": "large",
        "input_token_count": 12, "output_token_count": 7, "thoughts_token_count": 3,
        "cached_content_token_count": 2, "total_token_count": 19, **fields,
    }  # fmt: skip
    return system(number, "ui_telemetry", above, uiEvent=event)


def of_session(number: int, *records: Record) -> list[Record]:
    return [{**item, "sessionId": session_id(number)} for item in records]


def forked(number: int, *records: Record) -> list[Record]:
    """Copies of records in a session of their own."""
    origin = [{"sessionId": r["sessionId"], "messageUuid": r["uuid"]} for r in records]
    copies = of_session(number, *records)
    return [{**copy, "forkedFrom": of} for copy, of in zip(copies, origin, strict=True)]


def by_agent(agent: str, *records: Record) -> list[Record]:
    known = {"agentId": agent, "agentName": "explore", "isSidechain": True}
    return [{**item, **known} for item in records]


def log(*records: Record) -> str:
    lines = [json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in records]
    return "\n".join([*lines, ""])


def write(folder: Path, *records: Record, name: str | None = None) -> Path:
    path = folder / (name or f"{records[0]['sessionId']}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(log(*records), encoding="utf-8", newline="\n")
    return path


def agent_log(project: Path, agent: str, *records: Record, **meta: Any) -> Path:
    folder = project / "subagents" / records[0]["sessionId"]
    path = write(folder, *by_agent(agent, *records), name=f"agent-{agent}.jsonl")
    known = {"agentId": agent, "agentType": "explore", "parentAgentId": None, **meta}
    path.with_suffix(".meta.json").write_text(json.dumps(known))
    return path


def first() -> list[Record]:
    return [
        asked(1, "How long does tea take?", None),
        request(2, "r1"),
        answered(3, {"text": "Hm", "thought": True}, words("Look:"), call("c1", path=".")),
        result(4, "c1", "a.py"),
        answered(5, words("Two minutes.")),
        asked(6, "And coffee?"),
        answered(7, words("Ask a barista.")),
        system(8, "rewind", above=5, truncatedCount=2),
        asked(9, "And milk?"),
        system(10, "chat_compression", info={}, compressedHistory=[
            {"role": "user", "parts": [words("Tea was discussed")]},
            {"role": "user", "parts": [words("And milk?")]},
        ]),
        answered(11, words("None.")),
        said(12, "user", words("A task ended"), subtype="notification", provenance="system"),
        system(13, "custom_title", customTitle="Tea", titleSource="auto"),
    ]  # fmt: skip


def home(folder: Path) -> None:
    project = folder / ".qwen" / "projects" / "-home-ada-tea"
    write(project / "chats", *first())
    copied = forked(2, *first()[:5])
    write(project / "chats", *copied, *of_session(2, asked(21, "And cocoa?", 5)))
    agent_log(
        project, "explore-c1", asked(31, "Look for tea", None), answered(32, words("Found")),
        toolUseId="c1", description="Look for it",
    )  # fmt: skip


def logs(folder: Path) -> None:
    for number in (1, 2, 3):
        n = 10 * number
        records = of_session(
            number, asked(n, f"Tea {number}?", None), record(n + 1, "note", text="mine"),
            answered(n + 2, call("c1")), result(n + 3, "c1", "b.py"),
        )  # fmt: skip
        write(folder / "copies", *records, name=f"{number}.jsonl")


def large(folder: Path) -> None:
    project = folder / ".qwen" / "projects" / "-home-ada-tea"
    path = write(project / "chats", asked(1, "1", None))
    with path.open("a", encoding="utf-8") as file:
        for number in range(2, LARGE // PIECE + 3):
            file.write(
                log({**asked(number, f"{number} ".ljust(PIECE, "x"))}).replace(
                    moment(number), moment(1)
                )
            )


SAMPLES = {
    "qwen, a home": Sample("qwen", home, large=large),
    "qwen, logs": Sample("qwen", logs),
}
REAL = {"qwen-code-0.24.4": "qwen"}
