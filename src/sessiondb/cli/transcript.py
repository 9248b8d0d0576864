"""A session as readable text, line by line; hostile content is made harmless here.

A message is a header and its parts. Tool calls are folded unless all is asked
for, and what only the agent's bookkeeping needs (steps, snapshots) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sessiondb.cli.text import clock, count, money, one_line, visible

if TYPE_CHECKING:
    from sessiondb.cli.output import Screen
    from sessiondb.model import Message, Part, Session

#: What a folded text keeps: lines, and characters of each.
FOLD_LINES, FOLD_WIDTH = 8, 400
_BOOKKEEPING = {"step-start", "step-finish", "snapshot", "patch"}
_STATUS_COLORS = {"error": "red", "completed": "green"}


def header(session: Session, screen: Screen) -> Iterator[str]:
    """Yield the facts of a session and an empty line."""
    yield screen.style(one_line(session.title or "(no title)"), bold=True)
    program = " ".join(filter(None, [session.source, session.version]))
    model = "/".join(filter(None, [session.provider_id, session.model_id]))
    for facts in (
        [session.id, session.slug],
        [session.directory],
        [program, session.agent, model],
        [_lineage(session), count(session.message_count, "message"), _tokens(session)]
        + ([f"cost {money(session.cost)}"] if session.cost is not None else []),
        [f"{clock(session.time_created)} to {clock(session.time_updated)}"]
        + (["archived"] if session.time_archived else []),
    ):
        yield screen.style(one_line(" · ".join(filter(None, facts))), dim=True)
    yield ""


def _lineage(session: Session) -> str | None:
    if session.relation is None:
        return None
    parent = session.parent_id or session.parent_source_id or "a session that is not here"
    return f"{session.relation} of {parent}" + (
        f" at #{session.parent_seq}" if session.parent_seq is not None else ""
    )


def _tokens(session: Session) -> str | None:
    tokens = session.tokens
    named = [(tokens.input, "in"), (tokens.output, "out"), (tokens.cache_read, "cached")]
    known = [f"{number:,} {word}" for number, word in named if number is not None]
    return f"tokens {', '.join(known)}" if known else None


def message_lines(
    message: Message, screen: Screen, *, full: bool, results: dict[str, int]
) -> Iterator[str]:
    """Yield one message. *results* remembers what calls showed (call id → hash)."""
    yield _message_head(message, screen)
    for part in message.parts:
        if full or part.type not in _BOOKKEEPING:
            yield from _part(part, screen, full, results)
    if message.error is not None:
        error = message.error if isinstance(message.error, str) else _json(message.error)
        yield screen.style(f"error: {one_line(error)}", fg="red")
    yield ""


def _message_head(message: Message, screen: Screen) -> str:
    who = message.role if message.kind is None else f"{message.role} {message.kind}"
    facts = [clock(message.time_created), message.agent, message.model_id]
    facts += [money(message.cost)] if message.cost is not None else []
    facts += [message.finish] if message.finish not in (None, "stop", "tool-calls") else []
    facts += ["open"] if message.time_completed is None else []
    facts += ["inherited"] if message.inherited else []
    name = screen.style(f"#{message.seq} {one_line(who)}", fg="cyan", bold=True)
    rest = one_line(" · ".join(filter(None, facts)))
    return f"── {name} " + screen.style(f"· {rest}", dim=True)


def _part(part: Part, screen: Screen, full: bool, results: dict[str, int]) -> Iterator[str]:
    if part.type == "text":
        yield from visible((part.text or "").rstrip("\n")).split("\n")
    elif part.type == "reasoning":
        for line in visible(part.text or "").split("\n"):
            yield screen.style(f"│ {line}", dim=True, italic=True)
    elif part.type == "tool":
        if part.call_id is not None:
            results[part.call_id] = hash(part.text)
        yield from _call(part, screen, full)
    elif part.type == "tool-result" and results.get(part.call_id or "") == hash(part.text):
        yield screen.style("(the result shown with its call)", dim=True)
    else:
        yield from _other(part, screen, full)


def _call(part: Part, screen: Screen, full: bool) -> Iterator[str]:
    name = screen.style(f"▸ {one_line(part.tool or 'tool')}", bold=True)
    state = part.outcome or part.status or ""
    seconds = ""
    if part.time_started is not None and part.time_ended is not None:
        seconds = f"{(part.time_ended - part.time_started) / 1000:.1f} s"
    facts = [screen.style(one_line(state), fg=_STATUS_COLORS.get(part.status or "")), seconds]
    yield " ".join([name, *filter(None, [*facts, one_line(part.title or "")])])
    if part.input_json is not None:
        yield from folded(_arguments(part.input_json), full, "  ")
    if part.text:
        yield from folded(part.text, full, "  │ ")


def _arguments(text: str) -> str:
    """Return a call's arguments as ``name: value`` lines; what is no object stays JSON."""
    try:
        values = json.loads(text)
    except ValueError:
        return text
    if not isinstance(values, dict):
        return text
    shown = {k: v if isinstance(v, str) else _json(v) for k, v in values.items()}
    return "\n".join(f"{name}: {value}" for name, value in shown.items())


def _other(part: Part, screen: Screen, full: bool) -> Iterator[str]:
    facts: list[Any] = [part.type, part.tool, part.title]
    facts += [part.data.get(name) for name in ("name", "filename", "path", "mime", "url")]
    named = " ".join(str(fact)[:FOLD_WIDTH] for fact in facts if isinstance(fact, str) and fact)
    yield screen.style(f"[{one_line(named)}]", dim=True)
    if part.text:
        yield from folded(part.text, full, "  │ ")
    elif full and part.data:
        yield from folded(_json(dict(part.data)), full, "  ")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def folded(text: str, full: bool, indent: str) -> Iterator[str]:
    """Yield the lines of *text*, indented; unless *full* at most `FOLD_LINES` of them."""
    lines = visible(text.rstrip("\n")).split("\n")
    for line in lines if full else lines[:FOLD_LINES]:
        more = len(line) - FOLD_WIDTH
        yield indent + (line if full or more <= 0 else f"{line[:FOLD_WIDTH]}… (+{more})")
    if not full and len(lines) > FOLD_LINES:
        yield f"{indent}… {count(len(lines) - FOLD_LINES, 'more line')} (--full)"
