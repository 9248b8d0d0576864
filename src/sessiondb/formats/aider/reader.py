"""The runs of a chat history as sessions, read one block at a time.

A run is identified by the name of its folder, the time of its header and its place
among the runs of that second. So neither a moved project nor a later run changes an id,
and two projects whose runs began in the same second have different ones. The file is
read once for the digests of its runs, and the blocks of a changed run again.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.aider import drafts
from sessiondb.formats.aider.assigned import Assigned, Assignment
from sessiondb.formats.aider.conventions import (
    ANNOUNCED,
    INPUTS,
    header,
    model_of,
    time_of,
    version_of,
)
from sessiondb.formats.aider.drafts import State
from sessiondb.formats.aider.inputs import Inputs, Typed
from sessiondb.formats.aider.scanner import TOP, Block, Scanner
from sessiondb.formats.kit.fields import filled
from sessiondb.formats.kit.lines import Line, opened
from sessiondb.model import Problem, SourceMessage, SourceSession, versions
from sessiondb.model.namespaces import Namespace

#: Comes after the last block of a run, and has no report.
_END = Assignment(Block("head", TOP), None)


@dataclass(slots=True)
class Run:
    """A run: its place in the file, and the facts in its blocks.

    ``head`` is the text before its first message, ``opening`` its first line if it
    has no header, ``first`` a digest of its first prompt. ``torn`` is the beginning of
    a header that the file ends with.
    """

    line: Line
    folder: Path
    head: bytes = b""
    started: str | None = None
    opening: str | None = None
    ordinal: int = 0
    end: int = 0
    version: str | None = None
    model: str | None = None
    torn: bytes = b""
    first: str = ""
    digest: Any = field(default_factory=hashlib.sha256)

    @property
    def name(self) -> str:
        """The id of its session."""
        # The last component alone: a project that is moved keeps its ids.
        begin = self.started or f"before the first: {self.opening}"
        facts = f"{self.folder.name}\n{begin}\n{self.ordinal}"
        key = facts.encode("utf-8", "surrogatepass")
        return hashlib.sha256(key).hexdigest()[:20]

    @property
    def namespace(self) -> str:
        """The mark that differs for a run that began in another folder of that name."""
        return str(Namespace(self.started or "", self.first))

    @property
    def is_known(self) -> bool:
        """Whether it has a header, or a message."""
        return self.started is not None or self.opening is not None

    @property
    def time(self) -> int | None:
        """When it began, in Unix ms."""
        return None if self.started is None else time_of(self.started)

    def add(self, block: Block) -> None:
        """Take over the facts in a block of it."""
        raw = block.raw
        self.end = block.line.offset + len(raw)
        self.digest.update(raw)
        if block.kind == "head":
            self.head += raw
            return

        if self.opening is None:
            self.opening = drafts.text_of(block).strip().partition("\n")[0]
        if block.kind == "prompt" and not self.first:
            self.first = versions.digest(drafts.text_of(block))
        # Most output announces nothing, and is not taken apart for a digest.
        if block.kind == "output" and ANNOUNCED.search(raw):
            for text, _ in drafts.outputs(block):
                self.version = self.version or version_of(text)
                self.model = model_of(text) or self.model


def read(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a chat history, in the order of the file."""
    beside = path.with_name(INPUTS)
    try:
        inputs = Inputs(beside)
    except SourceError as error:
        yield Problem(str(beside), str(error))
        inputs = Inputs(None)

    # Resolved, so that `..` and a link give the name of the project's own folder.
    folder = path.parent.resolve()
    with opened(path) as lines:
        scanner = Scanner(lines)
        runs = list(_runs_of(scanner, folder))
    if scanner.torn and runs:
        runs[-1].torn = scanner.torn

    # The input of a run ends where the next one begins.
    for run, after in pairwise([*runs, Run(TOP, folder)]):
        typed = inputs.between(run.time, after.time)
        yield _session(path, run, typed)
    if scanner.torn:
        yield Problem(str(path), "the file ends inside of a header")


def _runs_of(blocks: Iterable[Block], folder: Path) -> Iterator[Run]:
    """Yield the runs of a file; text before the first header is one, too."""
    seen: Counter[str] = Counter()
    run = Run(TOP, folder)
    for block in blocks:
        if block.started is not None:
            # Empty lines at the beginning of a file belong to the first header.
            if run.is_known:
                yield run
                run = Run(block.line, folder)
            run.started, run.ordinal = block.started, seen[block.started]
            seen[block.started] += 1
        run.add(block)

    if run.is_known:
        yield run


def _session(path: Path, run: Run, typed: Typed) -> SourceSession:
    torn, head = map(drafts.as_text, (run.torn, run.head))
    data = {"ordinal": run.ordinal, "started": run.started, "torn": torn}
    if run.started is None or head != header(run.started):
        data["head"] = head

    messages = Messages(path, run, typed)
    session = SourceSession(
        "aider",
        run.name,
        str(path),
        f"{run.digest.hexdigest()[:32]} {typed.digest} {torn!s}",
        messages,
        directory=str(run.folder),
        namespace=run.namespace,
        version=run.version,
        time_created=run.time,
        data=filled(data),
        **drafts.model(run.model),
    )
    if not typed.is_known:
        return session
    return replace(session, complete=partial(_with_inputs, session, messages))


def _with_inputs(session: SourceSession, messages: Messages) -> SourceSession:
    """Return a session with the input besides its prompts: answers to questions."""
    data = {**session.data, "inputs": messages.left()}
    return replace(session, data=filled(data))


class Messages:
    """The messages of a run and their problems; read again each time."""

    def __init__(self, path: Path, run: Run, typed: Typed) -> None:
        self._path = path
        self._run = run
        self._typed = typed

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the run; memory holds two blocks."""
        state = State(time=self._run.time)
        yield from self._found(self._assigned(state), state)

        for why, number in state.problems.items():
            yield Problem(str(self._path), why, number)

    def left(self) -> list[list[str]]:
        """Return time and text of the input that does not belong to a message."""
        deque(self._assigned(State()), maxlen=0)
        return self._typed.left()

    def _assigned(self, state: State) -> Iterator[Assignment]:
        self._typed.rewind()
        with opened(self._path) as lines:
            blocks = Scanner(lines, self._run.line, self._run.end)
            said = (block for block in blocks if block.kind != "head")
            yield from Assigned(said, self._typed, state)

    def _found(
        self, found: Iterable[Assignment], state: State
    ) -> Iterator[SourceMessage | Problem]:
        is_counted = False
        for (block, entry), after in pairwise(chain(found, [_END])):
            name = f"{self._run.name}-{block.line.number - self._run.line.number + 1}"
            if block.kind == "prompt":
                draft = drafts.asked(block, entry, state, name)
            elif block.kind == "answer":
                report = drafts.report_in(after.block)
                draft = drafts.answered(block, report, state, name)
            else:
                draft = drafts.shown(block, state, name, counts=not is_counted)

            # Its report is at the beginning of the output that follows an answer.
            is_counted = block.kind == "answer" and report is not None
            if isinstance(draft.data.get("raw"), bytes):
                why = "text that is not UTF-8 is replaced"
                yield Problem(str(self._path), why, block.line.number)
            yield SourceMessage(draft)
