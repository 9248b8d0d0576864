"""The workload: turns of 1.5 KB, the same ones for every store."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

VOCABULARY = (
    "agent answer append argument branch bytes call checkout commit config database "
    "default diff directory error exception export failed file function import index "
    "journal key line message model module output parser patch path prompt query "
    "record release result return schema search session table test token tool trace "
    "transaction type update value version writer"
).split()
PROMPT_BYTES, ANSWER_BYTES, QUERY_BYTES, RESULT_BYTES = 260, 230, 110, 760
MODEL, COST, TOOL = (
    "model-1",
    0.01,
    "read",
)  # the cost only where a store has a place for it


class Turn(NamedTuple):
    """A prompt, and an answer with one text and one call that has its result."""

    number: int
    prompt: str
    answer: str
    call_id: str
    arguments: dict[str, Any]
    result: str

    @property
    def mark(self) -> str:
        """A word that no other turn has."""
        return self.call_id


def turn(number: int) -> Turn:
    """Return the turn of this number."""
    rng = random.Random(number)  # noqa: S311 - a workload, nothing secret
    return Turn(
        number,
        prompt=_words(rng, PROMPT_BYTES),
        answer=_words(rng, ANSWER_BYTES),
        call_id=f"call_{number:06d}",
        arguments={
            "path": f"src/module_{number % 97}.py",
            "query": _words(rng, QUERY_BYTES),
        },
        result=_words(rng, RESULT_BYTES),
    )


def _words(rng: random.Random, size: int) -> str:
    """Return *size* characters of words; 4,500 different ones, which a search index feels."""
    pieces = [f"{rng.choice(VOCABULARY)}{rng.randrange(100)}" for _ in range(size // 4)]
    return " ".join(pieces)[:size]
