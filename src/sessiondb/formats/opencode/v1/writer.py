"""Any session as OpenCode 1.x exports one.

Records of 1.x are written as they were. Everything else is made of what all sessions
have: roles, parts, times, costs. OpenCode orders messages by their times and ids, so
these are made such that the order of the messages is kept.
"""

from __future__ import annotations

from typing import Any

from sessiondb.formats.content import error_text
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    SAID_FOR_USER,
    is_native,
    shown_text,
)
from sessiondb.formats.kit.fields import value_at, without_empty, without_none
from sessiondb.formats.opencode.answers import counts_of, finish_of, usage_of
from sessiondb.formats.opencode.ids import SUMMARY
from sessiondb.formats.opencode.keys import ROW_REST
from sessiondb.formats.opencode.v1 import records as exact
from sessiondb.formats.opencode.v1.carried import CARRIES
from sessiondb.formats.opencode.v1.parts import parts_of
from sessiondb.formats.opencode.writing import RULE_V1, OpenCodeWriter, Record
from sessiondb.model import Export, Message

#: A message as the export has it, {"info", "parts"}.
Entry = dict[str, Any]

_ERRORS = {"aborted": "MessageAbortedError", "provider.auth": "ProviderAuthError"}
#: Fields of a prompt of 1.x, and one that only answers before 1.0 had.
_NEEDED = frozenset({"agent", "model"})
_OLD = "system"
#: Fields of records that name a message of the same session.
_REFERENCES = ("parentID", "tail_start_id")


