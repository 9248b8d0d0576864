"""Small logs of llm: of 0.27, of 0.36, and of a conversation that both wrote."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from sample import LARGE, PIECE, Sample, connected

Row = dict[str, Any]
PNG = b"\x89PNG" + bytes(40)

# As the two versions make them, without search and without what they do not need.
OLD = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, "order" INTEGER,
  PRIMARY KEY (response_id, attachment_id));
CREATE TABLE schemas (id TEXT PRIMARY KEY, content TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT,
  options_json TEXT, response TEXT, response_json TEXT, conversation_id TEXT, duration_ms INTEGER,
  datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, schema_id TEXT,
  resolved_model TEXT);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, datetime_utc TEXT, source TEXT);
CREATE TABLE prompt_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER,
  PRIMARY KEY (response_id, fragment_id, "order"));
CREATE TABLE system_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER,
  PRIMARY KEY (response_id, fragment_id, "order"));
CREATE TABLE tools (id INTEGER PRIMARY KEY, hash TEXT, name TEXT, description TEXT, input_schema TEXT, plugin TEXT);
CREATE TABLE tool_responses (tool_id INTEGER, response_id TEXT, PRIMARY KEY (tool_id, response_id));
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT,
  tool_call_id TEXT);
CREATE TABLE tool_instances (id INTEGER PRIMARY KEY, plugin TEXT, name TEXT, arguments TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, output TEXT,
  tool_call_id TEXT, instance_id INTEGER, exception TEXT);
CREATE TABLE tool_results_attachments (tool_result_id INTEGER, attachment_id TEXT, "order" INTEGER,
  PRIMARY KEY (tool_result_id, attachment_id));
"""
NEW = """
ALTER TABLE responses ADD COLUMN reasoning TEXT;
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT, provider_metadata TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT,
  text TEXT, payload TEXT);
CREATE UNIQUE INDEX idx_parts ON parts (message_hash, position);
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT,
  resolved_model TEXT, options_json TEXT, schema_id TEXT, input_tokens INTEGER, output_tokens INTEGER,
  token_details TEXT, duration_ms INTEGER, datetime_utc TEXT, response_json TEXT);
CREATE INDEX idx_turns ON turns (thread_id);
CREATE TABLE turn_fragments (turn_id TEXT, fragment_id INTEGER, "order" INTEGER, kind TEXT,
  PRIMARY KEY (turn_id, fragment_id, kind, "order"));
CREATE TABLE turn_tools (turn_id TEXT, tool_id INTEGER, instance_id INTEGER, PRIMARY KEY (turn_id, tool_id));
CREATE TABLE tool_instantiations (turn_id TEXT, tool_call_id TEXT, instance_id INTEGER,
  PRIMARY KEY (turn_id, tool_call_id));
"""
DETAILS = json.dumps(
    {
        "completion_tokens_details": {"reasoning_tokens": 3},
        "prompt_tokens_details": {"cached_tokens": 60},
    }
)


def moment(number: int, mark: str = "T") -> str:
    return f"2026-11-20{mark}16:19:{number:02}.250000+00:00"


