"""Any session as OpenCode 2 exports one.

Records of 2 are written as they were. Records of 1.x become what its upgrade makes
of them, everything else is made of what all sessions have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, ClassVar

from sessiondb.formats.content import File, error_text, file_of
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    SAID_FOR_USER,
    is_native,
    shown_text,
    text_of,
)
from sessiondb.formats.kit.fields import (
    as_object,
    as_text,
    filled,
    text,
    within,
    without_none,
)
from sessiondb.formats.kit.turns import is_moved
from sessiondb.formats.opencode.answers import counts_of, spent
from sessiondb.formats.opencode.ids import added
from sessiondb.formats.opencode.v2 import records as exact
from sessiondb.formats.opencode.v2.carried import CARRIES
from sessiondb.formats.opencode.v2.fields import ENDS
from sessiondb.formats.opencode.v2.parts import content_of, snapshot_of
from sessiondb.formats.opencode.writing import RULE_V2, OpenCodeWriter, Record
from sessiondb.model import Export, Message, Part

#: The finish of an answer in 2 by that of the message; any other is "unknown".
_FINISHES: Mapping[str | None, str | None] = {None: None} | {
    finish: finish
    for finish in ("stop", "length", "tool-calls", "content-filter", "error")
}
#: The type of an error in 2 by its name in 1.x.
_ERRORS = {
    "ProviderAuthError": "provider.auth",
    "ContentFilterError": "provider.content-filter",
    "ContextOverflowError": "provider.invalid-request",
    "StructuredOutputError": "provider.invalid-output",
    "MessageOutputLengthError": "provider.invalid-output",
    "MessageAbortedError": "aborted",
    "APIError": "provider.error",
}
_OUTCOMES: Mapping[str | None, str] = {kind: outcome for outcome, kind in ENDS.items()}
#: The parts of a prompt that 2 has, too.
_OF_PROMPTS = frozenset({"text", "file", "agent"})
_NOTHING_SAID = {"kind": "synthetic", "text": ""}
#: How the parts that a summary keeps are introduced in its text.
_INTRODUCED = {"text": "[Assistant]", "reasoning": "[Assistant reasoning]"}


class WriterV2(OpenCodeWriter):
    """One session on its way to 2; ``losses`` say what 2 cannot hold."""

    CARRIES = CARRIES
    GENERATION = 2
    REVERT = ("messageID", "partID", "snapshot")

    def __init__(self, export: Export, messages: list[Message], losses: Losses) -> None:
        super().__init__(export, messages, losses)
        #: Prompts of 1.x that requested a summary, until it comes.
        self._asked: dict[str | None, Record] = {}

    def json(self) -> dict[str, Any]:
        """Return the session as ``opencode session export`` prints it."""
        made = chain.from_iterable(map(self._records, range(len(self.messages))))
        records = [record for record in made if self._is_settled(record)]
        info = self.info(records)
        if self.session.relation == "fork":
            self.lose("that it is a fork: an import forgets it", field="relation")
            if any(message.inherited for message in self.messages):
                why = "which answers are copies: without their originals they count"
                self.losses.add(self.session.id, "assistant", "usage", why=why)
        if self.session.share_url:
            self.lose("its share", field="share_url")
        return {"info": info, "messages": records}

    def _is_settled(self, record: Record) -> bool:
        if exact.settled(record):
            return True
        why = "a message that never ended"
        name = record["id"]
        self.losses.add(self.session.id, "assistant", "", why=why, message_id=name)
        return False

    # -- messages ------------------------------------------------------------

    def _records(self, index: int) -> Iterable[Record]:
        message = self.messages[index]
        if self.is_exact and not is_native(message.id):
            return self._exact(message)
        self.convert(message)
        if message.kind == "compaction":
            return self._compaction(message, index)
        return self._BY_ROLE[message.role](self, message, index)

    def _exact(self, message: Message) -> list[Record]:
        record = exact.message_json(message)
        if record is None:
            self.convert(message)
            return self._event(message)
        record["id"] = self.names.message(message)
        self.lose_output(message)
        for part in message.parts:
            # Its instructions are in tables that an export leaves out.
            if part.type == "source":
                self.lose(message=message, part=part)
        return [record]

    def _head(self, message: Message, kind: str, **fields: Any) -> Record:
        name = self.names.message(message)
        time = {"created": message.time_created}
        return {"id": name, "type": kind, "time": time, **fields}

    def _tool(self, message: Message, _: int = 0) -> list[Record]:
        self.lose_results(message)
        return []

    def _event(self, message: Message, _: int = 0) -> list[Record]:
        if is_moved(message):
            return []
        fields = _event_fields(message)
        if fields is None:
            self.lose_message(message)
            return []

        if "text" in fields:
            self.shown(message)
        if fields == _NOTHING_SAID:
            self.lose_message(message)
            return []
        return [self._head(message, **fields)]

    # -- prompts and answers ---------------------------------------------------

    def _prompt(self, message: Message, _: int) -> Iterator[Record]:
        kinds = _by_type(message)
        if "compaction" in kinds:
            self._ask_for_summary(message, kinds["compaction"][0].data)
            return

        self.lose_parts(message, but=_OF_PROMPTS)

        # A file without its content can only be named.
        files = list(map(file_of, kinds.get("file", [])))
        absent = [_absent(file) for file in files if file.data is None]
        if absent:
            why = "files that are not in the session"
            self.lose(why, message, part=kinds["file"][0])
        names = [part.data.get("name") for part in kinds.get("agent", [])]
        lists = {
            "files": [_attached(file) for file in files if file.data is not None],
            "agents": [{"name": name} for name in filter(text, names)],
        }
        said = "\n".join(filter(None, (text_of(message), *absent)))
        yield from self._said(message, said, filled(lists))

    def _said(self, message: Message, said: str, lists: Record) -> Iterator[Record]:
        """Yield the records of a prompt: text that a program added gets its own.

        The text of the user may be empty.
        """
        put_in = text_of(message, synthetic=True)
        synthetic = self._head(message, "synthetic", text=put_in)

        if not put_in:
            yield self._head(message, "user", text=said, **lists)
        elif not said and not lists:
            why = "prompts of a program alone: they are its notes"
            self.lose(why, message, field="role")
            yield synthetic
        else:
            added_text = next(p for p in message.parts if p.data.get("synthetic"))
            why = "texts that a program added to prompts: they are notes after them"
            self.lose(why, message, part=added_text)
            prompt = self._head(message, "user", text=said, **lists)
            yield prompt
            yield {**synthetic, "id": added(message, prompt["id"])}

    def _answer(self, message: Message, index: int) -> list[Record]:
        agent, _ = self.answerer(index)
        model = self._model(index, message.data.get("variant"))
        record = self._head(message, "assistant", agent=agent, model=model)
        record["time"].update(without_none({"completed": message.time_completed}))
        record["content"] = content_of(self, message)
        error = self.error_of(message, model["providerID"])
        finish = _finish_of(message)
        is_cut = within(error, "type") == "aborted"
        if message.finish and (
            finish == "unknown" or is_cut != (message.finish == "cancelled")
        ):
            self.lose(message=message, field="finish")
        end = {"snapshot": snapshot_of(message), "finish": finish, "error": error}
        return [{**record, **filled(end), **_usage(message)}]

    def new_error(self, error: Any, provider: str) -> Record:  # noqa: ARG002
        """Return any error of an answer as 2 has it."""
        record = as_object(error)
        message = error_text(error)
        if not isinstance(record.get("type"), str):
            kind = _ERRORS.get(str(record.get("name")), "unknown")
            return {"type": kind, "message": message}

        known = ("type", "message", "status")
        facts = {key: record[key] for key in known if key in record}
        return {"message": message, **facts}

    def _model(self, index: int, variant: Any = None) -> Record:
        model = self.model_of(index)
        named = {"id": model.id, "providerID": model.provider}
        return {**named, "variant": _variant(variant)}

    _BY_ROLE: ClassVar = {
        "user": _prompt,
        "assistant": _answer,
        "system": _event,
        "tool": _tool,
        "event": _event,
    }

    # -- summaries -------------------------------------------------------------

    def _ask_for_summary(self, message: Message, asked: Mapping[str, Any]) -> None:
        """Keep a prompt of 1.x that requests a summary: 2 has one record for both."""
        is_manual = not asked.get("auto")
        kept = asked.get("tail_start_id")
        self._asked[message.id] = self._new_summary(message, is_manual, kept)

    def _new_summary(self, message: Message, is_manual: bool, kept: Any) -> Record:
        return self._head(
            message,
            "compaction",
            status="completed",
            reason="manual" if is_manual else "auto",
            recent=self._recent(kept, message),
        )

    def _compaction(self, message: Message, index: int) -> list[Record]:
        asked = self._asked.pop(message.turn_id, None)
        if message.role == "assistant" and _is_unfinished(message):
            self.lose_message(message)
            return []

        data = message.data
        if asked is None:
            is_manual = data.get("reason") == "manual"
            kept = data.get("first_kept_id") or data.get("tail_start_id")
            asked = self._new_summary(message, is_manual, kept)
        elif asked["time"]["created"] != message.time_created:
            self.lose(message=message, field="time_created")
        summary = text_of(message) or data.get("summary") or ""
        model = self._model(index)
        return [{**asked, "model": model, "summary": str(summary), **_usage(message)}]

    def _recent(self, first: Any, end: Message) -> str:
        """Return what a summary leaves as it is, from message *first* on, as text."""
        ids = [message.id for message in self.messages]
        if first not in ids:
            return ""
        kept = self.messages[ids.index(first) : ids.index(end.id)]
        return "\n".join(chain.from_iterable(map(_lines_of, kept)))

    # -- the session ---------------------------------------------------------

    def exact_info(self) -> Record:
        """Return the session's own record as 2 wrote it."""
        return exact.session_info(self.session)

    def new_info(self, messages: list[Record]) -> Record:
        """Return the record of a session that 2 did not write."""
        session = self.session
        info = {
            "id": self.names.session,
            "projectID": self.project_id(),
            **spent(messages),
            "time": self.times(),
            "location": {"directory": session.directory},
        }
        more = {"title": session.title, "permissions": self.rules(RULE_V2)}
        return {**info, **filled(more), **self.common()}

    def model(self) -> Record | None:
        """Return the model of the session with its variant."""
        model = super().model()
        variant = within(self.session.data.get("model"), "variant")
        return model and {**model, "variant": _variant(variant)}


