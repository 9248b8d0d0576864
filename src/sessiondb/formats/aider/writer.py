"""Messages of any session as blocks of a chat history, which aider restores.

aider splits its history by the beginnings of lines alone, also inside of fences: it
drops those with ``# ``, and takes those with ``#### `` and ``> `` out of an answer. So
such lines of an answer are moved by a space.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TypeAlias

from sessiondb.formats.aider.carried import CARRIES
from sessiondb.formats.aider.conventions import (
    answer,
    output,
    pieces_joined,
    prompt,
    prompt_of,
    typed,
)
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import Losing, as_json, text_of
from sessiondb.formats.kit.texts import compact_json
from sessiondb.model import Export, Message, Part, Tokens

#: The input: times and texts, in the order of time.
Entries: TypeAlias = list[tuple[str, str]]
#: The tag that aider keeps reasoning in (``aider/reasoning_tags.py``).
_TAG = "thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b"
_SPLITTING = ("# ", "#### ", "> ")
#: The tags of an answer's pieces, by the type of their part.
_TAGS = {"text": "", "reasoning": _TAG}


class AiderWriter(Losing):
    """The blocks of one session; ``losses`` and ``entries`` grow with each.

    ``entries`` are those of the input history, None if none is written.
    """

    CARRIES = CARRIES

    def __init__(self, export: Export, losses: Losses, entries: Entries | None) -> None:
        super().__init__(export, losses)
        self._entries = entries
        self._model = ""
        self._cost = Decimal(0)

    def blocks(self, message: Message) -> Iterator[str]:
        """Yield the blocks of *message*."""
        self.convert(message)
        roles = {"user": self._asked, "assistant": self._answered, "event": self._event}
        yield from roles.get(message.role, self._nothing)(message)

    def typed(self, message: Message, stamp: str, text: str) -> None:
        """Record a typed prompt: its exact text, which Markdown may not keep."""
        entry = stamp, text
        # Without an entry of its own in the input history (a fork repeats the prompts
        # of its original), the text is only as exact as Markdown is.
        is_alone = self._entries is not None and entry not in self._entries
        if not is_alone and prompt_of(prompt(text)) != text:
            loss = "line separators, and spaces at the end of its text"
            self.lose(loss, message, field="text")
        if self._entries is not None:
            self._entries.append(entry)

    def _nothing(self, message: Message) -> Iterator[str]:
        self.lose_message(message)
        yield from ()

    # -- prompts -------------------------------------------------------------------

    def _asked(self, message: Message) -> Iterator[str]:
        text = self._encodable(text_of(message), message)

        for part in message.parts:
            if part.type != "text" or part.synthetic:
                self.lose_part(part, message)

        if text:
            self.typed(message, typed(message.time_created), text)
            yield prompt(text)

    # -- answers -------------------------------------------------------------------

    def _answered(self, message: Message) -> Iterator[str]:
        yield from self._named(message)
        # Not stripped: its first line may be one that was moved.
        text = pieces_joined(self._pieces(message))
        if text.strip():
            yield answer(text)

        usage = self._usage(message)
        is_call = any(part.type == "tool" for part in message.parts)
        if not text.strip() and not is_call:
            self.lose_message(message)
        # An answer ends with output, or the next one would be part of it.
        yield output(usage)
        for part in message.parts:
            if part.type == "tool":
                yield output(_call(part))

    def _pieces(self, message: Message) -> Iterator[tuple[str, str, str]]:
        for part in message.parts:
            if part.type in _TAGS and part.text:
                text = self._guarded(part.text, message)
                yield part.type, _TAGS[part.type], text

    def _guarded(self, text: str, message: Message) -> str:
        if text.strip() != text:
            self.lose("spaces and lines around texts", message, field="text")
        lines = self._encodable(text, message).strip().splitlines(keepends=True)
        guarded = list(map(_moved, lines))

        if guarded != lines:
            loss = "the beginnings of lines that aider would take for its own"
            self.lose(loss, message, field="text")
        return "".join(guarded)

    def _encodable(self, text: str, message: Message) -> str:
        # A file of UTF-8 has no room for a lone surrogate.
        clean = text.encode("utf-8", "ignore").decode()
        if clean != text:
            self.lose("lone surrogates", message, field="text")
        return clean

    def _named(self, message: Message) -> Iterator[str]:
        """Announce the model of *message* if it is another one."""
        model = "/".join(filter(None, (message.provider_id, message.model_id)))
        self.lose_bare_provider(message)
        is_other = message.model_id and model != self._model
        # A name ends at a space where aider announces it.
        if is_other and model.split() == [model]:
            self._model = model
            yield output(f"Model: {model}")

    def _usage(self, message: Message) -> str:
        """Return the report of an answer, with all digits; empty without one."""
        report = _counts(message.tokens or Tokens())
        if not report and (message.tokens, message.cost) != (None, None):
            self.lose("its usage", message, field="usage")
        elif message.tokens_reasoning:
            loss = "the reasoning tokens, which are counted as output"
            self.lose(loss, message, field="tokens_output")
        if not report or message.cost is None:
            return report

        cost = Decimal(repr(message.cost))
        self._cost += cost
        return f"{report} Cost: ${cost:f} message, ${self._cost:f} session."

    # -- events --------------------------------------------------------------------

    def _event(self, message: Message) -> Iterator[str]:
        if message.kind == "model_change":
            yield from self._named(message)
        else:
            yield from self._nothing(message)


def _moved(line: str) -> str:
    return f" {line}" if line.startswith(_SPLITTING) else line


def _counts(tokens: Tokens) -> str:
    """Return the counts of a report; empty unless input and output are known."""
    if tokens.input is None or tokens.output is None:
        return ""

    # aider counts the cache within the input, and reasoning within the output.
    cache = {"cache write": tokens.cache_write, "cache hit": tokens.cache_read}
    cached = {name: count for name, count in cache.items() if count}
    sent = tokens.input + sum(cached.values())
    received = tokens.output + (tokens.reasoning or 0)

    counts = {"sent": sent, **cached, "received": received}
    shown = (f"{count:,} {name}" for name, count in counts.items())
    return f"Tokens: {', '.join(shown)}."


def _call(part: Part) -> str:
    """Return the call of a tool in one line."""
    arguments = "" if part.input_json is None else compact_json(as_json(part.input))
    return " ".join(f"{part.tool} {arguments}".splitlines())