class Log:
    """A log that is being written; use `closing`."""

    def __init__(self, path: Path, *schemas: str) -> None:
        self.db = connected(path)
        # 20 tables in one transaction are one write.
        self.db.executescript(f"BEGIN; {''.join(schemas)}; COMMIT")

    def close(self) -> None:
        self.db.commit()
        self.db.close()

    def add(self, table: str, **row: Any) -> None:
        names = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" * len(row))
        self.db.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})", [*row.values()]
        )

    # -- 0.27 --------------------------------------------------------------------

    def conversation(self, name: str, title: str = "Tea") -> None:
        self.add("conversations", id=name, name=title, model="large")

    def response(self, number: int, of: str | None, prompt: str, **row: Any) -> str:
        name = f"r{number:02}"
        known = {
            "id": name, "model": "large", "prompt": prompt, "conversation_id": of, "response": f"Answer {number}",
            "response_json": json.dumps({"id": f"chatcmpl-{name}", "finish_reason": "stop"}), "duration_ms": 500,
            "datetime_utc": moment(number), "input_tokens": 100, "output_tokens": 20, "token_details": DETAILS,
        }  # fmt: skip
        self.add("responses", **{**known, **row})
        return name

    # -- 0.36 --------------------------------------------------------------------

    def message(self, above: str | None, role: str, *parts: Row, **row: Any) -> str:
        """Add a message under a hash of what it says; the same one is added once."""
        said = json.dumps([above, role, parts], default=repr).encode()
        name = f"b2:{sha256(said).hexdigest()[:32]}"
        if self.db.execute("SELECT 1 FROM messages WHERE hash = ?", [name]).fetchone():
            return name
        self.add("messages", hash=name, parent_hash=above, role=role, **row)
        for position, part in enumerate(parts):
            payload = {k: v for k, v in part.items() if k not in ("type", "text")}
            self.add(
                "parts", message_hash=name, position=position, type=part["type"], tool_name=part.get("name"),
                text=part.get("text"), payload=json.dumps(payload) if payload else None,
            )  # fmt: skip
        return name

    def turn(
        self, number: int, of: str, given: str | None, tip: str | None, **row: Any
    ) -> str:
        name = f"t{number:02}"
        known = {
            "id": name, "thread_id": of, "parent_message_hash": given, "tip_message_hash": tip, "model": "large",
            "input_tokens": 100, "output_tokens": 20, "token_details": DETAILS, "duration_ms": 500,
            "datetime_utc": moment(number), "response_json": json.dumps({"id": f"chatcmpl-{name}", "finish_reason": "stop"}),
        }  # fmt: skip
        self.add("turns", **{**known, **row})
        return name

    def thread(self, name: str, tip: str | None, **row: Any) -> None:
        known = {"name": "Tea", "datetime_utc": moment(59, " ")}
        self.add("threads", id=name, tip_message_hash=tip, **{**known, **row})


def log(path: Path, *schemas: str) -> Any:
    return contextlib.closing(Log(path, *(schemas or (OLD, NEW))))


def words(text: str) -> Row:
    return {"type": "text", "text": text}


def call(name: str, **fields: Any) -> Row:
    known = {"type": "tool_call", "name": "bash", "arguments": {"command": "ls"}}
    return {**known, "tool_call_id": name, **fields}


def result(name: str, output: str, **fields: Any) -> Row:
    known = {"type": "tool_result", "name": "bash", "output": output}
    return {**known, "tool_call_id": name, **fields}


def conversations(new: Log) -> None:
    """Add three conversations as 0.27 writes them."""
    for name in ("c1", "c2", "c3"):
        new.conversation(name)
    new.add("tools", id=1, hash="h1", name="bash", input_schema="{}")
    new.add("schemas", id="sch", content='{"type": "object"}')
    new.add("fragments", id=1, hash="f1", content="a.py says 1", source="a.py")
    new.add("fragments", id=2, hash="f2", content="Be brief", source="style.txt")
    new.add("attachments", id="a1", type="image/png", content=PNG)
    new.add("attachments", id="a2", type="image/png", path="/home/ada/tea.png")
    new.add("tool_instances", id=1, plugin="tools", name="Files", arguments="{}")

    first = new.response(1, "c1", "How long?", system="You make tea", schema_id="sch")
    second = new.response(2, "c1", "", response="Two minutes")
    new.response(3, "c1", "And coffee?", response="")
    new.add("prompt_fragments", response_id=first, fragment_id=1, order=0)
    new.add("system_fragments", response_id=first, fragment_id=2, order=0)
    for order, file in enumerate(("a1", "a2")):
        new.add(
            "prompt_attachments", response_id=first, attachment_id=file, order=order
        )
    new.add("tool_responses", tool_id=1, response_id=first)
    new.add(
        "tool_calls", response_id=first, tool_id=1, name="bash", arguments='{"command": "date"}', tool_call_id="call_1"
    )  # fmt: skip
    new.add("tool_results", id=1, response_id=second, tool_id=1, name="bash", output="Monday", tool_call_id="call_1", instance_id=1)  # fmt: skip
    new.add("tool_results_attachments", tool_result_id=1, attachment_id="a1", order=0)
    new.add("prompt_attachments", response_id=second, attachment_id="a1", order=0)
    new.response(4, "c2", "Another one")
    new.response(5, "c3", "And?")


