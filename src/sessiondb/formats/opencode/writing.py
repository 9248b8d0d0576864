"""What both generations need of a session that neither of them wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sessiondb.formats.kit.conversion import Conversion, is_from
from sessiondb.formats.kit.fields import as_object, without, without_none
from sessiondb.formats.opencode.generation import generation
from sessiondb.formats.opencode.ids import SOURCE, OpenCodeNames
from sessiondb.formats.opencode.keys import OUTPUT_FILE
from sessiondb.model import Export, Loss, Message, Part

#: The agent of a message without one: OpenCode's default.
AGENT = "build"
#: The loss of a call whose output was cut and lies in a file.
COMPLETE_OUTPUT = "the file with the complete output of a call"
#: A permission rule of 1.x, and its fields in the same order in 2.
RULE_V1 = ("permission", "pattern", "action")
RULE_V2 = ("action", "resource", "effect")

Record = dict[str, Any]


class OpenCodeWriter(Conversion):
    """One session on its way to a generation of OpenCode."""

    GENERATION: ClassVar[int]

    def __init__(
        self, export: Export, messages: list[Message], losses: list[Loss]
    ) -> None:
        names = OpenCodeNames(export.session, export.parent)
        super().__init__(export, messages, losses, names)
        self._follow_parent = names.put
        #: Whether the messages are records of this generation, to be written as they were.
        self.is_exact = generation(self.session, messages) == self.GENERATION

    # -- messages -------------------------------------------------------------

    def answerer(self, index: int) -> tuple[str, Record]:
        """Return agent and model of the message at *index*; see `Conversion.agent_of`."""
        model = self.model_of(index)
        named = {"providerID": model.provider, "modelID": model.id}
        return self.agent_of(index) or AGENT, named

    def lose_output(self, message: Message) -> None:
        """Note that the file of a cut output is not written."""
        if any(OUTPUT_FILE in part.data for part in message.parts):
            self.lose(COMPLETE_OUTPUT, message)

    def note_call(self, message: Message, part: Part) -> None:
        """Note what is written of a call, and what of it is lost in any generation."""
        self.called(part.call_id, part.text)
        if OUTPUT_FILE in part.data:
            self.lose(COMPLETE_OUTPUT, message)
        if part.input is not None and not isinstance(part.input, dict):
            self.lose(
                f"that the input of call {part.call_id} is not an object", message
            )

    # -- the session ----------------------------------------------------------

    @property
    def is_exact_session(self) -> bool:
        """Whether the session's own record is one of this generation."""
        return self.is_exact and is_from(self.session, SOURCE)

    def name_references(self, info: Record) -> None:
        """Name the parent and the message of a revert in the session's record."""
        self._follow_parent(info)

    def project_id(self) -> str:
        """Return the id of the project: OpenCode's own, else the first commit's."""
        project = self.export.project
        root = project.root_commit if project else None
        return self.session.data.get("projectID") or root or "global"

    def times(self) -> Record:
        """Return the times of the session."""
        session = self.session
        return without_none(
            {
                "created": session.time_created,
                "updated": session.time_updated,
                "archived": session.time_archived,
            }
        )

    def metadata(self) -> Record | None:
        """Return the metadata of the session but the secret of a share; None if empty."""
        return without({"share"}, self.session.metadata) or None

    def rules(self, fields: Sequence[str]) -> list[Record] | None:
        """Return the permissions of the session as rules with these *fields*.

        None if there are none, or if they are not OpenCode's: that is a loss.
        """
        permission = self.session.permission
        given = permission if isinstance(permission, list) else [None]
        rules = [_rule(rule) for rule in given]
        if None in rules:
            if permission:
                self.lose("its permissions")
            return None
        return [dict(zip(fields, rule or (), strict=True)) for rule in rules]

    def revert(self, *fields: str) -> Record | None:
        """Return the revert of the session with these *fields*; None without a message."""
        revert = as_object(self.session.revert)
        if not isinstance(revert.get("messageID"), str):
            return None
        given = ((field, revert.get(field)) for field in fields)
        return {field: value for field, value in given if isinstance(value, str)}


def _rule(rule: Any) -> tuple[str, ...] | None:
    """Return the values of a rule of either generation; None for anything else."""
    for fields in (RULE_V1, RULE_V2):
        values = tuple(map(as_object(rule).get, fields))
        if all(isinstance(value, str) for value in values):
            return values  # type: ignore[return-value]
    return None
