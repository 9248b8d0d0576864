"""The folders of this machine and user in which sessiondb keeps things.

Data holds the global database, config ``config.toml``, state what only this
machine knows (accepted databases, backups before migrations). Nothing is made
here; XDG variables are honoured where platformdirs does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from platformdirs import PlatformDirs


def data_directory() -> Path:
    """Return the folder of the global database."""
    return _platform().user_data_path


def config_directory() -> Path:
    """Return the folder of ``config.toml``."""
    return _platform().user_config_path


def state_directory() -> Path:
    """Return the folder of what only this machine knows."""
    return _platform().user_state_path


def expanded(path: str) -> Path:
    """Return *path* with a leading ``~`` or ``~user`` replaced; a user who is not known stays."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  Path.expanduser() raises for that one


def _platform() -> PlatformDirs:
    from platformdirs import PlatformDirs

    return PlatformDirs("sessiondb", appauthor=False)
