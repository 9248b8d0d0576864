"""Messages of Pydantic AI as people read them: roles, parts, calls, tokens and costs.

Nothing is read back from here: `entries` has the exact form of each message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    CompactionPart,
    FilePart,
    ModelMessage,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    SpeechPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from sessiondb.adapters.pydantic_ai.keys import key_of, optional_key_of
from sessiondb.model import (
    MessageDraft,
    PartDraft,
    Tokens,
    file,
    part,
    reasoning,
    text,
    tool,
)

_FINISH = {
    "stop": "stop",
    "length": "length",
    "tool_call": "tool-calls",
    "error": "error",
    "content_filter": "other",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The outcome of a call whose result is not a success.
_OUTCOMES = {
    "failed": "failed",
    "retried": "failed",
    "denied": "denied",
    "interrupted": "interrupted",
}


def transcript_draft(message: ModelMessage) -> MessageDraft:
    """Return a message as people read it."""
    if isinstance(message, ModelResponse):
        return _answer_draft(message)
    parts = list(_request_parts(message.parts))
    role = "user"
    if not any(isinstance(it, UserPromptPart | SpeechPart) for it in message.parts):
        is_result = any(it.type == "tool-result" for it in parts)
        role = "tool" if is_result else "system"
    if role == "user":
        # A session is named after the first text: that of its user.
        parts.sort(key=lambda item: item.synthetic)
    time = _milliseconds(message.timestamp)
    return MessageDraft(role, tuple(parts), time_created=time)


def plain_draft(message: ModelMessage) -> MessageDraft:
    """Return a message with its role and its texts alone, where columns refuse more."""
    try:
        draft = transcript_draft(message)
    except ValueError:
        role = "assistant" if isinstance(message, ModelResponse) else "user"
        return MessageDraft(role)
    words = []
    for item in draft.parts:
        words += [f"[{item.tool}]"] if item.tool else []
        words += [item.text] if item.text else []
    return MessageDraft(draft.role, (text("\n".join(words)),) if words else ())


def _request_parts(parts: Sequence[Any]) -> Iterator[PartDraft]:
    """Yield the parts of a request; what only configures a model has none."""
    for item in parts:
        match item:
            case SystemPromptPart():
                yield text(item.content, synthetic=True)
            case UserPromptPart():
                yield from _content_parts(item.content)
            case ToolReturnPart():
                yield _result_part(item)
                yield from _content_parts(item.files)
            case RetryFeedbackPart():
                yield text(item.model_response(), synthetic=True)
            # Of an earlier release: with a tool it answers a call.
            case _ if item.part_kind == "retry-prompt":
                words = item.model_response()
                if item.tool_name is None:
                    yield text(words, synthetic=True)
                else:
                    yield PartDraft(
                        "tool-result",
                        words,
                        call_id=key_of(item.tool_call_id),
                        status="error",
                        outcome="failed",
                    )
            case _:
                yield from _common_parts(item)


def _answer_draft(message: ModelResponse) -> MessageDraft:
    usage = message.usage
    finish = message.finish_reason
    return MessageDraft(
        "assistant",
        tuple(_answer_parts(message.parts)),
        provider_id=message.provider_name,
        model_id=message.model_name,
        response_id=optional_key_of(message.provider_response_id or None),
        cost=None if usage.cost is None else float(usage.cost),
        tokens=_tokens_of(usage),
        finish=None if finish is None else _FINISH.get(finish, "other"),
        time_created=_milliseconds(message.timestamp),
    )


def _answer_parts(parts: Sequence[Any]) -> Iterator[PartDraft]:
    # A tool of the provider has its result in the same answer.
    results = {
        item.tool_call_id: item
        for item in parts
        if isinstance(item, NativeToolReturnPart)
    }
    for item in parts:
        match item:
            case TextPart():
                if item.content:
                    yield text(item.content)
            case ThinkingPart():
                if item.content:
                    yield reasoning(item.content)
            case ToolCallPart() | NativeToolCallPart():
                yield _call_part(item, results.get(item.tool_call_id))
            case NativeToolReturnPart():
                continue
            case FilePart():
                yield from _content_parts([item.content])
            case _:
                yield from _common_parts(item)


def _common_parts(item: Any) -> Iterator[PartDraft]:
    """Yield what requests and answers both may have."""
    match item:
        case SpeechPart():
            if item.transcript:
                yield text(item.transcript)
            if item.audio is not None:
                yield from _content_parts([item.audio])
        case CompactionPart():
            yield part("compaction", text=item.content)


def _call_part(
    call: ToolCallPart | NativeToolCallPart, result: NativeToolReturnPart | None
) -> PartDraft:
    arguments: Any = call.args
    if isinstance(arguments, str):
        parsed = call.args_as_dict()
        # Arguments that are not valid JSON are shown as the model wrote them.
        arguments = arguments if "INVALID_JSON" in parsed else parsed
    if arguments is None:
        arguments = {}
    if result is None:
        return tool(call.tool_name, arguments, call_id=key_of(call.tool_call_id))
    outcome = _OUTCOMES.get(result.outcome)
    words = _words_of(result)
    return tool(
        call.tool_name,
        arguments,
        call_id=key_of(call.tool_call_id),
        output=words if outcome is None else None,
        error=None if outcome is None else words,
        outcome=outcome,
    )


def _result_part(result: ToolReturnPart) -> PartDraft:
    outcome = _OUTCOMES.get(result.outcome)
    return PartDraft(
        "tool-result",
        _words_of(result),
        call_id=key_of(result.tool_call_id),
        status=None if outcome is None else "error",
        outcome=outcome,
        time_created=_milliseconds(result.timestamp),
    )


def _words_of(result: ToolReturnPart | NativeToolReturnPart) -> str:
    try:
        return result.model_response_str(wrap_if_error=False)
    except ValueError:  # a lone surrogate, which its JSON cannot have
        return str(result.content)


def _content_parts(
    content: str | Sequence[UserContent] | None,
) -> Iterator[PartDraft]:
    """Yield the parts of what a user sent, or a tool or a model attached."""
    for item in [content] if isinstance(content, str) else content or ():
        match item:
            case str():
                if item:
                    yield text(item)
            case TextContent():
                yield text(item.content)
            case BinaryContent():
                yield file(content=item.data, mime=item.media_type)
            case UploadedFile():
                yield file(filename=item.file_id, mime=item.media_type)
            case _:
                url = getattr(item, "url", None)
                if isinstance(url, str):
                    yield file(url)


def _tokens_of(usage: RequestUsage) -> Tokens | None:
    """Return the tokens of an answer, each in one place; None if it states none."""
    if not usage.has_values():
        return None
    uncached = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
    spoken = usage.output_tokens - usage.output_reasoning_tokens
    if uncached < 0 or spoken < 0:
        # Their parts are more than they are: a provider that counts otherwise.
        return Tokens(input=usage.input_tokens, output=usage.output_tokens)
    return Tokens(
        input=uncached,
        output=spoken,
        reasoning=usage.output_reasoning_tokens or None,
        cache_read=usage.cache_read_tokens or None,
        cache_write=usage.cache_write_tokens or None,
    )


def microseconds(moment: datetime) -> int:
    """Return a time in Unix microseconds; one without a zone counts as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else microseconds(moment) // 1000
