"""What a writer of a format is given: one session with everything that hangs on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sessiondb.model.records import FileDiff, Label, Message, Project, Session, Todo


@dataclass(frozen=True, slots=True)
class Export:
    """One session to be written in some format.

    ``messages`` may be lazy and can be read once: the live path oldest first, or
    every message in order of seq. Directories are absolute.
    """

    session: Session
    project: Project | None
    messages: Iterable[Message]
    todos: tuple[Todo, ...] = ()
    diffs: tuple[FileDiff, ...] = ()
    labels: tuple[Label, ...] = ()
