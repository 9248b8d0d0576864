"""Agents whose sessions are recognised and cannot be read yet, to name them.

A store is recognised by the names that its program gives to folders and files; nothing
is opened for it. The table has the names of the registry; a test holds that none of
them can be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import filterfalse
from pathlib import Path

from sessiondb.formats.kit.files import here, is_folder
from sessiondb.formats.kit.walk import Walk
from sessiondb.formats.registry import REGISTRY

#: Name → where it keeps its sessions, each place below one of `_bases`.
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


def _below(place: str) -> str:
    return place.partition("/")[2]


#: Name → how the path of one of its files looks, seen from the root.
PATHS = {
    name: "|".join(rf"/{re.escape(_below(place))}(/|$)" for place in places)
    for name, places in PLACES.items()
}


def agents_of(env: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return the agents that cannot be read, each with a place that has its sessions.

    The places are those of the user, and the current directory.
    """
    bases = _bases(env)
    found: dict[str, Path] = {}
    for name, places in PLACES.items():
        candidates = (
            folder / _below(place)
            for place in places
            for folder in bases[place.partition("/")[0]]
        )
        path = next(filter(_exists, candidates), None)
        if path is not None:
            found[REGISTRY[name].agent] = path
    return list(found.items())


def _bases(env: Mapping[str, str]) -> dict[str, list[Path]]:
    """Return the folders that programs keep their own below, by what they are for."""
    homes = [Path(name) for name in filter(None, [env.get("HOME")])]
    # There are macOS and Windows, too, where data and settings have the same folder.
    both = [home / "Library" / "Application Support" for home in homes]
    both += map(Path, filter(None, [env.get("APPDATA")]))

    def folders(variable: str, usual: str) -> list[Path]:
        named = env.get(variable)
        first = [Path(named)] if named else [home / usual for home in homes]
        return [*first, *both]

    settings = folders("XDG_CONFIG_HOME", ".config")
    users = [folder / editor for folder in settings for editor in _EDITORS]
    users += [home / ".vscode-server" / "data" for home in homes]
    return {
        "home": homes,
        "data": folders("XDG_DATA_HOME", ".local/share"),
        "settings": settings,
        "editor": [folder / "User" / "globalStorage" for folder in users],
        "here": list(filter(None, [here()])),
    }


def _exists(path: Path) -> bool:
    # pathlib raises where that cannot be known.
    return os.path.exists(path)


def agents_at(path: str | os.PathLike[str]) -> list[str]:
    """Return the agents with sessions at or below *path*, by name; none is ``[]``."""
    found: dict[str, None] = {}
    for file in _files(Path(path)):
        where = file.absolute().as_posix()
        named = [name for name, shape in PATHS.items() if re.search(shape, where)]
        found |= dict.fromkeys(named)
    return [REGISTRY[name].agent for name in found]


def _files(top: Path) -> Iterator[Path]:
    """Yield a file, or the files below a folder; no links."""
    if not is_folder(top):
        yield top
        return

    for folder in Walk(top, depth=MAX_DEPTH, most=MAX_ENTRIES):
        yield from map(Path, filterfalse(os.DirEntry.is_symlink, folder.files))
