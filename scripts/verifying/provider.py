"""A model on loopback that answers every request with one sentence, and records the requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Its answer to every request.
ANSWER = "Understood, continuing."
MODEL = "local/echo"


class Provider:
    """Speaks as much of OpenAI's chat completions as an agent needs; ``sent`` grows."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        sent = self.sent

        class Handler(BaseHTTPRequestHandler):
            """One request."""

            def do_POST(self) -> None:
                """Answer with `ANSWER`."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = json.loads(body)
                sent.append(json.dumps(request["messages"], ensure_ascii=False))
                streamed = bool(request.get("stream"))
                kind = "text/event-stream" if streamed else "application/json"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(_stream() if streamed else _encoded(_completion()))

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        """The base URL of its interface."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

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


def _completion() -> dict[str, Any]:
    message = {"role": "assistant", "content": ANSWER}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}


def _stream() -> bytes:
    first = {
        "index": 0,
        "delta": {"role": "assistant", "content": ANSWER},
        "finish_reason": None,
    }
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    events = [
        {"id": "1", "object": "chat.completion.chunk", "choices": [choice]}
        for choice in (first, last)
    ]
    lines = [b"data: " + _encoded(event) + b"\n\n" for event in events]
    return b"".join([*lines, b"data: [DONE]\n\n"])


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
