"""The runs of a chat history as sessions, read one block at a time.

A run is identified by the name of its folder, the time of its header and its place
among the runs of that second. So neither a moved project nor a later run changes an id,
and two projects whose runs began in the same second have different ones. The file is
searched for its runs (`runs`), and the blocks of a changed one are read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.aider import drafts
from sessiondb.formats.aider.assigned import Assigned, Assignment
from sessiondb.formats.aider.conventions import INPUTS, header, may_announce
from sessiondb.formats.aider.drafts import AnswerState
from sessiondb.formats.aider.inputs import Inputs, TypedInputs
from sessiondb.formats.aider.runs import AiderRun, Facts, Headers, runs_of
from sessiondb.formats.aider.scanner import TOP, Block, Scanner
from sessiondb.formats.kit.fields import without_empty
from sessiondb.formats.kit.lines import opened
from sessiondb.model import Problem, SourceMessage, SourceSession

#: The most that clocks of two zones differ by, in milliseconds.
_ZONES = 26 * 3600 * 1000
#: Comes after the last block of a run, and has no report.
_END = Assignment(Block("head", TOP), None), None


def read(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a chat history, in the order of the file."""
    inputs_path = path.with_name(INPUTS)
    try:
        inputs = Inputs(inputs_path)
    except SourceError as error:
        yield Problem(str(inputs_path), str(error))
        inputs = Inputs(inputs_path, is_readable=False)

    # Resolved, so that `..` and a link give the name of the project's own folder.
    folder = path.parent.resolve()
    with opened(path) as lines:
        headers = Headers(lines)
        runs = runs_of(headers, folder)

    typed_inputs = inputs.of_runs([run.time for run in runs])
    for run, typed in zip(runs, typed_inputs, strict=True):
        yield _run_session(path, run, typed)

    for previous, run in pairwise(runs):
        # Whatever the time zones of the two.
        if (run.time or 0) < (previous.time or 0) - _ZONES:
            message = (
                "a run began before the one above it: "
                "its header may be text of an answer"
            )
            yield Problem(str(path), message, run.line.number)

    if headers.torn:
        yield Problem(str(path), "the file ends inside of a header", is_torn=True)


def _run_session(path: Path, run: AiderRun, typed: TypedInputs) -> SourceSession:
    return SourceSession(
        "aider",
        run.name,
        str(path),
        f"{run.digest} {typed.digest} {drafts.as_text(run.torn)!s}",
        AiderMessages(path, run, typed),
        directory=str(run.folder),
        namespace=run.namespace,
        time_created=run.time,
        complete=partial(_complete_session, path, run, typed),
    )


def _complete_session(path: Path, run: AiderRun, typed: TypedInputs) -> SourceSession:
    """Return a session with the facts in all of its blocks."""
    facts, inputs = AiderMessages(path, run, typed).facts()
    torn, head = drafts.as_text(run.torn), drafts.as_text(facts.head)
    is_usual = run.started is not None and head == header(run.started)
    data = {
        "ordinal": run.ordinal,
        "started": run.started,
        "torn": torn,
        "head": None if is_usual else head,
        "inputs": inputs,
    }
    return replace(
        _run_session(path, run, typed),
        version=facts.version,
        data=without_empty(data),
        **drafts.model(facts.model),
    )


class AiderMessages:
    """The messages of a run and their problems; read again each time."""

    def __init__(self, path: Path, run: AiderRun, typed: TypedInputs) -> None:
        self._path = path
        self._run = run
        self._typed = typed

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the run; memory holds two blocks."""
        state = AnswerState(time=self._run.time)
        yield from self._read_messages(self._assigned(state), state)

        for message, number in state.problems.items():
            yield Problem(str(self._path), message, number)

    def facts(self) -> tuple[Facts, list[list[str]]]:
        """Return the facts of the run, and the input besides its prompts.

        The latter are answers to questions, each with its time.
        """
        run = self._run
        with opened(self._path) as lines:
            batches = lines.line_batches(run.facts.end, run.end)
            if not (self._typed.is_known or any(map(may_announce, batches))):
                return run.facts, []

        facts = Facts()
        deque(self._assigned(AnswerState(), facts.noted), maxlen=0)
        return facts, self._typed.left()

    def _assigned(
        self,
        state: AnswerState,
        noted: Callable[[Iterable[Block]], Iterable[Block]] = iter,
    ) -> Iterator[Assignment]:
        self._typed.rewind()
        with opened(self._path) as lines:
            blocks = noted(Scanner(lines, self._run.line, self._run.end))
            message_blocks = (block for block in blocks if block.kind != "head")
            yield from Assigned(message_blocks, self._typed, state)

    def _read_messages(
        self, assignments: Iterable[Assignment], state: AnswerState
    ) -> Iterator[SourceMessage | Problem]:
        is_counted = False
        reported = ((item, drafts.report_in(item.block)) for item in assignments)
        for ((block, typed), report), (_, next_report) in pairwise(
            chain(reported, [_END])
        ):
            name = f"{self._run.name}-{block.line.number - self._run.line.number + 1}"
            if block.kind == "prompt":
                draft = drafts.asked(block, typed, state, name)
            elif block.kind == "answer":
                # Its report is at the beginning of the output that follows it.
                draft = drafts.answered(block, next_report, state, name)
            else:
                draft = drafts.shown(block, report, state, name, counts=not is_counted)

            is_counted = block.kind == "answer" and next_report is not None
            if isinstance(draft.data.get("raw"), bytes):
                message = "text that is not UTF-8 is replaced"
                yield Problem(str(self._path), message, block.line.number)
            yield SourceMessage(draft)
