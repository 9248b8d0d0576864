"""Blocks of a chat history to drafts, and what is mined from aider's own output.

A draft keeps the text of its block in ``data.raw`` if its parts do not give it again.
Whatever is only likely is said in ``data.ambiguous``, as a list of reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sessiondb.formats.aider.conventions import (
    BREAK,
    CONFIRMED,
    Usage,
    committed,
    edited,
    exact,
    model_of,
    pieces_joined,
    prompt,
    prompt_of,
    reasoning_and_text,
    usage_of,
    version_of,
)
from sessiondb.formats.aider.inputs import Entry
from sessiondb.formats.aider.records import raw_of
from sessiondb.formats.aider.scanner import Block
from sessiondb.formats.kit import fields
from sessiondb.formats.kit.fields import fitting
from sessiondb.model import MessageDraft, PartDraft, Tokens

Columns = dict[str, Any]


@dataclass(slots=True)
class State:
    """The state at a place of a run: model, time, and the last command and answer."""

    model: str | None = None
    time: int | None = None
    version: str | None = None
    answered: str = ""
    command: str = ""
    cost: float = 0.0
    reports: bool = False
    #: What may be wrong in the run, and the first line where it may.
    problems: dict[str, int] = field(default_factory=dict)


def text_of(block: Block) -> str:
    """Return the text of a block; bytes that are not UTF-8 are replaced."""
    return block.raw.decode("utf-8", "replace")


def finished(block: Block, found: Columns, data: Columns) -> MessageDraft:
    """Return the draft of a block, with what its parts do not have of it."""
    raw = text_of(block)
    if "\ufffd" in raw and raw.encode() != block.raw:
        data["bytes"] = block.raw
    if block.doubts:
        data["ambiguous"] = list(block.doubts)

    draft = MessageDraft(**found, data=data)
    if raw_of(draft) != raw:
        data["raw"] = raw
    return draft


# -- prompts -------------------------------------------------------------------


def asked(block: Block, entry: Entry | None, state: State, name: str) -> MessageDraft:
    """Return the message of a prompt, exact if the input history has it."""
    said = prompt_of(text_of(block)) if entry is None else entry.text
    data: Columns = {}
    if entry is not None:
        state.time = entry.time
        data["typed"] = entry.stamp

    role, kind = _said_by(said, entry, state)
    state.command = said if kind == "command" else ""
    part = PartDraft("text", said)
    found = {"role": role, "kind": kind, "parts": (part,), "id": name}
    return finished(block, {**found, "time_created": state.time}, data)


def _said_by(said: str, entry: Entry | None, state: State) -> tuple[str, str | None]:
    """Return role and kind of what is recorded as a prompt, whoever said it."""
    if said[:1] in ("/", "!"):
        return "event", "command"
    if entry is not None:
        return "user", None
    if CONFIRMED.fullmatch(said):
        return "event", "confirmation"
    if said == "<blank>":
        return "event", "blank"
    # An architect's answer is the prompt of the editor.
    if state.answered and said.strip() == _as_prompt(state.answered):
        return "event", "custom_message"
    return "user", None


def _as_prompt(text: str) -> str:
    return prompt_of(prompt(text)).strip()


# -- answers -------------------------------------------------------------------


def answered(
    block: Block, usage: Usage | None, state: State, name: str
) -> MessageDraft:
    """Return the message of an answer, with the report that follows it."""
    said = text_of(block).replace("\r\n", "\n").strip()
    pieces = reasoning_and_text(said)
    if pieces_joined(pieces) != said:
        pieces = [("text", "", said)]
    state.answered = "\n\n".join(text for kind, _, text in pieces if kind == "text")

    parts = tuple(
        PartDraft(kind, text, data={"tag": tag} if tag else {})
        for kind, tag, text in pieces
    )
    data: Columns = {}
    found = {"role": "assistant", "id": name, "parts": parts, **model(state.model)}
    found |= counted(usage, data)
    return finished(block, {**found, "time_created": state.time}, data)


def model(named: str | None) -> Columns:
    """Return the columns of a model, which litellm names with its provider."""
    provider, slash, name = (named or "").partition("/")
    if slash and fields.clean_name(provider) and fields.clean_name(name):
        return {"provider_id": provider, "model_id": name}
    return {"model_id": named} if fields.clean_name(named) else {}


def counted(usage: Usage | None, data: Columns) -> Columns:
    """Return cost and counts of a report; counts as they are written go to *data*.

    A count that was rounded is in no column. What was sent includes what the cache
    was read and written for.
    """
    if usage is None:
        return {}
    data["usage"] = {**usage.counts}
    if usage.session is not None:
        data["usage"]["session_cost"] = usage.session

    counts = {name: exact(count) for name, count in usage.counts.items()}
    read, write = counts.get("cache_hit", 0), counts.get("cache_write", 0)
    sent = counts.get("sent")
    if sent is not None:
        sent = None if read is None or write is None else sent - read - write
    columns = {
        "input": sent,
        "output": counts.get("received"),
        "cache_read": counts.get("cache_hit"),
        "cache_write": counts.get("cache_write"),
    }
    known = {k: fitting(v, fields.count) for k, v in columns.items()}
    tokens = Tokens(**known)
    return {
        "cost": fitting(usage.cost, fields.cost),
        "tokens": tokens if tokens.known else None,
    }


# -- aider's own output ----------------------------------------------------------


def outputs(block: Block) -> list[tuple[str, bool]]:
    """Return each output of a block, and whether it has lines without a mark."""
    found: list[tuple[list[str], bool]] = []
    for number, raw in enumerate(block.lines):
        line = raw.decode("utf-8", "replace").rstrip("\r\n").removesuffix(BREAK)
        if number in block.marks and found:
            lines, _ = found.pop()
            found.append(([*lines, line], True))
        elif line.startswith(">"):
            found.append(([line.removeprefix(">").removeprefix(" ")], False))
        elif found:
            found[-1][0].append(line)
    return [("\n".join(lines).rstrip("\n"), more) for lines, more in found]


def report_in(block: Block | None) -> Usage | None:
    """Return the report that a block of output begins with."""
    if block is None or block.kind != "output":
        return None

    first = next(iter(outputs(block)), ("", False))[0]
    return usage_of(first)


def shown(block: Block, state: State, name: str, *, counts: bool) -> MessageDraft:
    """Return the event of aider's own output.

    Its first report *counts* unless it is that of the answer before.
    """
    found: Columns = {"role": "event", "kind": "output", "id": name}
    data: Columns = {}
    parts: list[PartDraft] = []
    for text, is_ambiguous in outputs(block):
        announced = model_of(text)
        if announced is not None:
            state.model = announced
            found |= {"kind": "model_change", **model(announced)}
        state.version = version_of(text) or state.version
        parts.append(_part(text, is_ambiguous))

        usage = usage_of(text)
        if usage is not None:
            _check_cost(usage, state, block)
            if counts:
                found |= _added(found, counted(usage, data))
            counts = True
    found["parts"] = tuple(parts)
    return finished(block, {**found, "time_created": state.time}, data)


def _added(found: Columns, usage: Columns) -> Columns:
    """Return the columns of a report; of several, only costs can be added up."""
    if "cost" not in found:
        return usage
    return {"cost": (found["cost"] or 0) + (usage["cost"] or 0), "tokens": None}


def _check_cost(usage: Usage, state: State, block: Block) -> None:
    state.reports = True
    if usage.session is None:
        return
    if usage.session < state.cost:
        why = "the cost of the session falls: several instances may have written it"
        state.problems.setdefault(why, block.line.number)
    state.cost = usage.session


def _part(text: str, is_ambiguous: bool) -> PartDraft:
    if is_ambiguous:
        return PartDraft("text", text, data={"ambiguous": True})
    path, commit = edited(text), committed(text)
    if path is not None:
        return PartDraft("patch", text, data={"files": [path]})
    if commit is not None:
        return PartDraft("commit", text, data={"hash": commit[0], "message": commit[1]})
    return PartDraft("text", text)
