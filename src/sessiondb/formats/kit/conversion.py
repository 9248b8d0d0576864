"""Converting any session to a foreign shape: names, losses and results.

The writer of a format is a subclass of `Conversion`. It makes the records of one
session, names its messages through `Names`, and calls `Conversion.lose` for everything
that the format cannot represent, so that an export reports each loss and hides none.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from sessiondb.formats.kit.carrying import (
    Carried,
    CarryStatement,
    Examination,
    Losses,
    sort_of,
)
from sessiondb.formats.kit.fields import as_object, text
from sessiondb.formats.kit.turns import is_moved
from sessiondb.model import Export, Message, Part, Session
from sessiondb.model.purposes import PROMPT
from sessiondb.patterns import late_pattern
from sessiondb.words import left_words

#: The name of a provider or model that is not known.
UNKNOWN = "unknown"
#: Events whose text a model is shown as if the user had said it.
SAID_FOR_USER = frozenset({"custom_message", "branch_summary"})
#: The parts of an event whose text a model is shown, or may be.
_SHOWN = frozenset({"text", "tool", "source"})
_NATIVE = late_pattern(r"msg_[0-7][0-9A-HJKMNP-TV-Z]{25}")


class Model(NamedTuple):
    """A model, as a session or message names it."""

    provider: str
    id: str


class Names:
    """The names of one session and its messages in the foreign shape.

    References are followed through it, so a message has to be named before a
    record refers to it.
    """

    def __init__(self, session: str) -> None:
        self.session = session
        #: The ids that messages were written with, by their own.
        self._written: dict[str, str] = {}

    def name_message(self, message: Message) -> str:
        """Return the id that *message* is written with, and keep it for references."""
        name = self._written[message.id] = self.choose_id(message)
        return name

    def choose_id(self, message: Message) -> str:
        """Return an id for *message*.

        A format with rules for its ids overrides this.
        """
        return message.id

    def written_id(self, message_id: Any) -> Any:
        """Return the id that the message *message_id* was written with.

        *message_id* itself if no such message was written.
        """
        if type(message_id) is not str:
            return message_id
        return self._written.get(message_id, message_id)


class Losing:
    """The losses of one session; ``losses`` grow as it is converted.

    A writer states what it carries (`CARRIES`), and has each message examined that it
    makes records of (`convert`), and the session (`lose_rest`): everything that is not
    stated is lost. A loss that depends on a value it reports itself.

    They name the session and its messages by our ids, under which a user finds them in
    this database, not by those that they are written under.
    """

    #: The fields that the format carries of a session that it did not write.
    CARRIES: ClassVar[CarryStatement] = CarryStatement(Carried(), {})

    def __init__(self, export: Export, losses: Losses) -> None:
        self.export = export
        self.session = export.session
        self.losses = losses
        self._examination = Examination(self.CARRIES, self.session.id, losses)
        self._message_count = 0
        self._prompt_count = 0

    def convert(self, message: Message) -> None:
        """Record what is not carried of *message*, which records are made of.

        A message that its own program wrote, and that is written as it was, loses
        nothing. The counts of an event may be on an answer: then nothing of it is left.
        """
        if not is_moved(message):
            self._examination.examine_message(message)

    def lose_rest(self, *, is_own: bool = False) -> None:
        """Record what is not carried of the session and of the lists beside it.

        *is_own*: its own program wrote its record, which is written as it was.
        """
        self._examination.examine_session(self.session, is_own=is_own)
        lists = self.CARRIES.lists
        if "labels" not in lists:
            self.lose_labels()
        if "todos" not in lists and self.export.todos:
            self.losses.add_loss(self.session.id, "todos", "")
        if "diffs" not in lists and self.export.diffs:
            self.losses.add_loss(self.session.id, "diffs", "")
        for table in self.export.extension_tables:
            self.losses.add_loss(
                self.session.id, "extension_rows", "", reason=f"rows of {table}"
            )

    def lose(
        self,
        reason: str = "",
        message: Message | None = None,
        *,
        part: Part | None = None,
        field: str = "",
    ) -> None:
        """Record a loss of *message* or its *part*, or of the session itself.

        It is that of a *field*, or without one of the record; without a *reason* the
        words follow from these.
        """
        if message is None:
            sort, message_id = "session", None
        else:
            sort, message_id = sort_of(message), message.id
        if part is not None:
            sort = f"{sort}/{part.type}"
        self.losses.add_loss(
            self.session.id, sort, field, reason=reason, message_id=message_id
        )

    def lose_bare_provider(self, message: Message) -> None:
        """Record the provider of a message whose model is unknown: it has no place."""
        if message.provider_id and not message.model_id:
            self.lose("the provider of an unknown model", message, field="provider_id")

    def lose_message(self, message: Message) -> None:
        """Record a message that is not written, because of a value in it.

        One of a sort that is not carried is recorded when it is converted.
        """
        if not is_moved(message) and self._examination.carries_message(message):
            self.losses.add_loss(
                self.session.id, sort_of(message), "", message_id=message.id
            )

    def lose_part(self, part: Part, message: Message) -> None:
        """Record a part that is not written, because of a value in it.

        One of a type that is not carried is recorded when its message is converted.
        """
        if self._examination.carries_message(message, part.type):
            sort = f"{sort_of(message)}/{part.type}"
            self.losses.add_loss(self.session.id, sort, "", message_id=message.id)

    def lose_added_files(self, message: Message) -> None:
        """Record the files of a message that its program keeps beside its log."""
        for part in message.parts:
            if part.type == "file" and "added" in part.data:
                self.lose("files beside the log", message, part=part)

    def printable_record(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return *record* with null for what JSON cannot express: that is a loss."""
        if is_json(record):
            return record
        self.lose("values that JSON cannot express: they are written as null")
        printed: dict[str, Any] = as_json(record)
        return printed

    def take_shown_text(self, message: Message) -> str:
        """Return the `shown_text` of an event; its other parts are lost."""
        self.lose_parts(message, but=_SHOWN)
        return shown_text(message)

    def lose_parts(self, message: Message, *, but: Container[str]) -> None:
        """Record the parts of other types than *but* as lost."""
        for part in message.parts:
            if part.type not in but:
                self.lose_part(part, message)

    def lose_labels(self) -> None:
        """Record the labels of the session as lost, for a format without any."""
        for label in self.export.labels:
            self.lose_label(label.label)

    def lose_label(self, name: str) -> None:
        """Record a label as lost."""
        self.losses.add_loss(self.session.id, "labels", "", reason=f"label {name}")

    def count_messages(self, messages: Iterable[Message]) -> Iterator[Message]:
        """Yield *messages*, which are counted for `lose_branches`."""
        for message in messages:
            self._message_count += 1
            if message.purpose == PROMPT:
                self._prompt_count += 1
            yield message

    def lose_branches(self) -> None:
        """Record the messages that were not `counted` as lost."""
        uncounted = self.session.message_count - self._message_count
        if uncounted > 0:
            prompts = self.session.prompt_count - self._prompt_count
            where = "of branches that are not continued"
            self.lose(left_words(uncounted, prompts, where), field="branches")


