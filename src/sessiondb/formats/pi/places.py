"""Where pi and its descendants keep their sessions, and where one is written for them.

By ``session-manager.ts`` of pi, and by ``dirs.ts`` and ``session-paths.ts`` of
oh-my-pi and xcsh, which have profiles and follow XDG.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from sessiondb.formats.kit.files import is_folder, locations
from sessiondb.formats.pi.logs import logs_in

Env = Mapping[str, str]

#: The variables that name the folder of a program, and one for the logs of all
#: directories.
_HOME, _ONE_FOLDER = "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"
#: The characters of a directory that are a dash in the name of its folder.
_SEPARATOR = re.compile(r"[/\\:]")
#: The first one, which the name does not have.
_FIRST = re.compile(r"\A[/\\]")


@dataclass(frozen=True, slots=True)
class Program:
    """pi, or a descendant of it: its command, and its folder in the user's home.

    ``source`` is that of its sessions, ``resume`` the option of the command that names
    a session. A log of one that ``is_titled`` may begin with its title: pi opens none
    that does not begin with its header.
    """

    source: str
    command: str
    folder: str
    resume: str
    is_titled: bool = True

    def sessions(self, env: Env) -> Path:
        """Return the folder that all its logs are in, or below."""
        if env.get(_ONE_FOLDER):
            return Path(env[_ONE_FOLDER]).expanduser()

        home = env.get(_HOME) or _home(env) / self.folder / "agent"
        return Path(home).expanduser() / "sessions"

    def folder_of(self, directory: str, env: Env) -> Path:
        """Return the folder in which it keeps the sessions of *directory*."""
        folder = self.sessions(env)
        return folder if env.get(_ONE_FOLDER) else folder / self.name_of(directory, env)

    def name_of(self, directory: str, env: Env) -> str:
        """Return the name of the folder for the sessions of *directory*."""
        del env
        return f"--{_dashed(_FIRST.sub('', directory))}--"

    def holds(self, session: str, env: Env) -> bool:
        """Return whether its store has a log of a session.

        By the header of the log: no program opens one without it, nor by its name.
        """
        logs = logs_in(self.sessions(env))
        return any(log.session == session for log in logs if log.header)


class Descendant(Program):
    """oh-my-pi or xcsh, whose sessions may be below ``XDG_DATA_HOME``, or a profile."""

    def sessions(self, env: Env) -> Path:
        """Return the folder that all its logs are in, or below."""
        profile = self._profile(env)
        if env.get(_ONE_FOLDER) or (env.get(_HOME) and not profile):
            return super().sessions(env)

        # Only a folder that exists is used instead of the one in the user's home.
        if profile:
            xdg = [path / profile for path in self._below_data(env, "profiles")]
            home = self._below_home(env, f"profiles/{profile}/agent")
        else:
            xdg, home = self._below_data(env), self._below_home(env, "agent")
        return next(filter(is_folder, xdg), home) / "sessions"

    def places(self, env: Env) -> Iterator[Path]:
        """Yield the places of its sessions; each profile is below one of them."""
        yield from self._below_data(env)
        yield from self._below_data(env, "profiles")
        if env.get("HOME"):
            yield self._below_home(env, "agent")
            yield self._below_home(env, "profiles")

    def name_of(self, directory: str, env: Env) -> str:
        """Return a name relative to the home or the temporary folder, if below it."""
        place = Path(directory).resolve()
        for prefix, root in (("", _home(env)), ("-tmp", Path(tempfile.gettempdir()))):
            if place == root.resolve():
                return prefix or "-"
            if place.is_relative_to(root.resolve()):
                return f"{prefix}-{_dashed(str(place.relative_to(root.resolve())))}"
        return super().name_of(str(place), env)

    def _profile(self, env: Env) -> str:
        named = env.get("OMP_PROFILE", env.get("PI_PROFILE", "")).strip()
        return "" if named == "default" else named

    def _below_data(self, env: Env, folder: str = "") -> list[Path]:
        named = env.get("XDG_DATA_HOME")
        return [Path(named, self.command, folder)] if named else []

    def _below_home(self, env: Env, folder: str) -> Path:
        return _home(env) / (env.get("PI_CONFIG_DIR") or self.folder) / folder


def default_locations(env: Env) -> list[Path]:
    """Return the places of all programs, for `Format.default_locations`."""
    descendants = (program.places(env) for program in (OH_MY_PI, XCSH))
    return [*_PLACES(env), *chain.from_iterable(descendants)]


def _home(env: Env) -> Path:
    return Path(env.get("HOME") or "~").expanduser()


def _dashed(path: str) -> str:
    return _SEPARATOR.sub("-", path)


PI = Program("pi", "pi", ".pi", "--session", is_titled=False)
OH_MY_PI = Descendant("oh-my-pi", "omp", ".omp", "--resume")
XCSH = Descendant("xcsh", "xcsh", ".xcsh", "--resume")
_PLACES = locations((_HOME, _ONE_FOLDER), (f"{PI.folder}/agent",))
