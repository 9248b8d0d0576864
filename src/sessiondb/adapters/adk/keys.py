"""The names of ADK's sessions in a database.

ADK knows a session by app, user and id. Each part is quoted as in a URL, so that it has
neither a slash nor a control character, and a part that is long is named by its digest:
``app/user/id`` is the name of one session alone, ``app/user`` the scope of a user, and
the scopes of an app are one range of texts.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote

#: The program in whose name the sessions are.
SOURCE = "google-adk"
#: Bytes of a part as it is written. Three of them are an id of a session: 256 bytes.
_MOST_BYTES = 80


class AdkKey(NamedTuple):
    """A session as ADK names it."""

    app: str
    user: str
    id: str

    @classmethod
    def named(cls, app: str, user: str, session_id: str) -> AdkKey:
        """Return the key that a caller means: white space around an id is not of it."""
        return cls(app, user, (session_id or "").strip())

    @property
    def source_id(self) -> str:
        """The id of the session as the database has it."""
        return f"{self.scope}/{quoted(self.id)}"

    @property
    def scope(self) -> str:
        """The key by which the sessions of a user are listed."""
        return scope_of(self.app, self.user)


def scope_of(app: str, user: str) -> str:
    """Return the scope of the sessions of a user; it is also the key of their state."""
    return f"{quoted(app)}/{quoted(user)}"


def scopes_of_app(app: str) -> tuple[str, str]:
    """Return the first text that a scope of an app can be, and the first beyond."""
    return f"{quoted(app)}/", f"{quoted(app)}0"  # 0 follows the slash


@lru_cache(maxsize=1024)
def quoted(part: str) -> str:
    """Return a part of a key as it is written: one text for each part."""
    text = quote(part, safe="", errors="surrogatepass")
    if len(text) <= _MOST_BYTES:
        return text
    # Nothing that is quoted has a =.
    return "=" + sha256(part.encode(errors="surrogatepass")).hexdigest()