class Conversion(Losing):
    """One session on its way to a foreign shape."""

    def __init__(
        self, export: Export, messages: list[Message], losses: Losses, names: Names
    ) -> None:
        super().__init__(export, losses)
        self.messages = messages
        self.names = names
        #: The results of the calls that were written, None for a call without one.
        self._results: dict[str | None, str | None] = {}

    # -- losses ---------------------------------------------------------------

    def note_result(self, call_id: str | None, result: str | None) -> None:
        """Record the result that a call is written with; see `lose_results`."""
        self._results[call_id] = result

    def lose_results(self, message: Message) -> None:
        """Record the losses of a message of role ``tool``, in a format without it.

        Calls carry their results: the same result in such a message is not a loss.
        """
        for part in message.parts:
            if part.type != "tool-result":
                self.lose_part(part, message)
                continue
            is_written = part.call_id in self._results
            if not is_written or self._results[part.call_id] != part.text:
                self.lose(f"a result of call {part.call_id}", message, part=part)

    # -- what a message does not state itself -----------------------------------

    def agent_of(self, index: int) -> str | None:
        """Return the agent of the message at *index*.

        Its own, else that of the answer to it or of a message before it, else that
        of the session; None if it is not known.
        """
        for message in self._nearest_messages(index):
            if message.agent:
                return message.agent
        return self.session.agent

    def model_of(self, index: int) -> Model:
        """Return the model of the message at *index*, found like its agent."""
        provider = self.session.provider_id or UNKNOWN
        for message in self._nearest_messages(index):
            if message.model_id:
                return Model(message.provider_id or provider, message.model_id)
        return Model(provider, self.session.model_id or UNKNOWN)

    def _nearest_messages(self, index: int) -> Iterator[Message]:
        """Yield the message at *index*, those after it, those before backwards."""
        # Not slices: a copy of the list for each message would be quadratic.
        for place in range(index, len(self.messages)):
            yield self.messages[place]
        for place in reversed(range(index)):
            yield self.messages[place]


