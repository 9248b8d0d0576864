"""Small stores of pi, oh-my-pi and of the first version of their logs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sample import LARGE, PIECE, Sample

Record = dict[str, Any]
T0 = 1_770_000_000_000
PNG = base64.b64encode(b"\x89PNG" + bytes(40)).decode()


def moment(number: int) -> str:
    return f"2026-02-02T02:40:{number:02}.000Z"


def header(number: int, **fields: Any) -> Record:
    return {
        "type": "session", "version": 3, "id": f"01a1f9a8-0000-7000-8000-{number:012}",
        "timestamp": moment(0), "cwd": "/home/ada/tea", **fields,
    }  # fmt: skip


def entry(number: int, type: str, above: int | None = -1, **fields: Any) -> Record:
    """An entry, linked to the one before it unless *above* is given."""
    parent = number - 1 if above == -1 else above
    return {
        "type": type, "id": f"{number:08x}", "parentId": f"{parent:08x}" if parent else None,
        "timestamp": moment(number), **fields,
    }  # fmt: skip


def said(number: int, role: str, above: int | None = -1, **fields: Any) -> Record:
    message = {"role": role, **fields, "timestamp": T0 + number}
    return entry(number, "message", above, message=message)


def asked(number: int, text: str, above: int | None = -1) -> Record:
    return said(number, "user", above, content=[{"type": "text", "text": text}])


def answered(
    number: int, *blocks: Record, above: int | None = -1, **fields: Any
) -> Record:
    cost = {"input": 0.1, "output": 0.2, "cacheRead": 0, "cacheWrite": 0, "total": 0.25}
    usage = {
        "input": 10,
        "output": 4,
        "cacheRead": 2,
        "cacheWrite": 1,
        "totalTokens": 17,
        "cost": cost,
    }
    known = {
        "api": "openai",
        "provider": "fake",
        "model": "large",
        "usage": usage,
        "stopReason": "stop",
    }
    return said(number, "assistant", above, content=[*blocks], **{**known, **fields})  # fmt: skip


def words(text: str) -> Record:
    return {"type": "text", "text": text}


def call(name: str, tool: str = "bash", **arguments: Any) -> Record:
    return {"type": "toolCall", "id": name, "name": tool, "arguments": arguments}


def result(number: int, name: str, text: str, *more: Record, **fields: Any) -> Record:
    known = {"toolCallId": name, "toolName": "bash", "isError": False, **fields}
    return said(number, "toolResult", content=[words(text), *more], **known)


def log(*records: Record) -> str:
    lines = [json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in records]
    return "\n".join([*lines, ""])


def write(folder: Path, *records: Record, name: str | None = None) -> Path:
    head = next((r for r in records if r["type"] == "session"), {"id": "none"})
    path = folder / (name or f"2026-02-02T02-40-00-000Z_{head['id']}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(log(*records), encoding="utf-8", newline="\n")
    return path


def first() -> list[Record]:
    return [
        header(1),
        entry(1, "model_change", None, provider="fake", modelId="large"),
        entry(2, "thinking_level_change", thinkingLevel="high"),
        said(3, "system", content="", sections={"preamble": "Be brief", "tools": "bash"}),
        asked(4, "How long does tea take?"),
        answered(5, {"type": "thinking", "thinking": "Hm", "thinkingSignature": "s"}, words("Look:"), call("c1", command="date"), stopReason="toolUse"),
        result(6, "c1", "Monday", {"type": "image", "data": PNG, "mimeType": "image/png"}),
        answered(7, words("Two minutes.")),
        entry(8, "label", targetId="00000007", label="the answer"),
        entry(9, "compaction", summary="Tea", firstKeptEntryId="00000007", tokensBefore=17),
        said(10, "bashExecution", command="ls", output="a.py\n", exitCode=0, cancelled=False, truncated=False),
        entry(11, "custom", customType="mine", data={"a": 1}),
        entry(12, "session_info", name="Tea"),
    ]  # fmt: skip


def pi_home(folder: Path) -> None:
    here = folder / ".pi" / "agent" / "sessions" / "--home-ada-tea--"
    path = write(here, *first())
    # Both branches of a tree that was continued from its first answer.
    fork = [header(2, parentSession=str(path)), *first()[1:8], asked(20, "And coffee?", 7), asked(21, "Or milk?", 7)]  # fmt: skip
    write(here, *fork)
    write(here, header(3), asked(1, "Another one", None), answered(2, words("Yes")))


def oh_my_pi_home(folder: Path) -> None:
    here = folder / ".omp" / "agent" / "sessions" / "-tea"
    slot = {
        "type": "title",
        "v": 1,
        "title": "Tea",
        "updatedAt": moment(1),
        "pad": " " * 9,
    }
    path = write(
        here, slot, header(1, title="Tea", titleSource="auto"),
        entry(1, "model_change", None, model="fake/large", role="default"),
        entry(2, "session_init", systemPrompt="Be brief", task="tea", tools=["bash"]),
        entry(3, "mode_change", mode="plan"),
        entry(4, "ttsr_injection", injectedRules=["no sugar"]),
        said(5, "developer", content=[words("A reminder")], attribution="agent"),
        said(6, "user", content="Plain text"),
        said(7, "fileMention", files=[{"path": "a.py", "content": "1\n", "lineCount": 1}]),
        answered(8, {"type": "redactedThinking", "data": "xyz"}, call("c1", "task", task="look"), responseId="r1", stopReason="aborted", errorMessage="Aborted"),
        entry(9, "custom_message", customType="note", content="Shown", display=True),
        entry(10, "branch_summary", fromId="root", summary=""),
        entry(11, "title_change", title="Tea", source="auto"),
    )  # fmt: skip
    write(
        path.with_suffix(""), slot, header(2, parentSession=str(path)),
        asked(1, "Look for tea", None), answered(2, words("Found")), name="Look.jsonl",
    )  # fmt: skip
    write(here, header(3), asked(1, "Another one", None))


def first_version(folder: Path) -> None:
    """Logs without ids, as of 2025; the last one names a record by its place."""
    here = folder / ".pi" / "agent" / "sessions" / "--home-ada-tea--"

    def bare(*records: Record) -> Iterator[Record]:
        for record in records:
            dropped = ("id", "parentId", "version")
            kept = {k: v for k, v in record.items() if k not in dropped}
            yield record | {"version": 1} if record["type"] == "session" else kept

    for number in (1, 2, 3):
        head = header(number, provider="fake", modelId="large", thinkingLevel="off")
        del head["version"]
        compaction = entry(
            4, "compaction", summary="Tea", firstKeptEntryIndex=2, tokensBefore=9
        )
        _, *rest = bare(head, asked(1, f"Tea {number}?"), answered(2, words("Yes")), asked(3, "Go on"), compaction)  # fmt: skip
        write(here, head, *rest)


def large(folder: Path) -> None:
    pieces = range(1, LARGE // PIECE + 2)
    said_so = (asked(n, f"{n} ".ljust(PIECE, "x"), n - 1 or None) for n in pieces)
    here = folder / ".pi" / "agent" / "sessions" / "--home-ada-tea--"
    for record in said_so:
        record["timestamp"] = moment(0)
        path = here / f"2026-02-02T02-40-00-000Z_{header(1)['id']}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            if file.tell() == 0:
                file.write(log(header(1)))
            file.write(log(record))


SAMPLES = {
    "pi 3, a home": Sample("pi", pi_home, large=large),
    "oh-my-pi, a home": Sample("pi", oh_my_pi_home, writes="oh-my-pi"),
    "pi 1, logs": Sample("pi", first_version),
}
REAL = {"pi-0.87.1": "pi", "oh-my-pi-18.2.3": "pi"}
