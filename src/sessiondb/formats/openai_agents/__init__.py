"""OpenAI Agents SDK: the SQLite files of `SQLiteSession` and of those derived from it.

A program names the file, the tables and the sessions, so a file is recognised by the
columns of its tables (`tables`). Each row is an item of the Responses API and becomes
a message (`providers.responses`). `AdvancedSQLiteSession` adds branches and tokens
(`branches`).
"""

from pathlib import Path

from sessiondb.formats.kit.sqlite import SUFFIXES
from sessiondb.formats.openai_agents.tables import is_store
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

__all__ = ["FORMAT"]

_read_sessions = late_reader("sessiondb.formats.openai_agents.reader", "read_sessions")


def _agents_store_at(path: Path) -> ForeignStore | None:
    if is_store(path):
        return ForeignStore("openai-agents", path, _read_sessions)
    return None


#: The names that the documentation of the SDK gives to the file of a program.
_USUAL = frozenset({"conversations.db", "conversation_history.db"})

FORMAT = Format(SUFFIXES, _agents_store_at, in_projects=_USUAL)
