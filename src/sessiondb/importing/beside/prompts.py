"""The prompt history of an import: what the user typed, each prompt once.

A prompt has an id made of what its copies in forks have in common, so the same prompt
is the same line in every import and on every machine. It is written when the
transaction knows which messages are copies: those are counted, and typed, elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from sessiondb import codec, ids
from sessiondb.dataclass import dataclass
from sessiondb.effects.queue import Effect
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, as_list, upsert_text
from sessiondb.importing.rows.run import ImportEntry, Run
from sessiondb.model import MessageDraft
from sessiondb.schema.rows import PROMPT

_KNOWN = Statement("importing.beside.prompts.KNOWN")
_REMOVE = Statement("importing.beside.prompts.REMOVE")
_OF_SESSION = Statement("importing.beside.prompts.OF_SESSION")
_COPIES = Statement("importing.beside.prompts.COPIES")
_ID, _TEXT = PROMPT.index("id"), PROMPT.index("text")


class TypedPrompt(NamedTuple):
    """A prompt, and the place of its message; *time* is in Unix ms."""

    id: str
    seq: int
    text: str
    time: int


class PromptsOfBatch:
    """The prompts that a batch of a run wrote, without those typed twice in a row."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.prompts: list[TypedPrompt] = []
        #: The ids of prompts that have another one now.
        self.former: list[str] = []

    def add(self, entry: ImportEntry, seq: int, time: int) -> None:
        """Add the prompt of a message, if it is one."""
        prompt_text = entry.prompt
        if prompt_text is None:
            return
        if prompt_text != self.run.typed:
            name = self._prompt_id(entry, entry.usage_id, time)
            self.prompts.append(TypedPrompt(name, seq, prompt_text, time))
        self.run.typed = prompt_text
        self.run.first_typed = self.run.first_typed or prompt_text

    def rename(self, entry: ImportEntry, time: int) -> None:
        """Remove the prompt that a message was until its source knew its copies."""
        if entry.prompt is not None:
            self.former.append(self._prompt_id(entry, entry.row.id, time))

    def _prompt_id(self, entry: ImportEntry, usage_id: str, time: int) -> str:
        source = self.run.checked.item.source
        return ids.imported_prompt_id(source, usage_id, 0 if entry.timeless else time)


class MessageBatch(Effect, Protocol):
    """An effect that writes messages of one session, and then knows their prompts."""

    typed: PromptsOfBatch


@dataclass(frozen=True, slots=True, eq=False)
class FeedPrompts:
    """Write the prompts of a transaction to the history; its last effect."""

    verb = "import"
    batches: tuple[MessageBatch, ...]
    #: The runs that end in this transaction.
    closed: tuple[Run, ...] = ()

    def apply(self, tx: Transaction) -> None:
        """Write those that are new, or that are another session's or text now."""
        self._write_prompts(tx)
        for run in self.closed:
            if run.policy.states_prompts and not run.created and not run.gone:
                _remove_former(tx, run)

    def _write_prompts(self, tx: Transaction) -> None:
        for typed in (batch.typed for batch in self.batches):
            if typed.former:
                sid = typed.run.session_id
                tx.run(_REMOVE, sid=sid, names=as_list(typed.former))

        rows_by_id = {}
        for batch in self.batches:
            for row in _prompt_rows(tx, batch.typed):
                rows_by_id[row[0]] = row
        if not rows_by_id:
            return

        for stored in tx.run(_KNOWN, names=as_list(rows_by_id)).fetchall():
            name, *facts = stored
            # A session that was removed left its prompts in the history.
            columns = dict(zip(PROMPT, rows_by_id[name], strict=True))
            if [columns["text"], columns["session_id"]] == facts:
                del rows_by_id[name]
        put_prompts(tx, list(rows_by_id.values()))


def put_prompts(tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write rows of prompts, which may be there, so that they are found."""
    tx.connection.executemany(upsert_text("prompt", PROMPT), rows)
    tx.engine.search.put_prompts(tx.connection, {row[_ID]: row[_TEXT] for row in rows})


def _prompt_rows(tx: Transaction, typed: PromptsOfBatch) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the prompts that were typed in a session itself."""
    run = typed.run
    if not typed.prompts or run.gone:
        return

    state = tx.peek(run.session_id)
    copies = _copied_seqs(tx, run.session_id, (item.seq for item in typed.prompts))
    for item in typed.prompts:
        if item.seq in copies:
            continue
        run.prompts[item.id] = item.text
        yield prompt_row(
            id=item.id,
            text=item.text,
            directory=state.directory,
            project_id=state.project_id,
            session_id=state.id,
            source=run.checked.item.source,
            time_created=item.time,
        )


def _remove_former(tx: Transaction, run: Run) -> None:
    """Remove prompts of a session that are not those of its messages any more.

    A prompt may have been read before it was complete, or before it was known to be a
    copy; a line of the history may have come before its message. Other lines of the
    history, and prompts of other sources, are not of any message.
    """
    item = run.checked.item
    typed = {plain(text_) for text_ in run.prompts.values()}
    former = []
    rows = tx.run(_OF_SESSION, sid=run.session_id, source=item.source).fetchall()
    for name, text_, time in rows:
        line = ids.history_prompt_id(item.source, item.source_id, text_, time)
        is_of_message = name != line
        if name not in run.prompts and (is_of_message or plain(text_) in typed):
            former.append(name)
    if former:
        tx.run(_REMOVE, sid=run.session_id, names=as_list(former))


def plain(typed: str) -> str:
    """Return a text without the spaces that only some programs strip from it."""
    return "\n".join(line.rstrip() for line in typed.strip().splitlines())


def prompt_row(**columns: Any) -> tuple[Any, ...]:
    """Return the columns of a prompt in the order of its table."""
    return tuple(columns[name] for name in PROMPT)


def _copied_seqs(tx: Transaction, session_id: str, places: Iterable[int]) -> set[int]:
    """Return which messages of a session are copies of another session's."""
    rows = tx.run(_COPIES, sid=session_id, places=as_list(places))
    return {seq for (seq,) in rows.fetchall()}


#: Characters of a prompt; a longer one is a file that was pasted, and typed by no one.
#: The history, and each log of the session, would hold it a second time.
LONGEST = 32 << 10


def typed_in(draft: MessageDraft) -> str | None:
    """Return the prompt that a message is; None for anything else, or a longer text.

    Text that a program added to it is not part of it, and neither are files.
    """
    if draft.role != "user":
        return None
    typed = [
        part.text
        for part in draft.parts
        if part.type == "text" and part.text and not part.synthetic
    ]
    return as_prompt("\n".join(typed))


def as_prompt(typed: str) -> str | None:
    """Return a text as the history has it; None for an empty or a longer one."""
    is_prompt = len(typed) <= LONGEST and typed.strip()
    return codec.readable(typed)[0] if is_prompt else None
