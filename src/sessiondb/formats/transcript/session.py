"""A session as a transcript: its entries in one pass, then what surrounds them.

A pass holds one message at a time, or one turn if only its last answer is shown. The
facts of the head are counted on the way, so the head is known last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from operator import attrgetter

from sessiondb.dataclass import replace
from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Fold,
    LabelBlock,
    Nested,
    Note,
    PromptLine,
    Prose,
    Todos,
    TranscriptEntry,
    TranscriptHead,
)
from sessiondb.formats.transcript.calls import cut_all
from sessiondb.formats.transcript.changes import unified_diff
from sessiondb.formats.transcript.composer import Composer
from sessiondb.formats.transcript.detail import Detail
from sessiondb.formats.transcript.facts import (
    Tally,
    counted_purposes,
    session_facts,
    session_title,
)
from sessiondb.formats.transcript.pictures import Album
from sessiondb.formats.transcript.turns import with_last_answers
from sessiondb.model import Export, FileDiff, Loss, Message, Part, Session
from sessiondb.model.purposes import BOOKKEEPING, INJECTED, PROMPT
from sessiondb.words import changed, excerpt, left_words

#: From so many prompts on there is a table of them; it lists at most so many.
MANY, MOST = 4, 1000
#: Fewer messages in a row that a program added are shown one by one, and more are
#: several folds, because a pass holds little at a time.
FEW_ASIDES, MOST_ASIDES = 2, 200
#: Milliseconds after which the time is shown again.
PAUSE = 60_000
_todo = attrgetter("status", "content")
_OWN = Note(
    "The messages above were copied when the session was forked; its own begin here."
)


class Transcript:
    """One session to be shown; exhaust `entries` before `head`, `tail` and `losses`.

    ``anchor`` names the place where it begins, ``depth`` is 0 unless it is nested.
    """

    def __init__(
        self,
        export: Export,
        detail: Detail,
        album: Album,
        *,
        number: int,
        depth: int,
        children: list[Transcript],
    ) -> None:
        self.export, self.detail, self.depth = export, detail, depth
        self.anchor = f"s{number}"
        # Those that wait for their place, and all of them.
        self._waiting, self._inside = children, tuple(children)

        anchor = f"{self.anchor}-"
        self._composer = Composer(
            detail, album, self._started_by, anchor, export.session.directory or ""
        )
        self._tally = Tally(export.session)
        self._prompts: list[PromptLine] = []

    @property
    def level(self) -> int:
        """The level of its heading; that of a nested one is two levels lower."""
        return min(self.depth * 2 + 1, 5)

    def entries(self) -> Iterator[TranscriptEntry]:
        """Yield what is shown, oldest first."""
        entries = self._message_entries()
        if self.detail.asides and not self.detail.records:
            entries = _gather_asides(entries)
        yield from _join_entries(entries)

        # Those whose message or call is not on the path.
        if self._waiting:
            blocks = self._take_children(lambda _: True)
            last = self._tally.last
            yield TranscriptEntry(
                f"{self.anchor}-more", "event", "", last, blocks=blocks
            )

    def _message_entries(self) -> Iterator[TranscriptEntry]:
        labels = _labels_by_seq(self.export)
        inherited = False
        messages = self.export.messages
        if not self.detail.earlier_answers:
            messages = with_last_answers(messages)
        for message in messages:
            self._tally.add_message(message)
            if inherited and not message.inherited:
                time = message.time_created
                yield TranscriptEntry(
                    f"{self.anchor}-own", "event", "", time, blocks=(_OWN,)
                )
            inherited = message.inherited

            entry = self._composer.entry(message, labels.get(message.seq, ()))
            blocks = entry.blocks + self._started_in(message)
            if not blocks:
                continue
            if message.purpose == PROMPT:
                self._note_prompt(entry)
            yield replace(entry, blocks=blocks)

    def _note_prompt(self, entry: TranscriptEntry) -> None:
        self._tally.prompts += 1
        if len(self._prompts) < MOST:
            text = excerpt(_first_words(entry.blocks), 100)
            self._prompts.append(PromptLine(entry.anchor, text, entry.time))

    def _started_by(self, part: Part) -> tuple[Block, ...]:
        """Return the sessions that a call started."""
        call = part.call_id
        return self._take_children(lambda child: child.call_id == call is not None)

    def _started_in(self, message: Message) -> tuple[Block, ...]:
        """Return the sessions that began in a message, and in no call that is known."""
        seq = message.seq
        return self._take_children(
            lambda child: child.call_id is None and child.parent_seq == seq
        )

    def _take_children(self, belongs: Callable[[Session], bool]) -> tuple[Block, ...]:
        """Return the waiting sessions that belong here; each is shown only once."""
        taken: list[Transcript] = []
        waiting: list[Transcript] = []
        for child in self._waiting:
            (taken if belongs(child.export.session) else waiting).append(child)
        self._waiting = waiting
        return tuple([Nested(child) for child in taken])

    def head(self) -> TranscriptHead:
        """Return the title and the facts; of the messages, only after `entries`."""
        inside = (child.export for child in self.below())
        values = session_facts(self.export, self._tally, inside, nested=self.depth > 0)
        prompts = self._prompts if len(self._prompts) >= MANY else []
        return TranscriptHead(session_title(self.export.session), values, prompts)

    def below(self) -> Iterator[Transcript]:
        """Yield the subagents inside it, and those inside them."""
        for child in self._inside:
            yield child
            yield from child.below()

    def tail(self) -> Iterator[Block]:
        """Yield what follows the messages: the todo list and the changed files."""
        todos = tuple([_todo(todo) for todo in self.export.todos])
        if todos:
            yield LabelBlock("Todo list")
            yield Todos(todos)

        # The diffs of seq 0 are those of all messages together.
        complete = [diff for diff in self.export.diffs if diff.seq == 0]
        diffs = complete or self.export.diffs
        if diffs and self.detail.bodies:
            yield LabelBlock("Changed files")
            for diff in diffs:
                yield self._changed_file(diff)

    def _changed_file(self, diff: FileDiff) -> Fold:
        patch = diff.patch or _diff_of_contents(diff)
        codes = [Code(patch, "diff")] if patch else []
        return Fold(
            kind="change",
            label=excerpt(diff.path, 500),
            details=(changed(diff.additions, diff.deletions),),
            blocks=tuple(cut_all(codes, self.detail)),
        )

    def losses(self) -> Iterator[Loss]:
        """Yield what the transcript does not contain, after `entries`."""
        session = self.export.session
        off = session.message_count - self._tally.messages
        if off > 0:
            prompts = session.prompt_count - self._tally.prompts
            yield Loss(session.id, left_words(off, prompts, "off the live path"))

        for child in self._inside:
            yield from child.losses()


def _labels_by_seq(export: Export) -> dict[int, list[str]]:
    labels: dict[int, list[str]] = {}
    for label in export.labels:
        labels.setdefault(label.seq, []).append(excerpt(label.label))
    return labels


def _diff_of_contents(diff: FileDiff) -> str | None:
    """Return the difference of the contents that were kept; None if none or binary."""
    if diff.before is diff.after is None:
        return None

    try:
        old, new = (diff.before or b"").decode(), (diff.after or b"").decode()
    except UnicodeDecodeError:
        return None
    return unified_diff(diff.path, old, new)


def _first_words(blocks: tuple[Block, ...]) -> str:
    """Return the first text of *blocks*, else the subject of the first fold."""
    texts = [block.text for block in blocks if isinstance(block, Prose | Note)]
    if texts and texts[0]:
        return texts[0]
    subjects = [block.subject for block in blocks if isinstance(block, Fold)]
    return subjects[0] if subjects else ""


def _join_entries(entries: Iterator[TranscriptEntry]) -> Iterator[TranscriptEntry]:
    """Mark what the same speaker continues; after a pause, speaker and time return.

    Results and what a program added do not interrupt a speaker.
    """
    last, since = ("", "", ""), 0
    for entry in entries:
        speaker = (entry.role, entry.who, entry.model)
        soon = abs(entry.time - since) < PAUSE
        continues = speaker == last and soon and entry.role == "assistant"
        yield replace(entry, continues=continues)

        if entry.is_named:
            last = speaker
            if not continues:
                since = entry.time


def _gather_asides(entries: Iterator[TranscriptEntry]) -> Iterator[TranscriptEntry]:
    """Put what a program added, message after message, into one fold that counts it."""
    run: list[TranscriptEntry] = []
    for entry in entries:
        if _is_aside(entry) and len(run) < MOST_ASIDES:
            run.append(entry)
            continue
        yield from _one_of_run(run)
        run.clear()
        yield entry
    yield from _one_of_run(run)


def _is_aside(entry: TranscriptEntry) -> bool:
    """Return whether an entry is nothing but folds of what a program added."""
    message = entry.message
    if message is None or entry.facts or message.purpose not in (INJECTED, BOOKKEEPING):
        return False
    return all(isinstance(block, Fold | Note) for block in entry.blocks)


def _one_of_run(run: list[TranscriptEntry]) -> Iterator[TranscriptEntry]:
    if len(run) < FEW_ASIDES:
        yield from run
        return

    numbers = Counter([entry.message.purpose for entry in run if entry.message])
    blocks = tuple([block for entry in run for block in entry.blocks])
    gathered = Fold("note", counted_purposes(numbers), blocks=blocks)
    first = run[0]
    yield TranscriptEntry(first.anchor, "event", "", first.time, blocks=(gathered,))
