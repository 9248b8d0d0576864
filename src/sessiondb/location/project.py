"""Which project a directory belongs to.

A project is a worktree root: of a linked git worktree the main one, outside of
a repository the directory itself. A directory that is not on this machine (of a
session from elsewhere) is kept verbatim; nothing is guessed about it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from sessiondb.dataclass import dataclass
from sessiondb.errors import InvalidInputError, NotFoundError, abridged
from sessiondb.location import git
from sessiondb.places import is_absolute


@dataclass(frozen=True, slots=True)
class Place:
    """A directory and the worktree it belongs to, all absolute.

    ``root`` identifies the project; ``checkout`` is the top of the worktree with
    ``directory``, different from ``root`` only for a linked worktree, whose ``kind``
    is ``sandbox``. ``vcs`` is None outside of a repository.
    """

    root: str
    directory: str
    checkout: str
    kind: Literal["worktree", "sandbox"] = "worktree"
    vcs: Literal["git"] | None = None


def project_at(directory: str | os.PathLike[str], *, resolve_git: bool = True) -> Place:
    r"""Return the project of *directory*, without starting any program.

    An existing directory is identified by its real path. One that does not exist is
    only normalised, without looking for its repository; a path of another system
    (``C:\x``) is unchanged. Without *resolve_git* a directory is its own root. Raises
    `InvalidInputError` for an empty path or one with a NUL, `NotFoundError` for a
    relative one when the current directory was removed.
    """
    written = os.fspath(directory)
    if not written or "\0" in written:
        raise InvalidInputError(f"not a directory: {abridged(written)}")
    if is_absolute(written) and not Path(written).is_absolute():
        return _place_alone(written)

    try:
        absolute = Path(written).absolute()
    except FileNotFoundError as error:
        hint = "change to a directory that exists"
        raise NotFoundError("the current directory is gone", hint=hint) from error
    if not os.path.isdir(absolute):
        return _place_alone(os.path.normpath(absolute))

    path = os.path.realpath(absolute)
    repository = git.repository_at(Path(path)) if resolve_git else None
    if repository is None:
        return _place_alone(path)
    kind: Literal["worktree", "sandbox"] = (
        "sandbox" if repository.linked else "worktree"
    )
    return Place(str(repository.root), path, str(repository.checkout), kind, "git")


def _place_alone(path: str) -> Place:
    return Place(root=path, directory=path, checkout=path)
