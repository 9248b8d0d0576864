"""The folders in which Goose keeps its sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

#: A variable of the environment, and the folder of sessions below it. The first
#: releases wrote their logs below the configuration.
_PLACES = (
    ("GOOSE_PATH_ROOT", "data/sessions"),
    ("XDG_DATA_HOME", "goose/sessions"),
    ("APPDATA", "Block/goose/data/sessions"),
    ("HOME", ".local/share/goose/sessions"),
    ("HOME", ".config/goose/sessions"),
)


def default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return where Goose keeps its sessions (``paths.rs``), and where it kept them."""
    return [Path(env[name], folder) for name, folder in _PLACES if env.get(name)]