def _by_type(message: Message) -> dict[str, list[Part]]:
    found: dict[str, list[Part]] = {}
    for part in message.parts:
        found.setdefault(part.type, []).append(part)
    return found


def _is_unfinished(message: Message) -> bool:
    return bool(message.error) or message.time_completed is None


# -- events -----------------------------------------------------------------
#
# Each function returns type and fields of the record of an event, None for a loss.


def _system(message: Message) -> Record:
    return {"kind": "system", "text": shown_text(message)}


def _synthetic(message: Message) -> Record:
    return {"kind": "synthetic", "text": shown_text(message)}


def _model_switched(message: Message) -> Record | None:
    model = {"id": message.model_id, "providerID": message.provider_id}
    return {"kind": "model-switched", "model": model} if all(model.values()) else None


def _agent_switched(message: Message) -> Record | None:
    fields = {"kind": "agent-switched", "agent": message.agent}
    return fields if message.agent else None


def _no_event(_: Message) -> None:
    """An event of a kind that 2 does not have."""


def _ended(message: Message) -> Record:
    return {"kind": "idle", "outcome": _OUTCOMES[message.kind]}


_EVENTS: Mapping[str | None, Callable[[Message], Record | None]] = {
    "context": _system,
    "model_change": _model_switched,
    "mode_change": _agent_switched,
    **dict.fromkeys(SAID_FOR_USER, _synthetic),
    **dict.fromkeys(_OUTCOMES, _ended),
}