def is_native(message_id: str) -> bool:
    """Return whether an id was made by our database: no other message has it."""
    return _NATIVE.fullmatch(message_id) is not None


def is_from(session: Session, source: str) -> bool:
    """Return whether *session* was imported from *source*."""
    return session.source == source and session.time_imported is not None


def live_path(session: Session, messages: Iterable[Message]) -> list[Message]:
    """Return the messages that lead to the one that is continued, oldest first."""
    by_seq = {message.seq: message for message in messages}
    path = []
    seq = session.leaf_seq
    # A parent is older than its child, so this ends.
    while seq is not None and (message := by_seq.pop(seq, None)) is not None:
        path.append(message)
        seq = message.parent_seq

    return path[::-1]


def continued_path(
    export: Export, messages: Iterable[Message], losses: Losses
) -> list[Message]:
    """Return the messages of the live path; the others are lost."""
    writer = Losing(export, losses)
    path = list(writer.count_messages(live_path(export.session, messages)))
    writer.lose_branches()
    return path


def text_of(message: Message, *, synthetic: bool = False) -> str:
    """Return the texts by the author of *message*, joined by newlines.

    With *synthetic* those that a program added to it instead.
    """
    texts = []
    for part in message.parts:
        if part.type != "text" or part.data.get("ignored") or not part.text:
            continue
        if part.synthetic == synthetic:
            texts.append(part.text)
    return "\n".join(texts)


def shown_text(message: Message) -> str:
    """Return the text of an event, or of a system message, as a model is shown it.

    Texts that a program added count, too, and a command that the user ran, with its
    output; sources if there is nothing else.
    """
    lines: list[str | None] = []
    for part in message.parts:
        if part.type == "tool":
            arguments = as_object(part.input)
            command = arguments.get("command", arguments.get("code"))
            if text(command):
                lines.append(f"$ {command}")
            lines.append(part.text)
        elif part.type == "text" and not part.data.get("ignored"):
            lines.append(part.text)

    if not any(lines):
        lines = [part.text for part in message.parts if part.type == "source"]
    return "\n".join(line for line in lines if line)


class Call(NamedTuple):
    """A tool call with everything that other programs need of one."""

    id: str
    tool: str
    arguments: dict[str, Any]
    #: When it began, in Unix ms; never unknown.
    start: int
    #: When it ended; None while it runs.
    end: int | None
    result: str
    #: The reason why it failed, if it did.
    failure: str


def call_of(part: Part) -> Call:
    """Return the call of a tool part, with defaults for anything that is not known."""
    return Call(
        id=part.call_id or f"call_{part.id}",
        tool=part.tool or UNKNOWN,
        arguments=call_arguments(part),
        start=part.time_started or part.time_created,
        end=part.time_ended,
        result=part.text or "",
        failure=part.text or part.outcome or "failed",
    )


def call_arguments(part: Part) -> dict[str, Any]:
    """Return the arguments of a call as an object.

    Anything else is put under ``value``.
    """
    arguments = part.input
    if arguments is None:
        return {}
    return arguments if type(arguments) is dict else {"value": arguments}


# -- what JSON can express ------------------------------------------------------


def is_json(value: Any) -> bool:
    """Return whether JSON can express *value*: no bytes, no NaN."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def as_json(value: Any) -> Any:
    """Return *value* with null in place of everything that JSON cannot express."""
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]

    return value if is_json(value) else None


def within_64_bits(value: Any) -> Any:
    """Return *value* with floats in place of integers beyond 64 bits.

    For a program that reads every number as a float: it sees the same values.
    """
    if isinstance(value, Mapping):
        return {key: within_64_bits(item) for key, item in value.items()}
    if isinstance(value, list):
        return [within_64_bits(item) for item in value]
    is_large = type(value) is int and not -(1 << 63) <= value < 1 << 64
    return float(value) if is_large else value


def json_text(value: Any) -> str:
    """Return *value* as indented JSON with a final newline.

    Lone surrogates are escaped.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2, allow_nan=False)
    return f"{text}\n"
