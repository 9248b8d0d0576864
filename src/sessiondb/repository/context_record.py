"""What `context` returns, and what a provider is sent of it.

How the APIs of providers write a conversation is in `formats.providers`, which is
loaded when it is first used: most reads of a context never are sent anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.loading import load
from sessiondb.model import ContextSource, Message, ModelName


@dataclass(frozen=True, slots=True)
class Context:
    """The context to send to a model.

    ``messages`` from the last cut on, ``summary`` of what was cut away, ``system``
    texts and ``sources`` of the current context epoch. A result is with its call,
    once: a record of a result that its call shows is left out. ``models`` is the last
    model of each role, ``default`` being that of the conversation; ``thinking`` and
    ``mode`` are the last ones, ``rules`` all that were set, in order and without
    repetition, ``session_init`` the data of the last event of that kind, ``{}`` if
    there is none. ``events`` is the data of the last event of each further kind, and of
    ``compaction`` and ``mode_change``.
    ``problems`` says what was repaired.

    ``path`` are ``messages`` with the records of results, and with the messages that
    hold the system texts: `to_openai`, `to_openai_chat` and `to_anthropic` write those,
    and ``messages`` if there are none. They return new values, made of what JSON has
    alone. In all of them calls have their results, system texts come first unless a
    message in between has them, and the summary of a compaction is a prompt before
    everything that was kept. Sources are part of the system texts. Parts that an API
    cannot be sent are left out: reasoning of another provider, calls that another
    provider made itself, parts of types that no API knows.
    """

    messages: tuple[Message, ...]
    system: tuple[str, ...] = ()
    summary: str | None = None
    models: Mapping[str, ModelName] = field(default_factory=dict)
    thinking: str | None = None
    mode: str | None = None
    rules: tuple[Any, ...] = ()
    session_init: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    sources: tuple[ContextSource, ...] = ()
    events: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    path: tuple[Message, ...] = ()

    def to_openai(self) -> list[Any]:
        """Return the items to pass to the Responses API as ``input``.

        ``[]`` for an empty session. Items that `append_openai` stored are equal to
        what was appended, reasoning with its encrypted content included. Others become
        messages of ``input_text``, ``input_image`` and ``input_file``, function calls
        and their outputs; a text of the model is a message with that text as content.
        System texts are messages of role ``system``. A file that is at neither a public
        address nor stored is named in a text.
        """
        load("sessiondb.formats.providers.responses.items")
        from sessiondb.formats.providers.responses.items import items_of

        return items_of(self.path or self.messages, self._system_before(), self.summary)

    def to_openai_chat(self) -> list[Any]:
        """Return the messages to pass to Chat Completions, ``[]`` for an empty session.

        Many servers speak that API. Messages that `append_openai` stored are equal to
        what was appended, those of a completion without null and ``annotations``. An
        answer is one message with all of its calls, and their results follow it. System
        texts are messages of role ``system``; a result is a text, and names its files.
        """
        load("sessiondb.formats.providers.chat.messages")
        from sessiondb.formats.providers.chat.messages import messages_of

        path = self.path or self.messages
        return messages_of(path, self._system_before(), self.summary)

    def to_anthropic(self) -> dict[str, Any]:
        """Return ``messages`` and, if there are any texts for it, ``system``.

        They are arguments of the Messages API: ``create(**context.to_anthropic(), …)``.
        Roles alternate; what follows in one role is one message. Results are the first
        blocks of the turn after their calls, with ``is_error`` if they failed; thinking
        has its signature. Messages that `append_anthropic` stored are equal to what was
        appended, but for what the API takes as equal: a text for a list of one text,
        messages of one role in a row, results behind other blocks, empty messages.
        ``system`` is a list of text blocks. ``messages`` is ``[]`` for an empty
        session.
        """
        load("sessiondb.formats.providers.anthropic.messages")
        from sessiondb.formats.providers.anthropic.messages import request_of

        path = self.path or self.messages
        return request_of(path, self._system_before(), self.summary)

    def _system_before(self) -> list[str]:
        """Return the system texts that no message of the path has."""
        on_path = Counter(
            text for message in self.path for text in _system_texts(message)
        )
        texts = []
        for text in self.system:
            if on_path[text]:
                on_path[text] -= 1
            else:
                texts.append(text)
        return texts


def _system_texts(message: Message) -> tuple[str, ...]:
    if not message.is_system:
        return ()
    return (message.text,) if message.role == "system" else message.context_texts
