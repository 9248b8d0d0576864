"""Small stores of Gemini CLI: logs of records, and the documents of before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sample import LARGE, PIECE, Sample

Record = dict[str, Any]
#: SHA-256 of the directory of the project.
PROJECT = "/home/ada/tea"
HASH = "2b5ef04ab5427989fc3d1c67cead5e4688ccd5cec1a5ea00508778c801de20d3"


def moment(number: int) -> str:
    return f"2026-02-02T02:{number // 60:02}:{number % 60:02}.000Z"


def session_id(number: int) -> str:
    return f"01a1f9a8-0000-4000-8000-{number:012}"


def header(number: int, **fields: Any) -> Record:
    return {
        "sessionId": session_id(number), "projectHash": HASH, "startTime": moment(0),
        "lastUpdated": moment(0), "kind": "main", **fields,
    }  # fmt: skip


def said(number: int, type: str, content: Any, **fields: Any) -> Record:
    return {
        "id": f"m{number}",
        "timestamp": moment(number),
        "type": type,
        "content": content,
        **fields,
    }


def asked(number: int, text: str, **fields: Any) -> Record:
    return said(number, "user", [{"text": text}], **fields)


def answered(number: int, text: Any, **fields: Any) -> Record:
    tokens = {"input": 12, "output": 4, "cached": 2, "thoughts": 3, "tool": 0, "total": 19}  # fmt: skip
    known = {"thoughts": [], "tokens": tokens, "model": "gemini-2.5-pro"}
    return said(number, "gemini", text, **{**known, **fields})


def call(name: str, output: str | None = None, **fields: Any) -> Record:
    response = {"id": name, "name": "ls", "response": {"output": output}}
    given = [] if output is None else [{"functionResponse": response}]
    known = {"id": name, "name": "ls", "args": {"path": "."}, "status": "success"}
    return {
        **known,
        "timestamp": moment(9),
        **({"result": given} if given else {}),
        **fields,
    }


def responded(number: int, name: str, output: str) -> Record:
    response = {"id": name, "name": "ls", "response": {"output": output}}
    return said(number, "user", [{"functionResponse": response}])


def update(**fields: Any) -> Record:
    return {"$set": fields}


def log(*records: Record) -> str:
    lines = [json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in records]
    return "\n".join([*lines, ""])


def write(folder: Path, *records: Record, name: str | None = None) -> Path:
    head = next((r for r in records if "sessionId" in r), {"sessionId": "none"})
    path = folder / (name or f"session-2026-02-02T02-40-{head['sessionId'][-8:]}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(log(*records), encoding="utf-8", newline="\n")
    return path


def document(folder: Path, number: int, *messages: Record, **fields: Any) -> Path:
    path = folder / f"session-2026-02-02T02-40-{session_id(number)[-8:]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {**header(number, **fields), "messages": list(messages)}
    del content["kind"]
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path


CONTEXT = f"<session_context>\nWorkspace:\n  - {PROJECT}\n</session_context>"
THOUGHT = {"subject": "Tea", "description": "Hm", "timestamp": moment(3)}


def first() -> list[Record]:
    answer = answered(3, "Look:", thoughts=[THOUGHT])
    return [
        header(1),
        update(messages=[asked(1, CONTEXT)], lastUpdated=moment(1)),
        asked(2, "How long does tea take?"),
        update(lastUpdated=moment(2)),
        answer,
        {**answer, "toolCalls": [call("c1", status="executing", agentId=session_id(2))]},
        {**answer, "toolCalls": [call("c1", "a.py", agentId=session_id(2))]},
        responded(4, "c1", "a.py"),
        answered(5, "Two minutes."),
        asked(6, "And coffee?"),
        answered(7, "Ask a barista."),
        {"$rewindTo": "m6"},
        asked(8, "And milk?"),
        said(9, "info", "Switched to another model"),
        answered(10, [{"text": "Hm", "thought": True}, {"text": "None."}]),
        update(summary="Tea", lastUpdated=moment(10)),
    ]  # fmt: skip


def home(folder: Path) -> None:
    gemini = folder / ".gemini"
    chats = gemini / "tmp" / "tea" / "chats"
    write(chats, *first())
    write(
        chats / session_id(1), header(2, kind="subagent", directories=[PROJECT]),
        asked(1, "Look for tea"), answered(2, "Found"), name=f"{session_id(2)}.jsonl",
    )  # fmt: skip
    document(chats, 3, asked(1, "Another one"), answered(2, "Yes", toolCalls=[call("c2", "b.py")]))  # fmt: skip
    (gemini / "projects.json").write_text(json.dumps({"projects": {PROJECT: "tea"}}))


def logs(folder: Path) -> None:
    for number in (1, 2, 3):
        write(
            folder / "copies", header(number), asked(1, f"Tea {number}?"),
            {"type": "note", "text": "by an extension"}, answered(2, "Yes", toolCalls=[call("c1", "x")]),
            name=f"{number}.jsonl",
        )  # fmt: skip


def large(folder: Path) -> None:
    chats = folder / ".gemini" / "tmp" / "tea" / "chats"
    path = write(chats, header(1))
    with path.open("a", encoding="utf-8") as file:
        for number in range(1, LARGE // PIECE + 2):
            file.write(log(asked(number, f"{number} ".ljust(PIECE, "x"))))


SAMPLES = {
    "gemini, a home": Sample("gemini", home, large=large),
    "gemini, logs": Sample("gemini", logs),
}
REAL = {"gemini-cli-0.61.0": "gemini"}
