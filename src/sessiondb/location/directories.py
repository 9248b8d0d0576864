"""The folders of this machine and user in which sessiondb keeps things.

Data holds the global database, config ``config.toml``, state what only this
machine knows (accepted databases, backups before migrations). Nothing is made
here; XDG variables are honoured where platformdirs does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sessiondb.errors import NotFoundError

if TYPE_CHECKING:
    from platformdirs import PlatformDirs


def data_directory() -> Path:
    """Return the folder of the global database; raises `NotFoundError` without a home directory."""
    return _absolute(_platform().user_data_path)


def config_directory() -> Path:
    """Return the folder of ``config.toml``; raises `NotFoundError` without a home directory."""
    return _absolute(_platform().user_config_path)


def state_directory() -> Path:
    """Return the folder of what only this machine knows.

    Raises `NotFoundError` without a home directory.
    """
    return _absolute(_platform().user_state_path)


def _absolute(folder: Path) -> Path:
    # Relative to whatever directory a program happens to start in nothing would be found again.
    if not folder.is_absolute():
        raise NotFoundError(
            f"there is no home directory for {folder}",
            hint="set HOME to an absolute path, or name a database in SESSIONDB_PATH",
        )
    return folder


def expanded(path: str) -> Path:
    """Return *path* with a leading ``~`` or ``~user`` replaced; a user who is not known stays."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  Path.expanduser() raises for that one


def _platform() -> PlatformDirs:
    from platformdirs import PlatformDirs

    return PlatformDirs("sessiondb", appauthor=False)
