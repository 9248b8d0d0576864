"""A session as a transcript: its entries in one pass, and then what stands over and under them.

A pass holds one message at a time, or the lines of one turn where only its last
answer is shown. What the head says is counted on the way, so it is known last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Entry,
    Fold,
    Head,
    Label,
    Line,
    Nested,
    Note,
    Prose,
    Todos,
)
from sessiondb.formats.transcript.calls import cut
from sessiondb.formats.transcript.changes import difference
from sessiondb.formats.transcript.message import Reader, entry
from sessiondb.formats.transcript.pictures import Album
from sessiondb.formats.transcript.words import (
    count,
    duration,
    moment,
    money,
    one_line,
    tokens,
)
from sessiondb.model import Export, FileDiff, Loss, Message, Part

#: From so many prompts on there is a table of them; it lists at most so many.
MANY, MOST = 4, 1000
#: Milliseconds after which the time is told again.
PAUSE = 60_000


_OWN = Note(
    "What stands above was copied when the session was forked; here it goes on by itself."
)


class Transcript:
    """One session to be shown; iterate `entries` to its end, then ask for `head` and `tail`.

    ``anchor`` names the place where it begins, ``depth`` is 0 of one that stands alone.
    """

    def __init__(
        self,
        export: Export,
        detail: str,
        album: Album,
        *,
        number: int,
        depth: int,
        children: list[Transcript],
    ) -> None:
        self.export, self.detail, self.depth = export, detail, depth
        self.anchor = f"s{number}"
        self._album, self._children, self._inside = album, children, tuple(children)
        self._reader = Reader(detail, album, self._called)
        self._prompts: list[Line] = []
        self._models: dict[str, None] = {}
        self._messages = self._asked = self._calls = self._failed = 0
        self._first = self._last = export.session.time_created

    def entries(self) -> Iterator[Entry]:
        """Yield what is shown, oldest first."""
        found = self._all()
        yield from _joined(_brief(found) if self.detail == "brief" else found)
        if self._children:
            blocks = tuple(Nested(child) for child in self._children)
            self._children = []
            yield Entry(f"{self.anchor}-more", "event", "", self._last, blocks=blocks)

    def _all(self) -> Iterator[Entry]:
        labels: dict[int, tuple[str, ...]] = {}
        for label in self.export.labels:
            labels[label.seq] = (*labels.get(label.seq, ()), one_line(label.label))
        inherited = False
        for message in self.export.messages:
            self._count(message)
            if inherited and not message.inherited:
                yield Entry(
                    f"{self.anchor}-own",
                    "event",
                    "",
                    message.time_created,
                    blocks=(_OWN,),
                )
            inherited = message.inherited
            blocks = self._reader.blocks(message) + self._begun(message)
            if blocks:
                anchor = f"{self.anchor}-m{message.seq}"
                found = entry(
                    message, blocks, anchor, labels.get(message.seq, ()), self.detail
                )
                if message.role == "user":
                    text = one_line(_text(blocks), 100)
                    self._asked += 1
                    if len(self._prompts) < MOST:
                        self._prompts.append(Line(anchor, text, message.time_created))
                yield found

    def _count(self, message: Message) -> None:
        self._first = min(self._first, message.time_created)
        self._last = max(self._last, message.time_completed or message.time_created)
        self._messages += 1
        for part in message.parts:
            self._calls += part.type == "tool"
            self._failed += part.type == "tool" and part.status == "error"
        if message.model_id and message.role == "assistant":
            self._models[
                "/".join(filter(None, [message.provider_id, message.model_id]))
            ] = None

    def _called(self, part: Part) -> tuple[Block, ...]:
        """Return the sessions that a call started; each stands at one place only."""
        mine = [
            c
            for c in self._children
            if c.export.session.call_id == part.call_id is not None
        ]
        self._children = [child for child in self._children if child not in mine]
        return tuple(Nested(child) for child in mine)

    def _begun(self, message: Message) -> tuple[Block, ...]:
        """Return the sessions that began in a message, and in no call that is known."""
        mine = [
            child for child in self._children
            if child.export.session.call_id is None
            and child.export.session.parent_seq == message.seq
        ]  # fmt: skip
        self._children = [child for child in self._children if child not in mine]
        return tuple(Nested(child) for child in mine)

    def head(self) -> Head:
        """Return the title and the facts; of the messages, only after `entries`."""
        session = self.export.session
        program = " ".join(filter(None, [session.source, session.version]))
        facts = [
            ("Agent", " · ".join(filter(None, [program, session.agent]))),
            (
                "Models" if len(self._models) > 1 else "Model",
                ", ".join(list(self._models)[:12]),
            ),
            ("Directory", session.directory),
            ("Date", self._when()),
            ("Messages", self._counted()),
            ("Tokens", tokens(session.tokens.columns())),
            ("Cost", self._cost()),
            ("Changes", self._changes()),
            ("Origin", self._origin()),
            (
                "Archived",
                moment(session.time_archived) + " UTC" if session.time_archived else "",
            ),
            ("Session", session.id),
        ]
        head = Head(
            title(self.export),
            [(name, one_line(text, 1000)) for name, text in facts if text],
        )
        if len(self._prompts) >= MANY:
            head.prompts = self._prompts
        return head

    def _when(self) -> str:
        if self._last - self._first < 1000:
            return f"{moment(self._first)} UTC"
        same = moment(self._first, "%Y-%m-%d") == moment(self._last, "%Y-%m-%d")
        end = moment(self._last, "%H:%M:%S" if same else "%Y-%m-%d %H:%M:%S")
        return (
            f"{moment(self._first)} to {end} UTC ({duration(self._last - self._first)})"
        )

    def _counted(self) -> str:
        words = [count(self._messages, "message"), count(self._asked, "prompt")]
        failed = f" ({self._failed:,} failed)" if self._failed else ""
        return ", ".join([*words, count(self._calls, "tool call") + failed])

    def _cost(self) -> str:
        session = self.export.session
        inherited = session.cost_inherited
        more = f", and {money(inherited)} inherited" if inherited is not None else ""
        below = [inner.export.session.cost for inner in self.below()]
        if below:
            known = [cost for cost in below if cost is not None]
            least = "at least " if known and len(known) < len(below) else ""
            more += f", and {least}{money(sum(known) if known else None)} of subagents"
        return money(session.cost) + more

    def below(self) -> Iterator[Transcript]:
        """Yield the subagents that stand in it, and those in them."""
        for child in self._inside:
            yield child
            yield from child.below()

    def _changes(self) -> str:
        session = self.export.session
        if session.summary_additions is None and session.summary_deletions is None:
            return ""
        lines = f"+{session.summary_additions or 0:,} −{session.summary_deletions or 0:,} lines"
        files = session.summary_files
        return lines if files is None else f"{lines} in {count(files, 'file')}"

    def _origin(self) -> str:
        session, parent = self.export.session, self.export.parent
        if session.relation is None or self.depth:
            return ""
        name = (
            session.parent_id
            or session.parent_source_id
            or "a session that is not here"
        )
        known = (
            f"“{one_line(parent.title, 80)}” ({name})"
            if parent and parent.title
            else name
        )
        place = (
            "" if session.parent_seq is None else f", at message {session.parent_seq}"
        )
        return f"{session.relation} of {known}{place}"

    def tail(self) -> Iterator[Block]:
        """Yield what stands under the messages: the todo list and the changed files."""
        if self.export.todos:
            yield Label("Todo list")
            yield Todos(
                tuple((todo.status, todo.content) for todo in self.export.todos)
            )
        whole = [diff for diff in self.export.diffs if diff.seq == 0]
        if (diffs := whole or list(self.export.diffs)) and self.detail != "brief":
            yield Label("Changed files")
            for diff in diffs:
                yield self._changed(diff)

    def _changed(self, diff: FileDiff) -> Fold:
        patch = diff.patch or _difference(diff)
        known = diff.additions is not None or diff.deletions is not None
        facts = (f"+{diff.additions or 0:,} −{diff.deletions or 0:,}",) if known else ()
        blocks: tuple[Block, ...] = ()
        if patch:
            blocks = (cut(Code(patch, "diff"), self.detail),)
        return Fold("change", one_line(diff.path, 500), "", facts, blocks=blocks)

    def losses(self) -> Iterator[Loss]:
        """Yield what the transcript does not hold, after `entries`."""
        session = self.export.session
        off = session.message_count - self._messages
        if off > 0:
            yield Loss(session.id, f"{count(off, 'message')} off the live path")
        for child in self._inside:
            yield from child.losses()


def title(export: Export) -> str:
    """Return the title of a session, on one line."""
    return one_line(export.session.title, 300) or "(no title)"


def _difference(diff: FileDiff) -> str | None:
    if diff.before is None and diff.after is None:
        return None
    try:
        before, after = (diff.before or b"").decode(), (diff.after or b"").decode()
    except UnicodeDecodeError:
        return None
    return difference(diff.path, before, after)


def _text(blocks: tuple[Block, ...]) -> str:
    texts = (b.text for b in blocks if isinstance(b, Prose | Note))
    return next(texts, None) or next(
        (b.subject for b in blocks if isinstance(b, Fold)), ""
    )


def _joined(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Mark what the same one goes on to say; after a while it is said again who and when."""
    last, since = ("", "", ""), 0
    for item in entries:
        this = (item.role, item.who, item.model)
        soon = abs(item.time - since) < PAUSE
        goes_on = this == last and soon and item.role in ("assistant", "tool")
        yield replace(item, continues=goes_on)
        last, since = this, since if goes_on else item.time


def _brief(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Yield of each turn its prompt, a line for each call, and the last that was said."""
    turn: list[Entry] = []
    for item in entries:
        if item.role == "user":
            yield from _answered(turn)
            turn = []
            yield item
        else:
            turn.append(item)
    yield from _answered(turn)


def _answered(turn: list[Entry]) -> Iterator[Entry]:
    said = [
        n
        for n, item in enumerate(turn)
        if any(isinstance(b, Prose) for b in item.blocks)
    ]
    for number, item in enumerate(turn):
        blocks = item.blocks
        if number != (said or [-1])[-1]:
            blocks = tuple(block for block in blocks if not isinstance(block, Prose))
        if blocks:
            yield replace(item, blocks=blocks)
