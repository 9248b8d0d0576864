"""Small plain logs: times as texts and in ms, and the spellings of other programs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from sample import LARGE, PIECE, Sample

Record = dict[str, Any]
T0 = 1_770_000_000_000
PNG = base64.b64encode(b"\x89PNG" + bytes(40)).decode()
SOURCES = [
    {"kind": "file", "path": "AGENTS.md", "scope": "project", "hash": "ab12", "truncated": False, "error": None},
    {"kind": "file", "path": "big.md", "scope": "user", "hash": "cd34", "truncated": True, "error": "too large"},
]  # fmt: skip
USAGE = {"input": 10, "output": 4, "reasoning": 3, "cache_read": 2, "cache_write": 1}


def moment(number: int) -> str:
    return f"2026-02-02T02:40:{number:02}.000Z"


def line(seq: int, type: str, *, text_time: bool = False, **given: Any) -> Record:
    when = moment(seq) if text_time else T0 + seq
    return {"schema_version": 1, "seq": seq, "time": when, "type": type, **given}


def meta(name: str = "s1", **given: Any) -> Record:
    known = {"session_id": name, "cwd": "/home/ada/tea", "agent": "build", "model": "large", **given}  # fmt: skip
    return line(0, "session_meta", **known)


def write(path: Path, *records: Record) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")
    return path


def first() -> list[Record]:
    """A log with a record of each type, and results inside of answers."""
    return [
        meta(),
        line(1, "context", sources=SOURCES, text="Be brief"),
        line(2, "user_message", text="How long does tea take?"),
        line(3, "assistant_started", model="large", provider="fake"),
        line(4, "tool_started", call_id="c1", name="bash", arguments={"command": "date"}),
        line(5, "tool_started", call_id="c2", name="read", arguments={"path": "a"}),
        line(6, "tool_finished", call_id="c2", error="No such file", outcome="failed"),
        line(7, "tool_finished", call_id="c1", output="Monday"),
        line(8, "tool_started", call_id="c3", name="task", arguments={}),
        line(9, "weather", degrees=80),
        line(10, "assistant_finished", text="Two minutes.", reasoning="Hm", usage=USAGE, cost=0.25, finish="stop"),
        line(11, "tool_finished", call_id="c3", outcome="denied"),
        line(12, "session_renamed", title="Tea"),
        line(13, "user_message", text="And coffee?"),
        line(14, "assistant_started", model="small"),
        line(15, "session_renamed", title="Tea and coffee"),
        line(16, "session_finished", reason="quit"),
    ]  # fmt: skip


def other_spellings() -> list[Record]:
    """The same in the words of other programs, and with times as texts."""
    usage = {
        "input_tokens": 12,
        "output_tokens": 7,
        "input_tokens_details": {"cached_tokens": 2},
        "output_tokens_details": {"reasoning_tokens": 3},
    }
    picture = {"type": "image", "data": PNG, "mime_type": "image/png"}
    records = [
        line(1, "system_message", content="Be brief"),
        line(2, "user_message", id="m1", content=[{"type": "text", "text": "Look:"}, picture]),
        line(3, "tool_started", id="c1", tool="bash", input='{"command": "ls"}'),
        line(4, "tool_finished", tool_call_id="c1", result={"files": ["a.py"]}, status="ok"),
        line(5, "assistant_finished", message_id="m2", content=[{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Done."}], usage=usage, stop_reason="end_turn"),
        line(6, "assistant_message", text="And more.", model_id="small", error={"message": "late"}),
    ]  # fmt: skip
    for number, record in enumerate(records, 1):
        record["time"] = moment(number)
    head = {**meta("s2", title="Spelled", parent_session_id="s1"), "time": moment(0)}
    return [head, *records]


def logs(folder: Path) -> None:
    write(folder / "one.jsonl", *first())
    write(folder / "two.jsonl", *other_spellings())
    write(
        folder / "three.jsonl", meta("s3"), line(1, "user_message", text="Another one")
    )


def large(folder: Path) -> None:
    pieces = range(1, LARGE // PIECE + 2)
    said = (line(n, "user_message", text=f"{n} ".ljust(PIECE, "x")) for n in pieces)
    write(folder / "large.jsonl", meta(), *said)


SAMPLES = {"event-log, logs": Sample("event-log", logs, large=large)}
REAL: dict[str, str] = {}
