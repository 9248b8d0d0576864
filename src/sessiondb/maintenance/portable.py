"""The paths of sessions in a folder that a team commits.

A log in ``.sessiondb/sessions`` has directories relative to the folder that contains
``.sessiondb``, never absolute ones: a path of one machine means nothing on another, and
reveals its user. A directory in a linked worktree becomes the same place in the
project; any other directory outside the project becomes the project's root. The prompt
history is private and left out; so are the rows of extensions, the state of running
programs, for which there is no rule of merging. Both ``sync`` and ``export`` follow
this rule for such a folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from sessiondb import location
from sessiondb.formats import jsonl
from sessiondb.model import Export
from sessiondb.places import is_absolute, stored

FOLDER = "/".join(jsonl.SYNC_FOLDER)
_ROOT = "."


def root_of(target: str | os.PathLike[str] | None) -> str | None:
    """Return the project whose folder of logs is *target* or contains it.

    None for any other place.
    """
    if target is None:
        return None
    path = Path(os.path.realpath(target))
    for folder in (path, path.parent):
        if folder.parts[-2:] == jsonl.SYNC_FOLDER:
            return str(folder.parents[1])
    return None


def portable(export: Export, root: str) -> Export:
    """Return *export* as the folder of logs of the project at *root* holds it."""
    session = replace(
        export.session, directory=_portable_directory(export.session.directory, root)
    )
    project = export.project
    if project is not None:
        worktree = stored(project.worktree, root)
        # The facts of another project do not describe this one.
        if is_absolute(worktree):
            project = replace(
                project, worktree=_ROOT, vcs=None, remote=None, root_commit=None
            )
        else:
            project = replace(project, worktree=worktree)

    return replace(
        export,
        session=session,
        project=project,
        prompts=(),
        extension_tables=(),
        extension_rows=(),
    )


def portable_in(
    exports: Iterable[Export], target: str | os.PathLike[str] | None
) -> Iterable[Export]:
    """Return *exports* as they are written to *target*, which may be such a folder."""
    root = root_of(target)
    if root is None:
        return exports

    return (portable(export, root) for export in exports)


def _portable_directory(directory: str | None, root: str) -> str:
    if directory is None:
        return _ROOT
    inside = stored(directory, root)
    if not is_absolute(inside):
        return inside
    if not os.path.isdir(directory):
        return _ROOT
    place = location.project_at(directory)
    if place.root != os.path.realpath(root):
        return _ROOT
    return stored(place.directory, place.checkout)
