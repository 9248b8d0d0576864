"""Blocks of a chat history to drafts, and facts from aider's own output.

A draft keeps the text of its block in ``data.raw`` if its parts do not give it again.
A reading that is only likely has its reasons in ``data.ambiguous``.
"""

from __future__ import annotations

from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.aider.conventions import (
    UNTYPED,
    Usage,
    committed,
    edited,
    exact,
    model_of,
    pieces_joined,
    prompt_of,
    reasoning_and_text,
    usage_of,
)
from sessiondb.formats.aider.inputs import Input
from sessiondb.formats.aider.records import WINDOWS, raw_of, with_ends
from sessiondb.formats.aider.scanner import Block
from sessiondb.formats.kit import fields
from sessiondb.formats.kit.fields import fitting
from sessiondb.model import MessageDraft, PartDraft, Tokens

Columns = dict[str, Any]

#: Commands after which the model is sent nothing of what was before.
_RESETS = frozenset({"/clear", "/reset"})
#: Sent, and the counts that it includes.
_SENT = ("sent", "cache_hit", "cache_write")
#: The counts of a report, after the cache is subtracted from the tokens sent.
_COUNTS: fields.Fields = {
    "sent": ("input", fields.count),
    "received": ("output", fields.count),
    "cache_hit": ("cache_read", fields.count),
    "cache_write": ("cache_write", fields.count),
}


@dataclass(slots=True)
class AnswerState:
    """The state at a place of a run: model, time, costs so far, and the last answer."""

    model: str | None = None
    time: int | None = None
    answered: str = ""
    #: The last answer as a prompt with it is read again, once that was compared.
    plan: str | None = None
    cost: float = 0.0
    reports: bool = False
    #: Doubts about the run, and the first line of each.
    problems: dict[str, int] = field(default_factory=dict)


def text_of(block: Block) -> str:
    """Return the text of a block; bytes that are not UTF-8 are replaced."""
    return block.raw.decode("utf-8", "replace")


