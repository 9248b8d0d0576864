"""Any session as OpenCode 1.x exports one.

Records of 1.x are written as they were. Everything else is made of what all sessions
have: roles, parts, times, costs; the order that OpenCode makes of times and ids
is the order of the messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiondb.formats.content import error_text
from sessiondb.formats.opencode.ids import Names, is_native
from sessiondb.formats.opencode.keys import OUTPUT_FILE, ROW_REST
from sessiondb.formats.opencode.neutral import (
    SILENT,
    TOLD,
    WHOLE_OUTPUT,
    generation,
    model_of,
    text_of,
)
from sessiondb.formats.opencode.v1 import records as exact
from sessiondb.formats.opencode.v1.parts import parts_of
from sessiondb.model import Export, Loss, Message

Entry = dict[str, Any]
_ERRORS = {"aborted": "MessageAbortedError", "provider.auth": "ProviderAuthError"}
#: What a prompt of 1.x has, and what only answers before 1.0 had.
_NEEDED = {"agent", "model"}
_OLD = "system"
_RULE = ("permission", "pattern", "action")


class WriterV1:
    """One session on its way to 1.x; ``losses`` say what 1.x cannot hold."""

    def __init__(
        self, export: Export, messages: list[Message], losses: list[Loss]
    ) -> None:
        self.export = export
        self.session = export.session
        self.messages = messages
        self.losses = losses
        self.names = Names(self.session, export.parent)
        self._generation = generation(self.session, messages)
        self._turns: dict[str, str] = {}
        self._last = (-1, "")
        self._results: dict[str | None, str | None] = {}
        self._unknown = False

    def json(self) -> dict[str, Any]:
        """Return the session as ``opencode export`` prints it."""
        entries = [
            entry
            for index in range(len(self.messages))
            for entry in self._entries(index)
        ]
        return {"info": self._info(entries), "messages": entries}

    def lose(self, why: str, message: Message | None = None) -> None:
        """Note what is lost of a message, or of the session itself."""
        self.losses.append(
            Loss(self.names.session, why, message.id if message else None)
        )

    # -- messages ------------------------------------------------------------

    def _entries(self, index: int) -> Iterator[Entry]:
        message = self.messages[index]
        entry = self._exact(message) if self._generation == 1 else None
        if entry is not None:
            yield entry
        elif message.role == "assistant":
            yield self._answer(message, index)
        elif message.kind == "compaction":
            yield from self._compaction(message, index)
        elif message.role == "user":
            yield self._prompt(message, index, parts_of(self, message))
        elif message.role == "system" or message.kind in TOLD:
            self.lose(f"role {message.role}: it became a synthetic prompt", message)
            yield self._prompt(message, index, [_synthetic(text_of(message))])
        elif message.role == "tool":
            self._results_of(message)
        elif message.kind not in SILENT:
            self.lose(f"event {message.kind}", message)

    def _exact(self, message: Message) -> Entry | None:
        """Return a message as 1.x wrote it; None where it did not: 1.x does not take older ones."""
        info = exact.message_info(message, self.names.session)
        if info is None or is_native(message.id):
            return None
        if (message.role == "user" and not info.keys() >= _NEEDED) or (
            message.role == "assistant" and _OLD in info
        ):
            return None
        name = self.names.message(message)
        parts = [
            exact.part_json(part, name, self.names.session) for part in message.parts
        ]
        if name != message.id:
            info["id"] = name
            for place, part in enumerate(parts):
                part["id"] = self._part_id(name, place)
        for record, key in (
            (info, "parentID"),
            *((part, "tail_start_id") for part in parts),
        ):
            if key in record:
                record[key] = self.names.of(record[key])
        if any(OUTPUT_FILE in part.data for part in message.parts):
            self.lose(WHOLE_OUTPUT, message)
        self._last = (message.time_created, name)
        if message.role == "user":
            self._turns[message.id] = self._turns[""] = name
        return {"info": info, "parts": parts}

    def _prompt(self, message: Message, index: int, parts: list[Entry]) -> Entry:
        agent, model = model_of(self.messages, index, self.session)
        info = self._head(message, "user")
        info["agent"] = agent
        info["model"] = {"providerID": model.provider, "modelID": model.id}
        self._turns[message.id] = self._turns[""] = info["id"]
        return self._entry(info, parts)

    def _answer(self, message: Message, index: int, suffix: str = "") -> Entry:
        agent, model = model_of(self.messages, index, self.session)
        info = self._head(message, "assistant", suffix)
        turn = (
            self._turns.get(message.turn_id or "") or self._turns.get("") or info["id"]
        )
        project = self.export.project
        tokens = message.tokens
        info.update(
            parentID=turn,
            mode=agent,
            agent=agent,
            providerID=model.provider,
            modelID=model.id,
            path={
                "cwd": self.session.directory,
                "root": project.worktree if project else self.session.directory,
            },
            cost=message.cost or 0,
            tokens=_tokens(tokens.columns() if tokens else ()),
        )
        self._unknown = self._unknown or message.cost is None or tokens is None
        if message.time_completed is not None:
            info["time"]["completed"] = message.time_completed
        if message.kind == "compaction":
            info["summary"] = True
        self._end(message, info)
        return self._entry(info, parts_of(self, message))

    def _end(self, message: Message, info: Entry) -> None:
        if message.finish not in (None, "cancelled"):
            info["finish"] = message.finish
        if message.error is not None:
            info["error"] = _error(message.error, info["providerID"])
        elif message.finish == "cancelled":
            info["error"] = {
                "name": "MessageAbortedError",
                "data": {"message": "Aborted"},
            }

    def _compaction(self, message: Message, index: int) -> Iterator[Entry]:
        """A summary is an answer to a prompt that asks for it."""
        auto = message.data.get("reason") != "manual"
        prompt = self._prompt(message, index, [{"type": "compaction", "auto": auto}])
        yield prompt
        answer = self._answer(message, index, "s")
        answer["info"]["parentID"] = prompt["info"]["id"]
        answer["info"].setdefault("finish", "stop")
        yield answer

    def _results_of(self, message: Message) -> None:
        for part in message.parts:
            if part.type != "tool-result":
                self.lose(f"part {part.type}", message)
            elif (
                part.call_id not in self._results
                or self._results[part.call_id] != part.text
            ):
                self.lose(f"a result of call {part.call_id}", message)

    def called(self, call_id: str | None, result: str | None) -> None:
        """Remember what a call is written with: a result that says the same is not a loss."""
        self._results[call_id] = result

    def _head(self, message: Message, role: str, suffix: str = "") -> Entry:
        name = self.names.message(message) + suffix
        time = max(message.time_created, self._last[0])
        if (time, name) <= self._last:
            time += 1
        if time != message.time_created:
            self.lose("its time, moved so that the order stays", message)
        self._last = (time, name)
        return {
            "id": name,
            "sessionID": self.names.session,
            "role": role,
            "time": {"created": time},
        }

    def _entry(self, info: Entry, parts: list[Entry]) -> Entry:
        ids = {"messageID": info["id"], "sessionID": info["sessionID"]}
        numbered = [
            {"id": self._part_id(info["id"], index), **ids, **part}
            for index, part in enumerate(parts)
        ]
        for part in numbered:
            for index, file in enumerate(part.get("state", {}).get("attachments", ())):
                file.update(id=f"{part['id']}{index:04d}", **ids)
        return {"info": info, "parts": numbered}

    @staticmethod
    def _part_id(message_id: str, index: int) -> str:
        return f"prt_{message_id.removeprefix('msg_')}{index:06d}"

    # -- the session ---------------------------------------------------------

    def _info(self, entries: list[Entry]) -> dict[str, Any]:
        session = self.session
        if self._generation == 1 and session.time_imported is not None:
            info = exact.session_info(session)
        else:
            info = self._new_info(entries)
        self.names.put(info)
        if self._unknown:
            self.lose("that costs or counts are unknown: they are written as 0")
        if session.relation == "fork":
            self.lose("that it is a fork, and of what")
        for label in self.export.labels:
            self.lose(f"label {label.label}")
        return info

    def _new_info(self, entries: list[Entry]) -> dict[str, Any]:
        session, project = self.session, self.export.project
        row = session.data.get(ROW_REST, {})
        root = project.root_commit if project else None
        info: dict[str, Any] = {
            "id": self.names.session,
            "slug": row.get("slug") or session.slug,
            "projectID": session.data.get("projectID") or root or "global",
            "directory": session.directory,
            "title": session.title,
            "version": session.version or "0",
            "time": {"created": session.time_created, "updated": session.time_updated},
        }
        if session.time_archived is not None:
            info["time"]["archived"] = session.time_archived
        self._put_optional(info)
        answers = [e["info"] for e in entries if e["info"]["role"] == "assistant"]
        info["cost"] = sum(answer["cost"] for answer in answers)
        info["tokens"] = _sum([answer["tokens"] for answer in answers])
        return info

    def _put_optional(self, info: dict[str, Any]) -> None:
        session = self.session
        if session.agent:
            info["agent"] = session.agent
        if session.model_id and session.provider_id:
            info["model"] = {"id": session.model_id, "providerID": session.provider_id}
        if session.share_url:
            info["share"] = {"url": session.share_url}
        own = {key: value for key, value in session.metadata.items() if key != "share"}
        if own:
            info["metadata"] = own
        if session.summary_files is not None:
            info["summary"] = {
                "additions": session.summary_additions or 0,
                "deletions": session.summary_deletions or 0,
                "files": session.summary_files,
            }
        rules = _rules(session.permission)
        if rules is not None:
            info["permission"] = rules
        elif session.permission:
            self.lose("its permissions")
        revert = session.revert
        if isinstance(revert, dict) and isinstance(revert.get("messageID"), str):
            known = ("messageID", "partID", "snapshot", "diff")
            info["revert"] = {
                k: revert[k] for k in known if isinstance(revert.get(k), str)
            }


def _synthetic(text: str) -> Entry:
    return {"type": "text", "text": text, "synthetic": True}


def _tokens(columns: tuple[int | None, ...]) -> dict[str, Any]:
    counts = [count or 0 for count in columns] or [0] * 5
    return {
        **dict(zip(("input", "output", "reasoning"), counts, strict=False)),
        "cache": {"read": counts[3], "write": counts[4]},
    }


def _sum(all_tokens: list[dict[str, Any]]) -> dict[str, Any]:
    def column(*path: str) -> int:
        total = 0
        for tokens in all_tokens:
            inner: Any = tokens
            for key in path:
                inner = inner.get(key, 0) if isinstance(inner, dict) else 0
            total += inner if isinstance(inner, int) else 0
        return total

    paths = (
        ("input",),
        ("output",),
        ("reasoning",),
        ("cache", "read"),
        ("cache", "write"),
    )
    return _tokens(tuple(column(*path) for path in paths))


def _error(error: Any, provider: str) -> dict[str, Any]:
    if (
        isinstance(error, dict)
        and isinstance(error.get("data"), dict)
        and "name" in error
    ):
        return error
    text = error_text(error)
    kind = error.get("type") if isinstance(error, dict) else None
    name = _ERRORS.get(str(kind))
    if name is None and str(kind).startswith("provider."):
        data: dict[str, Any] = {"message": text, "isRetryable": False}
        if isinstance(error.get("status"), int):
            data["statusCode"] = error["status"]
        return {"name": "APIError", "data": data}
    data = {"message": text}
    if name == "ProviderAuthError":
        data["providerID"] = provider
    return {"name": name or "UnknownError", "data": data}


def _rules(permission: Any) -> list[Any] | None:
    """Return rules of 1.x; those of 2 name the same things in another way."""
    if not isinstance(permission, list) or not all(
        isinstance(rule, dict) for rule in permission
    ):
        return None
    rules = []
    for rule in permission:
        found = [rule.get(key) for key in _RULE]
        if None in found:
            found = [rule.get(key) for key in ("action", "resource", "effect")]
        if not all(isinstance(value, str) for value in found):
            return None
        rules.append(dict(zip(_RULE, found, strict=True)))
    return rules
