"""The folders of this machine and user that sessiondb uses.

Data has the global database, config ``config.toml``, state what belongs to this
machine alone (accepted databases, backups before migrations). Nothing is created
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
    """Return the folder of the global database.

    Raises `NotFoundError` without a home directory, like the functions below.
    """
    return _check_folder(_platform_dirs().user_data_path, "XDG_DATA_HOME")


def config_directory() -> Path:
    """Return the folder of ``config.toml``."""
    return _check_folder(_platform_dirs().user_config_path, "XDG_CONFIG_HOME")


def state_directory() -> Path:
    """Return the folder of what belongs to this machine alone."""
    return _check_folder(_platform_dirs().user_state_path, "XDG_STATE_HOME")


def _check_folder(folder: Path, variable: str) -> Path:
    """Return *folder*, which is *variable*'s or in the home directory."""
    # With an empty HOME, ~ is the root of the file system. Refused, and not replaced by
    # the passwd entry: a caller that empties HOME does not want that one to be used.
    is_homeless = os.environ.get("HOME") == "" and not os.environ.get(variable)
    # Relative to the current directory of each program, nothing would be found again.
    if is_homeless or not folder.is_absolute():
        raise NotFoundError(
            f"there is no home directory for {folder}",
            hint="set HOME to an absolute path, or name a database in SESSIONDB_PATH",
        )
    return folder


def expanded(path: str) -> Path:
    """Return *path* with a leading ``~`` or ``~user`` of a known user replaced."""
    # Path.expanduser() raises for an unknown user.
    return Path(os.path.expanduser(path))  # noqa: PTH111


def _platform_dirs() -> PlatformDirs:
    from platformdirs import PlatformDirs

    return PlatformDirs("sessiondb", appauthor=False)
