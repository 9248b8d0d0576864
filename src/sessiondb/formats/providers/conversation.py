"""A conversation in the order that providers accept: each result after its call, once.

Records of results are where a program wrote them; a call without one has its result
with it, which then comes right after the message of the call. `with_results_next` also
moves records there, for the APIs that take no message in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.content import file_of
from sessiondb.formats.kit.fields import as_object, text
from sessiondb.formats.kit.texts import compact_json
from sessiondb.formats.providers.rest import BLOCK, ITEM, continues_item, rest_of
from sessiondb.model import Message, Part
from sessiondb.model.records import SOURCE

ANTHROPIC, CHAT, RESPONSES = "anthropic", "openai_chat", "openai"
_APIS = (ANTHROPIC, CHAT, RESPONSES)
_SETTLED = ("completed", "error")
#: Calls of Anthropic that are not the program's, as Claude Code has them, too.
_SERVED = ("server_tool_use", "mcp_tool_use")
#: The types of the blocks of images, of all APIs.
_IMAGES = ("image", "image_url", "input_image", "computer_screenshot")
#: The addresses that a provider can read.
_PUBLIC = ("https://", "http://")


@dataclass(slots=True)
class Said:
    """The words of the user, the model or the program in a message."""

    #: ``system``, ``user`` or ``assistant``.
    role: str
    message: Message
    parts: list[Part]


@dataclass(slots=True)
class Answered:
    """The result of a call."""

    #: None for a record whose call is not on the path.
    call: Part | None
    #: The record of the result; None if the call alone has it.
    record: Part | None = None
    #: The parts of the record behind the result: files, and further texts.
    more: list[Part] = field(default_factory=list)

    @property
    def call_id(self) -> str:
        """The id that call and result share."""
        source = self.record if self.call is None else self.call
        return "" if source is None else call_id_of(source)

    @property
    def text(self) -> str:
        """The text of the result; empty if it has none."""
        source = self.call if self.record is None else self.record
        return "" if source is None else source.text or ""

    @property
    def is_error(self) -> bool:
        """Whether the call failed, or was not made."""
        source = self.record if self.call is None else self.call
        return source is not None and source.status == "error"


Entry = Said | Answered


def openai_role(statement: Said) -> str:
    """Return the role of a statement for OpenAI, which has another one of the program.

    A developer stays one.
    """
    for part in statement.parts:
        for api in (CHAT, RESPONSES):
            item = as_object(as_object(rest_of(part, api)).get(ITEM))
            if statement.role == "system" and item.get("role") == "developer":
                return "developer"
    return statement.role


def call_id_of(call: Part) -> str:
    """Return the id of a call; one without any has that of its part."""
    return call.call_id or call.id


def conversation_of(path: Sequence[Message]) -> list[Entry]:
    """Return what the messages of a path say, and the results of its calls."""
    records = _last_records(path)
    recorded = set(records.values())
    entries: list[Entry] = []
    calls: dict[str | None, Part] = {}
    for message in path:
        role = "assistant" if message.role == "assistant" else "user"
        if message.is_system:
            role = "system"
        settled: list[Entry] = []
        statement: Said | None = None
        answered: Answered | None = None
        for part in _shown_parts(message):
            if part.type == "tool-result":
                call = calls.get(part.call_id)
                answered, statement = Answered(call, part), None
                if call is None or id(part) in recorded:
                    entries.append(answered)
                continue

            if answered is not None and _belongs_to_result(part):
                answered.more.append(part)
                continue

            answered = None
            if statement is None:
                statement = Said(role, message, [])
                entries.append(statement)
            statement.parts.append(part)
            if part.type == "tool" and role == "assistant":
                calls[part.call_id] = part
                if is_ended(part) and id(part) not in records:
                    settled.append(Answered(part))
        entries += settled
    return entries


def with_results_next(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries with each result right after the answer that has its call.

    What the model said between a call and its result belongs to the same answer.
    """
    entries = list(entries)
    results = {
        id(entry.call): entry for entry in entries if isinstance(entry, Answered)
    }
    moved: set[int] = set()
    ordered: list[Entry] = []
    answer: Said | None = None
    for entry in entries:
        if isinstance(entry, Answered):
            if id(entry) not in moved:
                moved.add(id(entry))
                ordered.append(entry)
            continue

        waiting = _waiting(answer, results, moved)
        if answer is not None and entry.role == "assistant" and waiting:
            answer.parts += entry.parts
            continue

        moved |= {id(result) for result in waiting}
        ordered += waiting
        statement = Said(entry.role, entry.message, list(entry.parts))
        ordered.append(statement)
        answer = statement if statement.role == "assistant" else None
    return ordered


