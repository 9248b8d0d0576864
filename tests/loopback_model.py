"""A model on loopback that speaks the APIs of OpenAI, Anthropic and Google.

It calls the tool ``bash`` once and answers with what that returned, so what a client
sends decides what it gets: a request whose calls have no results is refused, as
providers do. An answer is streamed if that is asked for (not by the Responses API).
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
        if _is_gemini(path):
            return self._candidates(body["contents"])
        return self._message(body["messages"], _tool_name(body))

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

    def _candidates(self, contents: list[Value]) -> Value | None:
        parts = [part for content in contents for part in content["parts"]]
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        responses = [
            part["functionResponse"] for part in parts if "functionResponse" in part
        ]
        if [it["name"] for it in calls] != [it["name"] for it in responses]:
            return None
        part: Value = {"functionCall": {"name": "bash", "args": COMMAND}}
        if responses:
            returned = responses[-1]["response"]
            part = {"text": _words({"last": returned.get("result")})}
        return {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 60,
                              "candidatesTokenCount": 20, "totalTokenCount": 120},
            "modelVersion": "scripted-1", "responseId": f"response-{self._number}",
        }  # fmt: skip

    def _message(self, messages: list[Value], tool: str) -> Value | None:
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
            "name": tool,
            "input": COMMAND,
        }
        return {
            "id": f"msg_{number}", "type": "message", "role": "assistant",
            "model": "scripted-1", "content": [thinking, said if results or not tool else call],
            "stop_reason": "end_turn" if results or not tool else "tool_use", "stop_sequence": None,
            "usage": {"input_tokens": 40, "output_tokens": 20, "cache_read_input_tokens": 60},
        }  # fmt: skip


def _is_gemini(path: str) -> bool:
    return path.endswith((":generateContent", ":streamGenerateContent"))


def _tool_name(body: Value) -> str:
    """Return the name under which the tool is offered, empty if it is not."""
    if "tools" not in body:
        return "bash"
    names = [tool.get("name", "") for tool in body["tools"]]
    return next((name for name in names if name.lower().endswith("bash")), "")


def _words(results: dict[str, Any]) -> str:
    last = list(results.values())[-1] if results else ""
    if isinstance(last, list) and last and "text" in last[0]:
        last = last[0]["text"]
    return f"The tests say: {last.strip()}" if isinstance(last, str) else "Seen."


def _chunks(completion: Value) -> Iterator[Value]:
    """Yield the chunks of a chat completion, which is streamed."""
    (choice,) = completion["choices"]
    frame = {**completion, "object": "chat.completion.chunk", "usage": None}
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [
            {"index": index, **call} for index, call in enumerate(delta["tool_calls"])
        ]
    for piece, reason in ((delta, None), ({}, choice["finish_reason"])):
        yield {
            **frame,
            "choices": [{"index": 0, "delta": piece, "finish_reason": reason}],
        }
    yield {**frame, "choices": [], "usage": completion["usage"]}


def _events(message: Value) -> Iterator[Value]:
    """Yield the events of an Anthropic message, which is streamed."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}  # fmt: skip
    for index, block in enumerate(message["content"]):
        empty = dict(block)
        if block["type"] == "tool_use":
            empty["input"] = {}
            text = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": text}]
        elif block["type"] == "thinking":
            empty.update(thinking="", signature="")
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        else:
            empty["text"] = ""
            deltas = [{"type": "text_delta", "text": block["text"]}]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": reason, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _streamed(path: str, answer: Value) -> bytes:
    """Return an answer as the server-sent events of its API."""
    if path.endswith("/chat/completions"):
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in _chunks(answer)]
        lines.append("data: [DONE]\n\n")
    elif _is_gemini(path):
        lines = [f"data: {json.dumps(answer)}\n\n"]
    else:
        lines = [
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            for event in _events(answer)
        ]
    return "".join(lines).encode()


@contextmanager
def served(script: Script) -> Iterator[str]:
    """Serve a script on loopback; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            request = json.loads(self.rfile.read(length))
            path = self.path.partition("?")[0]
            answer = script.answer(path, request)
            wants_stream = request.get("stream") or path.endswith(
                "streamGenerateContent"
            )
            if answer and wants_stream:
                kind, body = "text/event-stream", _streamed(path, answer)
            else:
                failure = {"error": {"message": "no result"}}
                kind, body = "application/json", json.dumps(answer or failure).encode()
            self.send_response(200 if answer else 400)
            self.send_header("Content-Type", kind)
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