def as_text(raw: bytes) -> str | bytes:
    """Return bytes as text, or as they are if they are not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def readable(raw: str | bytes, encoding: str = "utf-8") -> str:
    """Return what `as_text` returned as text: bytes in *encoding*, others replaced."""
    return raw if isinstance(raw, str) else raw.decode(encoding, "replace")


def finished(
    block: Block, raw: str | bytes, columns: Columns, data: Columns
) -> MessageDraft:
    """Return the draft of a block, with its *raw* text if the parts do not give it."""
    if block.doubts:
        data["ambiguous"] = list(block.doubts)

    draft = MessageDraft(**columns, data=data)
    raw_text = raw_of(draft)
    if raw_text != raw:
        # Where a file has the line ends of Windows, most of its blocks do.
        is_windows = isinstance(raw_text, str) and with_ends(raw_text) == raw
        data |= {"ends": WINDOWS} if is_windows else {"raw": raw}
    return draft


# -- prompts -------------------------------------------------------------------


def asked(
    block: Block, typed: Input | None, state: AnswerState, name: str
) -> MessageDraft:
    """Return the message of a prompt, exact if the input history has it."""
    raw = as_text(block.raw)
    prompt_text = prompt_of(readable(raw))
    data: Columns = {}
    if typed is not None:
        state.time = typed.time or state.time
        data, prompt_text = fields.without_none({"typed": typed.stamp}), typed.text

    role, kind = _said_by(prompt_text, typed, state)
    columns: Columns = {"role": role, "kind": kind, "id": name}
    columns |= {"parts": (PartDraft("text", prompt_text),), "time_created": state.time}
    return finished(block, raw, columns, data)


def _said_by(
    text: str, typed: Input | None, state: AnswerState
) -> tuple[str, str | None]:
    """Return role and kind of the author of a recorded prompt."""
    if text.startswith(("/", "!")):
        is_reset = text.split(maxsplit=1)[0] in _RESETS
        return "event", "reset" if is_reset else "command"
    if typed is not None:
        return "user", None

    match = UNTYPED.fullmatch(text)
    if match is not None:
        return "event", match.lastgroup

    # An architect's answer is the prompt of the editor.
    return ("event", "custom_message") if _is_plan(text, state) else ("user", None)


def _is_plan(text: str, state: AnswerState) -> bool:
    """Return whether a prompt is the last answer; most begin otherwise."""
    begin, _, _ = text.strip().partition("\n")
    if not state.answered or not state.answered.lstrip().startswith(begin):
        return False

    if state.plan is None:
        state.plan = "\n".join(state.answered.splitlines()).strip()
    return text.strip() == state.plan


# -- answers -------------------------------------------------------------------


def answered(
    block: Block, usage: Usage | None, state: AnswerState, name: str
) -> MessageDraft:
    """Return the message of an answer, with the report that follows it."""
    raw = as_text(block.raw)
    answer = readable(raw)
    # In a file of Windows the empty line that aider puts before an answer has its end.
    if answer.startswith(WINDOWS):
        answer = answer.replace(WINDOWS, "\n")
    answer = answer.strip()
    pieces = reasoning_and_text(answer)
    if pieces_joined(pieces) != answer:
        pieces = [("text", "", answer)]
    state.answered = "\n\n".join(text for kind, _, text in pieces if kind == "text")
    state.plan = None

    parts = tuple(
        PartDraft(kind, text, data=fields.without_empty({"tag": tag}))
        for kind, tag, text in pieces
    )
    data: Columns = {}
    columns = {"role": "assistant", "id": name, "parts": parts, **model(state.model)}
    columns |= {**counted(usage, data), "time_created": state.time}
    return finished(block, raw, columns, data)


def model(model_name: str | None) -> Columns:
    """Return the columns of a model, which litellm names with its provider."""
    if not fields.clean_name(model_name):
        return {}

    # A name may have slashes of its own: only the first one ends the provider.
    provider, _, name = model_name.partition("/")
    if provider and name:
        return {"provider_id": provider, "model_id": name}
    return {"model_id": model_name}


def counted(usage: Usage | None, data: Columns) -> Columns:
    """Return cost and counts of a report; counts as they are written go to *data*.

    A count that was rounded is in no column. The tokens sent include the cache.
    """
    if usage is None:
        return {}

    data["usage"] = fields.without_none({**usage.counts, "session_cost": usage.session})
    counts: Columns = {name: exact(count) for name, count in usage.counts.items()}
    sent, read, write = (counts.get(name, 0) for name in _SENT)
    # Of a rounded count, the rest is not known either.
    is_exact = None not in (sent, read, write)
    counts["sent"] = sent - read - write if is_exact else None

    columns = fields.take_fields(counts, _COUNTS)
    return {
        "cost": fitting(usage.cost, fields.cost),
        "tokens": Tokens(**columns) if columns else None,
    }


# -- aider's own output ----------------------------------------------------------


def report_in(block: Block) -> Usage | None:
    """Return the report that a block begins with, if it is one of output."""
    return usage_of(block.outputs[0][0]) if block.kind == "output" else None


def shown(
    block: Block, first: Usage | None, state: AnswerState, name: str, *, counts: bool
) -> MessageDraft:
    """Return the event of aider's own output, which begins with the report *first*.

    Its first report *counts* unless it is that of the answer before.
    """
    columns: Columns = {"role": "event", "kind": "output", "id": name}
    data: Columns = {}
    parts: list[PartDraft] = []
    for number, (text, is_ambiguous) in enumerate(block.outputs):
        announced = model_of(text)
        if announced is not None:
            state.model = announced
            columns |= {"kind": "model_change", **model(announced)}

        parts.append(_part(text, is_ambiguous))

        usage = usage_of(text) if number else first
        if usage is not None:
            _check_cost(usage, state, block)
            if counts:
                columns |= _added(columns, counted(usage, data))
            counts = True

    columns |= {"parts": tuple(parts), "time_created": state.time}
    return finished(block, as_text(block.raw), columns, data)


def _added(columns: Columns, usage: Columns) -> Columns:
    """Return the columns of a report; of several, only costs can be added up."""
    if "cost" not in columns:
        return usage

    total = sum(filter(None, (columns["cost"], usage["cost"])))
    return {"cost": fitting(total, fields.cost), "tokens": None}


def _check_cost(usage: Usage, state: AnswerState, block: Block) -> None:
    state.reports = True
    if usage.session is None:
        return
    if usage.session < state.cost:
        problem = "the cost of the session falls: several instances may have written it"
        state.problems.setdefault(problem, block.line.number)
    state.cost = usage.session


def _part(text: str, is_ambiguous: bool) -> PartDraft:
    data: Columns = {"ambiguous": True} if is_ambiguous else {}
    path, commit = edited(text), committed(text)
    if path is not None:
        return PartDraft("patch", text, data={**data, "files": [path]})
    if commit is not None:
        return PartDraft("commit", text, data={**data, **commit})
    return PartDraft("text", text, data=data)
