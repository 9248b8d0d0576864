"""The keys of Responses items whose values have a column; see `kit.fields`.

Read off openai 2.x (``types/responses/response_input_item_param.py``), whose items the
SDK stores as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from sessiondb.formats.kit.fields import Fields, clean_name, clean_text, text
from sessiondb.formats.kit.usage import usage_table
from sessiondb.model import aliases

#: Roles of messages to roles of drafts; a developer speaks for the program.
ROLES: Mapping[str, str] = {
    role: aliases.ROLE[role] for role in ("user", "assistant", "system", "developer")
}
#: The type of an item without one, by a key that it has: a message may leave it out,
#: and `EncryptedSession` stores the other one, whose key is not in the file.
UNTYPED: Mapping[str, str] = {"role": "message", "__enc__": "encrypted"}
#: Blocks of content that are one text: the type of their part, and the key of the text.
TEXTS: Mapping[str, tuple[str, Fields]] = {
    "input_text": ("text", {"text": ("text", text)}),
    "output_text": ("text", {"text": ("text", text)}),
    "text": ("text", {"text": ("text", text)}),
    "refusal": ("text", {"refusal": ("text", text)}),
    "summary_text": ("reasoning", {"text": ("text", text)}),
    "reasoning_text": ("reasoning", {"text": ("text", text)}),
}
CALL: Fields = {"call_id": ("call_id", clean_text), "name": ("tool", clean_name)}
RESULT: Fields = {"call_id": ("call_id", clean_text)}
#: A call of a tool of the provider, which has no call id but its own.
SERVED: Fields = {"id": ("call_id", clean_text), "name": ("tool", clean_name)}
#: The keys of calls for their arguments: JSON in a text, or anything else.
ARGUMENTS = ("arguments", "input", "action", "operation", "code", "queries")
#: Ends of the types of calls and of their results.
CALLS, RESULTS = "_call", "_call_output"
#: ``status`` of an item to that of its call.
STATUS: Mapping[str, tuple[str, str | None]] = {
    "completed": ("completed", None),
    "failed": ("error", "failed"),
    "incomplete": ("error", "interrupted"),
}
#: A row of ``turn_usage``: a turn's sum over its requests.
USAGE: Fields = usage_table(input="input_tokens", output="output_tokens")
