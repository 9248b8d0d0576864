"""A session as readable text, line by line; hostile content is made harmless here.

A message is a header and its parts. Tool calls are folded unless all is asked
for, and what only the agent's bookkeeping needs (steps, snapshots) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sessiondb.cli.text import clock, count, cut, money, one_line, visible

if TYPE_CHECKING:
    from sessiondb.cli.output import Screen
    from sessiondb.model import Message, Part, Session

#: What a folded text keeps: lines, and characters of each.
FOLD_LINES, FOLD_WIDTH = 8, 400
#: Columns of a message on one line.
PREVIEW = 200
_BOOKKEEPING = {"step-start", "step-finish", "snapshot", "patch"}
_STATUS_COLORS = {"error": "red", "completed": "green"}


def header(session: Session, screen: Screen) -> Iterator[str]:
    """Yield the facts of a session and an empty line."""
    yield from screen.rows(one_line(session.title or "(no title)"), bold=True)
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
        yield from screen.rows(one_line(" · ".join(filter(None, facts))), dim=True)
    yield ""


def _lineage(session: Session) -> str | None:
    if session.relation is None:
        return None
    parent = (
        session.parent_id or session.parent_source_id or "a session that is not here"
    )
    return f"{session.relation} of {parent}" + (
        f" at #{session.parent_seq}" if session.parent_seq is not None else ""
    )


def _tokens(session: Session) -> str | None:
    tokens = session.tokens
    named = [
        (tokens.input, "in"),
        (tokens.output, "out"),
        (tokens.cache_read, "cached"),
    ]
    known = [f"{number:,} {word}" for number, word in named if number is not None]
    return f"tokens {', '.join(known)}" if known else None


def message_lines(
    message: Message, screen: Screen, *, full: bool, results: dict[str, int]
) -> Iterator[str]:
    """Yield one message. *results* remembers what calls showed (call id → hash)."""
    yield from _message_head(message, screen)
    for part in message.parts:
        if full or part.type not in _BOOKKEEPING:
            yield from _part(part, screen, full, results)
    if message.error is not None:
        yield from screen.rows(one_line(_error(message)), fg="red")
    yield ""


def _error(message: Message) -> str:
    error = message.error
    return f"error: {error if isinstance(error, str) else _json(error)}"


def _message_head(message: Message, screen: Screen) -> Iterator[str]:
    who = message.role if message.kind is None else f"{message.role} {message.kind}"
    facts = [clock(message.time_created), message.agent, message.model_id]
    facts += [money(message.cost)] if message.cost is not None else []
    facts += (
        [message.finish] if message.finish not in (None, "stop", "tool-calls") else []
    )
    facts += ["open"] if message.time_completed is None else []
    facts += ["inherited"] if message.inherited else []
    name = f"#{message.seq} {one_line(who)}"
    rest = one_line(" · ".join(filter(None, facts)))
    first, *more = screen.rows(f"{name} · {rest}", "── ")
    named = screen.style(name, fg="cyan", bold=True)
    yield first[:3] + named + screen.style(first[3 + len(name) :], dim=True)
    for row in more:
        yield screen.style("   " + row[3:], dim=True)


def _part(
    part: Part, screen: Screen, full: bool, results: dict[str, int]
) -> Iterator[str]:
    if part.type == "text":
        for line in visible((part.text or "").rstrip("\n")).split("\n"):
            yield from screen.rows(line)
    elif part.type == "reasoning":
        for line in visible(part.text or "").split("\n"):
            yield from screen.rows(line, "│ ", dim=True, italic=True)
    elif part.type == "tool":
        if part.call_id is not None:
            results[part.call_id] = hash(part.text)
        yield from _call(part, screen, full)
    elif part.type == "tool-result" and results.get(part.call_id or "") == hash(
        part.text
    ):
        yield screen.style("(the result shown with its call)", dim=True)
    else:
        yield from _other(part, screen, full)


def _call(part: Part, screen: Screen, full: bool) -> Iterator[str]:
    name = f"▸ {one_line(part.tool or 'tool')}"
    state = one_line(part.outcome or part.status or "")
    seconds = ""
    if part.time_started is not None and part.time_ended is not None:
        seconds = f"{(part.time_ended - part.time_started) / 1000:.1f} s"
    plain = " ".join(filter(None, [name, state, seconds]))
    title = screen.row(one_line(part.title or ""), plain + " ")[len(plain) :].rstrip()
    color = _STATUS_COLORS.get(part.status or "")
    styled = [screen.style(name, bold=True), screen.style(state, fg=color), seconds]
    yield " ".join(filter(None, styled)) + title
    if part.input_json is not None:
        yield from _folded(_arguments(part.input_json), screen, full, "  ")
    if part.text:
        yield from _folded(part.text, screen, full, "  │ ")


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
    yield from screen.rows(_named(part), dim=True)
    if part.text:
        yield from _folded(part.text, screen, full, "  │ ")
    elif full and part.data:
        yield from _folded(_json(dict(part.data)), screen, full, "  ")


def _named(part: Part) -> str:
    facts: list[Any] = [part.type, part.tool, part.title]
    facts += [
        part.data.get(name) for name in ("name", "filename", "path", "mime", "url")
    ]
    named = " ".join(
        str(fact)[:FOLD_WIDTH] for fact in facts if isinstance(fact, str) and fact
    )
    return f"[{one_line(named)}]"


def preview(message: Message) -> str:
    """Return on one line what a message says; if it says nothing, what it does or thinks."""
    said = message.text or " · ".join(filter(None, map(_brief, message.parts)))
    if not said and message.error is not None:
        said = _error(message)
    return cut(one_line(said), PREVIEW) or "(nothing said)"


def _brief(part: Part) -> str:
    if part.type in _BOOKKEEPING:
        return ""
    if part.type != "tool":
        words = part.text or _named(part)
        return f"({words})" if part.type == "reasoning" else words
    given = part.title or _arguments(part.input_json or "").removeprefix("command: ")
    how = part.outcome or part.status
    return f"▸ {part.tool} {given}" + (f" [{how}]" if how != "completed" else "")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _folded(text: str, screen: Screen, full: bool, indent: str) -> Iterator[str]:
    """Yield the lines of *text*, indented; unless *full* at most `FOLD_LINES` rows of them."""
    lines = visible(text.rstrip("\n")).split("\n")
    for line in lines if full else lines[:FOLD_LINES]:
        more = len(line) - FOLD_WIDTH
        if full:
            yield from screen.rows(line, indent)
        else:
            yield screen.row(
                line if more <= 0 else f"{line[:FOLD_WIDTH]}… (+{more})", indent
            )
    if not full and len(lines) > FOLD_LINES:
        yield f"{indent}… {count(len(lines) - FOLD_LINES, 'more line')} (--full)"
