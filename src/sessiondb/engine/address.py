"""The address of a database on a server."""

from __future__ import annotations

from sessiondb.dataclass import dataclass, field
from sessiondb.patterns import late_pattern

#: How a URL of a server begins, in an argument of a command line as well.
_SERVER = late_pattern(r"(?i)(?:--db=)?postgres(?:ql)?://")
#: The passwords of a URL: behind the name of the user, and among the options. As libpq
#: reads it, a password may have a ``?`` in it, and no ``/``.
_OF_USER = late_pattern(r"(://[^/:@]*:)[^/]*@")
_OPTION = late_pattern(r"([?&](?:ssl)?password=)[^&]*")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The URL of a database; wherever it is shown, it is without passwords."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        return without_passwords(self.url)


def without_passwords(text: str) -> str:
    """Return *text*, without its passwords if it is the URL of a server."""
    if _SERVER.match(text) is None:
        return text
    return _OPTION.sub(r"\1***", _OF_USER.sub(r"\1***@", text))
