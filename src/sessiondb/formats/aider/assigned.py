"""Prompts of a run and their input, and headings that look like prompts.

Only two spaces at its end and the empty line before it make a line a prompt, and a
model may write both. So a prompt that follows an answer, with no output of aider's
between them, is text of that answer if the input history does not have it, although it
has others of the run. Without an input history it stays a prompt, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sessiondb.formats.aider.conventions import UNTYPED, prompt_of
from sessiondb.formats.aider.drafts import AnswerState, as_text, readable, text_of
from sessiondb.formats.aider.inputs import Input, TypedInputs
from sessiondb.formats.aider.scanner import Block

_HEADING = "a line of it is recorded like a prompt"
_UNSURE = "a prompt that follows an answer at once may be a heading of that answer"
#: The notice before an answer that was interrupted, which no report follows.
_INTERRUPTED = b"^C"
#: The encoding that aider wrote most histories in that are not UTF-8.
_OTHER = "cp1252"


class Assignment(NamedTuple):
    """A block, and its input if it is a prompt that the input history has."""

    block: Block
    typed: Input | None


class Assigned:
    """The blocks of a run with their entries; problems are added to *state*."""

    def __init__(
        self, blocks: Iterable[Block], typed: TypedInputs, state: AnswerState
    ) -> None:
        self._blocks = blocks
        self._typed = typed
        self._state = state
        self._is_continued = self._is_interrupted = False

    def __iter__(self) -> Iterator[Assignment]:
        # The block that the next one may belong to.
        waiting: Assignment | None = None
        for block in self._blocks:
            assignment = Assignment(block, self._input(block))
            if waiting is not None:
                if waiting.block.kind == "answer" and self._continues(
                    waiting.block, assignment
                ):
                    waiting.block.lines += block.lines
                    continue
                yield waiting

            waiting, self._is_continued = assignment, False
            # The answer that an interruption cut off is recorded after its notice.
            if block.kind != "answer":
                self._is_interrupted = _INTERRUPTED in block.raw

        if waiting is not None:
            yield waiting

    def _input(self, block: Block) -> Input | None:
        if block.kind != "prompt":
            return None

        # The input history is always UTF-8; the chat history may not be.
        return self._typed.take(readable(as_text(block.raw), _OTHER))

    def _continues(self, answer: Block, assignment: Assignment) -> bool:
        """Return whether a block continues the *answer* before it."""
        block = assignment.block
        # After a heading, the text that follows belongs to the same answer.
        if block.kind != "prompt" or assignment.typed is not None:
            return self._is_continued and block.kind == "answer"

        # Empty input and repeated confirmations are never in the input history.
        if self._typed.is_known and not UNTYPED.fullmatch(prompt_of(text_of(block))):
            answer.doubts.append(_HEADING)
            self._is_continued = True
            return True

        # A report ends each answer that was not interrupted.
        if self._state.reports and not self._is_interrupted:
            block.doubts.append(_UNSURE)
            self._state.problems.setdefault(_UNSURE, block.line.number)
        return False
