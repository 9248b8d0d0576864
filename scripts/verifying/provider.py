"""A model on loopback that answers every request with one sentence, and records the requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

#: Its answer to every request.
ANSWER = "Understood, continuing."
MODEL = "local/echo"


class Interface(NamedTuple):
    """The answer of one interface, and the events of the same answer; all end a turn.

    ``asked`` is the key that a request has its messages under.
    """

    answer: dict[str, Any]
    events: list[bytes]
    asked: str = "messages"


class Provider:
    """Speaks as much of OpenAI's and Anthropic's interfaces as an agent needs.

    ``sent`` grows: the messages of each request, as JSON.
    """

    def __init__(self) -> None:
        self.sent: list[str] = []
        sent = self.sent

        class Handler(BaseHTTPRequestHandler):
            """One request."""

            def do_POST(self) -> None:
                """Answer with `ANSWER`."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                interface = INTERFACES.get(self.path.partition("?")[0])
                if interface is None:
                    self.send_error(404)
                    return

                request = json.loads(body)
                sent.append(json.dumps(request[interface.asked], ensure_ascii=False))
                streamed = bool(request.get("stream"))
                kind = "text/event-stream" if streamed else "application/json"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                answer = [_encoded(interface.answer)]
                self.wfile.write(b"".join(interface.events if streamed else answer))

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def root(self) -> str:
        """The URL below which the interfaces are."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def address(self) -> str:
        """The base URL of OpenAI's interface."""
        return f"{self.root}/v1"

    def config(self) -> dict[str, Any]:
        """Return a configuration of OpenCode that knows this model and no other."""
        models = {"echo": {"name": "Echo", "tool_call": True}}
        options = {"baseURL": self.address, "apiKey": "none"}
        local = {
            "npm": "@ai-sdk/openai-compatible",
            "options": options,
            "models": models,
        }
        return {"provider": {"local": local}, "model": MODEL, "small_model": MODEL}

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Answer until left."""
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def _event(value: dict[str, Any], name: str | None = None) -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + _encoded(value) + b"\n\n"


def _chat_completions() -> Interface:
    """Return the answer of OpenAI's chat completions."""
    known = {"id": "1", "object": "chat.completion"}
    message = {"role": "assistant", "content": ANSWER}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}

    first = {"index": 0, "delta": message, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = [
        {"id": "1", "object": "chat.completion.chunk", "choices": [piece]}
        for piece in (first, last)
    ]
    events = [*map(_event, chunks), b"data: [DONE]\n\n"]
    return Interface({**known, "choices": [choice], "usage": usage}, events)


def _messages() -> Interface:
    """Return the answer of Anthropic's messages."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    empty = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "echo",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    said = {"type": "text", "text": ANSWER}

    block = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": ANSWER}
    events: dict[str, dict[str, Any]] = {
        "message_start": {"message": empty},
        "content_block_start": {"index": 0, "content_block": block},
        "content_block_delta": {"index": 0, "delta": delta},
        "content_block_stop": {"index": 0},
        "message_delta": {"delta": end, "usage": usage},
        "message_stop": {},
    }
    return Interface(
        {**empty, **end, "content": [said]},
        [_event({"type": name, **known}, name) for name, known in events.items()],
    )


def _responses() -> Interface:
    """Return the answer of OpenAI's responses."""
    said = {"type": "output_text", "text": ANSWER, "annotations": []}
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [said],
    }
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    empty = {"id": "resp_1", "object": "response", "status": "in_progress"}
    answer = {**empty, "status": "completed", "output": [message], "usage": usage}

    events: dict[str, dict[str, Any]] = {
        "response.created": {"response": empty},
        "response.output_item.done": {"output_index": 0, "item": message},
        "response.completed": {"response": answer},
    }
    return Interface(
        answer,
        [_event({"type": name, **known}, name) for name, known in events.items()],
        "input",
    )


#: The interfaces by the paths of their requests.
INTERFACES = {
    "/v1/chat/completions": _chat_completions(),
    "/v1/messages": _messages(),
    "/v1/responses": _responses(),
}
