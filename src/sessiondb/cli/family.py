"""``fork``, ``tree`` and ``diff``: sessions in relation to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import (
    Options,
    find,
    find_message,
    open_store,
    remember,
    terminal,
)
from sessiondb.cli.text import ago, clock, count, cut, money, one_line, short_id

if TYPE_CHECKING:
    from sessiondb.model import Comparison, Message, Session, Tree


@click.command("fork")
@click.argument("ref", type=shared.REF)
@click.option("--at", metavar="M", help="The last message to keep: id, seq or label.")
@click.option("--before", metavar="M", help="The first message to leave out.")
@click.option("--title", metavar="T", help="Its title.")
@click.option(
    "--directory", type=shared.PATH, metavar="DIR", help="The directory it works in."
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

    The fork is self-contained, whatever happens to REF. Prints its id.
    """
    from sessiondb.model import session_json

    if at is not None and before is not None:
        raise click.UsageError("--at and --before exclude each other")
    with open_store(options, writing=True) as store:
        parent = find(store, ref)
        cut: dict[str, Any] = {
            name: find_message(store, parent, message)
            for name, message in (("at", at), ("before", before))
            if message is not None
        }
        made = store.fork(parent, title=title, directory=directory, **cut)
        fork = store.session(made)
        remember(store, fork)
    if as_json:
        output.write_json({"session": session_json(fork)})
    elif output.screen().terminal:
        output.write(f"{short_id(fork.id)}  {one_line(fork.title)}\n")
    else:
        output.write(f"{fork.id}\n")


@click.command("tree")
@click.argument("ref", type=shared.REF)
@shared.as_json
@click.pass_obj
def tree_command(options: Options, *, ref: str, as_json: bool) -> None:
    """The family of REF, drawn: its topmost ancestor with all forks and subagents."""
    with open_store(options) as store:
        asked = find(store, ref)
        root = store.tree(asked, messages=as_json)
    if as_json:
        output.write_document(tree_json(root))
    else:
        output.page(_drawn(root, asked))


def _nodes(root: Tree) -> list[tuple[Tree, str, str]]:
    """Return every node in the order of drawing, with its branch and the nodes below it."""
    nodes, pending = [], [(root, "", "")]
    while pending:
        node, branch, indent = pending.pop()
        nodes.append((node, branch, indent))
        for child in reversed(node.children):
            last = child is node.children[-1]
            pending.append(
                (
                    child,
                    indent + ("└─ " if last else "├─ "),
                    indent + ("   " if last else "│  "),
                )
            )
    return nodes


def tree_json(root: Tree) -> str:
    """Return a tree as JSON text, made from the leaves up: a family may be 500 deep."""
    from sessiondb.model import session_json

    made: dict[str, str] = {}
    for node, _, _ in reversed(_nodes(root)):
        below = ", ".join(made.pop(child.session.id) for child in node.children)
        fields: dict[str, Any] = {"session": session_json(node.session)}
        if node.messages:
            fields["messages"] = list(map(asdict, node.messages))
        made[node.session.id] = f'{output.dumps(fields)[:-1]}, "children": [{below}]}}'
    return made[root.session.id]


def _drawn(root: Tree, asked: Session) -> Iterator[str]:
    from rich.cells import cell_len

    shown = output.screen()
    nodes = _nodes(root)
    for node, branch, _ in nodes:
        s = node.session
        this = s.id == asked.id and len(nodes) > 1
        relation = f"{s.relation}" if s.relation else ""
        relation += (
            f" at #{s.parent_seq}" if relation and s.parent_seq is not None else ""
        )
        facts = [
            relation,
            count(s.message_count, "message"),
            money(s.cost),
            ago(s.time_updated),
        ]
        told = f"({', '.join(filter(None, facts))})" + ("  ← this one" if this else "")
        start, title = f"{branch}{short_id(s.id)}  ", one_line(s.title) or "–"
        if shown.terminal:
            room = shown.width - len(start) - 2
            title = cut(title, max(room - len(told), min(room, output.MIN_TITLE)))
            told = cut(told, max(room - cell_len(title), 0))
        yield f"{start}{shown.style(title, bold=this or None)}  {shown.style(told, dim=True)}"


@click.command("diff")
@click.argument("a", type=shared.REF)
@click.argument("b", type=shared.REF)
@shared.as_json
@click.pass_obj
def diff_command(options: Options, *, a: str, b: str, as_json: bool) -> None:
    """Where sessions A and B part, and what only one of them has."""
    from sessiondb.model import message_json, session_json

    with open_store(options) as store:
        name = terminal()
        first, second = (store.session(ref, terminal=name) for ref in (a, b))
        result = store.compare(first, second)
    if as_json:
        output.write_json(
            {
                "a": session_json(first),
                "b": session_json(second),
                "common": list(map(message_json, result.common)),
                "only_a": list(map(message_json, result.only_a)),
                "only_b": list(map(message_json, result.only_b)),
            }
        )
    else:
        output.page(_parted(first, second, result))


def _parted(first: Session, second: Session, result: Comparison) -> Iterator[str]:
    shown = output.screen()
    last = f", the last #{result.common[-1].seq}" if result.common else ""
    yield f"  {count(len(result.common), 'message')} in common{last}"
    for mark, color, session, messages in (
        ("-", "red", first, result.only_a),
        ("+", "green", second, result.only_b),
    ):
        yield ""
        name = f"{short_id(session.id)}  {one_line(session.title)}"
        alone = f"({count(len(messages), 'message')} alone)"
        if shown.terminal:
            name = cut(name, max(shown.width - len(alone) - 5, output.MIN_TITLE))
        yield shown.style(f"{mark * 3} {name} {alone}", bold=True)
        for message in messages:
            line = f"{mark} {_summary(message)}"
            yield shown.style(
                cut(line, shown.width) if shown.terminal else line, fg=color
            )


def _summary(message: Message) -> str:
    from sessiondb.formats.transcript.terminal import preview

    who = " ".join(filter(None, [message.role, message.kind]))
    return f"#{message.seq} {clock(message.time_created)} {one_line(who)}: {preview(message)}"
