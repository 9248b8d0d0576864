"""The conversation of a graph as messages of its session.

The channel ``messages`` of the main graph is a list of messages. The live path of the
session is that list: what was added is appended, a list that went back to an earlier
message and continued is a branch, and nothing that was said is removed. Any other value
of the channel is not a conversation, and is in the tables alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from sessiondb.effects import LEAF, SessionHandle, Unit
from sessiondb.errors import CodecError, ConflictError, InvalidInputError
from sessiondb.model import (
    MessageDraft,
    PartDraft,
    Tokens,
    file,
    reasoning,
    text,
    tool,
    tool_result,
)
from sessiondb.model.paths import path_to
from sessiondb.store import Store

_ROLES: dict[type[BaseMessage], str] = {
    HumanMessage: "user",
    AIMessage: "assistant",
    SystemMessage: "system",
    ToolMessage: "tool",
}
#: The name of a message of the session, in its data, is the digest of the graph's one.


class ThreadTranscript(NamedTuple):
    """The live path of a session as messages of the graph, and the ids in the session.

    A message is named by the digest of its serialized form (`lists.digest_of`), one
    of another program by nothing.
    """

    path: tuple[bytes, ...]
    #: The id of each message of the path in the session.
    places: tuple[str, ...]
    ids: frozenset[str]


#: That of a session that its first unit makes.
NEW = ThreadTranscript((), (), frozenset())


def messages_in_channel(value: Any) -> list[BaseMessage] | None:
    """Return the messages of a channel's value; None if it is not a conversation."""
    if not isinstance(value, list):
        return None
    for message in value:
        if type(message) not in _ROLES or not isinstance(message.id, str):
            return None
    return value


def read_transcript(store: Store, session: SessionHandle) -> ThreadTranscript:
    """Return the live path of a session, and the ids of all its messages.

    Raises `NotFoundError`, and `ConflictError` if its end is removed meanwhile.
    """
    # First the leaf: what is appended after it is beside the path.
    leaf = store.session(session).leaf_seq
    messages = store.messages(session, branches=True)
    by_seq = {message.seq: message for message in messages}
    if leaf is not None and leaf not in by_seq:
        raise ConflictError("the end of the session was removed while it was read")
    parents = {message.seq: message.parent_seq for message in messages}
    path = [by_seq[seq] for seq in path_to(parents, leaf)]
    return ThreadTranscript(
        tuple([message.data.get("langgraph", b"") for message in path]),
        tuple([message.id for message in path]),
        frozenset([message.id for message in messages]),
    )


def continue_transcript(
    fx: Unit,
    session: SessionHandle,
    transcript: ThreadTranscript,
    messages: list[BaseMessage],
    digests: Sequence[bytes],
) -> ThreadTranscript:
    """Queue the writes that make *messages* the live path of a session; return it.

    *digests* name the messages, in their order.
    """
    shared = 0
    for digest, known_digest in zip(digests, transcript.path, strict=False):
        if digest != known_digest:
            break
        shared += 1

    places = list(transcript.places[:shared])
    is_branch = shared < len(transcript.path)
    if shared == len(messages) and is_branch:
        fx.set_leaf(session, places[-1] if places else None)
    ids: set[str] = set()
    for message, digest in zip(messages[shared:], digests[shared:], strict=True):
        # The leaf is what was expected, or what was appended last.
        place: Any = LEAF
        if is_branch and not ids:
            place = places[-1] if places else None
        try:
            # The id is taken if another branch has the message, or it was changed.
            is_taken = message.id in transcript.ids or message.id in ids
            draft = _draft_of(message, None if is_taken else message.id, digest)
            handle = fx.append(session, draft, after=place)
        except (InvalidInputError, CodecError):
            # A graph that runs elsewhere runs here, and the tables have its message.
            handle = fx.append(session, _plain_draft(message, digest), after=place)
        places.append(handle.id)
        ids.add(handle.id)
    return ThreadTranscript(tuple(digests), tuple(places), transcript.ids | ids)


def _draft_of(message: BaseMessage, own_id: str | None, digest: bytes) -> MessageDraft:
    parts = list(_content_parts(message.content))
    columns: dict[str, Any] = {}
    if isinstance(message, ToolMessage):
        parts = [tool_result(message.tool_call_id, message.text)]
    elif isinstance(message, AIMessage):
        parts += [
            tool(call["name"], call["args"], call_id=call["id"])
            for call in message.tool_calls
        ]
        facts = message.response_metadata
        columns["model_id"] = facts.get("model_name") or facts.get("model")
        columns["provider_id"] = facts.get("model_provider")
        columns["tokens"] = _tokens_of(message)
    return MessageDraft(
        _ROLES[type(message)],
        tuple(parts),
        id=own_id,
        data={"langgraph": digest},
        **columns,
    )


def _plain_draft(message: BaseMessage, digest: bytes) -> MessageDraft:
    """Return a message with nothing but its role, its calls' names and its text."""
    words = [str(message.text)]
    if isinstance(message, AIMessage):
        words += [f"[{call['name']}]" for call in message.tool_calls]
    plain = "\n".join(words).encode(errors="replace").decode()
    return MessageDraft(
        _ROLES[type(message)], (text(plain),), data={"langgraph": digest}
    )


def _tokens_of(message: AIMessage) -> Tokens | None:
    """Return the tokens of an answer, each in one place: LangChain repeats some.

    Without LangChain's own count it is that of OpenAI's API, which integrations keep.
    """
    in_details: Any
    out_details: Any
    usage = message.usage_metadata
    if usage is not None:
        in_details = usage.get("input_token_details") or {}
        out_details = usage.get("output_token_details") or {}
        return _separate_tokens(
            usage["input_tokens"],
            usage["output_tokens"],
            out_details.get("reasoning"),
            in_details.get("cache_read"),
            in_details.get("cache_creation"),
        )

    match message.response_metadata.get("token_usage"):
        case {"prompt_tokens": int(sent), "completion_tokens": int(received), **other}:
            in_details = other.get("prompt_tokens_details") or {}
            out_details = other.get("completion_tokens_details") or {}
            return _separate_tokens(
                sent,
                received,
                out_details.get("reasoning_tokens"),
                in_details.get("cached_tokens"),
                None,
            )
    return None


def _separate_tokens(
    sent: int,
    received: int,
    reasoning: int | None,
    cache_read: int | None,
    cache_write: int | None,
) -> Tokens:
    """Return tokens of totals that include the last three."""
    return Tokens(
        input=sent - (cache_read or 0) - (cache_write or 0),
        output=received - (reasoning or 0),
        reasoning=reasoning,
        cache_read=cache_read,
        cache_write=cache_write,
    )


def _content_parts(content: str | list[str | dict[str, Any]]) -> Iterator[PartDraft]:
    """Yield the parts of a message's content; blocks of unknown types are kept."""
    for block in [content] if isinstance(content, str) else content:
        if isinstance(block, str):
            if block:
                yield text(block)
            continue
        match block:
            case {"type": "text", "text": str(words)}:
                yield text(words)
            case {"type": "reasoning", "reasoning": str(words)}:
                yield reasoning(words)
            case {"type": "thinking", "thinking": str(words)}:
                yield reasoning(words)
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                yield file(url)
            case {"type": "image" | "file" | "audio" | "video", "url": str(url)}:
                yield file(url, mime=block.get("mime_type"))
            # Calls are in `tool_calls`, whichever provider they are of.
            case {"type": "tool_use" | "tool_call" | "function_call"}:
                continue
            case _:
                yield PartDraft("block", data={"block": block})