class WriterV1(OpenCodeWriter):
    """One session on its way to 1.x; ``losses`` are what 1.x cannot hold."""

    CARRIES = CARRIES
    GENERATION = 1
    REVERT = ("messageID", "partID", "snapshot", "diff")

    def __init__(self, export: Export, messages: list[Message], losses: Losses) -> None:
        super().__init__(export, messages, losses)
        #: The prompts by the ids of their messages here; None is the last one.
        self._turns: dict[str | None, str] = {}
        #: Time and id of the last message.
        self._last = (-1, "")
        self._has_unknown_costs = False

    def json(self) -> dict[str, Any]:
        """Return the session as ``opencode export`` prints it."""
        entries: list[Entry] = []
        for index, message in enumerate(self.messages):
            entries += self._entries_of(message, index)
        info = self.info([entry["info"] for entry in entries])
        if self._has_unknown_costs:
            reason = "that costs or counts are unknown: they are written as 0"
            self.lose(reason, field="usage")
        if self.session.relation == "fork":
            self.lose("that it is a fork, and of what", field="relation")
        return {"info": info, "messages": entries}

    # -- messages ------------------------------------------------------------

    def _entries_of(self, message: Message, index: int) -> list[Entry]:
        """Return the entries of a message: none, one, or a request and its summary."""
        entry = self._exact_entry(message) if self.is_exact else None
        if entry is not None:
            return [entry]

        self.convert(message)
        if message.kind == "compaction" and message.role != "assistant":
            return self._summary_entries(message, index)
        match message.role:
            case "user":
                parts = parts_of(self, message)
                return [self._prompt_entry(message, index, parts)]
            case "assistant":
                return [self._answer_entry(message, index)]
            case "system":
                return [self._note_entry(message, index)]
            case "tool":
                self.lose_results(message)
                return []

        if message.kind in SAID_FOR_USER and shown_text(message):
            return [self._note_entry(message, index)]
        self.lose_message(message)
        return []

    def _exact_entry(self, message: Message) -> Entry | None:
        """Return a message as 1.x wrote it; None for one that 1.x does not take."""
        info = exact.message_info(message, self.names.session)
        if info is None or is_native(message.id) or _is_older(message, info):
            return None

        name = self.names.name_message(message)
        session = self.names.session
        parts = exact.parts_json(message, name, session)

        if name != message.id:
            info["id"] = name
            for index, part in enumerate(parts):
                part["id"] = _part_id(name, index)

        # The messages that a record names may be written under other ids.
        for record in (info, *parts):
            for key in _REFERENCES:
                if key in record:
                    record[key] = self.names.written_id(record[key])

        self.lose_output(message)
        self._last = (message.time_created, name)
        if message.role == "user":
            self._open_turn(message, name)
        return {"info": info, "parts": parts}

    def _open_turn(self, message: Message, name: str) -> None:
        self._turns[message.id] = self._turns[None] = name

    def _note_entry(self, message: Message, index: int) -> Entry:
        """Return a text that is shown to a model as a prompt of a program."""
        part = {
            "type": "text",
            "text": self.take_shown_text(message),
            "synthetic": True,
        }
        return self._prompt_entry(message, index, [part])

    def _prompt_entry(self, message: Message, index: int, parts: list[Record]) -> Entry:
        agent, model = self.agent_and_model(index)
        info = self._new_info(message, "user")
        info.update(agent=agent, model=model)
        self._open_turn(message, info["id"])
        return _numbered_entry(info, parts)

    def _answer_entry(self, message: Message, index: int, suffix: str = "") -> Entry:
        agent, model = self.agent_and_model(index)
        info = self._new_info(message, "assistant", suffix)
        directory, project = self.session.required_directory, self.export.project
        # The prompt that it answers, else the last one before it.
        prompt = self._turns.get(message.turn_id, self._turns.get(None))
        info.update(
            parentID=prompt or info["id"],
            mode=agent,
            agent=agent,
            **model,
            path={"cwd": directory, "root": project.worktree if project else directory},
            cost=message.cost or 0,
            tokens=counts_of(message.tokens),
        )
        if message.cost is None or message.tokens is None:
            self._has_unknown_costs = True

        if message.time_completed is not None:
            info["time"]["completed"] = message.time_completed
        if message.kind == "compaction":
            info["summary"] = True
        error = self.error_of(message, info["providerID"])
        is_cut = value_at(error, "name") == _ERRORS["aborted"]
        if message.finish == "cancelled" and not is_cut:
            self.lose(message=message, field="finish")
        end = {"finish": finish_of(message.finish), "error": error}
        return _numbered_entry({**info, **without_none(end)}, parts_of(self, message))

    def new_error(self, error: Any, provider: str) -> Record:
        """Return any error of an answer by *provider* as 1.x has it."""
        if isinstance(value_at(error, "data"), dict) and "name" in error:
            record: Record = error
            return record

        kind = str(value_at(error, "type"))
        name = _ERRORS.get(kind, "UnknownError")
        data: Record = {"message": error_text(error)}

        if name == "ProviderAuthError":
            data["providerID"] = provider
        elif name == "UnknownError" and kind.startswith("provider."):
            name = "APIError"
            data["isRetryable"] = False
            status = error.get("status")
            if isinstance(status, int):
                data["statusCode"] = status

        return {"name": name, "data": data}

    def _summary_entries(self, message: Message, index: int) -> list[Entry]:
        """Return a summary as an answer to a prompt that requests it."""
        is_auto = message.data.get("reason") != "manual"
        request = {"type": "compaction", "auto": is_auto}
        prompt = self._prompt_entry(message, index, [request])
        answer = self._answer_entry(message, index, SUMMARY)
        answer["info"]["parentID"] = prompt["info"]["id"]
        answer["info"].setdefault("finish", "stop")
        return [prompt, answer]

    def _new_info(self, message: Message, role: str, suffix: str = "") -> Record:
        """Return the first fields of a message that 1.x did not write."""
        name = self.names.name_message(message) + suffix
        time = max(message.time_created, self._last[0])
        if (time, name) <= self._last:
            time += 1
        if time != message.time_created:
            reason = "its time, moved so that the order stays"
            self.lose(reason, message, field="time_created")
        self._last = (time, name)
        return {
            "id": name,
            "sessionID": self.names.session,
            "role": role,
            "time": {"created": time},
        }

    # -- the session ---------------------------------------------------------

    def exact_info(self) -> Record:
        """Return the session's own record as 1.x wrote it."""
        return exact.session_info(self.session)

    def new_info(self, messages: list[Record]) -> Record:
        """Return the record of a session that 1.x did not write."""
        session = self.session
        row = session.data.get(ROW_REST, {})
        answers = [info for info in messages if info["role"] == "assistant"]
        info = {
            "id": self.names.session,
            "slug": row.get("slug") or session.slug,
            "projectID": self.project_id(),
            "directory": session.required_directory,
            "title": session.title,
            "version": session.version or "0",
            "time": self.session_times(),
            "permission": self.permission_rules(RULE_V1),
            "summary": self._summary(),
            **usage_of(answers),
        }
        share = {"share": without_empty({"url": session.share_url})}
        return {**without_none(info), **without_empty(share), **self.common_fields()}

    def _summary(self) -> Record | None:
        session = self.session
        if session.summary_files is None:
            return None
        return {
            "additions": session.summary_additions or 0,
            "deletions": session.summary_deletions or 0,
            "files": session.summary_files,
        }


def _is_older(message: Message, info: Record) -> bool:
    """Return whether a version wrote a record whose messages 1.x does not take."""
    if message.role == "user":
        return not info.keys() >= _NEEDED
    return message.role == "assistant" and _OLD in info


def _numbered_entry(info: Record, parts: list[Record]) -> Entry:
    """Return a message with ids for its *parts*."""
    ids = {"messageID": info["id"], "sessionID": info["sessionID"]}
    numbered = [
        {"id": _part_id(info["id"], index), **ids, **part}
        for index, part in enumerate(parts)
    ]
    return {"info": info, "parts": numbered}


def _part_id(message_id: str, index: int) -> str:
    return f"prt_{message_id.removeprefix('msg_')}{index:06d}"
