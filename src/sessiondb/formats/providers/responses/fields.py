"""The keys of Responses items whose values have a column; see `kit.fields`.

Read off openai 3.57 (``types/responses/response_input_item_param.py``), whose items the
Agents SDK stores as they are. The same tables serve both directions.
"""

from __future__ import annotations

from collections.abc import Mapping

from sessiondb.formats.kit.fields import Fields, clean_name, clean_text, text
from sessiondb.formats.kit.usage import usage_table
from sessiondb.model import aliases

#: The key of the rest of an item in the ``data`` of its parts.
API = "openai"
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
#: The lists of a reasoning item, and the type of their blocks.
THOUGHTS = {"summary": "summary_text", "content": "reasoning_text"}
#: The name of a file that has its content or an address, too.
FILE: Fields = {"filename": ("filename", clean_name)}
FILES = ("input_image", "input_file", "computer_screenshot")
#: The keys of a file for its content or its address.
ADDRESSES = ("image_url", "file_url", "file_data")
CALL: Fields = {"call_id": ("call_id", clean_text), "name": ("tool", clean_name)}
RESULT: Fields = {"call_id": ("call_id", clean_text)}
#: A call of a tool of the provider, which has no call id but its own.
SERVED: Fields = {"id": ("call_id", clean_text), "name": ("tool", clean_name)}
#: A result that has the id of its call as its own.
SERVED_RESULT: Fields = {"id": ("call_id", clean_text)}
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
#: ``status`` of a response to ``finish``; one that is incomplete says why.
FINISH: Mapping[str, str] = aliases.finishes("completed", "failed", "cancelled")
#: A row of ``turn_usage``: a turn's sum over its requests.
USAGE: Fields = usage_table(input="input_tokens", output="output_tokens")
