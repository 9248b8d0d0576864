"""Small homes of Codex: of 2026 with ordinals, of 2025 without, and the oldest lines."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sample import LARGE, PIECE, Sample

Record = dict[str, Any]
PNG = base64.b64encode(b"\x89PNG" + bytes(40)).decode()
DAY = Path("sessions/2026/02/02")
FAKE = "fake"


def thread(number: int) -> str:
    return f"01a1f9a8-0000-7000-8000-{number:012}"


def moment(number: int) -> str:
    return f"2026-02-02T02:{number // 60:02}:{number % 60:02}.000Z"


def line(number: int, type: str, /, **payload: Any) -> Record:
    return {"timestamp": moment(number), "type": type, "payload": payload}


def meta(number: int = 1, at: int = 0, **fields: Any) -> Record:
    return line(
        at, "session_meta", id=thread(number), timestamp=moment(at), cwd="/home/ada/tea",
        originator="codex_exec", cli_version="0.169.0", source="exec", model_provider=FAKE,
        **fields,
    )  # fmt: skip


def event(number: int, type: str, /, **fields: Any) -> Record:
    return line(number, "event_msg", type=type, **fields)


def item(number: int, type: str, /, **fields: Any) -> Record:
    return line(number, "response_item", type=type, **fields)


def said(number: int, role: str, *texts: str, **fields: Any) -> Record:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return item(number, "message", role=role, content=content, **fields)


def labelled(number: int, role: str, *kinds: tuple[str, str], name: str) -> Record:
    """A message of 2026, whose blocks say what they are."""
    about = {
        "content_item_kinds": [kind for kind, _ in kinds],
        "content_item_metadata": [
            {"provenance": {"type": "user" if kind == "user.text" else "harness"}}
            for kind, _ in kinds
        ],
    }
    texts = [text for _, text in kinds]
    key = "internal_chat_message_metadata_passthrough"
    return said(number, role, *texts, id=name, **{key: about})


def asked(number: int, text: str) -> Record:
    name = f"msg_{number}"
    return labelled(number, "user", ("user.text", text), name=name)


def answered(number: int, text: str) -> Record:
    return said(number, "assistant", text, id=f"msg_{number}", status="completed")


def call(number: int, name: str, cmd: str = "ls", tool: str = "exec_command") -> Record:
    arguments = json.dumps({"cmd": cmd})
    return item(number, "function_call", id=f"fc_{number}", name=tool, arguments=arguments, call_id=name)  # fmt: skip


def result(number: int, name: str, output: Any) -> Record:
    return item(number, "function_call_output", id=f"fco_{number}", call_id=name, output=output)  # fmt: skip


def counts(*numbers: int) -> Record:
    """Input, cached, output, reasoning."""
    all_in, cached, all_out, reasoning = numbers
    return {
        "input_tokens": all_in, "cached_input_tokens": cached, "cache_write_input_tokens": 0,
        "output_tokens": all_out, "reasoning_output_tokens": reasoning,
        "total_tokens": all_in + all_out,
    }  # fmt: skip


def used(number: int, response: str, *one: int, total: tuple[int, ...] = ()) -> Record:
    return line(
        number, "token_usage_record", thread_id=thread(1), response_id=response,
        usage=counts(*one), thread_token_usage=counts(*(total or one)),
    )  # fmt: skip


def totals(number: int, *total: int, last: tuple[int, ...] = ()) -> Record:
    info = {
        "total_token_usage": counts(*total),
        "last_token_usage": counts(*(last or total)),
        "model_context_window": 190000,
    }
    return event(number, "token_count", info=info, rate_limits=None)


def ran(number: int, name: str, code: int = 0) -> Record:
    done = {
        "type": "CommandExecution", "id": name, "exit_code": code,
        "status": "failed" if code else "completed", "aggregated_output": "a.py\n",
    }  # fmt: skip
    return event(number, "item_completed", item=done, started_at_ms=1770000001000, completed_at_ms=1770000001250)  # fmt: skip


def turn(number: int, model: str = "large", **fields: Any) -> Record:
    return line(number, "turn_context", cwd="/home/ada/tea", model=model, **fields)


def numbered(records: Iterable[Record], start: int = 0) -> Iterator[Record]:
    """Records as of 2026: each with an ordinal."""
    for place, record in enumerate(records, start):
        yield {"timestamp": record["timestamp"], "ordinal": place, **record}


def base(of: int | str, cut: int) -> Record:
    name = thread(of) if isinstance(of, int) else of
    return {"thread_id": name, "end_ordinal_exclusive": cut, "end_byte_offset": 1}


def forked(number: int, of: int, cut: int, **fields: Any) -> Record:
    return meta(number, forked_from_id=thread(of), forked_from_ordinal_exclusive=cut, history_mode="paginated", history_base=base(of, cut), **fields)  # fmt: skip


def name_of(number: int, segment: str = "") -> str:
    ending = f"_{segment}" if segment else ""
    return f"rollout-2026-02-02T02-40-00-{thread(number)}{ending}.jsonl"


def log(records: Iterable[Record]) -> str:
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    return "".join(f"{json.dumps(record, **compact)}\n" for record in records)  # type: ignore[arg-type]


def write(
    home: Path, number: int, *records: Record, segment: str = "", folder: Path = DAY
) -> Path:
    path = home / folder / name_of(number, segment)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(log(records), encoding="utf-8", newline="\n")
    return path


def index(home: Path, *names: tuple[int, str]) -> None:
    rows = [
        {"id": thread(n), "thread_name": name, "updated_at": moment(0)}
        for n, name in names
    ]
    (home / "session_index.jsonl").write_text(log(rows), encoding="utf-8")


def history(home: Path, *prompts: tuple[int, int, str]) -> None:
    """The prompts of a terminal: session, second, text."""
    rows = [
        {"session_id": thread(n), "ts": 1769997600 + at, "text": text}
        for n, at, text in prompts
    ]
    (home / "history.jsonl").write_text(log(rows), encoding="utf-8")


def state(home: Path, *rows: tuple[Any, ...], number: int = 5) -> None:
    """The index of a home: id, name, title, first prompt, when it was archived."""
    with closing(sqlite3.connect(home / f"state_{number}.sqlite")) as db, db:
        db.execute("CREATE TABLE threads (id, name, title, first_user_message, archived_at)")  # fmt: skip
        db.executemany("INSERT INTO threads VALUES (?, ?, ?, ?, ?)", rows)


def first() -> list[Record]:
    context = ("environments.environment_context", "<environment_context>")
    patch = item(9, "custom_tool_call", id="fc_9", call_id="c2", name="apply_patch", input="*** Begin")  # fmt: skip
    return [
        meta(history_mode="paginated", base_instructions={"text": "Be brief"}),
        event(1, "task_started", turn_id="t1"),
        said(1, "developer", "Be brief", id="msg_1d"),
        labelled(1, "user", context, name="msg_1e"),
        turn(1, effort="high"),
        asked(2, "How long does tea take?"),
        event(2, "item_completed", item={"type": "UserMessage", "id": "u", "content": []}),
        item(3, "reasoning", id="rs_3", summary=[{"type": "summary_text", "text": "Hm"}], content=None, encrypted_content="gA"),
        answered(4, "Look:"),
        call(5, "c1"),
        used(5, "r1", 10, 2, 5, 1),
        ran(6, "c1"),
        result(7, "c1", "Process exited with code 0\nOutput:\na.py\n"),
        totals(8, 10, 2, 5, 1),
        patch,
        item(10, "custom_tool_call_output", id="ctco_10", call_id="c2", output=[
            {"type": "input_text", "text": "Exit code: 0"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
            {"type": "input_text", "text": "Output:\n"},
        ]),
        item(11, "web_search_call", id="ws_11", status="completed", action={"type": "search", "query": "tea"}),
        answered(12, "Two minutes."),
        used(12, "r2", 20, 4, 6, 2, total=(30, 6, 11, 3)),
        line(13, "compacted", message="Tea", replacement_history=[], window_id="w2"),
        line(14, "world_state", full=True, state={"model": "large"}),
        event(15, "task_complete", turn_id="t1", last_agent_message="Two minutes."),
    ]  # fmt: skip


def home_of_2026(home: Path) -> None:
    write(home, 1, *numbered(first()))
    fork = [forked(2, 1, 13), asked(20, "And coffee?"), answered(21, "Four"), used(21, "r3", 9, 0, 2, 0, total=(19, 2, 7, 1))]  # fmt: skip
    write(home, 2, *numbered(fork, 13))
    spawned = {
        "subagent": {"thread_spawn": {"parent_thread_id": thread(1), "depth": 1}}
    }
    agent = {**meta(3), "payload": {**meta(3)["payload"], "source": spawned}}
    write(home, 3, *numbered([agent, asked(30, "Look"), answered(31, "Found")]))
    index(home, (1, "Old"), (1, "Tea"))
    history(home, (1, 2, "How long does tea take?"), (1, 3, "/status"), (9, 4, "Gone"))
    state(home, (thread(2), None, "And coffee?", "And coffee?", None))


def typed(number: int, text: str, *, before: str = "") -> list[Record]:
    """A prompt of 2025: the text in an item, and again in an event."""
    added = [said(number, "user", before)] if before else []
    message = event(number, "user_message", message=text, kind="plain")
    return [*added, said(number, "user", text), message]


def home_of_2025(home: Path) -> None:
    """Rollouts without ordinals: a fork is a copy, and a rollback is a record."""
    records = [
        event(1, "task_started", model_context_window=9), turn(1),
        *typed(2, "How long?", before="<environment_context>\n"),
        item(3, "reasoning", summary=[], content=[{"type": "reasoning_text", "text": "Hm"}], encrypted_content=None),
        item(4, "local_shell_call", call_id="c1", status="completed", action={"type": "exec", "command": ["ls"]}),
        result(5, "c1", '{"output":"a.py","metadata":{"exit_code":1}}'),
        said(6, "assistant", "Two minutes."),
        event(6, "agent_message", message="Two minutes."),
        totals(6, 10, 2, 5, 1), totals(7, 10, 2, 5, 1),
    ]  # fmt: skip
    write(home, 1, meta(), *records)
    # The time of a copy is that of the fork.
    copies = [{**record, "timestamp": moment(19)} for record in (meta(), *records)]
    write(home, 2, meta(2, at=19, forked_from_id=thread(1)), *copies, *typed(20, "And?"), said(21, "assistant", "Four"), totals(21, 30, 5, 9, 1, last=(20, 3, 4, 0)))  # fmt: skip
    back = event(9, "thread_rolled_back", num_turns=1)
    write(home, 3, meta(3), *typed(1, "One"), said(2, "assistant", "1"), *typed(3, "Two"), back, *typed(10, "Three"))  # fmt: skip


def oldest_home(home: Path) -> None:
    """Items without an envelope, below a header without a type."""
    for number in (1, 2, 3):
        header = {"id": thread(number), "timestamp": moment(0), "instructions": None, "git": {}}  # fmt: skip
        items = [said(1, "user", "<environment_context>"), said(1, "user", f"Tea {number}?"), call(2, "c1", tool="shell"), result(3, "c1", "a.py")]  # fmt: skip
        bare = [record["payload"] for record in items]
        write(home, number, header, {"record_type": "state"}, *bare)


def large(home: Path) -> None:
    path = write(home, 1, meta())
    with path.open("a", encoding="utf-8") as file:
        for n in range(1, LARGE // PIECE + 2):
            file.write(log([said(1, "user", f"{n} ".ljust(PIECE, "x"))]))


SAMPLES = {
    "codex of 2026, a home": Sample("codex", home_of_2026, large=large),
    "codex of 2025, a home": Sample("codex", home_of_2025),
    "codex, the oldest lines": Sample("codex", oldest_home),
}
REAL = {"codex-0.169.0": "codex"}
