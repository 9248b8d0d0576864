"""A conversation that begins with one provider and is continued with another one.

A scripted model answers in place of both. Run: python examples/providers.py [DATABASE]
"""

from __future__ import annotations

import sys
from typing import Any

from sessiondb import Store


def openai(items: list[Any]) -> dict[str, Any]:
    """Answer as the Responses API does: client.responses.create(input=items, …)."""
    print("OpenAI is sent:", *(item.get("type", item.get("role")) for item in items))
    thought = {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA"}
    call = {"type": "function_call", "call_id": "call_1", "name": "bash",
            "arguments": '{"command":"pytest -q"}'}  # fmt: skip
    return {
        "id": "resp_1", "model": "gpt-5.2", "status": "completed", "output": [thought, call],
        "usage": {"input_tokens": 1200, "input_tokens_details": {"cached_tokens": 1000},
                  "output_tokens": 40, "output_tokens_details": {"reasoning_tokens": 16}},
    }  # fmt: skip


def anthropic(system: list[Any], messages: list[Any]) -> dict[str, Any]:
    """Answer as the Messages API does: client.messages.create(**request, …)."""
    print("Anthropic is sent:", *(block["text"] for block in system))
    for message in messages:
        blocks = message["content"]
        print(" ", message["role"], *(block["type"] for block in blocks))
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "All three tests pass."}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 1100, "output_tokens": 12},
    }  # fmt: skip


def main(database: str) -> None:
    """Ask OpenAI, run its call, and let Anthropic answer."""
    with Store.open(database, source="example-providers") as store:
        session = store.create_session(title="Run the tests")
        store.append_openai(session, [{"role": "developer", "content": "Be brief"}])
        prompt = {"role": "user", "content": [{"type": "input_text", "text": "Do they pass?"}]}
        store.append_openai(session, prompt)
        store.append_openai(session, openai(store.context(session).to_openai()))

        # The result settles the call, whenever it comes.
        result = {"type": "function_call_output", "call_id": "call_1", "output": "3 passed"}
        store.append_openai(session, result)

        request = store.context(session).to_anthropic()
        store.append_anthropic(session, anthropic(**request), provider="anthropic")

        for message in store.messages(session):
            print(f"#{message.seq} {message.role} {message.finish or ''}".rstrip())
            for part in message.parts:
                print("  ", *filter(None, (part.type, part.status, part.text)))
        for row in store.usage(by="model", sessions=[session.id], prices={}):
            print(f"{row.key['model']}: {row.tokens.input} in, {row.tokens.output} out")
        print("back to OpenAI:", store.context(session).to_openai()[-1])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ":memory:")
