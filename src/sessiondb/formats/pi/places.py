"""Where pi and its descendants keep their sessions, and where one is written for them.

By ``session-manager.ts`` of pi, and by ``dirs.ts`` and ``session-paths.ts`` of
oh-my-pi and xcsh, which have profiles and follow XDG.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from sessiondb.dataclass import dataclass
from sessiondb.formats.kit.files import is_folder, locations_function
from sessiondb.formats.pi.logs import logs_in
from sessiondb.patterns import late_pattern

Env = Mapping[str, str]

#: The variables that name the folder of a program, and one for the logs of all
#: directories.
_HOME, _ONE_FOLDER = "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"
#: The characters of a directory that are a dash in the name of its folder.
_SEPARATOR = late_pattern(r"[/\\:]")
#: The first one, which the name does not have.
_FIRST = late_pattern(r"\A[/\\]")


@dataclass(frozen=True, slots=True)
class PiProgram:
    """pi, or a descendant of it."""

    #: The source of its sessions.
    source: str
    command: str
    #: Its folder in the user's home.
    folder: str
    #: The option of the command that names a session.
    resume: str
    #: Whether a log may begin with its title: pi opens only one that begins with its
    #: header.
    is_titled: bool = True

    def sessions_folder(self, env: Env) -> Path:
        """Return the folder that all its logs are in, or below."""
        if env.get(_ONE_FOLDER):
            return Path(env[_ONE_FOLDER]).expanduser()

        home = env.get(_HOME) or _user_home(env) / self.folder / "agent"
        return Path(home).expanduser() / "sessions"

    def folder_of(self, directory: str, env: Env) -> Path:
        """Return the folder in which it keeps the sessions of *directory*."""
        if env.get(_ONE_FOLDER):
            return self.sessions_folder(env)
        return self.sessions_folder(env) / self.folder_name(directory, env)

    def folder_name(self, directory: str, env: Env) -> str:
        """Return the name of the folder for the sessions of *directory*."""
        del env
        return f"--{_with_dashes(_FIRST.sub('', directory))}--"

    def holds(self, session: str, env: Env) -> bool:
        """Return whether its store has a log of a session.

        By the header of the log: no program opens one without it, nor by its name.
        """
        logs = logs_in(self.sessions_folder(env))
        return any(log.session == session for log in logs if log.head.has_header)


class PiDescendant(PiProgram):
    """oh-my-pi or xcsh, whose sessions may be below ``XDG_DATA_HOME``, or a profile."""

    def sessions_folder(self, env: Env) -> Path:
        """Return the folder that all its logs are in, or below."""
        name = env.get("OMP_PROFILE", env.get("PI_PROFILE", "")).strip()
        profile = "" if name == "default" else name
        if env.get(_ONE_FOLDER) or (env.get(_HOME) and not profile):
            return super().sessions_folder(env)

        data, home = self._data_folder(env), self._home_folder(env) / "agent"
        if profile:
            data = data and data / "profiles" / profile
            home = self._home_folder(env) / "profiles" / profile / "agent"

        # Only a folder that exists is used instead of the one in the user's home.
        if data is not None and is_folder(data):
            return data / "sessions"
        return home / "sessions"

    def session_places(self, env: Env) -> Iterator[Path]:
        """Yield the places of its sessions; each profile is below one of them."""
        data = self._data_folder(env)
        if data is not None:
            yield from (data, data / "profiles")
        if env.get("HOME"):
            home = self._home_folder(env)
            yield from (home / "agent", home / "profiles")

    def folder_name(self, directory: str, env: Env) -> str:
        """Return a name relative to the home or the temporary folder, if below it."""
        place = Path(directory).resolve()
        for prefix, root in (
            ("", _user_home(env)),
            ("-tmp", Path(tempfile.gettempdir())),
        ):
            if place == root.resolve():
                return prefix or "-"
            if place.is_relative_to(root.resolve()):
                return (
                    f"{prefix}-{_with_dashes(str(place.relative_to(root.resolve())))}"
                )
        return super().folder_name(str(place), env)

    def _data_folder(self, env: Env) -> Path | None:
        data_home = env.get("XDG_DATA_HOME")
        return Path(data_home, self.command) if data_home else None

    def _home_folder(self, env: Env) -> Path:
        return _user_home(env) / (env.get("PI_CONFIG_DIR") or self.folder)


def default_locations(env: Env) -> list[Path]:
    """Return the places of all programs, for `Format.default_locations`."""
    return [
        *_PI_LOCATIONS(env),
        *OH_MY_PI.session_places(env),
        *XCSH.session_places(env),
    ]


def _user_home(env: Env) -> Path:
    return Path(env.get("HOME") or "~").expanduser()


def _with_dashes(path: str) -> str:
    return _SEPARATOR.sub("-", path)


PI = PiProgram("pi", "pi", ".pi", "--session", is_titled=False)
OH_MY_PI = PiDescendant("oh-my-pi", "omp", ".omp", "--resume")
XCSH = PiDescendant("xcsh", "xcsh", ".xcsh", "--resume")
_PI_LOCATIONS = locations_function((_HOME, _ONE_FOLDER), (f"{PI.folder}/agent",))
