"""Small stores of Claude Code: of 2.1, with everything, of 2.0, and of its beginning."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from sample import LARGE, PIECE, Sample

Record = dict[str, Any]
PROJECT = Path("projects/-home-ada-tea")
PNG = base64.b64encode(b"\x89PNG" + bytes(40)).decode()


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def session(number: int) -> str:
    return f"5e551000-0000-4000-8000-{number:012}"


def moment(number: int) -> str:
    return f"2026-02-02T02:{number // 60:02}:{number % 60:02}.000Z"


def line(
    number: int, type: str, above: int | str | None = -1, of: int = 1, **fields: Any
) -> Record:
    """A line, after the one before it unless *above* is given; *of* is its session."""
    if isinstance(above, int):
        above = number - 1 if above == -1 else above
        above = uuid(above) if above else None
    return {
        "parentUuid": above, "isSidechain": False, "userType": "external", "cwd": "/home/ada/tea",
        "sessionId": session(of), "version": "2.1.329", "gitBranch": "main", "type": type,
        "uuid": uuid(number), "timestamp": moment(number), **fields,
    }  # fmt: skip


def asked(
    number: int, content: Any, above: int | str | None = -1, **fields: Any
) -> Record:
    said = {"role": "user", "content": content}
    return line(number, "user", above, message=said, **fields)


def answered(
    number: int, block: Record, above: int | str | None = -1, *, name: str = "msg_1",
    output: int = 4, model: str = "large", stop: str | None = "end_turn", **fields: Any,
) -> Record:  # fmt: skip
    usage = {
        "input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 2,
        "cache_creation_input_tokens": 1,
    }  # fmt: skip
    said = {
        "id": name, "type": "message", "role": "assistant", "model": model, "content": [block],
        "stop_reason": stop, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    return line(number, "assistant", above, message=said, **fields)


def words(text: str) -> Record:
    return {"type": "text", "text": text}


def call(name: str, tool: str = "Bash", **given: Any) -> Record:
    return {"type": "tool_use", "id": name, "name": tool, "input": given}


def result(
    number: int, name: str, content: Any, above: int | str | None = -1, **fields: Any
) -> Record:
    block = {"tool_use_id": name, "type": "tool_result", "content": content}
    failed = fields.pop("is_error", None)
    if failed is not None:
        block["is_error"] = failed
    return asked(number, [block], above, **fields)


def beside(type: str, of: int = 1, **fields: Any) -> Record:
    return {"type": type, **fields, "sessionId": session(of)}


def spent(
    requests: int, usd: float, *, of: int = 1, began: int = 0, model: str = "large"
) -> Record:
    """The state of a process: *requests* like those of `answered` have cost *usd*."""
    usage = {
        "inputTokens": 10 * requests, "outputTokens": 4 * requests,
        "cacheReadInputTokens": 2 * requests, "cacheCreationInputTokens": requests,
        "webSearchRequests": 0, "costUSD": usd,
    }  # fmt: skip
    models = {model: usage} if requests else {}
    return beside(
        "cost-state", of, totalCostUSD=usd, startTime=time_of(began), modelUsage=models
    )


def time_of(number: int) -> int:
    """The time of a line, in Unix ms."""
    return round(datetime.fromisoformat(moment(number)).timestamp() * 1000)


def aside(number: int, agent: str | None, *records: Record) -> list[Record]:
    """Lines of a subagent: *number* is that of the first one, which has no parent."""
    marked = [
        {**r, "isSidechain": True, **({"agentId": agent} if agent else {})}
        for r in records
    ]
    marked[0]["parentUuid"] = None
    assert marked[0]["uuid"] == uuid(number)
    return marked


def write(folder: Path, name: str, *records: Record) -> Path:
    path = folder / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in records]
    text = "\n".join([*lines, ""])
    path.write_bytes(text.replace("\ud800", r"\ud800").encode())
    return path


def first() -> list[Record]:
    image = {"type": "base64", "media_type": "image/png", "data": PNG}
    rendered = [{"content": "<system-reminder>Monday</system-reminder>"}]
    shown = [words("Seen"), {"type": "image", "source": image}]
    boundary = {"subtype": "compact_boundary", "content": "Conversation compacted", "logicalParentUuid": uuid(10)}  # fmt: skip
    return [
        beside("queue-operation", operation="enqueue", timestamp=moment(0), content="x"),
        asked(1, "How long does tea take?", None, permissionMode="default"),
        line(2, "attachment", attachment={"type": "date", "date": "2026-02-02"}, rendered=rendered),
        answered(3, {"type": "thinking", "thinking": "Hm", "signature": "s"}, stop=None, output=1),
        answered(4, call("c1", command="date"), stop="tool_use"),
        result(6, "c1", "Monday", 4, toolUseResult={"stdout": "Monday"}),
        answered(5, call("c2", "Read", file="a.png"), 4, stop="tool_use"),
        result(7, "c2", shown, 5, is_error=False),
        answered(8, words("Two minutes."), 7, name="msg_2"),
        line(9, "progress", 8, data={"type": "hook"}),
        answered(10, words("API Error: 400"), 9, name="e", model="<synthetic>", isApiErrorMessage=True),
        line(11, "system", None, **boundary),
        asked(12, "This session is being continued: tea.", isCompactSummary=True),
        asked(13, "<local-command-stdout>Compacted</local-command-stdout>"),
        asked(14, "A reminder", isMeta=True),
        asked(15, [words("And this?"), {"type": "image", "source": image}], 14),
        answered(16, words("Yes"), name="msg_3"),
        beside("custom-title", customTitle="Tea"),
        beside("tag", tag="drinks"),
        spent(5, 0.5),
        beside("cost-state", totalCostUSD=0.2),
        beside("never-seen-before", of=1, a={"b": [1]}),
    ]  # fmt: skip


def home(folder: Path) -> None:
    """A session, a fork of it with its lines and uuids, and a subagent."""
    here = folder / ".claude" / PROJECT
    task = [
        answered(20, call("c9", "Agent", prompt="Look"), 16, name="msg_4", stop="tool_use"),
        result(21, "c9", [words("Found")], toolUseResult={"agentId": "a1"}),
    ]  # fmt: skip
    write(here, session(1), *first(), *task, spent(8, 0.8))
    copied = [{**r, "sessionId": session(2)} for r in first() if "uuid" in r]
    began = beside("queue-operation", of=2, operation="enqueue", timestamp=moment(40))
    asking = [asked(50, "And coffee?", 16, of=2), spent(6, 0.6, of=2)]
    write(here, session(2), began, *copied, *asking)

    agent = aside(
        22, "a1", asked(22, "Look"), answered(23, words("Found"), name="msg_5")
    )
    folder = here / session(1) / "subagents"
    write(folder, "agent-a1", *agent)
    sidecar = {"agentType": "Explore", "description": "Look for tea", "toolUseId": "c9"}
    (folder / "agent-a1.meta.json").write_text(json.dumps(sidecar))


def second(folder: Path) -> None:
    """Subagents beside their sessions, as in 2.0."""
    here = folder / ".claude" / PROJECT
    write(
        here, session(1), {"type": "summary", "summary": "Tea", "leafUuid": uuid(3)},
        asked(1, "Look for tea", None),
        answered(2, call("c1", "Task", prompt="Look"), stop="tool_use", requestId="req_1"),
        result(3, "c1", "Found"),
    )  # fmt: skip
    write(
        here,
        "agent-9af1",
        *aside(4, "9af1", asked(4, "Look"), answered(5, words("Found"))),
    )
    write(here, session(2), asked(1, "Another one", None, of=2))


def beginning(folder: Path) -> None:
    """Subagents in the transcript itself, and one copied under another name."""
    here = folder / ".claude" / PROJECT
    aside_ = aside(3, None, asked(3, "Look"), answered(4, words("Found"), name="msg_2"))
    snapshot = {"type": "file-history-snapshot", "messageId": uuid(1), "snapshot": {}}
    write(
        here, session(1), snapshot, asked(1, "Look for tea", None),
        answered(2, call("c1", "Task", prompt="Look"), stop="tool_use", costUSD=0.25),
        *aside_, result(5, "c1", [words("Found")], 2),
    )  # fmt: skip
    write(here, session(2), asked(11, "Another one", uuid(99), of=2))


def large(folder: Path) -> None:
    pieces = range(1, LARGE // PIECE + 2)
    path = folder / ".claude" / PROJECT / f"{session(1)}.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8") as file:
        for number in pieces:
            said = asked(number, f"{number} ".ljust(PIECE, "x"), number - 1 or None)
            file.write(json.dumps(said) + "\n")


SAMPLES = {
    "claude 2.1, a home": Sample("claude", home, large=large),
    "claude 2.0, a home": Sample("claude", second),
    "claude 1, a home": Sample("claude", beginning),
}
REAL = {"claude-code-2.1.329": "claude"}
