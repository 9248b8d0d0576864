"""What it takes to write a session for either generation; `to1` and `to2` do the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sessiondb.formats.opencode.names import Names
from sessiondb.formats.opencode.neutral import generation
from sessiondb.model import Export, Loss, Message, Tokens

#: The keys of a rule of permission, in one order: what, where, and whether it may be.
RULE_1, RULE_2 = ("permission", "pattern", "action"), ("action", "resource", "effect")
_COUNTS, _CACHE = ("input", "output", "reasoning"), ("read", "write")


class Writing:
    """One session on its way out; ``losses`` say what the target cannot hold."""

    def __init__(self, export: Export, messages: list[Message], losses: list[Loss]) -> None:
        self.export = export
        self.session = export.session
        self.messages = messages
        self.losses = losses
        self.names = Names(self.session, export.parent)
        self.generation = generation(self.session, messages)
        self._results: dict[str | None, str | None] = {}

    def lose(self, why: str, message: Message | None = None) -> None:
        """Note what is lost of a message, or of the session itself."""
        self.losses.append(Loss(self.names.session, why, message.id if message else None))

    def called(self, call_id: str | None, result: str | None) -> None:
        """Remember what a call is written with: a result that says the same is no loss."""
        self._results[call_id] = result

    def answered(self, message: Message) -> None:
        """Note what a message of results says that its calls do not."""
        for part in message.parts:
            if part.type != "tool-result":
                self.lose(f"part {part.type}", message)
            elif part.call_id not in self._results or self._results[part.call_id] != part.text:
                self.lose(f"a result of call {part.call_id}", message)

    def finish(self, info: dict[str, Any]) -> dict[str, Any]:
        """Put the written ids into a session's record, and note what it leaves out."""
        if self.names.parent is not None:
            info["parentID"] = self.names.parent
        revert = info.get("revert")
        if isinstance(revert, dict) and "messageID" in revert:
            info["revert"] = {**revert, "messageID": self.names.of(revert["messageID"])}
        if self.session.relation == "fork":
            self.lose("that it is a fork, and of what")
        for label in self.export.labels:
            self.lose(f"label {label.label}")
        return info

    def shared_fields(self, keys: tuple[str, ...], rule: tuple[str, ...]) -> dict[str, Any]:
        """Return the fields that both generations have; *keys* are those of a revert."""
        session = self.session
        found: dict[str, Any] = {"agent": session.agent} if session.agent else {}
        own = {key: value for key, value in session.metadata.items() if key != "share"}
        if own:
            found["metadata"] = own
        revert = session.revert
        if isinstance(revert, dict) and isinstance(revert.get("messageID"), str):
            found["revert"] = {k: revert[k] for k in keys if isinstance(revert.get(k), str)}
        rules = _rules(session.permission, rule)
        if rules is None:
            self.lose("its permissions")
        elif rules:
            found["permission" if rule is RULE_1 else "permissions"] = rules
        return found

    def project_id(self) -> str:
        """Return what OpenCode calls the project: it was told, or names it by its first commit."""
        project = self.export.project
        root = project.root_commit if project else None
        return self.session.data.get("projectID") or root or "global"


def counts_of(tokens: Tokens | None) -> dict[str, Any]:
    """Return token counts as a record; what is unknown is 0 there."""
    return _counts([count or 0 for count in tokens.columns()] if tokens else [0] * 5)


def sum_of(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Add up the ``tokens`` of records; those without any count nothing."""
    total = [0] * 5
    for tokens in (record["tokens"] for record in records if record.get("tokens")):
        columns = [tokens.get(kind) for kind in _COUNTS]
        cache = tokens.get("cache") or {}
        columns += [cache.get(kind) for kind in _CACHE]
        total = [a + (b or 0) for a, b in zip(total, columns, strict=True)]
    return _counts(total)


def _counts(columns: list[int]) -> dict[str, Any]:
    found: dict[str, Any] = dict(zip(_COUNTS, columns, strict=False))
    return {**found, "cache": dict(zip(_CACHE, columns[3:], strict=True))}


def _rules(permission: Any, keys: tuple[str, ...]) -> list[Any] | None:
    """Return rules under the names of one generation; None where they are no rules."""
    if permission is None:
        return []
    rules = []
    for rule in permission if isinstance(permission, list) else [None]:
        named = isinstance(rule, dict) and (RULE_1 if "permission" in rule else RULE_2)
        found = [rule.get(key) for key in named] if named else [None]
        if not all(isinstance(value, str) for value in found):
            return None
        rules.append(dict(zip(keys, found, strict=True)))
    return rules