def threads(new: Log) -> None:
    """Add a thread, its fork and another one as 0.36 writes them."""
    new.add("fragments", id=7, hash="f7", content="a.py says 7", source="a.py")
    new.add("attachments", id="a7", type="image/png", content=PNG)
    new.add("tools", id=7, hash="h7", name="bash", input_schema="{}")
    asked = [{"type": "text", "text_ref": [{"fragment": 7}, {"literal": "\nHow long?"}]}, {"type": "attachment", "attachment": {"id": "a7"}}]  # fmt: skip
    system = new.message(None, "system", words("You make tea"))
    one = new.message(system, "user", *asked)
    hidden = {"type": "reasoning", "text": "", "redacted": True}
    two = new.message(one, "assistant", hidden, words("Look:"), call("call_1"))
    three = new.message(
        two, "tool", result("call_1", "a.py\n", attachments=[{"id": "a7"}])
    )
    four = new.message(
        three, "assistant", words("Two minutes"), provider_metadata='{"a":1}'
    )
    five = new.message(four, "user", words("Say nothing"))
    new.turn(1, "t-one", one, two)
    new.turn(2, "t-one", three, four)
    new.turn(3, "t-one", five, five)
    new.add("turn_tools", turn_id="t01", tool_id=7)
    new.add("turn_fragments", turn_id="t01", fragment_id=7, order=0, kind="prompt")
    new.thread("t-one", five)
    # With another system prompt nothing is shared but the name of the original.
    other = new.message(None, "system", words("You make coffee"))
    six = new.message(other, "user", words("And coffee?"))
    seven = new.message(six, "assistant", words("Four"))
    new.turn(4, "t-fork", six, seven)
    new.thread("t-fork", seven, forked_from="t-one")
    new.thread("t-three", new.message(None, "user", words("Unanswered")))


def old(folder: Path) -> None:
    with log(folder / "logs.db", OLD) as new:
        conversations(new)


def newer(folder: Path) -> None:
    with log(folder / "logs.db") as new:
        threads(new)


def continued(folder: Path) -> None:
    """Two conversations of 0.27, one of which 0.36 continued, and a thread."""
    with log(folder / "logs.db") as new:
        new.conversation("c1")
        new.conversation("c2")
        new.response(1, "c1", "How long?", response="Two minutes")
        new.response(2, "c2", "Another one")
        one = new.message(None, "user", words("How long?"))
        two = new.message(one, "assistant", words("Two minutes"))
        three = new.message(two, "user", words("And coffee?"))
        four = new.message(three, "assistant", words("Four"))
        new.turn(3, "c1", three, four)
        new.thread("c1", four)
        new.thread("t1", new.message(None, "user", words("Alone")))


def large(folder: Path) -> None:
    with log(folder / "logs.db", OLD) as new:
        new.conversation("c1")
        for number in range(LARGE // PIECE + 2):
            new.response(
                number, "c1", f"{number} ".ljust(PIECE, "x"), id=f"r{number:06}"
            )


def large_thread(folder: Path) -> None:
    with log(folder / "logs.db") as new:
        tip = None
        pieces: Iterable[int] = range(LARGE // PIECE + 2)
        for number in pieces:
            tip = new.message(tip, "user", words(f"{number} ".ljust(PIECE, "x")))
        new.thread("t1", tip)


SAMPLES = {
    "llm 0.27": Sample("llm", old, large=large),
    "llm 0.36": Sample("llm", newer, large=large_thread),
    "llm, continued": Sample("llm", continued),
}
REAL = {"llm-0.27.1": "llm", "llm-0.36": "llm"}
