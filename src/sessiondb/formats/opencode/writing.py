"""The common part of both writers: sessions that OpenCode did not write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import Conversion, is_from
from sessiondb.formats.kit.fields import (
    as_object,
    text,
    value_at,
    without_empty,
    without_keys,
    without_none,
)
from sessiondb.formats.kit.turns import with_usage
from sessiondb.formats.opencode.generation import generation_of
from sessiondb.formats.opencode.ids import SOURCE
from sessiondb.formats.opencode.keys import OUTPUT_FILE
from sessiondb.formats.opencode.names import OpenCodeNames
from sessiondb.model import Export, Message, Part

#: The agent of a message without one: OpenCode's default.
AGENT = "build"
#: The loss of a call whose output was cut and lies in a file.
_COMPLETE_OUTPUT = "the file with the complete output of a call"
#: The error of an answer that was cut off and has none of its own.
_ABORTED = {"type": "aborted", "message": "Aborted"}
#: A permission rule of 1.x, and its fields in the same order in 2.
RULE_V1 = ("permission", "pattern", "action")
RULE_V2 = ("action", "resource", "effect")

Record = dict[str, Any]


class OpenCodeWriter(Conversion):
    """One session on its way to a generation of OpenCode."""

    GENERATION: ClassVar[int]
    #: The fields of a revert.
    REVERT: ClassVar[tuple[str, ...]]

    def __init__(self, export: Export, messages: list[Message], losses: Losses) -> None:
        names = OpenCodeNames(export.session, export.parent)
        super().__init__(export, messages, losses, names)
        self._name_references = names.put
        #: Whether the messages are records of this generation, written as they were.
        self.is_exact = generation_of(self.session, messages) == self.GENERATION
        if not self.is_exact:
            self.messages = with_usage(messages)

    # -- messages -------------------------------------------------------------

    def agent_and_model(self, index: int) -> tuple[str, Record]:
        """Return agent and model of the message at *index*.

        See `Conversion.agent_of`.
        """
        model = self.model_of(index)
        self.lose_bare_provider(self.messages[index])
        record = {"providerID": model.provider, "modelID": model.id}
        return self.agent_of(index) or AGENT, record

    def error_of(self, message: Message, provider: str) -> Record | None:
        """Return the error of an answer; None for an answer without one."""
        if message.error is not None:
            record = self.new_error(message.error, provider)
            if record != message.error:
                self.lose("how its error is worded", message, field="error")
            return record
        if message.finish == "cancelled":
            return self.new_error(_ABORTED, provider)
        return None

    def new_error(self, error: Any, provider: str) -> Record:
        """Return any error of an answer by *provider* as this generation has it."""
        raise NotImplementedError

    def lose_output(self, message: Message) -> None:
        """Note that the file of a cut output is not written."""
        if any(OUTPUT_FILE in part.data for part in message.parts):
            self.lose(_COMPLETE_OUTPUT, message, field="data")

    def note_call(self, message: Message, part: Part) -> None:
        """Note what is written of a call, and what of it is lost in any generation."""
        self.note_result(part.call_id, part.text)
        if OUTPUT_FILE in part.data:
            self.lose(_COMPLETE_OUTPUT, message, part=part, field="data")

    # -- the session ----------------------------------------------------------

    def info(self, messages: list[Record]) -> Record:
        """Return the session's own record: as it was, or made of these *messages*."""
        if self.session.relation and self.export.parent is None:
            reason = "its relation to another session, which is not here"
            self.lose(reason, field="relation")
        is_own = self.is_exact and is_from(self.session, SOURCE)
        info = self.exact_info() if is_own else self.new_info(messages)
        self.lose_rest(is_own=is_own)
        self._name_references(info)
        return info

    def exact_info(self) -> Record:
        """Return the session's own record as this generation wrote it."""
        raise NotImplementedError

    def new_info(self, messages: list[Record]) -> Record:
        """Return a record for a session of another program, or the other generation."""
        raise NotImplementedError

    def project_id(self) -> str:
        """Return the id of the project: OpenCode's own, else the first commit's."""
        name: str | None = self.session.data.get("projectID")
        if not name and self.export.project is not None:
            name = self.export.project.root_commit
        return name or "global"

    def session_times(self) -> Record:
        """Return the times of the session."""
        session = self.session
        return without_none(
            {
                "created": session.time_created,
                "updated": session.time_updated,
                "archived": session.time_archived,
            }
        )

    def common_fields(self) -> Record:
        """Return the fields that both generations name alike, except empty ones."""
        session = self.session
        return without_empty(
            {
                "agent": session.agent,
                "model": self.session_model(),
                "metadata": without_keys({"share"}, session.metadata),
                "revert": self.revert_record(),
            }
        )

    def session_model(self) -> Record | None:
        """Return the model of the session; None if it is not known completely."""
        session = self.session
        if session.model_id and session.provider_id:
            return {"id": session.model_id, "providerID": session.provider_id}
        if session.model_id and session.model_source != "derived":
            self.lose("its model, whose provider is not known", field="model_id")
        return None

    def permission_rules(self, fields: Sequence[str]) -> list[Record] | None:
        """Return the permissions of the session as rules with these *fields*.

        None if there are none, or if they are not OpenCode's: that is a loss.
        """
        permission = self.session.permission
        rules = _translated_rules(permission, fields)
        if rules is None and permission:
            self.lose("its permissions", field="permission")

        return rules

    def revert_record(self) -> Record | None:
        """Return the revert of the session; None without a message."""
        revert = as_object(self.session.revert)
        record = {key: revert[key] for key in self.REVERT if text(revert.get(key))}
        if revert and "messageID" not in record:
            self.lose("its revert, which names no message", field="revert")
            return None
        return record or None


def _translated_rules(permission: Any, fields: Sequence[str]) -> list[Record] | None:
    """Return rules of either generation with these *fields*.

    None if they are not rules.
    """
    if not isinstance(permission, list):
        return None
    rules = []
    for rule in permission:
        values = _values_of_rule(rule)
        if values is None:
            return None
        rules.append(dict(zip(fields, values, strict=True)))
    return rules


def _values_of_rule(rule: Any) -> list[str] | None:
    """Return the values of a rule of either generation; None for anything else."""
    for fields in (RULE_V1, RULE_V2):
        values = [value_at(rule, field) for field in fields]
        if all(text(value) for value in values):
            return values
    return None
