"""How a database names directories: absolute, or relative to a local one's folder.

A project-local database moves with its folder, so directories inside that folder are
stored relative to it, with ``/``. All others are stored as they are.
"""

from __future__ import annotations

import ntpath
import os
import posixpath


def is_absolute(path: str) -> bool:
    r"""Return whether *path* is absolute on any system, as ``C:\x`` is."""
    return posixpath.isabs(path) or ntpath.isabs(path)


def named(path: str) -> str:
    r"""Return the name of *path* in a database: bytes that are not UTF-8 are ``\xff``.

    A directory with such a name is a project like any other; only a program that
    enters it has to know its bytes.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    return path


def stored(directory: str, root: str | None) -> str:
    """Return *directory* as a database keeps it.

    *root* is the folder of a project-local database, None for others. The root itself
    is ``.``.
    """
    if root is None or not os.path.isabs(directory):
        return directory
    prefix, path = root.rstrip(os.sep) + os.sep, os.path.normpath(directory)
    if not (path + os.sep).startswith(prefix):
        return directory
    return path[len(prefix) :].replace(os.sep, "/") or "."


def absolute(directory: str, root: str | None) -> str:
    """Return a directory that `stored` returned, relative to the present *root*."""
    if root is None or is_absolute(directory):
        return directory
    return os.path.normpath(os.path.join(root, directory))
