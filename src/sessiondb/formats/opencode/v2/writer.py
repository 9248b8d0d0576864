"""Any session as OpenCode 2 exports one.

Records of 2 are written as they were. Records of 1.x become what its upgrade makes
of them, everything else is made of what all sessions have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiondb.formats.content import File, error_text, file_of
from sessiondb.formats.opencode.ids import Names, is_native, minted
from sessiondb.formats.opencode.keys import OUTPUT_FILE
from sessiondb.formats.opencode.neutral import (
    SILENT,
    TOLD,
    WHOLE_OUTPUT,
    Model,
    generation,
    model_of,
    text_of,
)
from sessiondb.formats.opencode.v2 import records as exact
from sessiondb.formats.opencode.v2.parts import content_of, snapshot_of
from sessiondb.model import Export, Loss, Message

Record = dict[str, Any]
_FINISHES = frozenset(
    {"stop", "length", "tool-calls", "content-filter", "error", "unknown"}
)
_ERRORS = {
    "ProviderAuthError": "provider.auth",
    "ContentFilterError": "provider.content-filter",
    "ContextOverflowError": "provider.invalid-request",
    "StructuredOutputError": "provider.invalid-output",
    "MessageOutputLengthError": "provider.invalid-output",
    "MessageAbortedError": "aborted",
    "APIError": "provider.error",
}
_ENDS = {"failed": "failed", "cancelled": "interrupted"}


class WriterV2:
    """One session on its way to 2; ``losses`` say what 2 cannot hold."""

    def __init__(
        self, export: Export, messages: list[Message], losses: list[Loss]
    ) -> None:
        self.export = export
        self.session = export.session
        self.messages = messages
        self.losses = losses
        self.names = Names(self.session, export.parent)
        self._generation = generation(self.session, messages)
        self._asked: dict[str, tuple[Record, Message]] = {}
        self._results: dict[str | None, str | None] = {}

    def json(self) -> dict[str, Any]:
        """Return the session as ``opencode session export`` prints it."""
        found = (r for index in range(len(self.messages)) for r in self._records(index))
        records = [record for record in found if self._settled(record)]
        return {"info": self._info(records), "messages": records}

    def lose(self, why: str, message: Message | None = None) -> None:
        """Note what is lost of a message, or of the session itself."""
        self.losses.append(
            Loss(self.names.session, why, message.id if message else None)
        )

    def _settled(self, record: Record) -> bool:
        if exact.settled(record):
            return True
        self.losses.append(
            Loss(self.names.session, "a message that never ended", record["id"])
        )
        return False

    # -- messages ------------------------------------------------------------

    def _records(self, index: int) -> Iterator[Record]:
        message = self.messages[index]
        if self._generation == 2 and not is_native(message.id):
            yield from self._exact(message)
        elif message.kind == "compaction":
            yield from self._compaction(message, index)
        elif message.role == "assistant":
            yield self._answer(message, index)
        elif message.role == "user":
            yield from self._prompt(message)
        elif message.role == "tool":
            self._results_of(message)
        else:
            yield from self._event(message)

    def _exact(self, message: Message) -> Iterator[Record]:
        record = exact.message_json(message)
        if record is not None:
            record["id"] = self.names.message(message)
            if any(OUTPUT_FILE in part.data for part in message.parts):
                self.lose(WHOLE_OUTPUT, message)
            yield record
        elif message.kind not in SILENT:
            yield from self._event(message)

    def _event(self, message: Message) -> Iterator[Record]:
        text = text_of(message) or text_of(message, synthetic=True)
        if message.role == "system" or message.kind == "context":
            yield self._head(message, "system", text=text)
        elif message.kind in TOLD:
            if text:
                yield self._head(message, "synthetic", text=text)
        elif (
            message.kind == "model_change" and message.model_id and message.provider_id
        ):
            model = {"id": message.model_id, "providerID": message.provider_id}
            yield self._head(message, "model-switched", model=model)
        elif message.kind == "mode_change" and message.agent:
            yield self._head(message, "agent-switched", agent=message.agent)
        elif message.kind in _ENDS:
            yield self._head(message, "idle", outcome=_ENDS[message.kind])
        elif message.kind not in SILENT:
            self.lose(f"{message.role} {message.kind or ''}".strip(), message)

    def _prompt(self, message: Message) -> Iterator[Record]:
        compaction = next(
            (part for part in message.parts if part.type == "compaction"), None
        )
        if compaction is not None:
            reason = "auto" if compaction.data.get("auto") else "manual"
            tail = self._recent(compaction.data.get("tail_start_id"), message)
            record = self._head(
                message, "compaction", status="completed", reason=reason
            )
            self._asked[message.id] = ({**record, "recent": tail}, message)
            return
        attached = [file_of(part) for part in message.parts if part.type == "file"]
        files = [_attached(file) for file in attached if file.data is not None]
        absent = [_absent(file) for file in attached if file.data is None]
        for part in message.parts:
            if part.type not in ("text", "file", "agent"):
                self.lose(f"part {part.type}", message)
        if absent:
            self.lose("files that are not in the session", message)
        names = [
            part.data.get("name") for part in message.parts if part.type == "agent"
        ]
        agents = [{"name": name} for name in names if isinstance(name, str)]
        said = "\n".join(text for text in (text_of(message), *absent) if text)
        put_in = text_of(message, synthetic=True)
        if said or files or agents or not put_in:
            lists = {"files": files, "agents": agents}
            kept = {key: value for key, value in lists.items() if value}
            yield self._head(message, "user", text=said, **kept)
            if put_in:
                record = self._head(message, "synthetic", text=put_in)
                record["id"] = minted(
                    "msg_", message.time_created, message.seq, record["id"], "synthetic"
                )
                yield record
        else:
            yield self._head(message, "synthetic", text=put_in)

    def _answer(self, message: Message, index: int) -> Record:
        agent, model = model_of(self.messages, index, self.session)
        variant = message.data.get("variant")
        record = self._head(
            message, "assistant", agent=agent, model=_model(model, variant)
        )
        if message.time_completed is not None:
            record["time"]["completed"] = message.time_completed
        record["content"] = content_of(self, message)
        if snapshot := snapshot_of(message):
            record["snapshot"] = snapshot
        finish = message.data.get("finish", message.finish)
        if message.finish == "cancelled":
            record["finish"] = "error"
            record["error"] = {
                "type": "aborted",
                "message": error_text(message.error or "Aborted"),
            }
        elif finish is not None:
            record["finish"] = finish if finish in _FINISHES else "unknown"
        if message.error is not None:
            record["error"] = _error(message.error)
        _put_usage(record, message)
        return record

    def _compaction(self, message: Message, index: int) -> Iterator[Record]:
        """A summary is one record; 1.x had a prompt that asks for it, and the answer."""
        asked = self._asked.pop(message.turn_id or "", None)
        if message.role == "assistant" and (
            message.error or message.time_completed is None
        ):
            self.lose("a summary that failed", message)
            return
        if asked is None:
            reason = "manual" if message.data.get("reason") == "manual" else "auto"
            record = self._head(
                message, "compaction", status="completed", reason=reason
            )
            kept = message.data.get("first_kept_id") or message.data.get(
                "tail_start_id"
            )
            record["recent"] = self._recent(kept, message)
        else:
            record = asked[0]
        _, model = model_of(self.messages, index, self.session)
        record["model"] = _model(model)
        record["summary"] = text_of(message) or str(message.data.get("summary") or "")
        _put_usage(record, message)
        yield record

    def _recent(self, first: Any, end: Message) -> str:
        """Return what a summary leaves as it is, from message *first* on, as text."""
        ids = [message.id for message in self.messages]
        if first not in ids:
            return ""
        lines = []
        for message in self.messages[ids.index(first) : ids.index(end.id)]:
            if message.role == "user":
                lines.append(f"[User]: {text_of(message)}")
            elif message.role == "assistant":
                shown = {"text": "[Assistant]", "reasoning": "[Assistant reasoning]"}
                parts = (
                    part for part in message.parts if part.type in shown and part.text
                )
                lines += [f"{shown[part.type]}: {part.text}" for part in parts]
        return "\n".join(lines)

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

    def _head(self, message: Message, kind: str, **fields: Any) -> Record:
        name = self.names.message(message)
        return {
            "id": name,
            "type": kind,
            "time": {"created": message.time_created},
            **fields,
        }

    # -- the session ---------------------------------------------------------

    def _info(self, records: list[Record]) -> dict[str, Any]:
        session = self.session
        if self._generation == 2 and session.time_imported is not None:
            info = exact.session_info(session)
        else:
            info = self._new_info(records)
        self.names.put(info)
        if session.relation == "fork":
            self.lose("that it is a fork: an import forgets it")
        for label in self.export.labels:
            self.lose(f"label {label.label}")
        if session.share_url:
            self.lose("its share")
        return info

    def _new_info(self, records: list[Record]) -> dict[str, Any]:
        session, project = self.session, self.export.project
        root = project.root_commit if project else None
        info: dict[str, Any] = {
            "id": self.names.session,
            "projectID": session.data.get("projectID") or root or "global",
            "cost": sum(record.get("cost", 0) for record in records),
            "tokens": _sum(records),
            "time": {"created": session.time_created, "updated": session.time_updated},
            "location": {"directory": session.directory},
        }
        if session.title:
            info["title"] = session.title
        if session.time_archived is not None:
            info["time"]["archived"] = session.time_archived
        if session.agent:
            info["agent"] = session.agent
        if session.model_id and session.provider_id:
            rest = session.data.get("model")
            variant = rest.get("variant") if isinstance(rest, dict) else None
            info["model"] = _model(
                Model(session.provider_id, session.model_id), variant
            )
        own = {key: value for key, value in session.metadata.items() if key != "share"}
        if own:
            info["metadata"] = own
        rules = _rules(session.permission)
        if rules:
            info["permissions"] = rules
        elif session.permission:
            self.lose("its permissions")
        revert = session.revert
        if isinstance(revert, dict) and isinstance(revert.get("messageID"), str):
            known = ("messageID", "partID", "snapshot")
            info["revert"] = {
                k: revert[k] for k in known if isinstance(revert.get(k), str)
            }
        return info


def _model(model: Model, variant: Any = None) -> Record:
    chosen = variant if isinstance(variant, str) and variant else "default"
    return {"id": model.id, "providerID": model.provider, "variant": chosen}


def _put_usage(record: Record, message: Message) -> None:
    if message.cost is not None:
        record["cost"] = message.cost
    if message.tokens is not None:
        counts = [count or 0 for count in message.tokens.columns()]
        record["tokens"] = dict(
            zip(("input", "output", "reasoning"), counts, strict=False)
        )
        record["tokens"]["cache"] = {"read": counts[3], "write": counts[4]}


def _sum(records: list[Record]) -> Record:
    counted = [record["tokens"] for record in records if "tokens" in record]
    kinds = ("input", "output", "reasoning")
    total: Record = {kind: sum(tokens[kind] for tokens in counted) for kind in kinds}
    total["cache"] = {
        kind: sum(tokens["cache"][kind] for tokens in counted)
        for kind in ("read", "write")
    }
    return total


def _attached(file: File) -> Record:
    source: Record = {"type": "inline"}
    if file.url is not None and not file.url.startswith("data:"):
        source = {"type": "uri", "uri": file.url}
    name = {} if file.name is None else {"name": file.name}
    return {"data": file.data, "mime": file.mime, "source": source, **name}


def _absent(file: File) -> str:
    return f"[Attachment not in the session: {file.name or file.url} ({file.mime})]"


def _error(error: Any) -> Record:
    if isinstance(error, dict) and isinstance(error.get("type"), str):
        known = {
            key: error[key] for key in ("type", "message", "status") if key in error
        }
        return {"message": error_text(error), **known}
    name = error.get("name") if isinstance(error, dict) else None
    return {"type": _ERRORS.get(str(name), "unknown"), "message": error_text(error)}


def _rules(permission: Any) -> list[Any] | None:
    """Return rules of 2; those of 1.x name the same things in another way."""
    if not isinstance(permission, list) or not all(
        isinstance(rule, dict) for rule in permission
    ):
        return None
    rules = []
    for rule in permission:
        found = [rule.get(key) for key in ("permission", "pattern", "action")]
        if None in found:
            found = [rule.get(key) for key in ("action", "resource", "effect")]
        if not all(isinstance(value, str) for value in found):
            return None
        rules.append(dict(zip(("action", "resource", "effect"), found, strict=True)))
    return rules
