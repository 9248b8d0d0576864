"""llm, Simon Willison's CLI: ``logs.db`` of both generations, often in one file.

Until 0.27 (and a few releases later) a conversation has rows of ``responses``, each a
prompt, the results of tools and an answer; `responses` makes messages of them. Since
0.32 a thread points at a tree of messages whose names are hashes of their content and
of all before them, and a turn has the messages that a call of a model added; `threads`
walks it.
`database` has the statements, `drafts` turns rows into drafts by the tables of
`fields`, and `reader` yields each session once, whichever generation has it.
"""

from collections.abc import Mapping
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import without_empty
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.sqlite import Error
from sessiondb.formats.llm.database import LlmLogs
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

__all__ = ["FORMAT"]

_read_sessions = late_reader("sessiondb.formats.llm.reader", "read_sessions")
_FOLDER, _FILE = "io.datasette.llm", "logs.db"


def _store_at(path: Path) -> ForeignStore | None:
    if path.suffix == ".db" and is_file(path) and _is_store(path):
        return ForeignStore("llm", path, _read_sessions)
    return None


def _is_store(path: Path) -> bool:
    """Return whether a database has the tables of either generation."""
    logs = LlmLogs(path, glance=True)
    try:
        with logs.reading():
            return logs.has_responses or logs.has_threads
    except (SourceError, Error):
        return False


def _default_locations(env: Mapping[str, str]) -> list[Path]:
    """Return the paths of llm's log: ``LLM_USER_PATH``, else click's folder for it.

    That is below the configuration on Linux, and below the application data elsewhere.
    """
    variables = without_empty(env)
    if "LLM_USER_PATH" in variables:
        return [Path(variables["LLM_USER_PATH"], _FILE)]

    folders: list[str] = []
    if "APPDATA" in variables:
        folders.append(variables["APPDATA"])
    # A variable that is set replaces the folder in the home: the log of another
    # configuration is not this user's.
    if "XDG_CONFIG_HOME" in variables:
        folders.append(variables["XDG_CONFIG_HOME"])
    elif "HOME" in variables:
        folders.append(f"{variables['HOME']}/.config")
    if "HOME" in variables:
        folders.append(f"{variables['HOME']}/Library/Application Support")
    return [Path(folder, _FOLDER, _FILE) for folder in folders]


FORMAT = Format(
    frozenset({".db"}), _store_at, _default_locations, names=frozenset({_FILE})
)