def _event_fields(message: Message) -> Record | None:
    """Return type and fields of the record of an event; None if 2 has none for it."""
    kind = "context" if message.role == "system" else message.kind
    return _EVENTS.get(kind, _no_event)(message)


# -- content ----------------------------------------------------------------


def _lines_of(message: Message) -> list[str]:
    """Return what a summary keeps of a message as it is."""
    if message.role == "user":
        return [f"[User]: {text_of(message)}"]
    if message.role != "assistant":
        return []
    return [
        f"{_INTRODUCED[part.type]}: {part.text}"
        for part in message.parts
        if part.type in _INTRODUCED and part.text
    ]


def _variant(value: Any) -> str:
    return as_text(value) or "default"


def _usage(message: Message) -> Record:
    tokens = None if message.tokens is None else counts_of(message.tokens)
    return without_none({"cost": message.cost, "tokens": tokens})


def _finish_of(message: Message) -> str | None:
    """Return why an answer ended, in the words of 2; None if that is not known."""
    if message.finish == "cancelled":
        return "error"
    # The provider's own word, if there is one.
    finish = as_text(message.data.get("finish", message.finish))
    return _FINISHES.get(finish, "unknown")


def _attached(file: File) -> Record:
    source: Record = {"type": "inline"}
    if file.url is not None and not file.url.startswith("data:"):
        source = {"type": "uri", "uri": file.url}
    record = {"data": file.data, "mime": file.mime, "source": source, "name": file.name}
    return without_none(record)


def _absent(file: File) -> str:
    return f"[Attachment not in the session: {file.name or file.url} ({file.mime})]"
