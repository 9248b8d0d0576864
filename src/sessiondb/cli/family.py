"""``fork``, ``tree`` and ``diff``: sessions in relation to each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.around import with_results
from sessiondb.cli.costs import Usages, cost_cell, usages_of
from sessiondb.cli.opening import (
    Options,
    find,
    find_message,
    find_place,
    open_store,
    place_named,
    remember,
)
from sessiondb.cli.text import (
    ago,
    clock,
    count,
    cut,
    one_line,
    short_id,
    title_of,
)
from sessiondb.cli.usage import exclusive
from sessiondb.dataclass import asdict
from sessiondb.model.purposes import BOOKKEEPING, INJECTED, RESULT

if TYPE_CHECKING:
    from sessiondb.model import Comparison, Message, Session, Tree


#: A session, and the message that an address names in it.
Place = tuple["Session", "Message | None"]


@click.command("fork")
@click.argument("ref", type=shared.ADDRESS)
@click.option("--at", metavar="M", help="The last message to keep: id, seq or label.")
@click.option("--before", metavar="M", help="The first message to leave out.")
@click.option("--title", metavar="T", help="The title of the fork.")
@click.option(
    "--directory",
    type=shared.PATH,
    metavar="DIR",
    help="The directory that the fork works in.",
)
@shared.as_json
@click.pass_obj
def fork_command(
    options: Options,
    *,
    ref: str,
    at: str | None,
    before: str | None,
    title: str | None,
    directory: str | None,
    as_json: bool,
) -> None:
    """Start a new session from a message of REF (default: its last one).

    REF#M is the same as REF --at M. An answer keeps the results of its calls, which
    many programs record as messages after it. The fork is self-contained, whatever
    happens to REF. Prints its id.
    """
    from sessiondb.model import session_json

    exclusive({"--at": at, "--before": before})
    with open_store(options, writing=True) as store:
        parent, place = find_place(store, ref)
        end: dict[str, Any] = {
            name: find_message(store, parent, message)
            for name, message in (("at", at), ("before", before))
            if message is not None
        }
        if place is not None:
            exclusive({"REF#M": ref, "--at": at, "--before": before})
            end["at"] = place
        if "at" in end:
            end["at"] = with_results(store, parent, end["at"])
        new_session = store.fork(parent, title=title, directory=directory, **end)
        fork = store.session(new_session)
        remember(store, fork)

    # A person sees the short id; a program gets one that is unique for ever.
    if as_json:
        output.write_json({"session": session_json(fork)})
    elif output.screen().terminal:
        output.write(f"{short_id(fork.id)}  {title_of(fork)}\n")
    else:
        output.write(f"{fork.id}\n")


@click.command("tree")
@click.argument("ref", type=shared.REF)
@shared.as_json
@click.pass_obj
def tree_command(options: Options, *, ref: str, as_json: bool) -> None:
    """The family of REF, drawn: its topmost ancestor with all forks and subagents."""
    with open_store(options) as store:
        session = find(store, ref)
        root = store.tree(session, messages=as_json)
        members = [node.session for node, _ in _nodes_in_order(root)]
        usages = {} if as_json else usages_of(store, members)
    if as_json:
        output.write_document(tree_json(root))
    else:
        output.page(_draw_tree(root, session, usages))


def _nodes_in_order(root: Tree) -> list[tuple[Tree, str]]:
    """Return every node with its branch, in the order of drawing."""
    nodes = []
    pending = [(root, "", "")]
    while pending:
        node, branch, indent = pending.pop()
        nodes.append((node, branch))
        for child in reversed(node.children):
            is_last = child is node.children[-1]
            corner, child_indent = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            pending.append((child, indent + corner, indent + child_indent))
    return nodes


def tree_json(root: Tree) -> str:
    """Return a tree as JSON text.

    Made from the leaves up: a family may be 500 deep, more than `json` recurses.
    """
    from sessiondb.model import session_json

    texts: dict[str, str] = {}
    for node, _ in reversed(_nodes_in_order(root)):
        children = ", ".join(texts.pop(child.session.id) for child in node.children)
        fields: dict[str, Any] = {"session": session_json(node.session)}
        if node.messages:
            fields["messages"] = list(map(asdict, node.messages))
        texts[node.session.id] = (
            f'{output.dumps(fields)[:-1]}, "children": [{children}]}}'
        )
    return texts[root.session.id]


def _draw_tree(root: Tree, session: Session, usages: Usages) -> Iterator[str]:
    nodes = _nodes_in_order(root)
    for node, branch in nodes:
        # A family of one needs no mark.
        is_named = node.session.id == session.id and len(nodes) > 1
        yield _node_line(node.session, usages, branch, is_named)


def _node_line(session: Session, usages: Usages, branch: str, is_named: bool) -> str:
    from rich.cells import cell_len

    shown = output.screen()
    start = f"{branch}{short_id(session.id)}  "
    title = title_of(session)
    facts = f"({_session_facts(session, usages)}){'  ← this one' if is_named else ''}"
    if shown.terminal:
        # The title is cut first, down to its least width, then the facts.
        room = shown.width - len(start) - 2
        title = cut(title, max(room - len(facts), min(room, output.MIN_TITLE)))
        facts = cut(facts, max(room - cell_len(title), 0))

    title = shown.style(title, bold=is_named or None)
    return f"{start}{title}  {shown.style(facts, dim=True)}"


def _session_facts(session: Session, usages: Usages) -> str:
    relation = session.relation or ""
    if relation and session.parent_seq is not None:
        relation += f" at #{session.parent_seq}"
    facts = [
        relation,
        count(session.prompt_count, "prompt"),
        cost_cell(session, usages),
        ago(session.time_updated),
    ]
    return ", ".join(fact for fact in facts if fact)


@click.command("diff")
@click.argument("a", type=shared.ADDRESS)
@click.argument("b", type=shared.ADDRESS)
@shared.as_json
@click.pass_obj
def diff_command(options: Options, *, a: str, b: str, as_json: bool) -> None:
    """Where sessions A and B diverge, and the messages that only one of them has.

    REF#M is a session up to message M, also for two places of one session. Results,
    texts for the model and what else programs record are counted; JSON has all of it.
    """
    from sessiondb.model import message_json, session_json

    with open_store(options) as store:
        first, at_a = place_named(store, a)
        second, at_b = place_named(store, b)
        result = store.compare(first, second, at_a=at_a, at_b=at_b)
    if as_json:
        output.write_json(
            {
                "a": session_json(first),
                "b": session_json(second),
                "at_a": at_a and at_a.seq,
                "at_b": at_b and at_b.seq,
                "common": [message_json(message) for message in result.common],
                "only_a": [message_json(message) for message in result.only_a],
                "only_b": [message_json(message) for message in result.only_b],
            }
        )
    else:
        output.page(_comparison_lines((first, at_a), (second, at_b), result))


def _comparison_lines(first: Place, second: Place, result: Comparison) -> Iterator[str]:
    last = f", the last #{result.common[-1].seq}" if result.common else ""
    yield f"  {count(len(result.common), 'message')} in common{last}"
    yield from _lines_of_one_side(first, result.only_a, "-", "red")
    yield from _lines_of_one_side(second, result.only_b, "+", "green")


def _lines_of_one_side(
    place: Place, messages: tuple[Message, ...], mark: str, color: str
) -> Iterator[str]:
    """Yield what only one side has: the conversation, and how much was recorded."""
    from sessiondb.formats.transcript.facts import counted_purposes

    shown = output.screen()
    session, end = place
    address = (
        short_id(session.id) if end is None else f"{short_id(session.id)}#{end.seq}"
    )
    name = f"{address}  {title_of(session)}"
    number = f"({count(len(messages), 'message')} alone)"
    if shown.terminal:
        name = cut(name, max(shown.width - len(number) - 5, output.MIN_TITLE))

    yield ""
    yield shown.style(f"{mark * 3} {name} {number}", bold=True)
    left_out: Counter[str] = Counter()
    for message in messages:
        # A result is a part of its call, which is listed.
        if message.purpose in (RESULT, INJECTED, BOOKKEEPING):
            left_out[message.purpose] += 1
            continue
        line = f"{mark} {_message_summary(message)}"
        yield shown.style(cut(line, shown.width) if shown.terminal else line, fg=color)
    if left_out:
        line = f"{mark} … {counted_purposes(left_out)}"
        yield shown.style(cut(line, shown.width) if shown.terminal else line, dim=True)


def _message_summary(message: Message) -> str:
    from sessiondb.formats.transcript.terminal import preview_of

    who = one_line(" ".join(filter(None, [message.purpose, message.kind])))
    when = clock(message.time_created)
    return f"#{message.seq} {when} {who}: {preview_of(message)}"
