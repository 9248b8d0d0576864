"""Any session as OpenCode 2 exports one.

Records of 2 are written as they were. Records of 1.x become what its upgrade makes
of them, everything else is made of what all sessions have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.formats.content import File, error_text, file_of
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import SAID_FOR_USER, is_native, text_of
from sessiondb.formats.kit.fields import (
    as_object,
    as_text,
    text,
    value_at,
    without_empty,
    without_none,
)
from sessiondb.formats.kit.turns import is_moved
from sessiondb.formats.opencode.answers import counts_of, usage_of
from sessiondb.formats.opencode.names import note_id
from sessiondb.formats.opencode.v2 import records as exact
from sessiondb.formats.opencode.v2.carried import CARRIES
from sessiondb.formats.opencode.v2.fields import ENDS
from sessiondb.formats.opencode.v2.parts import content_of, snapshot_of
from sessiondb.formats.opencode.writing import RULE_V2, OpenCodeWriter, Record
from sessiondb.model import Export, Message

#: The reasons of 2 why an answer ended; any other is "unknown".
_FINISHES = frozenset({"stop", "length", "tool-calls", "content-filter", "error"})
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
#: The outcome of an ``idle`` record by the kind of the event.
_OUTCOMES: Mapping[str | None, str] = {kind: outcome for outcome, kind in ENDS.items()}
#: The parts of a prompt that 2 has, too.
_OF_PROMPTS = frozenset({"text", "file", "agent"})
#: How the parts that a summary keeps are introduced in its text.
_INTRODUCED = {"text": "[Assistant]", "reasoning": "[Assistant reasoning]"}


class WriterV2(OpenCodeWriter):
    """One session on its way to 2; ``losses`` are what 2 cannot hold."""

    CARRIES = CARRIES
    GENERATION = 2
    REVERT = ("messageID", "partID", "snapshot")

    def __init__(self, export: Export, messages: list[Message], losses: Losses) -> None:
        super().__init__(export, messages, losses)
        #: The summaries that prompts of 1.x request, by prompt, until they come.
        self._requested: dict[str | None, Record] = {}

    def json(self) -> dict[str, Any]:
        """Return the session as ``opencode session export`` prints it."""
        records = []
        for index, message in enumerate(self.messages):
            for record in self._records_of(message, index):
                if exact.is_settled(record):
                    records.append(record)
                else:
                    self._lose_unsettled(record)

        info = self.info(records)
        if self.session.relation == "fork":
            self.lose("that it is a fork: an import forgets it", field="relation")
            if any(message.inherited for message in self.messages):
                reason = "which answers are copies: without their originals they count"
                self.losses.add_loss(
                    self.session.id, "assistant", "usage", reason=reason
                )
        if self.session.share_url:
            self.lose("its share", field="share_url")
        return {"info": info, "messages": records}

    def _lose_unsettled(self, record: Record) -> None:
        self.losses.add_loss(
            self.session.id,
            "assistant",
            "",
            reason="a message that never ended",
            message_id=record["id"],
        )

    # -- messages ------------------------------------------------------------

    def _records_of(self, message: Message, index: int) -> list[Record]:
        """Return the records of a message: none, one, or a prompt and its note."""
        if self.is_exact and not is_native(message.id):
            return self._exact_records(message)

        self.convert(message)
        if message.kind == "compaction":
            return self._summary_records(message, index)
        match message.role:
            case "user":
                return self._prompt_records(message)
            case "assistant":
                return [self._answer_record(message, index)]
            case "tool":
                self.lose_results(message)
                return []
            case _:
                return self._event_records(message)

    def _exact_records(self, message: Message) -> list[Record]:
        """Return the record of a message that 2 wrote, as it was."""
        record = exact.message_json(message)
        if record is None:
            self.convert(message)
            return self._event_records(message)

        record["id"] = self.names.name_message(message)
        self.lose_output(message)
        for part in message.parts:
            # Its instructions are in tables that an export leaves out.
            if part.type == "source":
                self.lose(message=message, part=part)
        return [record]

    def _new_record(self, message: Message, kind: str, **fields: Any) -> Record:
        name = self.names.name_message(message)
        time = {"created": message.time_created}
        return {"id": name, "type": kind, "time": time, **fields}

    def _event_records(self, message: Message) -> list[Record]:
        """Return the record of an event, or of a system message, if 2 has one."""
        if is_moved(message):
            return []
        kind = message.kind
        if message.role == "system" or kind == "context":
            return [
                self._new_record(message, "system", text=self.take_shown_text(message))
            ]
        if kind in SAID_FOR_USER:
            shown = self.take_shown_text(message)
            if shown:
                return [self._new_record(message, "synthetic", text=shown)]
        elif kind in _OUTCOMES:
            return [self._new_record(message, "idle", outcome=_OUTCOMES[kind])]
        elif kind == "model_change" and message.model_id and message.provider_id:
            model = {"id": message.model_id, "providerID": message.provider_id}
            return [self._new_record(message, "model-switched", model=model)]
        elif kind == "mode_change" and message.agent:
            return [self._new_record(message, "agent-switched", agent=message.agent)]

        self.lose_message(message)
        return []

    # -- prompts and answers ---------------------------------------------------

    def _prompt_records(self, message: Message) -> list[Record]:
        for part in message.parts:
            if part.type == "compaction":
                # A request of 1.x for a summary: 2 has one record for both.
                is_manual = not part.data.get("auto")
                first_kept = part.data.get("tail_start_id")
                summary = self._new_summary(message, is_manual, first_kept)
                self._requested[message.id] = summary
                return []

        self.lose_parts(message, but=_OF_PROMPTS)
        texts = [text_of(message)]
        files, agents = [], []
        absent_part = None
        for part in message.parts:
            if part.type == "agent" and text(part.data.get("name")):
                agents.append({"name": part.data["name"]})
            if part.type != "file":
                continue
            file = file_of(part)
            if file.data is not None:
                files.append(_attached_file(file))
            else:
                # A file without its content can only be named.
                name = file.name or file.url
                texts.append(f"[Attachment not in the session: {name} ({file.mime})]")
                absent_part = part

        if absent_part is not None:
            reason = "files that are not in the session"
            self.lose(reason, message, part=absent_part)
        prompt_text = "\n".join(line for line in texts if line)
        lists = without_empty({"files": files, "agents": agents})
        return self._prompt_and_note(message, prompt_text, lists)

    def _prompt_and_note(
        self, message: Message, prompt_text: str, lists: Record
    ) -> list[Record]:
        """Return a prompt, and a record of its own for text that a program added.

        The text of the user may be empty.
        """
        prompt = self._new_record(message, "user", text=prompt_text, **lists)
        note_text = text_of(message, synthetic=True)
        if not note_text:
            return [prompt]

        note = self._new_record(message, "synthetic", text=note_text)
        if not prompt_text and not lists:
            reason = "prompts of a program alone: they are its notes"
            self.lose(reason, message, field="role")
            return [note]

        reason = "texts that a program added to prompts: they are notes after them"
        for part in message.parts:
            if part.synthetic:
                self.lose(reason, message, part=part)
                break
        return [prompt, {**note, "id": note_id(message, prompt["id"])}]

    def _answer_record(self, message: Message, index: int) -> Record:
        agent, _ = self.agent_and_model(index)
        model = self._model_at(index, message.data.get("variant"))
        record = self._new_record(message, "assistant", agent=agent, model=model)
        if message.time_completed is not None:
            record["time"]["completed"] = message.time_completed
        record["content"] = content_of(self, message)

        error = self.error_of(message, model["providerID"])
        finish = _finish_of(message)
        is_cut = value_at(error, "type") == "aborted"
        was_cut = message.finish == "cancelled"
        if message.finish and (finish == "unknown" or is_cut != was_cut):
            self.lose(message=message, field="finish")
        end = {"snapshot": snapshot_of(message), "finish": finish, "error": error}
        return {**record, **without_empty(end), **_usage_of(message)}

    def new_error(self, error: Any, provider: str) -> Record:  # noqa: ARG002
        """Return any error of an answer as 2 has it."""
        record = as_object(error)
        message = error_text(error)
        if not isinstance(record.get("type"), str):
            kind = _ERRORS.get(str(record.get("name")), "unknown")
            return {"type": kind, "message": message}

        keys = ("type", "message", "status")
        fields = {key: record[key] for key in keys if key in record}
        return {"message": message, **fields}

    def _model_at(self, index: int, variant: Any = None) -> Record:
        model = self.model_of(index)
        return {
            "id": model.id,
            "providerID": model.provider,
            "variant": _variant_or_default(variant),
        }

    # -- summaries -------------------------------------------------------------

    def _new_summary(
        self, message: Message, is_manual: bool, first_kept: Any
    ) -> Record:
        return self._new_record(
            message,
            "compaction",
            status="completed",
            reason="manual" if is_manual else "auto",
            recent=self._recent_text(first_kept, message),
        )

    def _summary_records(self, message: Message, index: int) -> list[Record]:
        """Return the record of a summary, with what its request states of it."""
        summary = self._requested.pop(message.turn_id, None)
        is_unfinished = bool(message.error) or message.time_completed is None
        if message.role == "assistant" and is_unfinished:
            self.lose_message(message)
            return []

        data = message.data
        if summary is None:
            is_manual = data.get("reason") == "manual"
            first_kept = data.get("first_kept_id") or data.get("tail_start_id")
            summary = self._new_summary(message, is_manual, first_kept)
        elif summary["time"]["created"] != message.time_created:
            self.lose(message=message, field="time_created")

        summary["model"] = self._model_at(index)
        summary["summary"] = str(text_of(message) or data.get("summary") or "")
        return [{**summary, **_usage_of(message)}]

    def _recent_text(self, first_kept: Any, end: Message) -> str:
        """Return the text of the messages that a summary leaves as they are.

        They begin with the message *first_kept*, and are before *end*.
        """
        lines = []
        is_kept = False
        for message in self.messages:
            if message.id == end.id:
                break
            if message.id == first_kept:
                is_kept = True
            if is_kept:
                lines += _recent_lines(message)
        return "\n".join(lines)

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
            **usage_of(messages),
            "time": self.session_times(),
            "location": {"directory": session.required_directory},
        }
        more = {"title": session.title, "permissions": self.permission_rules(RULE_V2)}
        return {**info, **without_empty(more), **self.common_fields()}

    def session_model(self) -> Record | None:
        """Return the model of the session with its variant."""
        model = super().session_model()
        if model is None:
            return None
        variant = value_at(self.session.data.get("model"), "variant")
        return {**model, "variant": _variant_or_default(variant)}


# -- fields of records -------------------------------------------------------------


def _recent_lines(message: Message) -> list[str]:
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


def _variant_or_default(value: Any) -> str:
    return as_text(value) or "default"


def _usage_of(message: Message) -> Record:
    tokens = None if message.tokens is None else counts_of(message.tokens)
    return without_none({"cost": message.cost, "tokens": tokens})


def _finish_of(message: Message) -> str | None:
    """Return why an answer ended, in the words of 2; None if that is not known."""
    if message.finish == "cancelled":
        return "error"
    # The provider's own word, if there is one.
    finish = as_text(message.data.get("finish", message.finish))
    if finish is None or finish in _FINISHES:
        return finish
    return "unknown"


def _attached_file(file: File) -> Record:
    source: Record = {"type": "inline"}
    if file.url is not None and not file.url.startswith("data:"):
        source = {"type": "uri", "uri": file.url}
    record = {"data": file.data, "mime": file.mime, "source": source, "name": file.name}
    return without_none(record)