def _waiting(
    answer: Said | None, results: dict[int, Answered], moved: set[int]
) -> list[Answered]:
    """Return the results of an answer's calls that are not in order yet."""
    if answer is None:
        return []
    return [
        results[id(part)]
        for part in answer.parts
        if id(part) in results and id(results[id(part)]) not in moved
    ]


def _last_records(path: Iterable[Message]) -> dict[int, int]:
    """Return the last record of each call that has one, by identity."""
    calls: dict[str | None, Part] = {}
    records: dict[int, int] = {}
    for message in path:
        for part in message.parts:
            if part.type == "tool" and message.role == "assistant":
                calls[part.call_id] = part
            elif part.type == "tool-result" and part.call_id in calls:
                records[id(calls[part.call_id])] = id(part)
    return records


def _shown_parts(message: Message) -> list[Part]:
    """Return the parts that a model is sent: sources only if they have no text beside.

    See `Message.context_texts`.
    """
    others = [part for part in message.parts if part.type != SOURCE]
    if message.role == "event" and not any(part.text for part in others):
        return list(message.parts)
    return others


def _belongs_to_result(part: Part) -> bool:
    """Return whether a part behind a result belongs to it."""
    block = rest_of(part, ANTHROPIC)
    if block is not None:
        return as_object(block.get(BLOCK)).get("in_result") is True
    for api in (RESPONSES, CHAT):
        if rest_of(part, api) is not None:
            return continues_item(part, api)
    return part.type == "file"


def is_ended(call: Part) -> bool:
    """Return whether a call of the program has a result."""
    return call.status in _SETTLED and not is_served(call)


def is_served(call: Part) -> bool:
    """Return whether the provider made a call itself.

    Such a call has no result that a program could send: no other API is sent it.
    """
    if as_object(rest_of(call, RESPONSES)).get("served") is True:
        return True
    block = as_object(as_object(rest_of(call, ANTHROPIC)).get(BLOCK))
    return block.get("type", call.data.get("type")) in _SERVED


def object_input(call: Part) -> dict[str, Any]:
    """Return the arguments of a call as the object that every API requires."""
    arguments = call.input
    if arguments is None:
        return {}
    return arguments if type(arguments) is dict else {"input": arguments}


class SentFile:
    """A file as a provider can be sent it: its content, a public address, or a name."""

    def __init__(self, part: Part) -> None:
        file = file_of(part)
        self.mime = file.mime
        self.name = file.name
        #: The content in base64; None if only the address is known.
        self.content = file.data
        is_public = text(file.url) and file.url.startswith(_PUBLIC)
        self.url = file.url if is_public else None
        address = file.url if self.content is None else None
        #: Whether a model can look at it.
        self.is_image = file.mime.startswith("image/") or _is_image_block(part)
        #: Says what it was, for a provider that cannot be sent the file itself.
        self.description = f"[file: {file.name or address or file.mime}]"
        if part.text:
            self.description += f"\n{part.text}"

    @property
    def is_sendable(self) -> bool:
        """Whether its content or its address can be sent."""
        return self.content is not None or self.url is not None

    @property
    def data_url(self) -> str:
        """Its content as a ``data:`` URL, else its address."""
        if self.content is None:
            return self.url or ""
        return f"data:{self.mime};base64,{self.content}"


def _is_image_block(part: Part) -> bool:
    """Return whether a part was a block of an image, whose address has no MIME type."""
    types = [as_object(as_object(rest_of(part, api)).get(BLOCK)) for api in _APIS]
    return any(block.get("type") in _IMAGES for block in (*types, part.data))


def texts_of(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the texts of parts that are not empty; of a command, what it printed, too.

    The user ran it, so it is not a call of the model.
    """
    for part in parts:
        if part.type in ("text", SOURCE) and part.text:
            yield part.text
        elif part.type == "tool":
            arguments = object_input(part)
            command = arguments.get("command")
            if not text(command):
                command = compact_json(arguments)
            yield f"{part.tool}: {command}\n{part.text or ''}".rstrip("\n")
