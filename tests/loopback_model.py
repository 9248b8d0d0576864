"""A model on loopback that speaks the APIs of OpenAI and Anthropic: it plays a script.

It calls the tool once and answers with what that returned, so what a client sends decides
what it gets: a request whose calls have no results is refused, as providers do.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Value = dict[str, Any]
COMMAND = {"command": "echo 3 passed"}


class Script:
    """What the model was sent, and its answers."""

    def __init__(self) -> None:
        self.requests: list[Value] = []
        self._number = 0

    def answer(self, path: str, body: Value) -> Value | None:
        """Return the answer to a request; None for one that a provider refuses."""
        self.requests.append(body)
        self._number += 1
        if path.endswith("/responses"):
            return self._response(body["input"])
        if path.endswith("/chat/completions"):
            return self._completion(body["messages"])
        return self._message(body["messages"])

    def _response(self, items: list[Value]) -> Value | None:
        called = {i["call_id"]: i for i in items if i.get("type") == "function_call"}
        results = {
            i["call_id"]: i["output"]
            for i in items
            if i.get("type") == "function_call_output"
        }
        if called.keys() != results.keys():
            return None
        number = self._number
        thought = {"type": "reasoning", "id": f"rs_{number}", "summary": [],
                   "encrypted_content": f"sealed {number}"}  # fmt: skip
        said = {
            "type": "message", "id": f"msg_{number}", "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": _words(results), "annotations": []}],
        }  # fmt: skip
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                "name": "bash", "arguments": json.dumps(COMMAND), "status": "completed"}  # fmt: skip
        return {
            "id": f"resp_{number}", "object": "response", "created_at": 1_770_000_000,
            "model": "scripted-1", "status": "completed", "error": None,
            "incomplete_details": None, "instructions": None, "metadata": {},
            "output": [thought, said] if results else [thought, call],
            "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto",
            "tools": [], "top_p": 1.0,
            "usage": {
                "input_tokens": 100, "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 0},
                "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 5},
                "total_tokens": 120,
            },
        }  # fmt: skip

    def _completion(self, messages: list[Value]) -> Value | None:
        called = {c["id"] for m in messages for c in m.get("tool_calls") or ()}
        results = {
            m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"
        }
        if called != results.keys():
            return None
        number = self._number
        message: Value = {"role": "assistant", "content": _words(results)}
        if not results:
            function = {"name": "bash", "arguments": json.dumps(COMMAND)}
            call = {"id": f"call_{number}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        reason = "stop" if results else "tool_calls"
        return {
            "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1_770_000_000,
            "model": "scripted-1",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }  # fmt: skip

    def _message(self, messages: list[Value]) -> Value | None:
        blocks = [
            block
            for message in messages
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        called = {block["id"] for block in blocks if block["type"] == "tool_use"}
        results = {
            block["tool_use_id"]: block.get("content", "")
            for block in blocks
            if block["type"] == "tool_result"
        }
        roles = [message["role"] for message in messages]
        if called != results.keys() or roles[::2] != ["user"] * len(roles[::2]):
            return None
        number = self._number
        thinking = {
            "type": "thinking",
            "thinking": "Hm",
            "signature": f"signed {number}",
        }
        said = {"type": "text", "text": _words(results)}
        call = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "bash",
            "input": COMMAND,
        }
        return {
            "id": f"msg_{number}", "type": "message", "role": "assistant",
            "model": "scripted-1", "content": [thinking, said if results else call],
            "stop_reason": "end_turn" if results else "tool_use", "stop_sequence": None,
            "usage": {"input_tokens": 40, "output_tokens": 20, "cache_read_input_tokens": 60},
        }  # fmt: skip


def _words(results: dict[str, Any]) -> str:
    last = list(results.values())[-1] if results else ""
    return f"The tests say: {last.strip()}" if isinstance(last, str) else "Seen."


@contextmanager
def served(script: Script) -> Iterator[str]:
    """Serve a script on loopback; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            answer = script.answer(self.path, json.loads(self.rfile.read(length)))
            body = json.dumps(answer or {"error": {"message": "no result"}}).encode()
            self.send_response(200 if answer else 400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
