"""Agents whose sessions are recognised and cannot be read yet, to name them.

A store is recognised by the names that its program gives to folders and files; nothing
is opened for it. The table has the names of the registry; a test holds that none of
them can be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sessiondb.formats.kit.files import current_directory, is_folder
from sessiondb.formats.kit.walk import Walk
from sessiondb.formats.registry import REGISTRY

#: Name → where it keeps its sessions, each place below one of `_base_folders`.
PLACES = {
    "amp": ("data/amp/threads",),
    "antigravity": ("home/.gemini/antigravity/conversations",),
    "augment": ("home/.augment/sessions",),
    "cline": ("editor/saoudrizwan.claude-dev/tasks", "home/.cline/data"),
    "codebuff": ("settings/manicode/projects",),
    "continue": ("home/.continue/sessions",),
    "copilot": ("home/.copilot/session-state",),
    "crush": ("here/.crush/crush.db", "data/crush/projects.json"),
    "cursor": ("home/.cursor", "settings/Cursor/User/globalStorage"),
    "devin": ("data/devin/cli/sessions.db",),
    "droid": ("home/.factory/sessions",),
    "hermes": ("home/.hermes/state.db",),
    "kilo": ("editor/kilocode.kilo-code/tasks", "data/kilo/kilo.db"),
    "kimi": ("home/.kimi/sessions", "home/.kimi-code/sessions"),
    "kiro": ("data/kiro-cli", "home/.kiro/sessions"),
    "roo": ("editor/rooveterinaryinc.roo-cline/tasks",),
    "vibe": ("home/.vibe/logs/session",),
    "windsurf": ("home/.codeium/windsurf/cascade",),
    "zed": ("data/zed/threads", "data/Zed/threads"),
}
#: The programs whose extensions keep sessions, by their folders of settings.
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
#: Limits on the entries below a folder.
MAX_ENTRIES, MAX_DEPTH = 2_000, 8


#: Name → how the path of one of its files looks, seen from the root.
PATHS = {
    name: "|".join(rf"/{re.escape(place.partition('/')[2])}(/|$)" for place in places)
    for name, places in PLACES.items()
}


def agents_of(env: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return the agents that cannot be read, each with a place that has its sessions.

    The places are those of the user, and the current directory.
    """
    bases = _base_folders(env)
    agents: dict[str, Path] = {}
    for name, places in PLACES.items():
        path = _first_existing(places, bases)
        if path is not None:
            agents[REGISTRY[name].agent] = path
    return list(agents.items())


def _first_existing(
    places: Iterable[str], bases: Mapping[str, list[Path]]
) -> Path | None:
    for place in places:
        base, _, inner = place.partition("/")
        for folder in bases[base]:
            # pathlib raises if that cannot be known.
            if os.path.exists(folder / inner):
                return folder / inner
    return None


def _base_folders(env: Mapping[str, str]) -> dict[str, list[Path]]:
    """Return the folders that programs keep their own below, by what they are for."""
    homes = [Path(env["HOME"])] if env.get("HOME") else []
    # There are macOS and Windows, too, where data and settings have the same folder.
    shared = [home / "Library" / "Application Support" for home in homes]
    if env.get("APPDATA"):
        shared.append(Path(env["APPDATA"]))

    def folders(variable: str, usual: str) -> list[Path]:
        configured = env.get(variable)
        if configured:
            return [Path(configured), *shared]
        return [*(home / usual for home in homes), *shared]

    settings = folders("XDG_CONFIG_HOME", ".config")
    users = [folder / editor for folder in settings for editor in _EDITORS]
    users += [home / ".vscode-server" / "data" for home in homes]
    current = current_directory()
    return {
        "home": homes,
        "data": folders("XDG_DATA_HOME", ".local/share"),
        "settings": settings,
        "editor": [folder / "User" / "globalStorage" for folder in users],
        "here": [] if current is None else [current],
    }


def agents_at(path: str | os.PathLike[str]) -> list[str]:
    """Return the agents with sessions at or below *path*, by name; none is ``[]``."""
    names: list[str] = []
    for file in _files_below(Path(path)):
        full_path = file.absolute().as_posix()
        for name, shape in PATHS.items():
            if name not in names and re.search(shape, full_path):
                names.append(name)
    return [REGISTRY[name].agent for name in names]


def _files_below(top: Path) -> Iterator[Path]:
    """Yield a file, or the files below a folder; no links."""
    if not is_folder(top):
        yield top
        return

    for folder in Walk(top, depth=MAX_DEPTH, most=MAX_ENTRIES):
        for entry in folder.files:
            if not entry.is_symlink():
                yield Path(entry)
