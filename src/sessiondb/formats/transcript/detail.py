"""The levels of detail: what of a session is shown, and how much of a long text."""

from __future__ import annotations

from sessiondb.dataclass import dataclass, field

#: More lines or characters than any text has.
_ALL = 1 << 60


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one text; ``width`` is that of a single line, in characters.

    ``shortest`` is the length up to which a text of few lines is not shortened.
    """

    lines: int = _ALL
    characters: int = _ALL
    width: int = _ALL
    shortest: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shortest", min(self.characters, self.width))


@dataclass(frozen=True, slots=True)
class Detail:
    """The content shown besides prompts, last answers and one line for each call.

    ``earlier_answers``: what was said in a turn before its last answer. ``asides``:
    reasoning, system texts, what a program added, what happened between messages.
    ``bodies``: what a call was given and returned, the content of files; without
    ``arguments`` of what it was given the command alone, without ``results`` of what it
    returned a diff or an error alone. ``records``: bookkeeping and the raw data of each
    record. ``limits`` bound one text, ``diffs`` one diff, which may be longer; the
    default shows all of it.
    """

    earlier_answers: bool = True
    asides: bool = True
    bodies: bool = True
    arguments: bool = True
    results: bool = True
    records: bool = False
    limits: Limits = Limits()
    diffs: Limits = Limits()


#: The levels by name; the first is the default. A text that a page folds has less
#: room on a terminal: its ``normal`` differs, see `terminal`.
LEVELS = {
    "normal": Detail(limits=Limits(40, 6_000), diffs=Limits(200, 30_000)),
    "brief": Detail(earlier_answers=False, asides=False, bodies=False),
    "full": Detail(records=True),
}
DETAILS = tuple(LEVELS)
